"""Asynchronous use: one object serves any number of event loops, and ``ainvoke`` does what ``invoke`` does."""

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.state import MemoryState
from tests.memory_support import (
    Clock,
    HashEmbeddings,
    OpenMemory,
    PlayedModel,
    asked,
    exported,
    lines,
    owner,
    queries,
    run_of,
    tell,
    without_ids,
)

pytest_plugins = ["tests.memory_fixtures"]

TIGHT = MemorySettings(short_term_capacity_pages=1, eviction_batch_pages=1, segment_threshold=-1.0, promotion_heat=0.5)
SAID = ("My name is Ann. I live in Oslo.", "I work in Bergen.", "I love rain.")


def test_two_loops_in_a_row_with_one_object(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT, model=PlayedModel())
    for text in SAID:
        answer = asyncio.run(memory.chat.ainvoke(asked(text, text), run_of("ann")))
        assert answer["messages"][-1].text == "Noted, thank you."
    assert queries(memory, "ann") == list(SAID)


def test_two_loops_in_a_row_with_the_asynchronous_checkpointer(open_memory: OpenMemory, redis_prefix: str) -> None:
    memory = open_memory(model=PlayedModel())
    config = run_of("ann", redis_prefix)

    async def turn(text: str) -> list[str]:
        saver = await memory.async_checkpointer()
        graph = memory.builder("chat").compile(checkpointer=saver)
        answer = await graph.ainvoke(asked(text, text), config)
        await memory.connection.close_async_clients()
        return [message.text for message in answer["messages"]]

    async def clean_up() -> None:
        await (await memory.async_checkpointer()).adelete_thread(redis_prefix)
        await memory.connection.close_async_clients()

    assert asyncio.run(turn("one")) == ["one", "Noted, thank you."]
    assert asyncio.run(turn("two")) == ["one", "Noted, thank you.", "two", "Noted, thank you."]
    asyncio.run(clean_up())


def test_synchronous_and_asynchronous_turns_take_turns(open_memory: OpenMemory) -> None:
    memory = open_memory(model=PlayedModel())
    graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
    graph.invoke(asked("one", "1"), run_of("ann"))
    asyncio.run(graph.ainvoke(asked("two", "2"), run_of("ann")))
    graph.invoke(asked("three", "3"), run_of("ann"))
    assert queries(memory, "ann") == ["one", "two", "three"]


async def test_opened_inside_a_loop(redis_url: str, redis_prefix: str) -> None:
    memory = await MemoryOS.open(
        redis_url, namespace=redis_prefix, embeddings=HashEmbeddings(), analyst=DeterministicAnalyst())
    async with memory:
        await memory.remember.ainvoke({"messages": [("user", "hi"), ("ai", "ho")]}, run_of("ann"))
        assert await asyncio.to_thread(queries, memory, "ann") == ["hi"]


@pytest.mark.parametrize("by_model", [False, True])
def test_invoke_and_ainvoke_give_the_same(open_memory: OpenMemory, by_model: bool, clock: Clock) -> None:  # noqa: FBT001
    model = PlayedModel()
    memory = open_memory(settings=TIGHT, model=model, **({"memory_model": model} if by_model else {}))
    results: dict[str, list[Any]] = {"sync": [], "async": []}
    for text in SAID:
        clock.now += 60
        results["sync"].append(memory.chat.invoke(asked(text, text), run_of("sync")))
        results["async"].append(asyncio.run(memory.chat.ainvoke(asked(text, text), run_of("async"))))
    for name in ("recall", "consolidate"):
        graph = getattr(memory, name)
        results["sync"].append(graph.invoke({**asked("Oslo?"), "drain": True}, run_of("sync")))
        results["async"].append(asyncio.run(graph.ainvoke({**asked("Oslo?"), "drain": True}, run_of("async"))))
    assert lines(results["sync"]) == lines(results["async"])
    assert results["sync"][2]["remembered"]["digested_segments"]
    for kind in ("page", "segment", "fact"):
        assert without_ids(exported(memory, "sync", kind)) == without_ids(exported(memory, "async", kind)) != []


async def test_stream_and_astream_give_the_same_steps(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT, model=PlayedModel())

    def steps(events: list[Any]) -> list[str]:
        return sorted(name for _, update in events for name in update)

    for turn in SAID[:2]:
        sync = list(memory.chat.stream(asked(turn), run_of("sync"), stream_mode="updates", subgraphs=True))
        later = [event async for event in memory.chat.astream(
            asked(turn), run_of("async"), stream_mode="updates", subgraphs=True)]
        assert steps(sync) == steps(later)
    assert {"write_page", "update_persona", "generate_reply", "record_visits"} <= set(steps(sync))


async def test_many_users_at_once(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT, model=PlayedModel())
    for text in SAID:
        await asyncio.gather(*(memory.chat.ainvoke(asked(text), run_of(f"user {n}")) for n in range(10)))
    for number in range(10):
        assert await asyncio.to_thread(queries, memory, f"user {number}") == list(SAID)


def test_server_connections_dropped_between_calls(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT, model=PlayedModel())
    client = memory.connection.client
    for text in SAID:
        client.client_kill_filter(_type="normal", skipme=True)
        asyncio.run(memory.chat.ainvoke(asked(text), run_of("ann")))
    assert queries(memory, "ann") == list(SAID)
    assert len(memory.parts.pages.queue(owner(), "talk")) == 1


def test_nothing_is_forgotten_between_tell_and_recall_in_a_loop(memory: MemoryOS) -> None:
    tell(memory, "ann", *SAID, thread="before")
    recalled = asyncio.run(memory.recall.ainvoke(asked("Where do I live, Oslo?"), run_of("ann")))["memory"]
    assert SAID[0] in recalled["text"]


def test_a_blank_message_with_a_blank_reply_is_no_page(open_memory: OpenMemory) -> None:
    memory = open_memory(model=PlayedModel(reply=" "))
    assert memory.chat.invoke(asked("  "), run_of("ann"))["messages"][-1].text == " "
    assert queries(memory, "ann") == []


def test_who_is_talking_may_come_by_the_state_of_a_graph(open_memory: OpenMemory) -> None:
    memory = open_memory()
    builder = StateGraph(MemoryState)
    builder.add_node("recall", memory.recall)
    builder.add_node("agent", lambda _: {"messages": [("assistant", "Noted.")]})
    builder.add_node("remember", memory.remember)
    builder.add_edge(START, "recall").add_edge("recall", "agent").add_edge("agent", "remember")
    state = builder.compile().invoke({"messages": [("user", "I love tea.")], "user_id": "ann"})
    assert state["remembered"]["status"] == "new"
    assert queries(memory, "ann") == ["I love tea."]
