"""Many at once: threads and processes on one user neither lose nor double a page or a fact, and keep the order."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from tests.memory_support import (
    START,
    HashEmbeddings,
    OpenMemory,
    exchange,
    exported,
    members,
    owner,
    queries,
    tell,
)

pytest_plugins = ["tests.memory_fixtures"]

ANN = owner()
TIGHT = MemorySettings.paper(short_term_capacity_pages=1, promotion_heat=0.5)
BATCHES = MemorySettings(short_term_capacity_pages=4, eviction_batch_pages=4, promotion_heat=0.5, maintenance="deferred")
CITIES = ("Oslo", "Rome", "Lima", "Bonn", "Kyiv", "Pune", "Cork", "Graz")


def together(count: int, call: Any) -> list[Any]:
    """Run ``call(number)`` in threads that start at the same moment."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> Any:
        barrier.wait()
        return call(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def assert_each_page_in_one_place(memory: MemoryOS) -> None:
    """Every page is in one queue or in one segment, and says so itself."""
    pages = {page["page_id"]: page for page in exported(memory, "ann")}
    queued = [page.page_id for thread in memory.parts.pages.threads(ANN) for page in memory.parts.pages.queue(ANN, thread)]
    placed = {page: segment for segment, held in members(memory, ANN).items() for page in held}
    counted = Counter(queued) + Counter(page for held in members(memory, ANN).values() for page in held)
    assert counted == Counter(list(pages))
    assert {name: page["segment_id"] for name, page in pages.items() if page["segment_id"]} == placed
    assert {name for name, page in pages.items() if page["tier"] == "short"} == set(queued)


def test_sixteen_writers_of_one_exchange_leave_one_page(memory: MemoryOS) -> None:
    statuses = together(16, lambda _: memory.parts.pages.write(ANN, exchange("hello", source="m1")).status)
    assert Counter(statuses) == {"new": 1, "same": 15}
    assert queries(memory, "ann") == ["hello"]
    assert memory.parts.pages.queue_length(ANN, "talk") == 1


def test_sixteen_writers_with_different_replies_leave_one_whole_page(memory: MemoryOS) -> None:
    together(16, lambda n: memory.parts.pages.write(ANN, exchange("hello", f"reply {n}", source="m1")))
    (page,) = exported(memory, "ann")
    assert [found.page.reply for found in memory.search("hello", user_id="ann")] == [page["reply"]]


def test_fifty_parallel_turns_keep_every_page_and_the_order(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT)
    turns = 5

    def talk(number: int) -> None:
        tell(memory, "ann", *(f"thread {number} turn {turn}" for turn in range(turns)), thread=f"thread-{number}")

    together(10, talk)
    said = queries(memory, "ann")
    assert len(said) == len(set(said)) == 10 * turns
    for number in range(10):
        mine = [text for text in said if text.startswith(f"thread {number} ")]
        assert mine == [f"thread {number} turn {turn}" for turn in range(turns)]
    assert sorted(page["sequence"] for page in exported(memory, "ann")) == list(range(1, 10 * turns + 1))
    assert_each_page_in_one_place(memory)


def test_fifty_parallel_turns_of_one_thread(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT)
    together(25, lambda n: tell(memory, "ann", f"turn {n}", f"turn {n + 25}"))
    assert sorted(queries(memory, "ann")) == sorted(f"turn {n}" for n in range(50))
    memory.consolidate.invoke({"user_id": "ann"})
    left = memory.parts.pages.queue_length(ANN, "talk")
    # Turns that find the queue full at the same moment may empty it, never overfill it.
    assert left <= 1
    assert_each_page_in_one_place(memory)
    assert sum(segment.page_count for segment in memory.parts.segments.active(ANN)) == 50 - left


def test_equal_timestamps_keep_the_order_of_arrival(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT)
    texts = [f"turn {n}" for n in range(30)]
    tell(memory, "ann", *(exchange(text, said_at=START) for text in texts))
    assert queries(memory, "ann") == texts
    placed = [page.query for segment in memory.parts.segments.active(ANN)
              for page in memory.parts.segments.newest_pages(ANN, [segment.segment_id], limit=99)[segment.segment_id]]
    assert sorted(placed, key=texts.index) == texts[:-1]
    for segment in memory.parts.segments.active(ANN):
        held = [page.sequence for page in memory.parts.segments.newest_pages(ANN, [segment.segment_id], limit=99)[segment.segment_id]]
        assert held == sorted(held)


def consolidate_in_a_process(url: str, namespace: str, start: Any) -> None:
    """Evict and promote everything of the user; runs in a process of its own."""
    with MemoryOS.open_sync(
        url, namespace=namespace, embeddings=HashEmbeddings(), analyst=DeterministicAnalyst(), settings=BATCHES,
    ) as memory:
        start.wait(60)
        for _ in range(3):
            memory.consolidate.invoke({"user_id": "ann", "drain": True})


def test_two_processes_evict_and_promote_one_user_at_once(
    open_memory: OpenMemory, redis_url: str, redis_prefix: str,
) -> None:
    memory = open_memory(settings=BATCHES)
    said = [f"I live in {city}, house {n}." for n, city in enumerate(CITIES * 2)]
    again = [exchange(f"I live in {city}.", source=f"{city} {n}") for n in range(2) for city in CITIES]
    tell(memory, "ann", *said, *again)
    spawn = get_context("spawn")
    start = spawn.Barrier(2)
    processes = [
        spawn.Process(target=consolidate_in_a_process, args=(redis_url, redis_prefix, start)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert_each_page_in_one_place(memory)
    assert memory.parts.pages.queue_length(ANN, "talk") == 0
    facts = [fact["text"] for fact in exported(memory, "ann", "fact")]
    assert Counter(facts) == Counter([*said, *(f"I live in {city}." for city in CITIES)])
    for chain in {page["chain_id"] for page in exported(memory, "ann")}:
        held = memory.parts.pages.chain(ANN, chain)
        assert held is not None
        assert held.page_count == sum(page["chain_id"] == chain for page in exported(memory, "ann"))
    assert not any(segment.interactions for segment in memory.parts.segments.active(ANN))


def test_user_erased_while_consolidation_runs_does_not_come_back(open_memory: OpenMemory) -> None:
    """The user is erased before each write of a consolidation that has read everything already."""
    for moment in ("assign", "refresh", "cool", "add"):
        memory = open_memory(settings=TIGHT.model_copy(update={"maintenance": "deferred"}))
        tell(memory, "ann", *(f"My name is Ann. I live in {city}." for city in CITIES))
        store = memory.parts.facts if moment == "add" else memory.parts.segments
        original = getattr(store, moment)
        erased: list[Any] = []

        def first_erase(
            *args: Any, original: Any = original, memory: MemoryOS = memory, erased: list[Any] = erased, **kwargs: Any,
        ) -> Any:
            if not erased:
                erased.append(memory.forget("ann"))
            return original(*args, **kwargs)

        setattr(store, moment, first_erase)
        memory.consolidate.invoke({"user_id": "ann", "drain": True})
        assert erased[0].pages == len(CITIES)
        assert list(memory.export("ann")) == []
        names = memory.connection.client.scan_iter(match=memory._namespace.user_pattern("ann"))
        assert [name for name in names if name.split(b":")[1] not in {b"erased", b"erasures"}] == []
        memory.forget("ann")


def test_erasing_and_consolidating_at_the_same_time(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT)
    tell(memory, "ann", *(f"I live in {city}." for city in CITIES))

    def work(number: int) -> None:
        if number == 0:
            memory.forget("ann")
        else:
            memory.consolidate.invoke({"user_id": "ann", "drain": True})

    together(4, work)
    assert list(memory.export("ann")) == []


def test_visits_of_many_recalls_are_all_counted(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT.model_copy(update={"segment_threshold": -1.0}))
    tell(memory, "ann", "tomato plants", "tomato soup", "rain")
    ask = {"messages": [("user", "tomato")], "user_id": "ann"}
    together(12, lambda _: memory.recall.invoke(ask))
    (segment,) = memory.parts.segments.active(ANN)
    assert segment.visits == 12
    keys = memory._namespace.keys(ANN)
    assert memory.connection.client.llen(keys.visiting_turns) == 12
