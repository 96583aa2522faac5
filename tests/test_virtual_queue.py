# ruff: noqa: RUF059
"""The queue manager: warning, flush, recursive summary, what stays and what recall keeps."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.model_replies import prompt_messages
from langgraph_memoryos.records import Exchange
from langgraph_memoryos.stores.search import SearchRequest
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_queue import (
    groups,
    message_tokens,
    parse_queue,
    queue_tokens,
    shrunk,
    split_queue,
    truncated,
)
from langgraph_memoryos.virtual_settings import ContextWindowError, VirtualContextSettings
from langgraph_memoryos.virtual_state import QueueMessage
from tests.memory_support import OpenMemory
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
    calls = ({"id": "c", "name": "send_message", "arguments": {}},)
    queue = [message(0), message(1, "assistant", calls=calls), message(2, "function_result"), message(3), message(4)]
    evicted, kept = split_queue(queue, free_tokens=10_000, keep_last=3)
    assert [each.message_id for each in evicted] == ["0"]
    assert kept[0].message_id == "1"
    evicted, _ = split_queue(queue, free_tokens=10_000, keep_last=2)
    assert [each.message_id for each in evicted] == ["0", "1", "2"]


def message(at: int, kind: Any = "user_message", text: str = "word " * 10, **more: Any) -> QueueMessage:
    return QueueMessage(message_id=str(at), kind=kind, text=text, **more)


def test_split_queue_spares_what_is_being_answered_wherever_it_stands():
    calls = ({"id": "c", "name": "conversation_search", "arguments": {}},)
    step = [message(2, "assistant", calls=calls), message(3, "function_result")]
    newest = [message(4, "assistant", calls=calls), *(message(at, "function_result") for at in (5, 6)), message(7, "memory_pressure")]
    evicted, kept = split_queue([message(0), message(1), *step, *newest], free_tokens=10_000, keep_last=1, event={"1"})
    assert [each.message_id for each in evicted] == ["0", "2", "3"]
    assert [each.message_id for each in kept] == ["1", "4", "5", "6", "7"]


def test_split_queue_counts_no_warnings_among_the_last():
    queue = [message(0), message(1), *(message(at, "memory_pressure") for at in (2, 3, 4))]
    evicted, kept = split_queue(queue, free_tokens=10_000, keep_last=1)
    assert [each.message_id for each in evicted] == ["0"]
    assert [each.message_id for each in kept] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("kind", ["user_message", "summary", "assistant", "function_result", "system_alert"])
def test_a_message_costs_no_more_in_the_prompt_than_is_counted_but_for_a_long_envelope(kind: Any, *, native: bool):
    quotes = '{"user": "a \\"b\\""}\n' * 50
    calls = ({"id": "c", "name": "archival_memory_insert", "arguments": {"content": quotes}},) if kind == "assistant" else ()
    one = message(0, kind, quotes, calls=calls, call_id="c", name="conversation_search", said_at=1e9)
    _, shown = prompt_messages([one], system="", settings=VirtualContextSettings(), native=native)
    cost = count_tokens(str(shown.content)) + count_tokens(json.dumps([each["args"] for each in getattr(shown, "tool_calls", [])]))
    assert cost <= message_tokens(one) + 12


@pytest.mark.parametrize("kind", ["function_result", "assistant"])
def test_texts_full_of_quotes_are_truncated_to_any_size(kind: Any):
    lines = "\n".join(json.dumps({"user": f'note "{at}"', "assistant": "ok"}) for at in range(60))
    calls = tuple({"id": str(at), "name": "f", "arguments": {"content": lines, "page": at}} for at in range(3))
    queue = [message(at, kind, lines, calls=calls if kind == "assistant" else ()) for at in range(3)]
    whole = queue_tokens(queue)
    for room in (whole - 1, whole - 50, whole // 2, whole // 10):
        assert room * 0.7 <= queue_tokens(shrunk(queue, max_tokens=room)) <= room
    assert "[truncated" in str(shrunk(queue, max_tokens=whole // 2))


def test_an_image_that_does_not_fit_is_left_out_visibly_the_last_ones_first_kept():
    images = tuple({"type": "image", "base64": letter * 1_000_000} for letter in "abc")
    shown = message(0, text="look\n[image]\n[image]\n[image]", blocks=images)
    assert 3 * 1600 <= message_tokens(shown) <= 3 * 1600 + 100
    shorter = truncated(shown, 2000)
    assert shorter.blocks == images[2:]
    assert "2 attached item(s) left out" in shorter.text
    assert message_tokens(message(0, blocks=({"type": "file", "file": {"file_data": "x" * 3_000_000}},))) > 30_000


def test_images_are_evicted_as_everything_else(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver())
    for at in range(6):
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 200_000}}
        one.graph.invoke({"messages": [HumanMessage([{"type": "text", "text": f"see {at}"}, image], id=f"m{at}")]}, CONFIG)
        assert f"see {at}" in str(model.asked[-1])
        assert 1 <= str(model.asked[-1]).count("data:image") <= 2


@pytest.mark.parametrize(("window", "instructions"), [(8192, 340), (4000, 0)])
@pytest.mark.parametrize("mode", ["memgpt", "hybrid"])
def test_a_long_question_is_seen_with_at_most_one_warning(open_memory: OpenMemory, window: int, instructions: int, mode: str):
    memory = open_memory(system="Follow the house rules carefully. " * instructions)
    one, model = agent(memory, checkpointer=InMemorySaver(), context_window_tokens=window, mode=mode)
    for label in ("persona", "human"):
        one.blocks.set(one.scope("u"), label, "likes tea and skiing. " * 90, now=1.0)
    for at in range(6):
        one.send(f"short message {at}", user_id="u")
    asked = len(model.asked)
    one.send("QUESTION: " + "word " * 8000 + "What is wrong with it?", user_id="u")
    assert all("QUESTION" in str(prompt) for prompt in model.asked[asked:])
    for prompt in model.asked:
        kinds = ["warning" if "memory_pressure" in str(each.content) else each.type for each in prompt]
        assert all(unseen.count("warning") <= 1 for unseen in " ".join(kinds).split("ai"))


def test_the_question_stays_in_view_however_many_steps_answering_takes(memory: MemoryOS):
    finding = acts(call("archival_memory_insert", True, content=LONG))  # noqa: FBT003
    one, model = agent(memory, checkpointer=InMemorySaver(), otherwise=finding, max_steps=40)
    report = one.send("QUESTION: what do they tell of the harbour?", user_id="u")
    assert report["flushes"] >= 2
    assert report["evicted"] >= 20
    assert all(str(prompt[1:]).count("QUESTION") == 1 for prompt in model.asked)


@pytest.mark.parametrize(("window", "page_size", "searches"), [(4000, 100, 1), (3000, 5, 4)])
@pytest.mark.parametrize("kept", [True, False])
def test_search_results_that_do_not_fit_are_truncated_and_answered(
    memory: MemoryOS, window: int, page_size: int, searches: int, *, kept: bool,
):
    said = [Exchange(query=f'note {at}: "a" "b"' + LONG, reply='"ok"\n' * 40, said_at=1e9 + at, thread_id="old", source_ids=(f"{at}",))
            for at in range(100)]
    list(memory.ingest(said, user_id="u"))
    search = acts(*[call("conversation_search", True, query="note")] * searches)  # noqa: FBT003
    one, model = agent(
        memory, search, otherwise=say("answer"), context_window_tokens=window, page_size=page_size,
        checkpointer=InMemorySaver() if kept else None,
    )
    assert one.send("find my notes", user_id="u")["sent"] == ["answer"]
    assert "[truncated" in str(model.asked[1])
    assert "find my notes" in str(model.asked[1])
    assert one.send("thanks", user_id="u")["sent"] == ["answer"]


@pytest.mark.parametrize("words", [900, 1800, 4000])
def test_a_warning_after_the_last_step_does_not_exceed_the_cap(memory: MemoryOS, words: int):
    one, model = agent(memory, say("word " * words), say("noted"), checkpointer=InMemorySaver(), max_steps=1, warn_fraction=0.5)
    assert (talk(one, 1, "hi")[0]["virtual"]["steps"], len(model.asked)) == (1, 1)
    assert talk(one, 1, "hi", start=1)[0]["virtual"]["warnings"] == 1


def test_settings_are_validated():
    with pytest.raises(ValueError, match="time zone"):
        VirtualContextSettings(time_zone="Mars/Olympus")
    with pytest.raises(ValueError, match="send_message"):
        VirtualContextSettings(functions=("conversation_search",))
    with pytest.raises(ValueError, match="warn_fraction"):
        VirtualContextSettings(warn_fraction=0.9, flush_fraction=0.8)
