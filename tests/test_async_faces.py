# ruff: noqa: FBT003
"""The asynchronous forms of ``MemoryOS`` and ``VirtualContext`` give what the synchronous ones give and block no loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockingError, blockbuster_ctx
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from langgraph_memoryos.archive_documents import DocumentError
from langgraph_memoryos.errors import IdentityError, MemoryOSError, RecordNotFoundError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.off_loop import read_off_loop
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from tests.memory_support import HashEmbeddings, OpenMemory, PlayedModel, exchange, lines, queries, tell
from tests.virtual_support import SMALL, ToolModel, acts, call, say

pytest_plugins = ["tests.memory_fixtures"]

TIGHT = MemorySettings(short_term_capacity_pages=1, eviction_batch_pages=1, segment_threshold=-1.0, promotion_heat=0.5)
SAID = ("My name is Ann. I live in Oslo.", "I work in Bergen.", "I love rain.")


def in_loop() -> bool:
    """Tell whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class ThreadEmbeddings(HashEmbeddings):
    """An embedder that computes, which no watcher of system calls can see: it refuses to do so in a loop."""

    def embed_query(self, text: str) -> list[float]:
        assert not in_loop(), "embedded in the event loop"
        return super().embed_query(text)


class _Awaited(BaseChatModel):
    """Counts the calls of a chat model that were awaited."""

    _in_loop: int = PrivateAttr(default=0)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any,
    ) -> ChatResult:
        self._in_loop += in_loop()
        return await asyncio.to_thread(self._generate, messages, stop, None, **given)


class AwaitedPlayed(_Awaited, PlayedModel):
    """Judges pages, awaited."""


class AwaitedTools(_Awaited, ToolModel):
    """Calls functions, awaited."""


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    """Every blocking call in an event loop raises, as under ``langgraph dev``."""
    with blockbuster_ctx() as watcher:
        watcher.functions["threading.Lock.acquire"].deactivate()  # executors take locks for an instant
        for reading in ("os.stat", "os.listdir", "io.BufferedReader.read", "io.TextIOWrapper.read"):
            watcher.functions[reading].can_block_in("redis/utils.py", "get_lib_version")
        yield


@pytest.fixture
def memory(open_memory: OpenMemory) -> MemoryOS:
    """A memory whose embedder refuses to work in a loop."""
    return open_memory(embeddings=ThreadEmbeddings(), settings=TIGHT)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def collected(items: AsyncIterator[Any]) -> list[Any]:
    async def collect() -> list[Any]:
        return [item async for item in items]

    return asyncio.run(collect())


def virtual(
    memory: MemoryOS, *script: Any, checkpointer: Any = None, **settings: Any,
) -> tuple[VirtualContext, AwaitedTools]:
    """Return a virtual context over a scripted model that is awaited."""
    model = AwaitedTools(script=list(script))
    chosen = VirtualContextSettings(**{**SMALL, **settings})
    return VirtualContext(memory, model=model, settings=chosen, checkpointer=checkpointer), model


async def test_the_synchronous_forms_are_seen_to_block(memory: MemoryOS) -> None:
    with pytest.raises(AssertionError, match="in the event loop"):
        ThreadEmbeddings().embed_query("x")
    with pytest.raises(BlockingError):
        memory.inspect("ann")


