"""Isolation: what belongs to one user, agent or thread never reaches another, whatever their ids look like."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import ValidationError

from langgraph_memoryos.errors import IdentityError, RecordNotFoundError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.state import MemoryContext, MemoryState
from tests.memory_support import (
    NASTY_CHARACTERS,
    OpenMemory,
    PlayedModel,
    asked,
    exchange,
    exported,
    owner,
    queries,
    run_of,
    tell,
)

pytest_plugins = ["tests.memory_fixtures"]

LOOK_ALIKES = (
    "alice", "alice2", "alice-smith", "Alice", "alice.b", "alice,bob", "alice ", " alice", "alice\n", "alice*", "ali?e",
    "аlice", "alice\u0301", "{alice}", "alice}", "alice|bob", "user:alice", "alice\u200d", "none", "*", "",
)
names = st.text(st.sampled_from(NASTY_CHARACTERS), min_size=1, max_size=6) | st.sampled_from(LOOK_ALIKES[:-1])
FUZZ = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
TIGHT = MemorySettings(short_term_capacity_pages=1, eviction_batch_pages=1, segment_threshold=-1.0, promotion_heat=0.5)
"""Everything moves at once: each turn evicts and promotes."""


@pytest.fixture
def tight(open_memory: OpenMemory) -> MemoryOS:
    return open_memory(settings=TIGHT, model=PlayedModel())


def secrets_of(who: str) -> list[str]:
    return [f"I live in {who}town, secret number {number}." for number in range(3)]


def everything(memory: MemoryOS, user_id: Any, agent_id: Any = None) -> str:
    """Return all that any way of reading tells of a user and agent."""
    ids = {"user_id": user_id} | ({} if agent_id is None else {"agent_id": agent_id})
    recalled = memory.recall.invoke({**asked("secret number town"), "thread_id": "elsewhere", **ids})
    found = memory.search("secret number town", **ids)
    return str((recalled, found, memory.inspect(user_id, agent_id=agent_id), list(memory.export(user_id))))


@given(names, names)
@example("alice", "Alice")
@example("alice,bob", "alice")
@example("a|b", "a")
@FUZZ
def test_no_two_users_share_anything(tight: MemoryOS, first: str, second: str) -> None:
    assume(first != second)
    for user, who in ((first, "First"), (second, "Second")):
        tight.forget(user)
        tell(tight, user, *(exchange(text, source=f"{text}") for text in secrets_of(who)))
    for user, mine, other in ((first, "First", "Second"), (second, "Second", "First")):
        seen = everything(tight, user)
        assert mine in seen
        assert other not in seen
    before = list(tight.export(second))
    tight.consolidate.invoke({"user_id": first, "drain": True})
    page = exported(tight, first)[0]["page_id"]
    with pytest.raises(RecordNotFoundError):
        tight.forget(second, page_id=page)
    tight.forget(first, thread_id="talk")
    assert queries(tight, first) == []
    assert list(tight.export(second)) == before
    tight.forget(first)
    assert list(tight.export(first)) == []
    assert list(tight.export(second)) == before


@given(names, names)
@FUZZ
def test_no_two_agents_of_a_user_share_what_they_learnt(tight: MemoryOS, first: str, second: str) -> None:
    assume(first != second)
    tight.forget("ann")
    for agent, who in ((first, "First"), (second, "Second")):
        tell(tight, "ann", *(exchange(text, source=f"{text}") for text in secrets_of(who)), agent_id=agent)
    for agent, other in ((first, "Second"), (second, "First")):
        recalled = tight.recall.invoke({**asked("secret number town"), "user_id": "ann", "agent_id": agent})
        found = tight.search("secret number town", user_id="ann", agent_id=agent)
        assert found
        assert other not in str((recalled, found))
        looked_at = tight.inspect("ann", agent_id=agent)
        assert other not in str(looked_at["user_facts"] + looked_at["mid_term"])
    assert sorted({page["agent_id"] for page in exported(tight, "ann")}) == sorted({first, second})


@given(names, names)
@FUZZ
def test_short_term_memory_is_per_thread(memory: MemoryOS, first: str, second: str) -> None:
    assume(first != second)
    memory.forget("ann")
    tell(memory, "ann", exchange("in the first", source="1"), thread="x")
    memory.forget("ann")
    for thread, text in ((first, "in the first"), (second, "in the second")):
        tell(memory, "ann", exchange(text, source=text + thread, thread_id=thread))
    for thread, text in ((first, "in the first"), (second, "in the second")):
        recalled = memory.recall.invoke({**asked("where"), "user_id": "ann", "thread_id": thread})["memory"]
        assert [page["query"] for page in recalled["short_term"]] == [text]
    memory.forget("ann", thread_id=first)
    assert queries(memory, "ann") == ["in the second"]


@pytest.mark.parametrize("name", [*LOOK_ALIKES[:-1], "x" * 300, "\ud800", "\0", "用户", "👩‍👧"])
def test_any_id_reads_back_exactly(memory: MemoryOS, name: str) -> None:
    tell(memory, name, exchange("hello", thread_id=name), agent_id=name)
    (page,) = exported(memory, name)
    assert (page["user_id"], page["agent_id"], page["thread_id"]) == (name, name, name)
    assert memory.inspect(name, agent_id=name)["short_term"] == {name: 1}


def test_numbers_are_ids_and_the_same_as_their_text(memory: MemoryOS) -> None:
    list(memory.ingest([exchange("one")], user_id=42))
    assert queries(memory, "42") == queries(memory, 42) == ["one"]
    assert queries(memory, 4) == queries(memory, 420) == []
    said = {**asked("x"), "messages": [("user", "two"), ("ai", "ok")]}
    memory.remember.invoke(said, context=MemoryContext(user_id=42))
    assert queries(memory, 42) == ["one", "two"]


def graph_calls(user: dict[str, Any]) -> dict[str, Callable[[MemoryOS], Any]]:
    return {
        f"{graph} by {way}": (lambda memory, graph=graph, way=way: getattr(memory, graph).invoke(
            {"messages": [("user", "hi"), ("ai", "ho")]} | (user if way == "state" else {}),
            **({"context": user} if way == "context" else {}),
            **({"config": {"configurable": user}} if way == "config" else {}),
        ))
        for graph in ("recall", "remember", "consolidate", "chat") for way in ("context", "config", "state")
    }


def face_calls(user: Any) -> dict[str, Callable[[MemoryOS], Any]]:
    return {
        "ingest": lambda memory: list(memory.ingest([exchange("hi")], user_id=user)),
        "search": lambda memory: memory.search("hi", user_id=user),
        "export": lambda memory: list(memory.export(user)),
        "inspect": lambda memory: memory.inspect(user),
        "set_profile": lambda memory: memory.set_profile(user, {"name": "x"}),
        "forget": lambda memory: memory.forget(user),
        "forget a page": lambda memory: memory.forget(user, page_id="x"),
        "forget a fact": lambda memory: memory.forget(user, fact_id="x"),
        "forget a thread": lambda memory: memory.forget(user, thread_id="x"),
    }


@pytest.mark.parametrize("call", [
    *(pytest.param(call, id=f"empty, {name}") for name, call in graph_calls({"user_id": ""}).items()),
    *(pytest.param(call, id=f"missing, {name}") for name, call in graph_calls({}).items()),
    *(pytest.param(call, id=f"list, {name}") for name, call in graph_calls({"user_id": ["ann"]}).items()),
    *(pytest.param(call, id=f"empty, {name}") for name, call in face_calls("").items()),
    *(pytest.param(call, id=f"missing, {name}") for name, call in face_calls(None).items()),
])
def test_nobody_is_never_everybody(
    open_memory: OpenMemory, call: Callable[[MemoryOS], Any],
) -> None:
    memory = open_memory(model=PlayedModel())
    tell(memory, "ann", "hello")
    before = list(memory.export("ann"))
    with pytest.raises((IdentityError, ValidationError), match="user_id"):  # the context's own schema may be first
        call(memory)
    assert list(memory.export("ann")) == before


@pytest.mark.parametrize("key", ["agent_id", "thread_id"])
@pytest.mark.parametrize("graph", ["recall", "remember", "chat"])
def test_empty_agent_or_thread_is_an_error(open_memory: OpenMemory, graph: str, key: str) -> None:
    memory = open_memory(model=PlayedModel())
    with pytest.raises(IdentityError, match=key):
        getattr(memory, graph).invoke(asked("hi"), config=run_of("ann", **{"thread_id": "t", key: ""}))
    assert queries(memory, "ann") == []


def test_two_namespaces_of_one_redis_are_apart(open_memory: OpenMemory, redis_prefix: str) -> None:
    one, two = open_memory(), open_memory(namespace=f"{redis_prefix}2")
    tell(one, "ann", "in the first place")
    assert queries(two, "ann") == []
    assert two.search("place", user_id="ann") == ()
    two.forget("ann")
    assert queries(one, "ann") == ["in the first place"]


def test_erased_user_leaves_no_word_in_redis(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=TIGHT)
    tell(memory, "ann", *(f"I live in Canarytown, turn {number}." for number in range(6)))
    memory.set_profile("ann", {"name": "Canarytown"})
    tell(memory, "bob", "I live in Oslo.")
    assert "anary" in stored_words(memory)
    memory.forget("ann")
    assert "anary" not in stored_words(memory)
    assert queries(memory, "bob") == ["I live in Oslo."]


@pytest.mark.parametrize("settled", [True, False])
def test_erased_page_leaves_no_word_in_redis(open_memory: OpenMemory, settled: bool) -> None:  # noqa: FBT001
    memory = open_memory(settings=TIGHT if settled else MemorySettings())
    tell(memory, "ann", "I live in Oslo.", "I live in Canarytown.", "I like tea.", "I like rain.", "I like coffee.")
    page = next(page["page_id"] for page in exported(memory, "ann") if "Canary" in page["query"])
    memory.forget("ann", page_id=page)
    assert "anary" not in stored_words(memory)
    assert queries(memory, "ann") == ["I live in Oslo.", "I like tea.", "I like rain.", "I like coffee."]
    assert exported(memory, owner().user_id, "page")


def stored_words(memory: MemoryOS) -> str:
    """Return every key of the namespace with its content, as text."""
    client = memory.connection.client
    readers = {
        b"hash": client.hgetall, b"set": client.smembers, b"string": client.get,
        b"zset": lambda key: client.zrange(key, 0, -1), b"list": lambda key: client.lrange(key, 0, -1),
    }
    keys = client.scan_iter(match=f"{memory._namespace.name}:*", count=1000)
    return str([(key, readers[client.type(key)](key)) for key in keys]).lower()


def test_users_who_share_a_checkpointed_thread_get_none_of_each_others_pages(memory: MemoryOS) -> None:
    """An app that forgets to make its thread ids unique: what one user said is never filed under the other."""
    builder = StateGraph(MemoryState)
    builder.add_node("recall", memory.recall)
    builder.add_node("agent", lambda _state: {"messages": [("ai", "ok")]})
    builder.add_node("remember", memory.remember)
    builder.add_edge(START, "recall").add_edge("recall", "agent").add_edge("agent", "remember")
    graph = builder.compile(checkpointer=InMemorySaver())
    said = (("zoe", "My PIN is 4711."), ("yan", "What is my PIN?"), ("zoe", "again"), ("yan", "hello"))
    for user, text in said:
        found = graph.invoke(
            {"messages": [("user", text)]}, {"configurable": {"thread_id": "shared", "user_id": user}},
        )["memory"]
        assert {page["user_id"] for page in (*found["short_term"], *found["mid_term"])} <= {user}
    for user in ("zoe", "yan"):
        pages = [item["query"] for item in memory.export(user) if item["kind"] == "page"]
        assert pages == [text for owner, text in said if owner == user]


def test_what_another_user_got_no_answer_to_is_not_filed_under_who_comes_next(open_memory: OpenMemory) -> None:
    def reply(messages: list[BaseMessage]) -> str:
        if "4711" in messages[-1].text:
            raise RuntimeError("the model is away")
        return "Well."

    memory = open_memory(model=PlayedModel(reply=reply))
    graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
    graph.invoke(asked("Hello."), run_of("zoe", "shared"))
    with pytest.raises(RuntimeError, match="away"):
        graph.invoke(asked("My PIN is 4711."), run_of("zoe", "shared"))
    for text in ("What is up?", "And now?"):
        graph.invoke(asked(text), run_of("yan", "shared"))
        memory.remember.invoke(graph.get_state(run_of("yan", "shared")).values, run_of("yan", "shared"))
    assert queries(memory, "zoe") == ["Hello."]
    assert queries(memory, "yan") == ["What is up?", "And now?"]


def test_agents_who_share_a_thread_get_none_of_each_others_pages(open_memory: OpenMemory) -> None:
    memory = open_memory(model=PlayedModel())
    graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
    said = [(agent, f"turn {turn}") for turn, agent in enumerate(("coach", "coach", "cook", "cook", "coach", "cook"))]
    for agent, text in said:
        report = graph.invoke(asked(text), run_of("ann", "shared", agent_id=agent))["remembered"]
        assert report["agent_id"] == agent
    assert [(page["agent_id"], page["query"]) for page in exported(memory, "ann")] == said
