# ruff: noqa: FBT001, FBT003, RUF059
"""The loop: executor, heartbeats, failures, caps, events."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from openai import LengthFinishReasonError
from openai.types.chat import ChatCompletion

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.nodes.execute_functions import ExecuteFunctions
from langgraph_memoryos.stores.checkpoints import checkpoint_thread
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.virtual_context import VirtualContext
from tests.memory_support import Clock
from tests.scripted_model import ScriptedModel
from tests.virtual_support import acts, agent, call, results, say, system

pytest_plugins = ["tests.memory_fixtures"]


class Interrupted(BaseException):
    """Stands for the death of the process."""


def test_a_message_is_answered_through_send_message(memory: MemoryOS):
    one, model = agent(memory, say("Hello Ana"))
    report = one.send("I am Ana", user_id="u")
    assert (report["sent"], report["reason"], report["steps"]) == (["Hello Ana"], "done", 1)
    assert len(model.asked) == 1


def test_a_heartbeat_runs_again_and_its_result_is_seen(memory: MemoryOS):
    one, model = agent(memory, acts(call("core_memory_append", True, block="human", content="Name: Ana")), say("Hi"))
    report = one.send("I am Ana", user_id="u")
    assert report["steps"] == 2
    assert results(model.asked[1])[0]["status"] == "OK"
    assert "Name: Ana" in system(model.asked[1])
    assert set(results(model.asked[1])[0]) == {"status", "message", "time"}


def test_without_a_heartbeat_the_loop_rests(memory: MemoryOS):
    one, model = agent(memory, acts(call("core_memory_append", False, block="human", content="x")))
    assert one.send("hi", user_id="u")["steps"] == 1
    again, _ = agent(memory, acts(call("core_memory_append", block="human", content="x")), say("ok"),
                     continue_after_any_function=True)
    assert again.send("hi", user_id="v")["steps"] == 2


@pytest.mark.parametrize(("bad", "told"), [
    (call("fly_to_moon"), "no function 'fly_to_moon'"),
    (call("core_memory_append", block="human"), "content"),
    (call("core_memory_append", block="human", content="x", extra=1), "extra"),
    (call("core_memory_append", block="nowhere", content="x"), "persona"),
    (call("conversation_search", query="x", page=-1), "page"),
    (call("conversation_search", query="x", page="two"), "page"),
    (call("conversation_search_date", start="yesterday", end="2024-01-01"), "YYYY-MM-DD"),
    (call("conversation_search_date", start="2026-02-29", end="2026-03-01"), "there is no day 2026-02-29"),
    (call("conversation_search_date", start="2024-01-02", end="2024-01-01"), "after"),
    (call("archival_memory_search", query="x", page=9), "last page"),
    (call("archival_memory_delete", item=99), "no item 99"),
    (call("archival_memory_insert", content="  "), "empty"),
    (call("send_message", message=""), "at least 1 character"),
])
def test_a_failing_call_is_told_and_forces_another_step(memory: MemoryOS, bad: dict[str, Any], told: str):
    one, model = agent(memory, acts(bad), say("sorry"))
    report = one.send("go", user_id="u")
    assert report["steps"] == 2
    result = results(model.asked[1])[0]
    assert result["status"] == "Failed"
    assert told in result["message"]
    assert "Traceback" not in result["message"]


def test_arguments_that_are_no_json_fail_and_the_history_stays_legal(memory: MemoryOS):
    broken = AIMessage("", invalid_tool_calls=[
        {"name": "send_message", "args": '{"message": "hal', "id": "1", "error": "bad", "type": "invalid_tool_call"},
    ])
    one, model = agent(memory, broken, say("again"))
    report = one.send("go", user_id="u")
    assert report["sent"] == ["again"]
    assert results(model.asked[1])[0]["status"] == "Failed"
    assert [message.type for message in model.asked[1]] == ["system", "human", "ai", "tool"]


def test_an_exception_is_told_by_name_and_message_only(memory: MemoryOS, monkeypatch: pytest.MonkeyPatch):
    one, model = agent(memory, acts(call("archival_memory_insert", content="x")), say("ok"))

    def explode(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("langgraph_memoryos.stores.archival.ArchivalStore.insert", explode)
    one.send("go", user_id="u")
    assert results(model.asked[1])[0]["message"] == "ZeroDivisionError: boom"


def test_several_calls_are_carried_out_in_order(memory: MemoryOS):
    one, model = agent(
        memory,
        acts(call("core_memory_append", block="human", content="A"), call("nonsense"), call("send_message", message="one"),
             call("core_memory_replace", True, block="human", old="A", new="B")),
        say("two"),
    )
    report = one.send("go", user_id="u")
    assert report["sent"] == ["one", "two"]
    assert [each["status"] for each in results(model.asked[1])] == ["OK", "Failed", "OK", "OK"]
    assert one.blocks.get(one.scope("u"), "human").value == "B"


@pytest.mark.parametrize("cap", [1, 4])
def test_the_cap_stops_at_exactly_n_steps(memory: MemoryOS, cap: int):
    again = acts(call("archival_memory_search", True, query="x"))
    one, model = agent(memory, otherwise=again, max_steps=cap, context_window_tokens=60_000)
    report = one.send("go", user_id="u")
    assert (report["reason"], report["steps"], len(model.asked)) == ("step_cap", cap, cap)
    log = one.messages("u")
    assert [entry["kind"] for entry in log] == ["user_message", *["assistant", "function_result"] * cap]
    model.otherwise = say("I am back")
    assert one.send("still there?", user_id="u")["sent"] == ["I am back"]


FAILING = call("core_memory_append", block="nowhere", content="x")
SAID = call("send_message", message="Noted!")


@pytest.mark.parametrize("calls", [[FAILING], [SAID, FAILING], [FAILING, SAID], [FAILING, FAILING], [call("nonsense"), FAILING]])
def test_the_same_failing_call_in_three_steps_ends_the_chain(memory: MemoryOS, calls: list[dict[str, Any]]):
    one, model = agent(memory, otherwise=acts(*calls))
    report = one.send("go", user_id="u")
    assert (report["reason"], report["steps"]) == ("repeated_failure", 3)
    assert report["sent"] == ["Noted!"] * 3 * (SAID in calls)
    assert len(model.asked) == 3


@pytest.mark.parametrize("nothing", [AIMessage(""), AIMessage(" \n"), AIMessage([{"type": "thinking", "thinking": "hm"}])])
def test_an_empty_reply_is_told_once_and_kept_nowhere(memory: MemoryOS, nothing: AIMessage):
    one, model = agent(memory, nothing, nothing, say("hello"), otherwise=nothing, checkpointer=InMemorySaver())
    report = one.send("anyone?", user_id="u")
    assert (report["reason"], report["steps"], report["sent"]) == ("done", 3, ["hello"])
    assert [message.type for message in model.asked[2]] == ["system", "human", "human"]
    assert "call" in json.loads(str(model.asked[2][-1].content))["message"]
    report = one.send("and now?", user_id="u")
    assert (report["reason"], report["steps"], report["sent"]) == ("repeated_failure", 3, [])
    assert len([entry for entry in one.messages("u") if entry["kind"] == "system_alert"]) == 2
    model.otherwise = say("back")
    assert one.send("hello?", user_id="u")["sent"] == ["back"]
    assert all(message.content or message.tool_calls for message in model.asked[-1] if isinstance(message, AIMessage))


def test_an_empty_reply_is_rest_where_nobody_waits(memory: MemoryOS):
    greeting = acts(call("send_message", message="hi"), call("core_memory_append", True, block="human", content="x"))
    one, model = agent(memory, greeting, otherwise=AIMessage(""))
    for report, steps, sent in ((one.send("hello", user_id="u"), 2, ["hi"]), (one.tick(user_id="u"), 1, [])):
        assert (report["reason"], report["steps"], report["sent"]) == ("done", steps, sent)
    assert "assistant" not in [entry["kind"] for entry in one.messages("u")[-2:]]


def test_a_failing_call_that_does_not_come_in_every_step_is_not_stuck(memory: MemoryOS):
    one, _ = agent(memory, *[acts(FAILING), acts(call("archival_memory_search", True, query="x"))] * 3, say("done"))
    assert one.send("go", user_id="u")["sent"] == ["done"]


def test_text_without_a_call_reaches_a_waiting_user_once(memory: MemoryOS):
    one, _ = agent(memory, "Hello there", acts(call("send_message", message="a"), call("archival_memory_search", True, query="q")),
                   "I am done, I think")
    assert one.send("hi", user_id="u")["sent"] == ["Hello there"]
    assert one.send("hi again", user_id="u")["sent"] == ["a"]


def test_text_after_a_timer_is_a_thought(memory: MemoryOS):
    one, _ = agent(memory, "Nothing to do.")
    report = one.tick(user_id="u")
    assert (report["sent"], report["reason"]) == ([], "done")


def test_a_call_written_as_text_is_understood(memory: MemoryOS):
    one, _ = agent(memory, 'Sure:\n```json\n{"function": "send_message", "arguments": {"message": "Hi"}}\n```')
    assert one.send("hi", user_id="u")["sent"] == ["Hi"]


APPEND = '{"function": "core_memory_append", "arguments": {"block": "human", "content": "likes figs"}}'
SEND = '{"name": "send_message", "parameters": {"message": "Hi {you}"}}'
INSERT = '{"call": {"function": "archival_memory_insert", "arguments": {"content": "k"}}}'
CALLED = '{"type": "function", "function": {"name": "send_message", "arguments": "{\\"message\\": \\"Hi {you}\\"}"}}'


@pytest.mark.parametrize("text", [
    f"{APPEND}\n{SEND}", f"[{APPEND}, {CALLED}]", f"Of course:\n```json\n[{APPEND},\n{SEND}]\n```", f"{APPEND} {SEND[:-3]}",
    f"<tool_call>{APPEND}</tool_call>\n<tool_call>{SEND}</tool_call>", f"```\n{APPEND}\n```\n```\n{SEND}\n```",
])
def test_several_calls_written_as_text_are_all_carried_out_in_order(memory: MemoryOS, text: str):
    one, _ = agent(memory, text)
    assert one.send("hi", user_id="u")["sent"] == ["Hi {you}"]
    assert one.blocks.get(one.scope("u"), "human").value == "likes figs"
    assert [each["name"] for each in one.messages("u")[1]["calls"]] == ["core_memory_append", "send_message"]


def test_written_calls_without_a_message_do_not_reach_the_user(memory: MemoryOS):
    one, _ = agent(memory, f"{INSERT} {APPEND}")
    assert one.send("hi", user_id="u")["sent"] == []
    assert one.archival.count(one.scope("u")) == 1


@pytest.mark.parametrize("text", [
    'Here is the JSON you asked for: {"function": "add", "arguments": {"a": 1}}', '{"function": "add", "arguments": {"a": 1}}',
    f"I would call {SEND} now.", f"{SEND} does that.", "[1, 2]", "[]", "{", '{"function": ["send_message"]}', '{"a":' * 1000,
])
def test_text_that_is_not_calls_as_a_whole_is_text(memory: MemoryOS, text: str):
    one, _ = agent(memory, text, context_window_tokens=30_000)
    assert one.send("hi", user_id="u")["sent"] == [text]


@pytest.mark.parametrize("native", [True, False])
def test_arguments_that_are_nested_deeply_fail_like_any_wrong_ones(memory: MemoryOS, native: bool):
    deep = json.loads("[" * 900 + "]" * 900)
    bad = call("core_memory_append", block="human", content=deep)
    written = json.dumps({"function": bad["name"], "arguments": bad["args"]})
    one, model = agent(memory, acts(bad) if native else written, say("sorry"), checkpointer=InMemorySaver())
    assert one.send("go", user_id="u")["sent"] == ["sorry"]
    assert "content: Input should be a valid string" in results(model.asked[1])[0]["message"]


@pytest.mark.parametrize("where", ["content", "raw", "nowhere"])
def test_calls_with_unreadable_arguments_keep_their_place_where_the_reply_tells_it(memory: MemoryOS, where: str):
    bad = {"name": "send_message", "args": '{"message": "hal', "id": "1", "error": "bad", "type": "invalid_tool_call"}
    good = call("core_memory_append", block="human", content="x") | {"id": "2"}
    blocks: Any = [{"type": "tool_use", "id": name, "name": "x", "input": {}} for name in ("1", "2")]
    broken = AIMessage(blocks if where == "content" else "", tool_calls=[good], invalid_tool_calls=[bad],
                       additional_kwargs={"tool_calls": [{"id": "1"}, {"id": "2"}]} if where == "raw" else {})
    one, model = agent(memory, broken, say("again"))
    one.send("go", user_id="u")
    statuses = [each["status"] for each in results(model.asked[1])]
    assert statuses == (["OK", "Failed"] if where == "nowhere" else ["Failed", "OK"])


@pytest.mark.parametrize("page", [None, "", " none ", "None", "null", " 0 ", "0.0"])
def test_a_page_number_is_read_leniently(memory: MemoryOS, page: Any):
    one, model = agent(memory, acts(call("conversation_search", True, query="x", page=page)), say("ok"))
    one.send("go", user_id="u")
    assert results(model.asked[1])[0] | {"time": ""} == {"status": "OK", "message": "No results.", "time": ""}


def test_the_prompt_states_how_many_exchanges_a_search_can_find(memory: MemoryOS):
    search = acts(call("send_message", message="wait"), call("conversation_search", True, query=""))
    one, model = agent(memory)
    for at in range(12):
        one.send(f"fact {at}", user_id="u", thread_id="one")
    one.send("hi", user_id="u", agent_id="another")
    model.script = [None] * len(model.asked) + [search]
    one.send("what do I like?", user_id="u", thread_id="two")
    assert all("# Memory: 12 exchanges in recall storage" in system(asked) for asked in model.asked[-2:])
    assert "of 12 results" in results(model.asked[-1])[-1]["message"]
    model.script = [None] * len(model.asked) + [search]
    one.tick(user_id="u", thread_id="two")
    assert all("# Memory: 13 exchanges in recall storage" in system(asked) for asked in model.asked[-2:])
    assert "of 13 results" in results(model.asked[-1])[-1]["message"]


def test_all_kinds_of_events_run_and_are_no_dialogue(memory: MemoryOS):
    one, model = agent(memory, say("Welcome back"), acts(call("archival_memory_search", query="x")), say("Reminder"))
    assert one.interaction("The user logged in.", user_id="u")["sent"] == ["Welcome back"]
    assert one.alert("Disk full.", user_id="u")["kind"] == "system_alert"
    assert one.tick(user_id="u")["sent"] == ["Reminder"]
    assert '"type": "user_interaction"' in str(model.asked[0][1].content)
    kinds = [entry["kind"] for entry in one.messages("u")]
    assert kinds[:1] == ["user_interaction"]
    pages = list(memory.parts.pages.iterate("u"))
    assert [(page.query, page.reply) for page in pages] == [("", "Welcome back"), ("", "Reminder")]


def test_events_go_to_the_named_agent_and_unknown_names_are_refused(memory: MemoryOS):
    one, _ = agent(memory)
    for happens in (one.send, one.alert, one.interaction, one.tick):
        happens("hi", user_id="u", agent_id="coach", thread_id="t")
        with pytest.raises(TypeError, match="agent"):
            happens("hi", user_id="u", agent="coach")
    assert len([entry for entry in one.messages("u", "t", agent_id="coach") if entry["kind"] != "assistant"]) == 8
    assert one.messages("u") == one.messages("u", "t") == ()


def test_a_checkpoint_is_named_after_the_memory(memory: MemoryOS, redis_prefix: str):
    one, _ = agent(memory)
    who = {"user_id": "u", "agent_id": "a", "thread_id": "t"}
    assert memory.parts.namespace == redis_prefix
    assert one.checkpoint_thread(**who) == checkpoint_thread(namespace=redis_prefix, **who)


def test_a_timed_event_is_skipped_while_busy(memory: MemoryOS):
    one, model = agent(memory)
    leases = memory.parts.pages.sibling(LeaseStore)
    leases.seize(one.scope("u"), "default", "somebody", seconds=60)
    assert one.tick(user_id="u")["reason"] == "busy"
    assert not model.asked
    leases.release(one.scope("u"), "default", "somebody")
    assert one.tick(user_id="u")["reason"] == "done"
    assert leases.holder(one.scope("u"), "default") == ""


def test_the_thread_is_busy_inside_a_step_and_only_that_thread(memory: MemoryOS):
    seen: list[str] = []
    one, model = agent(memory)
    other, _ = agent(memory)

    def meanwhile(_: Any) -> AIMessage:
        seen.append(other.tick(user_id="u")["reason"])
        seen.append(other.tick(user_id="u", thread_id="elsewhere")["reason"])
        return say("done")

    model.script = [meanwhile]
    one.send("hi", user_id="u")
    assert seen == ["busy", "done"]


def test_a_pause_skips_timed_events_until_it_is_over(memory: MemoryOS, clock: Clock):
    one, _ = agent(memory, acts(call("pause_heartbeats", minutes=1000)))
    one.send("leave me alone", user_id="u")
    assert one.tick(user_id="u")["reason"] == "paused"
    assert one.send("hello", user_id="u")["reason"] == "done"
    clock.now += 359 * 60
    assert one.tick(user_id="u")["reason"] == "paused"
    clock.now += 61
    assert one.tick(user_id="u")["reason"] == "done"


def test_invoke_and_ainvoke_do_the_same(memory: MemoryOS):
    one, _ = agent(memory, acts(call("core_memory_append", True, block="human", content="x")), say("hi"))
    given = {"messages": [HumanMessage("hi", id="m")]}
    there = one.graph.invoke(given, {"configurable": {"user_id": "a"}})
    two, _ = agent(memory, acts(call("core_memory_append", True, block="human", content="x")), say("hi"))
    here = asyncio.run(two.graph.ainvoke(given, {"configurable": {"user_id": "a2"}}))
    assert there["virtual"]["sent"] == here["virtual"]["sent"] == ["hi"]
    assert [message.content for message in here["messages"]] == ["hi", "hi"]


def test_the_same_message_again_is_one_event(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver())
    config = {"configurable": {"user_id": "u", "thread_id": "t"}}
    one.graph.invoke({"messages": [HumanMessage("hi", id="m")]}, config)
    again = one.graph.invoke({"messages": [HumanMessage("hi", id="m")]}, config)
    assert again["virtual"]["reason"] == "nothing"
    assert len(model.asked) == 1
    assert memory.parts.pages.count("u") == 1


@pytest.mark.parametrize("kept", [True, False])
def test_an_event_is_one_event_even_after_it_was_flushed(memory: MemoryOS, kept: bool):
    one, model = agent(memory, checkpointer=InMemorySaver() if kept else None)
    config = {"configurable": {"user_id": "u", "thread_id": "t"}}
    given = {"event": {"kind": "system_alert", "text": "Disk full.", "id": "alert"}}
    one.graph.invoke(given, config)
    for at in range(12):
        state = one.graph.invoke({"messages": [HumanMessage(f"{at} {'long ' * 300}", id=f"m{at}")]}, config)
        if state["virtual"]["flushes"]:
            break
    assert state["virtual"]["flushes"]
    asked = len(model.asked)
    leases = memory.parts.pages.sibling(LeaseStore)
    leases.seize(one.scope("u"), "t", "somebody", seconds=60)
    assert one.graph.invoke(given, config)["virtual"]["reason"] == "nothing"
    assert len(model.asked) == asked
    assert leases.holder(one.scope("u"), "t") == "somebody"


def test_an_event_whose_taking_in_was_interrupted_is_taken_in(memory: MemoryOS, monkeypatch: pytest.MonkeyPatch):
    one, _ = agent(memory, say("I see"), checkpointer=InMemorySaver())
    config = {"configurable": {"user_id": "u", "thread_id": "t"}}
    given = {"event": {"kind": "system_alert", "text": "Disk full.", "id": "alert"}}
    with monkeypatch.context() as crash:
        crash.setattr(MessageStore, "save_queue", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            one.graph.invoke(given, config)
    assert one.graph.invoke(None, config)["virtual"]["sent"] == ["I see"]
    assert [entry["kind"] for entry in one.messages("u", "t")][:2] == ["system_alert", "assistant"]


INSERTS = acts(*(call("archival_memory_insert", True, content=text) for text in ("alpha", "beta")))


def kinds_and_results(one: VirtualContext, prompt: list[BaseMessage]) -> tuple[list[str], list[str]]:
    """Return the types of a prompt's messages and the statuses of its results, which are those that recall has."""
    logged = [entry for entry in one.messages("u") if entry["kind"] == "function_result"]
    told = results(prompt)
    assert [each["message"] for each in told] == [entry["text"] for entry in logged][: len(told)]
    return [message.type for message in prompt], [each["status"] for each in told]


