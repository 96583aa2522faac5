"""Crashes: whoever dies, whenever, nothing that was said is lost and nothing is there twice."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from tests.crash_client import EVERYTHING, open_client, take_a_turn_and_die
from tests.memory_support import (
    HashEmbeddings,
    OpenMemory,
    PlayedModel,
    asked,
    exchange,
    exported,
    members,
    owner,
    queries,
    run_of,
    tell,
)

pytest_plugins = ["tests.memory_fixtures"]

ANN = owner()
FIRST, SECOND, THIRD = "I live in Oslo.", "I work in Bergen.", "I love rain."
RECALL_STEPS = (
    "resolve_turn", "retrieve_short_term", "retrieve_mid_term", "retrieve_long_term", "assemble_memory", "record_visits",
)
THINKING_STEPS = ("analyse_pages", "summarise_segments", "digest_segments")
WRITING_STEPS = (
    "write_page", "select_overflow", "assign_segments", "refresh_segments", "evict_cold_segments",
    "promote_hot_segments", "load_known_persona", "update_persona", "cool_segments",
)
LATER_STEPS = (*THINKING_STEPS, *WRITING_STEPS)


@pytest.fixture(scope="module", autouse=True)
def forkserver() -> None:
    """Start children from a process that has imported the library already."""
    get_context("forkserver").set_forkserver_preload(["langgraph_memoryos.memory", "tests.crash_client"])


@pytest.fixture
def client(redis_url: str, redis_prefix: str) -> Iterator[MemoryOS]:
    with open_client(redis_url, redis_prefix) as memory:
        yield memory
        saver = memory.checkpointer()
        saver.delete_thread(redis_prefix)


def die(url: str, namespace: str, text: str, step: str, *, after: bool) -> None:
    """Let a client take a turn and be killed at a step."""
    process = get_context("forkserver").Process(
        target=take_a_turn_and_die, args=(url, namespace, text, step, after))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, f"{step} was not reached"


def assert_nothing_lost_nothing_doubled(memory: MemoryOS, *said: str) -> None:
    pages = exported(memory, "ann")
    assert [page["query"] for page in pages] == list(said)
    assert all(page["reply"] for page in pages)
    threads = memory.parts.pages.threads(ANN)
    queued = [page.page_id for thread in threads for page in memory.parts.pages.queue(ANN, thread)]
    placed = [page for held in members(memory, ANN).values() for page in held]
    assert sorted(queued + placed) == sorted(page["page_id"] for page in pages)
    assert len(queued) == 1
    chains = [memory.parts.pages.chain(ANN, page["chain_id"]) for page in pages if page["chain_id"]]
    assert sum(chain.page_count for chain in {chain.chain_id: chain for chain in chains if chain}.values()) == len(placed)
    facts = [fact["text"] for fact in exported(memory, "ann", "fact")]
    assert facts == list(said[:-1])
    assert all(segment.interactions == 0 for segment in memory.parts.segments.active(ANN))


@pytest.mark.parametrize(("step", "after"), [
    *((step, False) for step in ("resolve_turn", "assemble_memory", "record_visits", "generate_reply", *LATER_STEPS)),
    *((step, True) for step in ("record_visits", "generate_reply", *WRITING_STEPS)),
])
def test_killed_client_resumes_from_the_checkpoint(
    client: MemoryOS, redis_url: str, redis_prefix: str, step: str, after: bool,  # noqa: FBT001
) -> None:
    graph = client.builder("chat").compile(checkpointer=client.checkpointer())
    config = run_of("ann", redis_prefix)
    graph.invoke(asked(FIRST, FIRST), config)
    die(redis_url, redis_prefix, SECOND, step, after=after)
    resumed = graph.invoke(None, config)
    assert [message.text for message in resumed["messages"]] == [FIRST, "Noted, thank you.", SECOND, "Noted, thank you."]
    assert_nothing_lost_nothing_doubled(client, FIRST, SECOND)
    graph.invoke(asked(THIRD, THIRD), config)
    assert_nothing_lost_nothing_doubled(client, FIRST, SECOND, THIRD)


def test_visits_of_a_killed_and_resumed_turn_count_once(
    client: MemoryOS, redis_url: str, redis_prefix: str,
) -> None:
    graph = client.builder("chat").compile(checkpointer=client.checkpointer())
    config = run_of("ann", redis_prefix)
    for text in (FIRST, SECOND):
        graph.invoke(asked(text, text), config)
    before = sum(segment.visits for segment in client.parts.segments.active(ANN))
    die(redis_url, redis_prefix, THIRD, "record_visits", after=True)
    visited = sum(segment.visits for segment in client.parts.segments.active(ANN))
    assert visited > before
    graph.invoke(None, config)
    assert sum(segment.visits for segment in client.parts.segments.active(ANN)) == visited


@pytest.mark.parametrize("step", LATER_STEPS)
def test_next_turn_catches_up_with_a_killed_client(
    client: MemoryOS, redis_url: str, redis_prefix: str, step: str,
) -> None:
    """The user does not resume but goes on; the reply was there, so the exchange must be too."""
    graph = client.builder("chat").compile(checkpointer=client.checkpointer())
    config = run_of("ann", redis_prefix)
    graph.invoke(asked(FIRST, FIRST), config)
    die(redis_url, redis_prefix, SECOND, step, after=True)
    graph.invoke(asked(THIRD, THIRD), config)
    assert_nothing_lost_nothing_doubled(client, FIRST, SECOND, THIRD)


def test_killed_redis_comes_back_with_everything(tmp_path: Path) -> None:
    """The server is killed before each kind of write of a turn; its log of writes brings all of it back."""
    with MemoryOS.open_sync(
        data_dir=tmp_path, embeddings=HashEmbeddings(), analyst=DeterministicAnalyst(), settings=EVERYTHING,
    ) as memory:
        client = memory.connection.client
        tell(memory, "ann", FIRST)
        killed: list[int] = []

        def kill_before(store: Any, method: str) -> None:
            original = getattr(store, method)

            def fatal(*args: Any, **kwargs: Any) -> Any:
                setattr(store, method, original)
                killed.append(client.info("server")["process_id"])
                os.kill(killed[-1], signal.SIGKILL)
                return original(*args, **kwargs)

            setattr(store, method, fatal)

        parts = memory.parts
        for store, method in ((parts.pages, "write"), (parts.segments, "assign"), (parts.segments, "cool")):
            kill_before(store, method)
        tell(memory, "ann", SECOND)
        assert len(set(killed)) == 3
        assert_nothing_lost_nothing_doubled(memory, FIRST, SECOND)
        assert {found.page.query for found in memory.search("Oslo Bergen", user_id="ann")} == {FIRST, SECOND}


def test_the_same_turn_ingested_twice_is_one_page(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=EVERYTHING)
    for _ in range(2):
        reports = tell(memory, "ann", FIRST, SECOND, THIRD)
    assert [report["status"] for report in reports] == ["same"] * 3
    assert_nothing_lost_nothing_doubled(memory, FIRST, SECOND, THIRD)


def test_time_travel_leaves_one_page(open_memory: OpenMemory) -> None:
    memory = open_memory(model=PlayedModel())
    graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
    config = run_of("ann")
    graph.invoke(asked(FIRST, FIRST), config)
    for checkpoint in list(graph.get_state_history(config)):
        if checkpoint.next:
            config_then = {"configurable": {**config["configurable"], **checkpoint.config["configurable"]}}
            graph.invoke(None, config_then)
    assert [(page["query"], page["reply"]) for page in exported(memory, "ann")] == [(FIRST, "Noted, thank you.")]


class TestWalkingAway:
    """The caller stops reading once the reply is there; the exchange must be in Redis all the same."""

    @staticmethod
    def is_end(event: tuple[str, Any], until: str) -> bool:
        mode, value = event
        if mode == "updates":
            return until == "update" and "generate_reply" in value
        return until == "token" and value[0].content in ("you.", "reply.")

    def walk_away(self, memory: MemoryOS, until: str) -> Any:
        """Read the first turn of a chat until its reply is there; return the graph, which has a checkpointer."""
        graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
        stream = graph.stream(asked(FIRST, FIRST), run_of("ann"), stream_mode=["messages", "updates"])
        assert any(self.is_end(event, until) for event in stream)
        stream.close()
        return graph

    @staticmethod
    async def kept(memory: MemoryOS) -> list[tuple[str, str]]:
        """Return the pages once there are any: LangGraph does not wait for the steps that it cancels."""
        for _ in range(100):
            if pages := exported(memory, "ann"):
                return [(page["query"], page["reply"]) for page in pages]
            await asyncio.sleep(0.05)
        return []

    @pytest.mark.parametrize("until", ["token", "update"])
    def test_stream(self, open_memory: OpenMemory, until: str) -> None:
        memory = open_memory(model=PlayedModel())
        self.walk_away(memory, until)
        assert [(page["query"], page["reply"]) for page in exported(memory, "ann")] == [(FIRST, "Noted, thank you.")]

    @pytest.mark.parametrize("until", ["token", "update"])
    async def test_astream(self, open_memory: OpenMemory, until: str) -> None:
        memory = open_memory(model=PlayedModel())
        graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
        stream = graph.astream(asked(FIRST, FIRST), run_of("ann"), stream_mode=["messages", "updates"])
        async for event in stream:
            if self.is_end(event, until):
                break
        await stream.aclose()
        assert await self.kept(memory) == [(FIRST, "Noted, thank you.")]

    async def test_astream_that_is_cancelled_keeps_what_was_sent(self, open_memory: OpenMemory) -> None:
        memory = open_memory(model=PlayedModel(reply="one two three four", pause_seconds=0.1))
        graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
        seen: list[str] = []
        sent = asyncio.Event()

        async def read() -> None:
            async for message, _ in graph.astream(asked(FIRST, FIRST), run_of("ann"), stream_mode="messages"):
                seen.append(str(message.content))
                if len(seen) == 2:
                    sent.set()
                    await asyncio.sleep(60)

        task = asyncio.create_task(read())
        await sent.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        ((query, reply),) = await self.kept(memory)
        assert query == FIRST
        assert reply.startswith("one two")

    @pytest.mark.parametrize("until", ["token", "update"])
    def test_the_reply_stays_when_the_user_goes_on(self, open_memory: OpenMemory, until: str) -> None:
        """The broken run's reply is not in the checkpoint, so the next turn has two user messages in a row."""
        replies = iter(["First reply.", "Second reply."])
        model = PlayedModel(reply=lambda _: next(replies))
        memory = open_memory(model=model)
        graph = self.walk_away(memory, until)
        graph.invoke(asked(SECOND, SECOND), run_of("ann"))
        said = [(page["query"], page["reply"]) for page in exported(memory, "ann")]
        assert said == [(FIRST, "First reply."), (SECOND, "Second reply.")]
        prompt = [message.text for message in model.prompts[-1][1:]]
        assert prompt == [FIRST, "First reply.", SECOND]
        third = memory.recall.invoke({**asked("x"), **run_of("ann")["configurable"]})["memory"]
        assert [page["query"] for page in third["short_term"]] == [FIRST, SECOND]

    def test_a_corrected_message_is_no_later_message(self, open_memory: OpenMemory) -> None:
        """A line that is added to the user's own message, under its id, changes the page; it does not begin another."""
        memory = open_memory()
        talks = (
            [HumanMessage("Plan a trip", id="m1"), AIMessage("Where to?", id="r1")],
            [HumanMessage("Plan a trip\nto Rome please", id="m1"), AIMessage("Rome it is.", id="r2")],
        )
        reports = [memory.remember.invoke({"messages": talk}, run_of("ann"))["remembered"] for talk in talks]
        assert [report["status"] for report in reports] == ["new", "changed"]
        said = [(page["query"], page["reply"]) for page in exported(memory, "ann")]
        assert said == [("Plan a trip\nto Rome please", "Rome it is.")]

    @pytest.mark.parametrize("until", ["token", "update"])
    def test_what_follows_a_forgotten_message_is_kept(self, open_memory: OpenMemory, until: str) -> None:
        """The broken run left the user's message alone in the checkpoint, and its page was erased since."""
        memory = open_memory(model=PlayedModel())
        graph = self.walk_away(memory, until)
        memory.forget("ann", page_id=exported(memory, "ann")[0]["page_id"])
        assert graph.invoke(asked(SECOND, SECOND), run_of("ann"))["remembered"]["status"] == "same"  # written with the reply
        assert queries(memory, "ann") == [SECOND]
        graph.invoke(asked(THIRD, THIRD), run_of("ann"))
        assert queries(memory, "ann") == [SECOND, THIRD]

    def test_what_follows_a_forgotten_message_is_caught_up(self, memory: MemoryOS) -> None:
        talk = [HumanMessage(FIRST, id="1"), HumanMessage(SECOND, id="2"), AIMessage("Yes.", id="3"),
                HumanMessage(THIRD, id="4"), AIMessage("Well.", id="5")]
        memory.remember.invoke({"messages": talk[:1]}, run_of("ann"))
        memory.forget("ann", page_id=exported(memory, "ann")[0]["page_id"])
        for _ in range(2):
            memory.remember.invoke({"messages": talk}, run_of("ann"))
            assert queries(memory, "ann") == [SECOND, THIRD]

    @pytest.mark.parametrize("how", ["page", "thread", "user"])
    def test_no_message_of_a_forgotten_page_comes_back(self, memory: MemoryOS, how: str) -> None:
        talk = [HumanMessage(FIRST, id="1"), HumanMessage(SECOND, id="2"), AIMessage("Yes.", id="3"),
                HumanMessage(THIRD, id="4"), AIMessage("Well.", id="5")]
        memory.remember.invoke({"messages": talk[:3]}, run_of("ann"))
        which = {"page": {"page_id": exported(memory, "ann")[0]["page_id"]}, "thread": {"thread_id": "talk"}, "user": {}}
        memory.forget("ann", **which[how])
        for said in (talk[:3], talk[:2], talk[1:3]):
            assert memory.remember.invoke({"messages": said}, run_of("ann"))["remembered"]["status"] == "erased"
        memory.remember.invoke({"messages": talk}, run_of("ann"))
        assert queries(memory, "ann") == [THIRD]


