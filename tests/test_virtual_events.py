# ruff: noqa: FBT003
"""Events and the log: what overlaps, comes again, comes with another, or was there before; the log decides what is in view."""

import asyncio
import json
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.virtual_context import VirtualContext
from tests.memory_support import Clock, before_round_trip, exported, queries
from tests.virtual_support import ToolModel, acts, agent, call, results, say

pytest_plugins = ["tests.memory_fixtures"]

KEEPS: Any = pytest.mark.parametrize("keeps", ["nothing", "process", "redis"])
KEEPS_OR_NOT: Any = pytest.mark.parametrize("keeps", ["nothing", "process"])


class ParentState(MessagesState):
    """A parent graph that has keys of its own for an event and for the report."""

    event: dict[str, Any]
    virtual: dict[str, Any]


def saver(memory: MemoryOS, keeps: str) -> Any:
    return {"nothing": lambda: None, "process": InMemorySaver, "redis": memory.checkpointer}[keeps]()


def run(user: str = "u") -> Any:
    return {"configurable": {"user_id": user, "thread_id": "t"}}


def said(text: str, name: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=name)]}


def parent(one: VirtualContext, schema: Any = MessagesState) -> Any:
    graph = StateGraph(schema)
    graph.add_node("virtual", one.builder().compile())
    graph.add_edge(START, "virtual")
    return graph.compile(checkpointer=InMemorySaver())


def prompt(model: ToolModel) -> str:
    """The queue of the newest prompt."""
    return "\n".join(str(message.content) + str(getattr(message, "tool_calls", "")) for message in model.asked[-1][1:])


def assert_whole(messages: list[BaseMessage]) -> None:
    calls = [each["id"] for message in messages for each in getattr(message, "tool_calls", [])]
    assert calls == [message.tool_call_id for message in messages if message.type == "tool"]  # type: ignore[attr-defined]


@KEEPS
def test_a_message_that_came_during_a_timed_event_is_in_the_next_prompt(memory: MemoryOS, keeps: str):
    inside, answered = threading.Event(), threading.Event()

    def slow(_: Any) -> AIMessage:
        inside.set()
        assert answered.wait(30)
        return say("The timer said this.")

    one, model = agent(memory, slow, say("Rex it is."), checkpointer=saver(memory, keeps))
    timer = threading.Thread(target=lambda: one.tick(user_id="u"))
    timer.start()
    assert inside.wait(30)
    one.send("My dog is called Rex.", user_id="u")
    answered.set()
    timer.join()
    one.send("And now?", user_id="u")
    told = prompt(model)
    places = [told.index(text) for text in ("A timer went off", "called Rex", "Rex it is", "The timer said", "And now?")]
    assert places == sorted(places)
    assert_whole(model.asked[-1])


@KEEPS_OR_NOT
def test_all_messages_that_came_at_once_are_in_the_next_prompt(memory: MemoryOS, keeps: str):
    one, model = agent(memory, checkpointer=saver(memory, keeps))

    async def at_once() -> None:
        await asyncio.gather(*(one.graph.ainvoke(said(f"fact {at}", f"m{at}"), run()) for at in range(8)))

    asyncio.run(at_once())
    one.graph.invoke(said("last", "last"), run())
    assert [f"fact {at}" in prompt(model) for at in range(8)] == [True] * 8
    assert_whole(model.asked[-1])


@KEEPS
@pytest.mark.parametrize("what", ["page", "thread"])
def test_what_was_forgotten_leaves_the_queue(memory: MemoryOS, keeps: str, what: str):
    one, model = agent(memory, checkpointer=saver(memory, keeps))
    one.send("The code is CANARY.", user_id="u")
    one.send("I like figs.", user_id="u")
    page = exported(memory, "u")[0]["page_id"]
    memory.forget("u", **({"page_id": page} if what == "page" else {"thread_id": "default"}))
    one.send("Hello", user_id="u")
    assert "CANARY" not in prompt(model)
    assert ("figs" in prompt(model)) is (what == "page")
    assert_whole(model.asked[-1])