def test_search_inspect_and_export_give_the_same(memory: MemoryOS, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph_memoryos.memory._EXPORTED_AT_ONCE", 2)
    tell(memory, "ann", *SAID)
    tell(memory, "ann", "I play chess.", agent_id="coach")
    one, _ = virtual(memory, acts(call("core_memory_append", block="human", content="x")))
    one.send("hi", user_id="ann")

    found = run(memory.asearch("Where in Oslo?", user_id="ann"))
    assert found == memory.search("Where in Oslo?", user_id="ann")
    assert found[0].page.query == SAID[0]
    assert [hit.page.query for hit in run(memory.asearch("chess", user_id="ann", agent_id="coach"))] == ["I play chess."]
    assert run(memory.ainspect("ann")) == memory.inspect("ann")
    assert run(memory.ainspect("ann", agent_id="coach")) == memory.inspect("ann", agent_id="coach")
    there = collected(memory.aexport("ann"))
    assert there == list(memory.export("ann"))
    assert {"page", "segment", "fact", "block", "message"} <= {item["kind"] for item in there}
    assert collected(memory.aexport("nobody")) == []


def test_set_profile_and_forget_do_the_same(memory: MemoryOS) -> None:
    def state(user: str) -> Any:
        return lines([memory.inspect(user), list(memory.export(user))])

    for user in ("sync", "async"):
        tell(memory, user, *SAID)
    memory.set_profile("sync", {"name": "Ann"})
    memory.set_profile("sync", {"role": "guide"}, agent_id="coach", of="agent")
    run(memory.aset_profile("async", {"name": "Ann"}))
    run(memory.aset_profile("async", {"role": "guide"}, agent_id="coach", of="agent"))
    assert state("sync") == state("async")
    assert memory.inspect("async", agent_id="coach")["persona"]["agent_profile"][0]["value"] == "guide"

    first = {user: next(iter(memory.export(user)))["page_id"] for user in ("sync", "async")}
    gone = memory.forget("sync", page_id=first["sync"])
    assert run(memory.aforget("async", page_id=first["async"])).pages == gone.pages == 1
    assert state("sync") == state("async")
    fact = next(item["fact_id"] for item in memory.export("async") if item["kind"] == "fact")
    assert run(memory.aforget("async", fact_id=fact)).facts == 1
    with pytest.raises(RecordNotFoundError, match="no page"):
        run(memory.aforget("async", page_id=first["async"]))
    with pytest.raises(ValueError, match="one thread"):
        run(memory.aforget("async", page_id="a", thread_id="b"))
    run(memory.aforget("async", thread_id="talk"))
    assert queries(memory, "async") == []
    run(memory.aforget("async"))
    assert list(memory.export("async")) == []


def test_ingest_gives_the_same_reports_and_awaits_the_model(open_memory: OpenMemory) -> None:
    model = AwaitedPlayed()
    memory = open_memory(embeddings=ThreadEmbeddings(), settings=TIGHT, memory_model=model)
    exchanges = [exchange(text) for text in SAID]
    there = collected(memory.aingest(exchanges, user_id="async"))
    assert model._in_loop == len(model.calls) > 0
    assert lines(there) == lines(list(memory.ingest(exchanges, user_id="sync")))
    assert there[-1]["digested_segments"]
    assert lines(list(memory.export("async"))) == lines(list(memory.export("sync")))
    assert {report["status"] for report in collected(memory.aingest(exchanges, user_id="async"))} == {"same"}


def test_identity_is_checked_as_ever(memory: MemoryOS) -> None:
    one, _ = virtual(memory)
    for work in (
        memory.asearch("x", user_id=""), memory.ainspect(""), memory.aforget(""), one.asend("x", user_id=""),
        one.amessages(""),
    ):
        with pytest.raises(IdentityError):
            run(work)
    for items in (
        memory.aexport(""), memory.aingest([exchange("x")], user_id=""), one.aload_documents("README.md", user_id=""),
    ):
        with pytest.raises(IdentityError):
            collected(items)


def test_the_default_model_is_started_in_a_thread(open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    class Choice:
        def build(self) -> PlayedModel:
            time.sleep(0.001)  # blocks
            return PlayedModel()

    monkeypatch.setattr("langgraph_memoryos.memory.choose_chat_model", Choice)
    memory = open_memory()

    async def blocking() -> Any:
        return memory.chat

    async def use() -> None:
        model = await memory.areply_model()
        assert model is memory.reply_model is await memory.areply_model()
        assert memory.chat is not None
        assert VirtualContext(memory).graph is not None

    with pytest.raises(BlockingError):
        run(blocking())
    run(use())
    lazy = VirtualContext(open_memory(model=None), settings=VirtualContextSettings(mode="memoryos"))
    assert run(lazy.asend("hi", user_id="ann"))["sent"] == ["Noted, thank you."]


@pytest.mark.parametrize("mode", ["memgpt", "hybrid", "memoryos"])
def test_a_conversation_gives_the_same(open_memory: OpenMemory, mode: str) -> None:
    memory = open_memory(embeddings=ThreadEmbeddings(), settings=TIGHT, model=PlayedModel())
    script = [
        acts(call("core_memory_append", True, block="human", content="Lives in Oslo."), thought="I note it."),
        say("Noted."),
        acts(call("conversation_search", True, query="Oslo")),
        say("Oslo"),
        *[say("I see.")] * 12,
    ]
    told = [SAID[0], "Where do I live?", *(f"Day {at}. {'I walked along the river. ' * 60}" for at in range(9))]
    one, _ = virtual(memory, *script, mode=mode)
    two, model = virtual(memory, *script, mode=mode)

    async def talk() -> list[Any]:
        return [await two.asend(text, user_id="async", thread_id="t") for text in told]

    reports = [one.send(text, user_id="sync", thread_id="t") for text in told]
    assert lines(reports) == lines(run(talk()))
    assert lines(one.messages("sync", "t")) == lines(run(two.amessages("async", "t")))
    assert lines(list(memory.export("sync"))) == lines(list(memory.export("async")))
    if mode != "memoryos":
        assert sum(report["flushes"] for report in reports) > 0
        assert model._in_loop == len(model.asked) + len(model.summarised)
        assert reports[1]["sent"] == ["Oslo"]


def test_events_give_the_same(memory: MemoryOS) -> None:
    one, _ = virtual(memory, say("a"), say("b"), say("c"))
    two, model = virtual(memory, say("a"), say("b"), say("c"))
    there = [
        one.alert("Disk full.", user_id="sync", agent_id="coach"),
        one.interaction("Logged in.", user_id="sync", thread_id=7),
        one.tick(user_id="sync"),
    ]
    here = [
        run(two.aalert("Disk full.", user_id="async", agent_id="coach")),
        run(two.ainteraction("Logged in.", user_id="async", thread_id=7)),
        run(two.atick(user_id="async")),
    ]
    assert lines(here) == lines(there)
    assert [report["kind"] for report in here] == ["system_alert", "user_interaction", "timed"]
    assert model._in_loop == 3
    for thread_id, agent_id in (("default", "coach"), (7, None), ("default", None)):
        assert lines(run(two.amessages("async", thread_id, agent_id=agent_id))) == lines(
            one.messages("sync", thread_id, agent_id=agent_id))
    plain, _ = virtual(memory, mode="memoryos")
    with pytest.raises(MemoryOSError, match="memgpt or hybrid"):
        run(plain.atick(user_id="async"))


async def test_a_tick_is_skipped_while_a_message_is_handled(memory: MemoryOS) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    class Slow(ToolModel):
        async def _agenerate(
            self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any,
        ) -> ChatResult:
            asked.set()
            await answered.wait()
            return await super()._agenerate(messages, stop, run_manager, **given)

    one = VirtualContext(memory, model=Slow(script=[say("Hello")]), settings=VirtualContextSettings(**SMALL))
    sending = asyncio.create_task(one.asend("hi", user_id="u"))
    await asked.wait()
    assert (await one.atick(user_id="u"))["reason"] == "busy"
    answered.set()
    assert (await sending)["sent"] == ["Hello"]


async def test_with_the_asynchronous_checkpointer(memory: MemoryOS) -> None:
    one, model = virtual(memory, checkpointer=await memory.async_checkpointer())
    try:
        assert (await one.asend("first", user_id="u"))["sent"] == ["ok"]
        assert (await one.atick(user_id="u"))["reason"] == "done"
        assert "first" in str(model.asked[1])
        thread = one.checkpoint_thread(user_id="u", agent_id="assistant", thread_id="default")
        state = await one.graph.aget_state({"configurable": {"thread_id": thread}})
        assert "first" in str(state.values["queue"])
        await one.graph.checkpointer.adelete_thread(thread)
    finally:
        await memory.connection.close_async_clients()


async def test_many_at_once(memory: MemoryOS) -> None:
    one, _ = virtual(memory, checkpointer=InMemorySaver())
    turns = await asyncio.gather(*(one.asend("hi", user_id=f"user {at % 5}", thread_id=at) for at in range(20)))
    assert [turn["sent"] for turn in turns] == [["ok"]] * 20


def test_a_checkpointer_without_an_asynchronous_side_is_named(memory: MemoryOS) -> None:
    one, model = virtual(memory, checkpointer=memory.checkpointer())
    for send in (one.asend, one.aalert, one.ainteraction, one.atick):
        with pytest.raises(MemoryOSError, match=r"RedisSaver only serves synchronous.*async_checkpointer\(\)"):
            run(send("hi", user_id="u"))
    assert model.asked == []
    assert list(memory.export("u")) == []
    assert one.send("hi", user_id="u")["sent"] == ["ok"]
    memory.checkpointer().delete_thread(one.checkpoint_thread(user_id="u", agent_id="assistant", thread_id="default"))


def test_documents_are_loaded_the_same(memory: MemoryOS, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Harbour\n\n" + "The lighthouse keeper rests. " * 100, encoding="utf-8")
    (tmp_path / "b.txt").write_text("The zebra crossed the road.", encoding="utf-8")
    (tmp_path / "c.txt").write_bytes(b"\xff\x00\xfe binary")
    one, _ = virtual(memory)
    reports = collected(one.aload_documents(tmp_path, user_id="async"))
    assert reports == list(one.load_documents(tmp_path, user_id="sync"))
    assert [Path(report.source).name for report in reports] == ["a.md", "b.txt", "c.txt"]
    assert lines(list(memory.export("async"))) == lines(list(memory.export("sync")))
    with pytest.raises(DocumentError, match="no file or folder"):
        collected(one.aload_documents(tmp_path / "missing", user_id="async"))


def test_an_iterator_is_read_in_other_threads_a_batch_at_a_time() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10):
            assert not in_loop()
            read.append(number)
            yield number

    async def most_ahead() -> int:
        return max([len(read) - number async for number in read_off_loop(numbers, batch=4)])

    items = read_off_loop(numbers, batch=4)
    assert read == []
    assert collected(items) == list(range(10))
    read.clear()
    assert run(most_ahead()) == 4


def test_an_error_of_an_iterator_arrives_and_a_reader_may_stop() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    async def first() -> int:
        async for number in read_off_loop(broken, batch=1):
            return number
        return 0

    assert run(first()) == 1
    with pytest.raises(ZeroDivisionError):
        collected(read_off_loop(broken, batch=1))