class TestFailingMaintenance:
    @pytest.mark.parametrize("store_method", ["segments.assign", "segments.refresh", "segments.cool", "facts.add"])
    @pytest.mark.parametrize("cure", ["next turn", "consolidate"])
    def test_a_step_that_raises_is_caught_up(
        self, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch, store_method: str, cure: str,
    ) -> None:
        memory = open_memory(settings=EVERYTHING)
        tell(memory, "ann", FIRST)
        store, method = store_method.split(".")
        with monkeypatch.context() as patch:
            patch.setattr(getattr(memory.parts, store), method, lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                tell(memory, "ann", SECOND)
        assert queries(memory, "ann") == [FIRST, SECOND]
        if cure == "consolidate":
            memory.consolidate.invoke({"user_id": "ann"})
            assert_nothing_lost_nothing_doubled(memory, FIRST, SECOND)
        else:
            tell(memory, "ann", THIRD)
            assert_nothing_lost_nothing_doubled(memory, FIRST, SECOND, THIRD)
        assert all(segment.summary for segment in memory.parts.segments.active(ANN))

    @pytest.mark.parametrize("preset", [MemorySettings.paper(), MemorySettings()])
    def test_a_long_outage_is_caught_up_by_the_next_turn(
        self, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch, preset: MemorySettings,
    ) -> None:
        memory = open_memory(settings=preset)
        said = [exchange(f"turn {number}") for number in range(40)]
        with monkeypatch.context() as patch:
            patch.setattr(DeterministicAnalyst, "analyse_pages", lambda *_, **__: 1 / 0)
            reports = tell(memory, "ann", *said[:-1])
        assert reports[-1]["failure"] == "analyse_pages: ZeroDivisionError"
        assert memory.parts.pages.queue_length(ANN, "talk") == 39
        tell(memory, "ann", said[-1])
        memory.consolidate.invoke({"user_id": "ann"})
        capacity = preset.short_term_capacity_pages
        assert capacity - preset.eviction_batch_pages < memory.parts.pages.queue_length(ANN, "talk") <= capacity
        assert len(queries(memory, "ann")) == 40

    @pytest.mark.parametrize("preset", [MemorySettings.paper(), MemorySettings()])
    def test_turns_alone_bring_the_queue_back_to_its_capacity(
        self, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch, preset: MemorySettings,
    ) -> None:
        memory = open_memory(settings=preset)
        with monkeypatch.context() as patch:
            patch.setattr(DeterministicAnalyst, "analyse_pages", lambda *_, **__: 1 / 0)
            tell(memory, "ann", *(f"turn {number}" for number in range(20)))
        tell(memory, "ann", *(f"later {number}" for number in range(4)))
        assert memory.parts.pages.queue_length(ANN, "talk") <= preset.short_term_capacity_pages