@KEEPS
def test_what_was_evicted_stays_out_also_when_its_summary_is_forgotten(memory: MemoryOS, keeps: str):
    one, model = agent(memory, checkpointer=saver(memory, keeps), summary="SUMMARY")
    for at in range(40):
        if one.send(f"Message {at}: {'long ' * 200}", user_id="u")["flushes"]:
            break
    one.send("Next", user_id="u")
    assert "SUMMARY" in prompt(model)
    assert "Message 0:" not in prompt(model)
    memory.forget("u", page_id=exported(memory, "u")[0]["page_id"])
    one.send("Later", user_id="u")
    assert "SUMMARY" not in prompt(model)
    assert "Message 1:" not in prompt(model)
    assert "It was erased" in prompt(model)
    assert "Next" in prompt(model)


def test_an_event_sees_what_another_logged_since_its_checkpoint(memory: MemoryOS):
    """The queue is the thread's, whoever ran last; going back to an earlier checkpoint undoes nothing."""
    kept, model = agent(memory, checkpointer=InMemorySaver())
    alone, _ = agent(memory, say("Noted, figs."))
    kept.send("My name is Ana.", user_id="u")
    alone.send("I like figs.", user_id="u")
    kept.send("What do I like?", user_id="u")
    assert "Noted, figs." in prompt(model)


def test_a_message_that_was_answered_is_no_event_and_changes_nothing(memory: MemoryOS):
    one, model = agent(memory, say("first"), say("second"), say("again"))
    for name in ("m1", "m2"):
        one.graph.invoke(said(f"text of {name}", name), run())
    before = (one.messages("u", "t"), exported(memory, "u"))
    again = one.graph.invoke(said("text of m1", "m1"), run())["virtual"]
    assert (again["reason"], again["sent"], len(model.asked)) == ("nothing", [], 2)
    assert (one.messages("u", "t"), exported(memory, "u")) == before


@KEEPS_OR_NOT
@pytest.mark.parametrize("given", [said("Pay now", "m"), {"event": {"kind": "system_alert", "text": "Pay now", "id": 7}}])
def test_what_was_not_answered_is_taken_up_when_it_comes_again(memory: MemoryOS, keeps: str, given: Any):
    one, model = agent(memory, RuntimeError("rate limit"), say("paid"), checkpointer=saver(memory, keeps))
    with pytest.raises(RuntimeError, match="rate limit"):
        one.graph.invoke(given, run())
    report = one.graph.invoke(given, run())["virtual"]
    assert (report["reason"], report["sent"]) == ("done", ["paid"])
    assert prompt(model).count("Pay now") == 1
    assert [entry["kind"] for entry in one.messages("u", "t")][1:] == ["assistant", "function_result"]
    assert one.graph.invoke(given, run())["virtual"]["reason"] == "nothing"
    assert len(model.asked) == 2


@KEEPS_OR_NOT
def test_what_an_event_did_before_it_was_broken_off_still_counts(memory: MemoryOS, keeps: str):
    step = acts(call("send_message", message="One moment."), call("core_memory_append", True, block="human", content="Ana"))
    one, model = agent(memory, step, RuntimeError("down"), say("Hello Ana"), checkpointer=saver(memory, keeps))
    with pytest.raises(RuntimeError, match="down"):
        one.graph.invoke(said("I am Ana", "m"), run())
    report = asyncio.run(one.graph.ainvoke(said("I am Ana", "m"), run()))["virtual"]
    assert (report["steps"], report["sent"]) == (2, ["One moment.", "Hello Ana"])
    assert len(results(model.asked[-1])) == 2
    assert_whole(model.asked[-1])
    sent = [each["arguments"] for entry in one.messages("u", "t") for each in entry.get("calls", ())]
    assert [each["message"] for each in sent if "message" in each] == ["One moment.", "Hello Ana"]
    assert [page["reply"] for page in exported(memory, "u")] == ["One moment.\nHello Ana"]


