"""Round trips to Redis are counted, not timed: a turn asks as often after 300 pages as after 20."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from tests.memory_support import OpenMemory

pytest_plugins = ["tests.memory_fixtures"]

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
MOST_RECALL_TRIPS = 3
BATCH = 10
TRIPS_PER_TOUCHED_SEGMENT = 4
SETTINGS = MemorySettings(short_term_capacity_pages=BATCH, eviction_batch_pages=BATCH, promotion_heat=1e9)


def benchmark_module(name: str) -> ModuleType:
    """Load a module of the benchmarks, which are not installed."""
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


round_trips = benchmark_module("round_trips")
small_talk = benchmark_module("small_talk")


class Talk:
    """One user's conversation with a memory whose round trips are counted."""

    def __init__(self, memory: MemoryOS) -> None:
        self.memory = memory
        self.counter = round_trips.RoundTripCounter(memory.connection.client)
        self.exchanges: Iterator[Any] = iter(
            small_talk.SmallTalk(seed=5).exchanges(thread="talk", turns=400, first=0))

    def fill(self, pages: int) -> None:
        """Remember exchanges, several in one run."""
        for _ in range(0, pages, BATCH):
            given = [next(self.exchanges).to_json() for _ in range(BATCH)]
            report = self.memory.remember.invoke({"exchanges": given, "user_id": "ann", "thread_id": "talk"})
            assert not report["remembered"].get("failure")

    def turn(self) -> tuple[int, int]:
        """Return the round trips of a recall and of a remember."""
        exchange = next(self.exchanges)
        messages = [HumanMessage(exchange.query, id=f"{exchange.source_ids[0]}-q")]
        context: Any = {"user_id": "ann", "thread_id": "talk"}
        with self.counter.counting() as recalled:
            self.memory.recall.invoke({"messages": messages}, context=context)
        messages = [*messages, AIMessage(exchange.reply)]
        with self.counter.counting() as remembered:
            self.memory.remember.invoke({"messages": messages}, context=context)
        return len(recalled), len(remembered)


@pytest.fixture
def talk(open_memory: OpenMemory) -> Talk:
    return Talk(open_memory(embeddings=small_talk.WordEmbeddings(dimensions=128), settings=SETTINGS))


def test_the_counter_sees_commands_pipelines_and_threads(talk: Talk) -> None:
    client = talk.memory.connection.client
    pipeline = client.pipeline(transaction=False)
    for _ in range(5):
        pipeline.echo("x" * 10_000)
    with talk.counter.counting() as trips:
        client.ping()
        pipeline.execute()

    assert [trip.replies for trip in trips] == [1, 5]
    assert talk.counter.replay(trips) > 0
    with talk.counter.counting() as trips:
        assert talk.memory.recall.invoke({"messages": [HumanMessage("hello")]}, context={"user_id": "ann"})
    assert len(trips) >= 1  # made in LangGraph's threads


def test_round_trips_of_a_turn_do_not_depend_on_history(talk: Talk) -> None:
    talk.fill(20)
    talk.turn()  # the first recall of a process reads the speakers' names
    few = [talk.turn() for _ in range(BATCH)]
    talk.fill(280)
    many = [talk.turn() for _ in range(BATCH)]

    assert {recalled for recalled, _ in (*few, *many)} == {MOST_RECALL_TRIPS}
    writes, evictions = ([turns[rank][1] for turns in (sorted(few, key=sum), sorted(many, key=sum))] for rank in (0, -1))
    assert writes[0] == writes[1]
    # An eviction reads and refreshes each segment that got a page, so that is what its cost may vary with.
    assert evictions[1] <= evictions[0] + TRIPS_PER_TOUCHED_SEGMENT * BATCH


def test_a_recall_by_the_paper_takes_one_round_trip_more(open_memory: OpenMemory) -> None:
    talk = Talk(open_memory(embeddings=small_talk.WordEmbeddings(dimensions=128), settings=MemorySettings.paper()))
    counted = []
    for pages in (0, 10, 40):
        talk.fill(pages)
        counted += [talk.turn()[0] for _ in range(2)]

    assert max(counted) == counted[-1] == MOST_RECALL_TRIPS + 1


def test_what_a_recall_by_the_paper_reads_is_bounded(open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph_memoryos.stores.recall.SEGMENT_PAGES_SCORED", 20)
    settings = MemorySettings.paper(segment_threshold=-1.0, eviction_batch_pages=7)
    talk = Talk(open_memory(embeddings=small_talk.WordEmbeddings(dimensions=128), settings=settings))
    received = []
    for _ in range(2):
        talk.fill(60)
        with talk.counter.counting() as trips:
            talk.memory.recall.invoke({"messages": [HumanMessage("What did I cook?")]}, context={"user_id": "ann"})
        received.append(sum(trip.received for trip in trips))

    vectors, texts = 20 * 128 * 4, 30_000
    assert vectors < received[0] < vectors + texts
    assert received[1] < vectors + texts