@pytest.mark.parametrize("mode", ["memgpt", "hybrid"])
def test_a_call_that_was_interrupted_has_a_failed_result(memory: MemoryOS, monkeypatch: pytest.MonkeyPatch, mode: str):
    def broken(*_: Any, **__: Any) -> None:
        raise Interrupted

    one, model = agent(memory, INSERTS, checkpointer=InMemorySaver(), mode=mode)
    with monkeypatch.context() as patch:
        patch.setattr(ExecuteFunctions, "_carry_out", broken)
        with pytest.raises(Interrupted):
            one.send("first", user_id="u")
    assert one.send("second", user_id="u")["sent"] == ["ok"]
    expected = ["system", "human", "ai", "tool", "tool", "human"]
    assert kinds_and_results(one, model.asked[-1]) == (expected, ["Failed", "Failed"])
    assert "may or may not" in results(model.asked[-1])[0]["message"]
    one.send("third", user_id="u")
    assert kinds_and_results(one, model.asked[-1])[0] == [*expected, "ai", "tool", "human"]
    kinds = [entry["kind"] for entry in one.messages("u")]
    assert kinds[:5] == ["user_message", "assistant", "function_result", "function_result", "user_message"]
    assert not list(one.archival.iterate(one.scope("u")))


def test_a_call_that_was_interrupted_once_recall_had_its_result_keeps_that(
    memory: MemoryOS, monkeypatch: pytest.MonkeyPatch,
):
    append = MessageStore.append

    def breaks_after(store: MessageStore, *args: Any, **named: Any) -> bool:
        append(store, *args, **named)
        if args[2][0]["kind"] == "assistant":
            raise Interrupted
        return True

    one, model = agent(memory, INSERTS, checkpointer=InMemorySaver())
    with monkeypatch.context() as patch:
        patch.setattr(MessageStore, "append", breaks_after)
        with pytest.raises(Interrupted):
            one.send("first", user_id="u")
    one.send("second", user_id="u")
    assert kinds_and_results(one, model.asked[-1])[1] == ["OK", "OK"]
    assert len(list(one.archival.iterate(one.scope("u")))) == 2