def test_an_event_that_comes_again_while_it_runs_does_not_run_twice(memory: MemoryOS):
    seen: list[str] = []
    one, model = agent(memory)

    def meanwhile(_: Any) -> AIMessage:
        seen.append(one.graph.invoke(said("hi", "m"), run())["virtual"]["reason"])
        return say("hello")

    model.script = [meanwhile]
    assert one.graph.invoke(said("hi", "m"), run())["virtual"]["sent"] == ["hello"]
    assert (seen, len(model.asked)) == (["busy"], 1)


def test_a_failed_call_frees_the_thread(memory: MemoryOS):
    one, _ = agent(memory, RuntimeError("down"))
    with pytest.raises(RuntimeError, match="down"):
        one.send("hi", user_id="u")
    assert memory.parts.pages.sibling(LeaseStore).holder(one.scope("u"), "default") == ""
    assert one.tick(user_id="u")["reason"] == "done"


def test_a_step_that_runs_again_from_an_earlier_checkpoint_says_the_same_in_log_and_page(memory: MemoryOS):
    one, _ = agent(memory, say("first answer ALPHA"), say("BETA is the second answer"), checkpointer=InMemorySaver())
    one.graph.invoke(said("question", "m"), run())
    earlier = [state for state in one.graph.get_state_history(run()) if state.next == ("call_model",)][-1]
    one.graph.invoke(None, earlier.config)
    sent = [each["arguments"]["message"] for entry in one.messages("u", "t") for each in entry.get("calls", ())]
    assert sent == [page["reply"] for page in exported(memory, "u")] == ["BETA is the second answer"]


@pytest.mark.parametrize("kind", ["direct", "node"])
def test_users_of_one_checkpoint_are_told_nothing_of_each_other(memory: MemoryOS, kind: str):
    one, model = agent(memory)
    graph = one.builder().compile(checkpointer=InMemorySaver()) if kind == "direct" else parent(one)
    for user, text in (("a", "say a"), ("b", "my PIN is 4711"), ("a", "say c"), ("b", "say d")):
        graph.invoke({"messages": [("user", text)]}, run(user))
    assert "4711" not in str(model.asked[2])
    assert queries(memory, "a") == ["say a", "say c"]
    assert queries(memory, "b") == ["my PIN is 4711", "say d"]
    assert "say a" not in str(model.asked[1] + model.asked[3])


def test_what_another_user_said_without_an_answer_stays_theirs(memory: MemoryOS):
    one, model = agent(memory, say("hi"), RuntimeError("down"), say("ok"), say("ok"), checkpointer=InMemorySaver())
    one.graph.invoke(said("hello", "1"), run("a"))
    with pytest.raises(RuntimeError, match="down"):
        one.graph.invoke(said("my PIN is 4711", "2"), run("b"))
    one.graph.invoke({"event": {"kind": "system_alert", "text": "Disk full", "id": "e"}}, run("a"))
    one.graph.invoke(said("and?", "3"), run("a"))
    assert "4711" not in str(model.asked[2] + model.asked[3])


def test_an_event_and_a_message_in_one_input_are_one_turn(memory: MemoryOS):
    one, model = agent(memory)
    both = said("My secret is 42", "m") | {"event": {"kind": "system_alert", "text": "Disk full", "id": "e"}}
    report = one.graph.invoke(both, run())["virtual"]
    assert (report["kind"], report["sent"], len(model.asked)) == ("user_message", ["ok"], 1)
    assert prompt(model).index("Disk full") < prompt(model).index("secret is 42")
    assert [entry["kind"] for entry in one.messages("u", "t")][:2] == ["system_alert", "user_message"]
    assert queries(memory, "u") == ["My secret is 42"]
    assert one.graph.invoke(both, run())["virtual"]["reason"] == "nothing"


