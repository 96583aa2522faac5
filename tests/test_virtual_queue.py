# ruff: noqa: RUF059
"""The queue manager: warning, flush, recursive summary, what stays and what recall keeps."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.search import SearchRequest
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_queue import groups, parse_queue, split_queue
from langgraph_memoryos.virtual_settings import ContextWindowError, VirtualContextSettings
from langgraph_memoryos.virtual_state import QueueMessage
from tests.virtual_support import acts, agent, call, say

pytest_plugins = ["tests.memory_fixtures"]

LONG = "The quick brown fox tells another story about the harbour. " * 16
CONFIG: Any = {"configurable": {"user_id": "u", "thread_id": "t"}}


def talk(one: Any, turns: int, text: str = LONG, start: int = 0) -> list[dict[str, Any]]:
    """Send messages with a checkpointer; returns the states."""
    states = []
    for at in range(start, start + turns):
        one.graph.invoke({"messages": [HumanMessage(f"Message {at}: {text}", id=f"m{at}")]}, CONFIG)
        states.append(one.graph.get_state(CONFIG).values)
    return states


def test_one_warning_per_period_at_70_percent(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver())
    states = talk(one, 30)
    kinds = [entry["kind"] for entry in one.messages("u", "t")]
    flushes = sum(state["virtual"]["flushes"] for state in states)
    assert flushes >= 2
    assert "memory_pressure" in kinds
    periods = " ".join(kinds).split("summary")
    assert all(period.count("memory_pressure") == 1 for period in periods[:-1])
    assert periods[-1].count("memory_pressure") <= 1
    first = next(at for at, state in enumerate(states) if state["virtual"]["warnings"])
    assert states[first]["pressure"]["tokens"] >= one.settings.warn_tokens > states[first - 1]["pressure"]["tokens"]
    assert all(state["pressure"]["warned"] == (state["pressure"]["tokens"] >= one.settings.warn_tokens) for state in states)
    told = sum(state["virtual"]["steps"] for state in states[: first + 1])
    assert "nearly full" in str(model.asked[told - 1][-1].content)


def test_a_warning_after_the_last_function_forces_a_step(memory: MemoryOS):
    big = "word " * 900
    one, model = agent(memory, say(big), say("noted"), checkpointer=InMemorySaver(), warn_fraction=0.5)
    state = talk(one, 1, "hi")[0]
    assert state["virtual"]["warnings"] == 1
    assert (state["virtual"]["steps"], state["virtual"]["sent"][1]) == (2, "noted")


def test_a_flush_leaves_about_half_the_last_messages_and_the_summary_first(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver(), summary=lambda _: "SUMMARY of what was said.")
    steps: list[tuple[str, dict[str, Any]]] = []
    for at in range(60):
        given = {"messages": [HumanMessage(f"{at} {LONG}", id=f"m{at}")]}
        steps += [step for update in one.graph.stream(given, CONFIG, stream_mode="updates") for step in update.items()]
        if "replace_evicted" in dict(steps):
            break
    window = one.settings.context_window_tokens
    flushed = next(at for at, (name, _) in enumerate(steps) if name == "replace_evicted")
    pressures = [(at, update["pressure"]["tokens"]) for at, (name, update) in enumerate(steps) if name == "check_pressure"]
    *below, full = [tokens for at, tokens in pressures if at < flushed]
    assert all(tokens < window for tokens in below)
    assert full >= window
    left = next(tokens for at, tokens in pressures if at > flushed)
    assert window * 0.4 <= left <= window * 0.6
    queue = parse_queue(steps[flushed][1]["queue"])
    assert queue[0].kind == "summary"
    assert queue[0].text == "SUMMARY of what was said."
    assert len(queue) - 1 >= 3
    assert all(group[0].kind != "function_result" for group in groups(queue[1:]))


def test_the_last_three_messages_stay_however_large(memory: MemoryOS):
    one, _ = agent(memory, checkpointer=InMemorySaver(), otherwise=say("answer " * 900))
    state = talk(one, 3, "word " * 1500)[-1]
    assert state["virtual"]["flushes"] >= 1
    summary, *rest = parse_queue(state["queue"])
    assert summary.kind == "summary"
    assert len(rest) >= 3
    assert [message.kind for message in rest[-2:]] == ["assistant", "function_result"]


def test_each_summary_is_made_from_the_one_before(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver(), summary=lambda m: f"SUMMARY{len(str(m[1].content))}")
    talk(one, 40)
    assert len(model.summarised) >= 2
    first, second = model.summarised[0][1].content, model.summarised[1][1].content
    assert "SUMMARY SO FAR" not in str(first)
    assert f'"SUMMARY{len(str(first))}"' in str(second)


@pytest.mark.parametrize("summary", [
    RuntimeError("no model"), "", "much longer than what it was given " * 2000,
])
def test_a_summariser_that_fails_is_replaced_by_a_digest(memory: MemoryOS, summary: Any):
    one, _ = agent(memory, checkpointer=InMemorySaver(), summary=summary)
    state = talk(one, 40)[-1]
    text = state["queue"][0]["text"]
    assert state["queue"][0]["kind"] == "summary"
    assert "user: Message" in text
    assert count_tokens(text) <= one.settings.summary_tokens
    assert state["virtual"]["sent"] == ["ok"]


def test_a_digest_holds_the_summary_before_it(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver(), summary="Ana lives in Oslo.", max_summary_tokens=200)
    flushed = 0
    for at in range(80):
        state = talk(one, 1, start=at)[0]
        flushed += state["virtual"]["flushes"]
        if flushed == 1:
            model.summary = RuntimeError("gone")
        if flushed == 2:
            break
    assert state["queue"][0]["text"].startswith("Ana lives in Oslo.")


def test_what_is_too_long_for_one_summary_is_summarised_in_parts(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver(), summary="Short.")
    talk(one, 2, "word " * 5000)
    window = one.settings.context_window_tokens
    assert len(model.summarised) >= 1
    assert all(sum(count_tokens(str(message.content)) for message in asked) < window for asked in model.summarised)


def test_recall_keeps_every_message_in_order_evicted_and_sent_ones_too(memory: MemoryOS):
    one, _ = agent(memory, checkpointer=InMemorySaver(), otherwise=None)
    talk(one, 30)
    log = one.messages("u", "t")
    said = [entry["text"] for entry in log if entry["kind"] == "user_message"]
    assert [text.split(":")[0] for text in said] == [f"Message {at}" for at in range(30)]
    sent = [entry["calls"][0]["arguments"]["message"] for entry in log if entry["kind"] == "assistant"]
    assert sent == ["ok"] * len(sent)
    assert len(sent) >= 30
    queue = one.graph.get_state(CONFIG).values["queue"]
    assert "Message 0:" not in str(queue[1:])
    found = one.search.conversation(one.scope("u"), SearchRequest(query="Message 0")).items
    assert any(page.query.startswith("Message 0:") for page in found)
    raw = memory.connection.client
    stored = b"".join(
        raw.dump(key) or b"" for key in raw.scan_iter("*:contents:*") for _ in [0] if key.startswith(memory.parts.pages._namespace.name.encode()))
    assert b"quick brown fox" not in stored


def test_a_message_larger_than_the_window_is_truncated_visibly_and_kept_whole(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver())
    huge = "start " + "lorem ipsum dolor " * 6000 + " the secret is 4711 end"
    state = talk(one, 1, huge)[0]
    assert state["virtual"]["sent"] == ["ok"]
    shown = str(model.asked[0][-1].content)
    assert "[truncated" in str(model.asked[0])
    assert count_tokens(shown) < one.settings.context_window_tokens
    assert huge in one.messages("u", "t")[0]["text"]


def test_nothing_to_evict_is_an_error_and_no_loop(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver(), context_window_tokens=300)
    with pytest.raises(ContextWindowError, match="context_window_tokens"):
        talk(one, 1, "hello")
    assert not model.asked


def test_tool_pairs_stay_whole(memory: MemoryOS):
    def busy(messages: Any) -> AIMessage:
        return acts(*[call("archival_memory_search", query=f"q{at}") for at in range(4)], call("send_message", message="ok"))

    one, model = agent(memory, checkpointer=InMemorySaver(), otherwise=busy)
    assert sum(state["virtual"]["flushes"] for state in talk(one, 25, "short text")) >= 1
    for asked in model.asked:
        open_calls: set[str] = set()
        for message in asked:
            if message.type == "tool":
                assert message.tool_call_id in open_calls  # type: ignore[attr-defined]
                open_calls.discard(message.tool_call_id)  # type: ignore[attr-defined]
            else:
                assert not open_calls
                open_calls = {each["id"] for each in getattr(message, "tool_calls", [])}


def test_split_queue_takes_whole_groups_and_spares_the_last():
    def message(at: int, kind: Any = "user_message", **more: Any) -> QueueMessage:
        return QueueMessage(message_id=str(at), kind=kind, text="word " * 10, **more)

    calls = ({"id": "c", "name": "send_message", "arguments": {}},)
    queue = [message(0), message(1, "assistant", calls=calls), message(2, "function_result"), message(3), message(4)]
    evicted, kept = split_queue(queue, free_tokens=10_000, keep_last=3)
    assert [each.message_id for each in evicted] == ["0"]
    assert kept[0].message_id == "1"
    evicted, _ = split_queue(queue, free_tokens=10_000, keep_last=2)
    assert [each.message_id for each in evicted] == ["0", "1", "2"]


def test_settings_are_validated():
    with pytest.raises(ValueError, match="time zone"):
        VirtualContextSettings(time_zone="Mars/Olympus")
    with pytest.raises(ValueError, match="send_message"):
        VirtualContextSettings(functions=("conversation_search",))
    with pytest.raises(ValueError, match="warn_fraction"):
        VirtualContextSettings(warn_fraction=0.9, flush_fraction=0.8)