def test_a_call_that_was_interrupted_is_carried_out_by_resuming(memory: MemoryOS):
    one, model = agent(memory, INSERTS)
    graph = one.builder().compile(checkpointer=InMemorySaver(), interrupt_before=["execute_functions"])
    config: Any = {"configurable": {"user_id": "u", "thread_id": "default"}}
    graph.invoke({"messages": [("user", "first")]}, config)
    graph.invoke(None, config)
    assert kinds_and_results(one, model.asked[-1])[1] == ["OK", "OK"]
    assert graph.invoke(None, config)["virtual"]["sent"] == ["ok"]
    assert len(list(one.archival.iterate(one.scope("u")))) == 2


def test_the_loop_streams_its_steps(memory: MemoryOS):
    one, _ = agent(memory, acts(call("core_memory_append", True, block="human", content="x"), thought="I note it."), say("ok"))
    config = {"configurable": {"user_id": "u"}}
    steps = [next(iter(update)) for update in one.graph.stream({"messages": [HumanMessage("hi")]}, config, stream_mode="updates")]
    assert steps == [
        "ingest_event", "build_context", "check_pressure", "call_model", "execute_functions", "build_context",
        "check_pressure", "call_model", "execute_functions", "build_context", "check_pressure", "finish_event",
    ]
    spoken = [
        message.content for message, _ in one.graph.stream({"messages": [HumanMessage("hi")]}, config, stream_mode="messages")
        if message.type == "ai"
    ]
    assert spoken == ["ok"]