@pytest.mark.parametrize("event", [
    {"kind": "user_interaction", "text": "Logged in", "id": "e"}, {"kind": "user_interaction", "text": "Logged in"},
])
def test_an_event_that_stays_in_the_state_of_a_parent_swallows_no_message(memory: MemoryOS, clock: Clock, event: Any):
    one, model = agent(memory)
    graph = parent(one, ParentState)
    graph.invoke({"event": event}, run())
    for at in range(2):
        clock.now += 1
        state = graph.invoke(said(f"hello {at}", f"m{at}"), run())
        assert (state["virtual"]["kind"], state["virtual"]["sent"]) == ("user_message", ["ok"])
        assert f"hello {at}" in str(model.asked[-1][-1].content)
    assert prompt(model).count("Logged in") == (1 if "id" in event else 3)


@pytest.mark.parametrize("given", [
    "hi there", HumanMessage("hi there"), {"role": "user", "content": "hi there"}, ("user", "hi there"), ["hi there"],
])
def test_messages_are_given_in_any_form_that_langgraph_takes(memory: MemoryOS, given: Any):
    one, _ = agent(memory)
    state = one.graph.invoke({"messages": given}, run())
    assert [message.content for message in state["messages"]] == ["hi there", "ok"]


@pytest.mark.parametrize("name", [7, "7", "a\ud83d", "\0", "x" * 10_000])
def test_an_event_may_have_any_id(memory: MemoryOS, name: Any):
    one, _ = agent(memory, checkpointer=InMemorySaver())
    given = {"event": {"kind": "timed", "text": "t", "id": name}}
    reasons = [one.graph.invoke(given, run())["virtual"]["reason"] for _ in range(2)]
    assert reasons == ["done", "nothing"]


@pytest.mark.parametrize(("event", "told"), [
    ("str", "object with a kind"), ({"text": "x"}, "kind is one of"), ({"kind": ["timed"]}, "kind is one of"),
    ({"kind": "user_message", "text": "x"}, "kind is one of"), ({"kind": "timed", "text": 5}, "text must be text"),
    ({"kind": "timed", "id": 1.5}, "id must be"), ({"kind": "timed", "id": True}, "id must be"),
    ({"kind": "timed", "at": "2026-01-01"}, "seconds since the epoch"), ({"kind": "timed", "at": float("nan")}, "seconds"),
    ({"kind": "timed", "at": 1e18}, "seconds since the epoch"),
])
def test_what_is_no_event_is_refused_before_anything_is_written(memory: MemoryOS, event: Any, told: str):
    one, _ = agent(memory)
    with pytest.raises(MemoryOSError, match=told):
        one.graph.invoke(said("hello", "m") | {"event": event}, run())
    assert one.messages("u", "t") == ()
    assert queries(memory, "u") == []


def history(turns: int) -> list[BaseMessage]:
    return [
        message
        for at in range(turns)
        for message in (HumanMessage(f"question {at}", id=f"q{at}"), AIMessage(f"reply {at}", id=f"r{at}"))
    ]


def test_a_conversation_that_had_no_virtual_context_is_caught_up(memory: MemoryOS):
    one, model = agent(memory)
    graph = parent(one)
    listed = [*history(2), HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}])]
    graph.invoke({"messages": [*listed, AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "1"}]), AIMessage("nice"),
                               HumanMessage("and now?", id="new")]}, run())
    assert [message.type for message in model.asked[0]] == ["system", *["human", "ai", "tool"] * 3, "human"]
    told = prompt(model)
    places = [told.index(text) for text in ("question 0", "reply 0", "question 1", "reply 1", "look", "nice", "and now?")]
    assert places == sorted(places)
    assert_whole(model.asked[0])
    graph.invoke(said("again", "next"), run())
    assert [(page["query"], page["reply"]) for page in exported(memory, "u")] == [
        ("question 0", "reply 0"), ("question 1", "reply 1"), ("look\n[image]", "nice"), ("and now?", "ok"), ("again", "ok"),
    ]
    assert len([entry for entry in one.messages("u", "t") if entry["kind"] == "user_message"]) == 5