def test_a_model_without_tools_fills_in_one_schema(memory: MemoryOS):
    model = ScriptedModel(structured=True, replies=[
        '{"call": {"function": "core_memory_append", "arguments": {"block": "human", "content": "Ana", "request_heartbeat": true}}}',
        '{"call": {"function": "send_message", "arguments": {"message": "Hi Ana"}}}',
        "plain words",
    ])
    one = VirtualContext(memory, model=model)
    assert one.send("I am Ana", user_id="u")["sent"] == ["Hi Ana"]
    assert "core_memory_append(block, content, request_heartbeat)" in system(model.asked[0])
    assert all(message.type in ("system", "human", "ai") for message in model.asked[1])
    assert one.send("and?", user_id="u")["sent"] == ["plain words"]


def test_a_structured_reply_that_was_cut_off_reaches_the_user_as_far_as_it_came(memory: MemoryOS):
    cut = ChatCompletion.model_validate({
        "id": "1", "object": "chat.completion", "created": 0, "model": "small", "choices": [{
            "index": 0, "finish_reason": "length", "message": {
                "role": "assistant", "content": '{"call": {"function": "send_message", "arguments": {"message": "Hello An'},
        }],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    })
    model = ScriptedModel(structured=True, replies=[LengthFinishReasonError(completion=cut)])
    report = VirtualContext(memory, model=model).send("hi", user_id="u")
    assert report["sent"] == ["Hello An"]
    assert report["usage"] == {"model_calls": 1, "input_tokens": 5, "output_tokens": 7}


def test_a_queue_without_a_checkpointer_lives_on(memory: MemoryOS):
    one, _ = agent(memory, acts(call("send_message", message="a"), call("send_message", message="b"), thought="hm"))
    one.send("first", user_id="u")
    two, model = agent(memory)
    two.send("second", user_id="u")
    assert [message.type for message in model.asked[0]] == ["system", "human", "ai", "tool", "tool", "human"]
    assert [each["args"]["message"] for each in model.asked[0][2].tool_calls] == ["a", "b"]  # type: ignore[attr-defined]


def test_two_users_of_one_thread_name_share_no_queue(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver())
    one.send("my secret is 4711", user_id="a")
    one.send("hello", user_id="b")
    assert "4711" not in str(model.asked[1])
    for user in ("c", "d"):
        config = {"configurable": {"user_id": user, "thread_id": "same"}}
        one.graph.invoke({"messages": [HumanMessage(f"secret of {user}", id=user)]}, config)
    assert "secret of c" not in str(model.asked[-1])