def test_only_the_newest_hundred_messages_are_caught_up_and_what_is_too_much_is_flushed(memory: MemoryOS):
    one, model = agent(memory)
    report = parent(one).invoke({"messages": [*history(80), HumanMessage("and now?", id="new")]}, run())
    assert queries(memory, "u") == ["", *(f"question {at}" for at in range(31, 80)), "and now?"]
    assert "and now?" in prompt(model)
    assert "They talked." in prompt(model)
    assert report["messages"][-1].content == "ok"


def test_what_was_forgotten_is_not_caught_up_from_the_parents_list(memory: MemoryOS):
    one, model = agent(memory, otherwise=say("Noted CANARY."))
    graph = parent(one)
    graph.invoke({"messages": [*history(1), HumanMessage("The code is CANARY.", id="m")]}, run())
    for forget in ({"thread_id": "t"}, {}):
        memory.forget("u", **forget)
        model.otherwise = say("ok")
        graph.invoke(said("Hello", f"after {forget}"), run())
        assert "CANARY" not in prompt(model)
        assert "question 0" not in prompt(model)
    assert queries(memory, "u") == ["Hello"]


def test_a_forgotten_message_that_waits_for_an_answer_is_none(memory: MemoryOS):
    one, model = agent(memory, RuntimeError("down"))
    with pytest.raises(RuntimeError, match="down"):
        one.graph.invoke(said("The code is CANARY.", "m"), run())
    memory.forget("u", thread_id="t")
    listed = [*history(1), HumanMessage("The code is CANARY.", id="m")]
    assert one.graph.invoke({"messages": listed}, run())["virtual"]["reason"] == "nothing"
    assert one.graph.invoke({"messages": [*listed, HumanMessage("Hello", id="n")]}, run())["virtual"]["sent"] == ["ok"]
    assert "CANARY" not in prompt(model)
    assert "question 0" in prompt(model)
    assert queries(memory, "u") == ["question 0", "Hello"]


def test_a_conversation_is_caught_up_once_however_it_comes_again(memory: MemoryOS):
    """A client that sends the whole list each time, without ids, and a node that rewrites what was said."""
    one, model = agent(memory)
    listed = [HumanMessage("question 0"), AIMessage("reply 0")]
    for at in (1, 2, 3):
        listed += [HumanMessage(f"question {at}")]
        one.graph.invoke({"messages": [message.model_copy() for message in listed]}, run())
        listed += [AIMessage("ok, said otherwise")]
    assert queries(memory, "u") == [f"question {at}" for at in range(4)]
    assert prompt(model).count("question 1") == 1


def test_the_same_message_at_the_same_moment_is_answered_once(memory: MemoryOS):
    one, model = agent(memory)
    other, second = agent(memory)
    reports: list[Any] = []

    def answer(virtual: VirtualContext) -> None:
        reports.append(virtual.graph.invoke(said("hi", f"m{at}"), run())["virtual"])

    for at in range(5):
        with before_round_trip(memory, at, lambda: answer(other)) as reached:
            answer(one)
        assert reached
        assert sorted(report["reason"] for report in reports) in (["busy", "done"], ["done", "nothing"])
        assert len(model.asked) + len(second.asked) == 1
        model.asked.clear()
        second.asked.clear()
        reports.clear()


def test_a_refused_event_leaves_a_call_that_waits_for_approval(memory: MemoryOS):
    one, _ = agent(memory, acts(call("archival_memory_insert", True, content="approved")))
    graph = one.builder().compile(checkpointer=InMemorySaver(), interrupt_before=["execute_functions"])
    graph.invoke(said("keep it", "m1"), run())
    assert graph.invoke({"event": {"kind": "timed", "text": "tick", "id": "t1"}}, run())["virtual"]["reason"] == "busy"
    assert [message["kind"] for message in graph.get_state(run()).values["queue"]] == ["user_message", "assistant"]


def test_equal_ids_in_two_threads_are_two_calls(memory: MemoryOS):
    one, _ = agent(memory, *(acts(call("core_memory_append", block="human", content=text)) for text in ("tea", "milk")))
    for thread in ("t1", "t2"):
        one.graph.invoke(said("remember", "m1"), {"configurable": {"user_id": "u", "thread_id": thread}})
    assert one.blocks.get(one.scope("u"), "human").value == "tea\nmilk"


def test_an_event_that_was_evicted_while_it_waited_is_asked_with_its_question(memory: MemoryOS):
    def down(_: Any) -> AIMessage:
        raise ConnectionError("The model is down.")

    one, model = agent(memory, acts(call("archival_memory_search", True, query="x")), down, say("done"))
    with pytest.raises(ConnectionError):
        one.graph.invoke(said("QUESTION m1", "m1"), run())
    queue = memory.connection.client
    key = memory.parts.pages.namespace.keys(one.scope("u")).fifo("t")
    kept = json.loads(queue.get(key))
    # As if others had evicted it: what stays in view begins with its first step.
    log = [entry["message_id"] for entry in one.messages("u", "t")]
    queue.set(key, json.dumps(kept | {"messages": log[1:], "until": log[0]}))
    assert one.graph.invoke(said("QUESTION m1", "m1"), run())["virtual"]["sent"] == ["done"]
    assert "QUESTION m1" in prompt(model)


def test_what_ran_meanwhile_is_summarised_or_in_view_when_later_steps_are_evicted(memory: MemoryOS):
    def overlapped(_: Any) -> AIMessage:
        one.send("the spare key is under the oak", user_id="u")
        return acts(call("archival_memory_insert", True, content="aa " * 900))

    steps = [acts(call("archival_memory_insert", True, content=f"{name} " * 1500)) for name in ("bb", "cc", "dd")]
    one, model = agent(memory, overlapped, say("noted"), *steps, say("done"), otherwise=say("under the oak"))
    assert one.send("sort my papers", user_id="u")["flushes"] > 0
    one.send("where is the key?", user_id="u")
    assert "the spare key is under the oak" in str(model.asked[-1]) + str(model.summarised)


def test_an_answered_event_that_died_at_its_end_is_finished_and_not_asked_again(
    memory: MemoryOS, monkeypatch: pytest.MonkeyPatch
):
    one, model = agent(memory, say("first answer"), otherwise=say("second answer"))
    message = {"messages": [HumanMessage("hi", id="m1")]}
    with monkeypatch.context() as patch:
        patch.setattr(LeaseStore, "release", crash)
        with pytest.raises(ConnectionError):
            one.graph.invoke(message, {"configurable": {"user_id": "u"}})
    leases = memory.parts.pages.sibling(LeaseStore)
    leases.release(one.scope("u"), "default", "m1", finished=False)
    report = one.graph.invoke(message, {"configurable": {"user_id": "u"}})["virtual"]
    assert (report["reason"], report["sent"], len(model.asked)) == ("done", ["first answer"], 1)
    assert [page["reply"] for page in exported(memory, "u")] == ["first answer"]


def test_a_resumed_run_keeps_its_thread_busy(memory: MemoryOS):
    def down(_: Any) -> AIMessage:
        raise ConnectionError("The model is down.")

    def ticked(_: Any) -> AIMessage:
        assert other.tick(user_id="u")["reason"] == "busy"
        return say("hello")

    other, _ = agent(memory)
    one, _ = agent(memory, down, ticked, checkpointer=InMemorySaver())
    config = {"configurable": {"user_id": "u", "thread_id": "default"}}
    with pytest.raises(ConnectionError):
        one.graph.invoke({"messages": [HumanMessage("hi", id="m1")]}, config)
    assert one.graph.invoke(None, config)["virtual"]["sent"] == ["hello"]


def crash(*_: Any, **__: Any) -> None:
    raise ConnectionError("The server is gone.")
