"""Conversation files and message lists become exchanges; nothing said is lost, and no bad file is guessed at."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_memoryos.conversations import exchanges_from_messages, load, message_text, parse
from langgraph_memoryos.dialogue import Turn, content_text, group_turns, readable
from langgraph_memoryos.errors import ConversationFormatError

SAMPLES = Path(__file__).parent / "samples"
MAY_8 = datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()


def line(**fields):
    return json.dumps({"user": "hello", "assistant": "hi"} | fields)


def chat(*messages, **fields):
    return [{"role": role, "content": content} | fields for role, content in messages]


def read(value, **options):
    text = value if isinstance(value, str) else json.dumps(value)
    return parse(text, name="talk.json", undated_at=7.0, **options)


def pairs(conversation):
    return [(exchange.query, exchange.reply) for exchange in conversation.exchanges]


def grouped(messages):
    return exchanges_from_messages(messages, thread_id="t", said_at=1.0)


def refused(text):
    with pytest.raises(ConversationFormatError) as caught:
        read(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("talk.json")
    return message


def test_exchanges_without_a_time_of_their_own_are_counted():
    def undated(value):
        (conversation,) = read(value)
        return conversation.undated

    assert undated("\n".join([line(), line(user="b", at="2023-05-08"), line(user="c")])) == 2
    assert undated(chat(("user", "a"), ("assistant", "b"), at="2023-05-08")) == 0
    assert undated(chat(("user", "a"), ("assistant", "b"), ("user", "c"))) == 2
    turns = [{"speaker": name, "dia_id": f"D1:{name}", "text": "hello"} for name in ("Ada", "Bo")]
    dated = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023", "session_2": turns}
    assert undated([{"sample_id": "s", "conversation": {"speaker_a": "Ada", "speaker_b": "Bo"} | dated}]) == 1


# Grouping


TURNS = st.lists(st.tuples(st.sampled_from(["user", "agent"]), st.text(max_size=6)), max_size=30)


def as_turns(spoken):
    return [Turn(speaker=side, text=text, turn_id=f"m{order}") for order, (side, text) in enumerate(spoken)]


@given(TURNS)
def test_every_text_survives_verbatim_and_in_order(spoken):
    exchanges = group_turns(as_turns(spoken), thread_id="t", said_at=1.0)
    for side, texts in (
        ("user", [exchange.query for exchange in exchanges]),
        ("agent", [exchange.reply for exchange in exchanges]),
    ):
        rest = "\n".join(texts)
        for text in [text for speaker, text in spoken if speaker == side and text.strip()]:
            assert text in rest
            rest = rest[rest.index(text) + len(text) :]


@given(TURNS)
def test_ids_stay_in_order_and_only_unsaid_turns_lose_theirs(spoken):
    turns = as_turns(spoken)
    kept = [
        turn_id
        for exchange in group_turns(turns, thread_id="t", said_at=1.0)
        for turn_id in exchange.source_ids
    ]
    assert kept == [turn.turn_id for turn in turns if turn.turn_id in set(kept)]
    assert {turn.turn_id for turn in turns if turn.text.strip()} <= set(kept)


@given(TURNS)
def test_an_exchange_ends_only_once_the_agent_has_answered(spoken):
    exchanges = group_turns(as_turns(spoken), thread_id="t", said_at=1.0)
    assert all(exchange.query.strip() or exchange.reply.strip() for exchange in exchanges)
    assert all(exchange.reply.strip() for exchange in exchanges[:-1])


@given(st.lists(st.sampled_from(["a", "\ud83d", "\ude00", "\udc00", "\0", "\ufeff", "漢", "😀"])))
def test_lone_surrogates_are_replaced_and_nothing_else_changes(parts):
    text = "".join(parts)
    result = readable(text)
    assert result.encode().decode() == result
    kept = "a\0\ufeff漢"
    assert [char for char in result if char in kept] == [char for char in text if char in kept]
    assert readable(result) == result


# LangChain messages


def test_two_human_messages_in_a_row_are_one_exchange():
    (exchange,) = grouped([HumanMessage("a", id="1"), HumanMessage("b", id="2"), AIMessage("c", id="3")])
    assert (exchange.query, exchange.reply, exchange.source_ids) == ("a\nb", "c", ("1", "2", "3"))


def test_an_interrupted_exchange_has_an_empty_reply():
    exchanges = grouped([HumanMessage("a"), AIMessage("b"), HumanMessage("c")])
    assert [(exchange.query, exchange.reply) for exchange in exchanges] == [("a", "b"), ("c", "")]


def test_an_agent_may_speak_first():
    exchanges = grouped([AIMessage("welcome"), HumanMessage("hi"), AIMessage("how can I help")])
    assert [(exchange.query, exchange.reply) for exchange in exchanges] == [
        ("", "welcome"),
        ("hi", "how can I help"),
    ]


def test_parallel_tool_calls_add_ids_but_no_text():
    call = {"name": "look", "args": {}, "type": "tool_call"}
    (exchange,) = grouped(
        [
            SystemMessage("be nice", id="s"),
            HumanMessage("weather?", id="h"),
            AIMessage("", tool_calls=[call | {"id": "c1"}, call | {"id": "c2"}], id="a1"),
            ToolMessage("rain", tool_call_id="c1", id="t1"),
            ToolMessage("wind", tool_call_id="c2", id="t2"),
            AIMessage("Wet and windy.", id="a2"),
        ]
    )
    assert (exchange.query, exchange.reply) == ("weather?", "Wet and windy.")
    assert exchange.source_ids == ("h", "a1", "t1", "t2", "a2")


def test_text_beside_a_tool_call_is_part_of_the_reply():
    call = {"name": "look", "args": {}, "id": "c", "type": "tool_call"}
    (exchange,) = grouped(
        [HumanMessage("x"), AIMessage("One moment.", tool_calls=[call]), AIMessage("Done.")]
    )
    assert exchange.reply == "One moment.\nDone."


def test_a_trimmed_list_that_starts_with_a_tool_result_keeps_the_next_exchange_whole():
    whole = [HumanMessage("b", id="h2"), AIMessage("c", id="a2")]
    trimmed = [ToolMessage("rain", tool_call_id="c1", id="t1"), *whole]
    assert grouped(trimmed) == grouped(whole)


def test_removals_and_unknown_roles_are_no_dialogue():
    messages = [HumanMessage("a", id="1"), RemoveMessage(id="0"), ChatMessage(role="critic", content="meh")]
    assert [(exchange.query, exchange.reply) for exchange in grouped(messages)] == [("a", "")]


def test_chat_messages_and_chunks_count_by_their_role():
    messages = [ChatMessage(role="user", content="a"), AIMessageChunk("b")]
    assert [(exchange.query, exchange.reply) for exchange in grouped(messages)] == [("a", "b")]


def test_names_of_messages_become_display_names():
    (exchange,) = grouped([HumanMessage("a", name="Mei"), AIMessage("b", name="Oak")])
    assert (exchange.user_name, exchange.agent_name) == ("Mei", "Oak")


def test_messages_without_id_get_a_stable_one_that_depends_on_the_position():
    messages = [HumanMessage("yes"), AIMessage("ok"), HumanMessage("yes"), AIMessage("ok")]
    first, second = grouped(messages)
    assert len({*first.source_ids, *second.source_ids}) == 4
    assert [first, second] == grouped(messages)


def test_silent_exchanges_are_left_out():
    assert grouped([]) == []
    assert grouped([HumanMessage(""), AIMessage("  ")]) == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ([], ""),
        (None, ""),
        ([{"type": "text", "text": "one"}, "two"], "one\ntwo"),
        ([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}], "see\n[image]"),
        ([{"type": "image", "base64": "x"}], "[image]"),
        (
            [{"type": "input_image", "image_url": "x"}, {"type": "input_audio", "input_audio": {}}],
            "[image]\n[audio]",
        ),
        ([{"type": "file", "file": {}}], "[file]"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}], "yes"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "tool_use", "name": "f", "input": {}}], ""),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([{"type": "text", "text": None}, {"unknown": 1}], ""),
        ("\ud83d half\0", "\ufffd half\0"),
        ("\u202emirrored \u05e2\u05d1", "\u202emirrored \u05e2\u05d1"),
    ],
)
def test_content_is_flattened(content, text):
    assert content_text(content) == text


def test_message_text_reads_blocks():
    message = HumanMessage(
        [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]
    )
    assert message_text(message) == "look\n[image]"


def test_a_megabyte_in_one_message_is_kept():
    text = "长" * 350_000
    assert grouped([HumanMessage(text)])[0].query == text


# Our JSON Lines


def test_our_lines_are_read_with_all_their_fields():
    (conversation,) = read(
        "\n".join(
            [
                line(at="2023-05-08T13:56:00", thread="s1", id="e1", user_name="Ada", agent_name="Bo"),
                "",
                line(user="", at="2023-05-08T15:56:00+02:00", thread="s2", id="e2"),
                json.dumps(
                    {"question": "q?", "answer": "a", "evidence": ["e2", "e1"], "category": "multi-hop"}
                ),
            ]
        )
    )
    first, second = conversation.exchanges
    assert (conversation.sample_id, conversation.user_name, conversation.agent_name) == ("talk", "Ada", "Bo")
    assert (first.said_at, second.said_at) == (MAY_8, MAY_8)
    assert (first.thread_id, second.thread_id) == ("s1", "s2")
    assert (first.source_ids, second.source_ids) == (("e1",), ("e2",))
    assert (second.query, second.user_name) == ("", "Ada")
    (question,) = conversation.questions
    assert (question.text, question.answer, question.category) == ("q?", "a", "multi-hop")
    assert question.evidence == ("e2", "e1")


def test_lines_are_sorted_into_their_conversations():
    one, two = read(
        "\n".join(
            [
                line(conversation="a", id="1"),
                line(conversation="b", id="1"),
                json.dumps({"question": "q", "answer": "", "evidence": ["1"], "conversation": "b"}),
            ]
        )
    )
    assert (one.sample_id, two.sample_id, len(one.questions), len(two.questions)) == ("a", "b", 0, 1)


def test_a_single_line_and_a_json_list_of_lines_are_read_too():
    assert pairs(read(line())[0]) == [("hello", "hi")]
    assert pairs(read(f"[{line(id='1')}, {line(id='2')}]")[0]) == [("hello", "hi")] * 2


def test_missing_times_follow_their_neighbours_and_missing_ids_are_stable():
    text = "\n".join([line(), line(at="1970-01-01T00:01:00Z"), line(), line(at="1970-01-01"), line()])
    (conversation,) = read(text)
    assert [exchange.said_at for exchange in conversation.exchanges] == [60.0, 60.0, 60.0, 0.0, 0.0]
    assert len({exchange.source_ids for exchange in conversation.exchanges}) == 5
    assert read(text) == [conversation]


def test_a_file_without_times_takes_the_given_one_or_that_of_the_call():
    assert read(line())[0].exchanges[0].said_at == 7.0
    before = datetime.now(UTC).timestamp()
    assert before <= parse(line(), name="x")[0].exchanges[0].said_at <= datetime.now(UTC).timestamp()


def test_unicode_line_breaks_inside_a_text_do_not_end_the_line():
    said = "one\u2028two\x85three"
    text = "\r\n".join([json.dumps({"user": said, "assistant": ""}, ensure_ascii=False), line(id="2")])
    assert pairs(read(text)[0]) == [(said, ""), ("hello", "hi")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_nul_and_lone_surrogates_do_no_harm(tmp_path, encoding):
    file = tmp_path / "talk.jsonl"
    file.write_text(r'{"user": "\ud800 \u0000 \ud83d\ude00 你好", "assistant": "好"}', encoding=encoding)
    assert pairs(load(file)[0]) == [("\ufffd \0 😀 你好", "好")]


# OpenAI message lists


def test_message_lists_are_grouped():
    messages = chat(
        ("system", "be nice"),
        ("developer", "be brief"),
        ("assistant", "welcome"),
        ("user", "a"),
        ("user", [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {"url": "x"}}]),
        ("tool", "result"),
        ("assistant", "c"),
        ("user", "d"),
    )
    expected = [("", "welcome"), ("a\nb\n[image]", "c"), ("d", "")]
    for value in (messages, {"messages": messages}, "\n".join(map(json.dumps, messages))):
        (conversation,) = read(value)
        assert pairs(conversation) == expected
        assert {exchange.thread_id for exchange in conversation.exchanges} == {"talk"}


def test_assistant_messages_may_have_no_content():
    messages = [
        {"role": "user", "content": "a", "id": "m1"},
        {"role": "assistant", "content": None, "tool_calls": [{}], "id": "m2"},
        {"role": "tool", "content": "x", "id": "m3"},
        {"role": "assistant", "tool_calls": [{}], "id": "m4"},
        {"role": "assistant", "content": None, "refusal": "I cannot.", "id": "m5"},
    ]
    (conversation,) = read(messages)
    assert pairs(conversation) == [("a", "I cannot.")]
    assert conversation.exchanges[0].source_ids == ("m1", "m2", "m3", "m4", "m5")


def test_fine_tuning_files_hold_one_conversation_per_line():
    dialogues = [chat(("user", word), ("assistant", "ok")) for word in ("a", "b")]
    for text in (
        "\n".join(json.dumps({"messages": dialogue}) for dialogue in dialogues),
        "\n".join(json.dumps(dialogue) for dialogue in dialogues),
        json.dumps([{"messages": dialogue} for dialogue in dialogues]),
        json.dumps(dialogues),
    ):
        one, two = read(text)
        assert (one.sample_id, two.sample_id) == ("talk-1", "talk-2")
        assert (pairs(one), pairs(two)) == ([("a", "ok")], [("b", "ok")])
        assert two.exchanges[0].thread_id == "talk-2"


def test_a_message_list_over_several_lines_is_one_value():
    assert pairs(read(json.dumps(chat(("user", "a")), indent=2))[0]) == [("a", "")]


def test_messages_may_have_times_and_names():
    (conversation,) = read(chat(("user", "a"), ("assistant", "b"), at="2023-05-08T13:56:00Z", name="Ada"))
    assert (conversation.exchanges[0].said_at, conversation.user_name) == (MAY_8, "Ada")


# LoCoMo


def test_locomo_sessions_become_threads_and_speakers_keep_their_sides():
    one, two = load(SAMPLES / "locomo.json")
    assert (one.sample_id, one.user_name, one.agent_name) == ("tiny-1", "Ada", "Bruno")
    assert [
        (exchange.thread_id, *pair) for exchange, pair in zip(one.exchanges, pairs(one), strict=True)
    ] == [
        ("session_1", " I planted a quince tree. \nLook! [image: a photo of a sapling]", "It is tiny."),
        ("session_1", "It will grow.", ""),
        ("session_2", "", "Happy new year! [image: a photo of fireworks\n]"),
        ("session_2", "And to you.", "How is the quince?"),
        ("session_10", "It has a leaf.", "Only one?"),
    ]
    assert pairs(two) == [("Anyone here?", "")]


def test_locomo_times_are_those_of_the_sessions_and_ids_those_of_the_turns():
    one = load(SAMPLES / "locomo.json", "tiny-1")[0]
    new_year = datetime(2024, 1, 1, 0, 5, tzinfo=UTC).timestamp()
    assert [exchange.said_at for exchange in one.exchanges] == [MAY_8, MAY_8, new_year, new_year, new_year]
    assert one.exchanges[0].source_ids == ("D1:1", "D1:2", "D1:3")
    assert one.exchanges[-1].source_ids == ("D10:1", "D10:1#2")


def test_locomo_questions_keep_their_category_and_evidence():
    questions = load(SAMPLES / "locomo.json")[0].questions
    assert [question.category for question in questions] == ["4", "2", "5"]
    assert [question.answer for question in questions] == ["a quince tree", "2023", ""]
    assert questions[1].evidence == ("D1:1", "D1:2", "D2:3", "D2:1")


def test_a_sample_is_picked_by_name():
    assert [found.sample_id for found in load(SAMPLES / "locomo.json", sample="tiny-2")] == ["tiny-2"]
    with pytest.raises(ConversationFormatError, match="choose one of tiny-1, tiny-2"):
        load(SAMPLES / "locomo.json", "other")


def test_one_bare_locomo_sample_is_read_too():
    sample = json.loads((SAMPLES / "locomo.json").read_text(encoding="utf-8"))[1]
    del sample["sample_id"]
    assert read(sample)[0].sample_id == "talk"


def locomo(**fields):
    return {"conversation": {"speaker_a": "A", "speaker_b": "B"} | fields}


# Files that are refused


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("hello there", "line 1: not valid JSON"),
        ("[\n{,}\n]", "line 2: not valid JSON"),
        (f"{line()}\n\n{{broken", "line 3: not valid JSON"),
        ("3", "this is no conversation"),
        ("[[[1]]]", "item 1, message 1: expected a JSON object"),
        ("{}", "this is no conversation"),
        ("[]", "holds no dialogue"),
        ("[" * 100_000, "too deep"),
        ("1" * 5_000, "too long"),
        (f"{line()}\n{json.dumps(chat(('user', 'x')))}", "line 2: expected another exchange or question"),
        (f"{line()}\n{{}}", "line 2: this is no conversation"),
        (f'{line()}\n{{"user": "x"}}', 'line 2: "assistant" must be text'),
        (f"{line()}\n{line(user=3)}", 'line 2: "user" must be text'),
        (f"{line()}\n{line(user=' ', assistant='')}", "line 2: neither side"),
        (f"{line()}\n{line(at='yesterday')}", 'line 2: "at" must be an ISO 8601 time'),
        (f"{line()}\n{line(at=12)}", 'line 2: "at" must be an ISO 8601 time'),
        (f"{line(id='e')}\n{line(id='e')}", "line 2: the id 'e' is already used at talk.json, line 1"),
        (f"{line()}\n{line(thread=[])}", 'line 2: "thread" must be text'),
        (f'{line()}\n{{"question": "q", "answer": "a"}}', 'line 2: "evidence" must be a list'),
        (f'{line()}\n{{"question": "q", "answer": "a", "evidence": ["e9"]}}', "line 2: no exchange has"),
        ('{"question": "q", "answer": "a", "evidence": []}', "about no exchange"),
        (json.dumps(chat(("critic", "x"))), "message 1: the role is unknown"),
        (json.dumps(chat(("user", "x"), ("user", None))), 'message 2: "content" must be text'),
        (json.dumps(chat(("user", 3))), '"content" must be text'),
        (json.dumps(chat(("user", [3]))), '"content" must be text'),
        (json.dumps(chat(("user", [{"type": "text", "text": {"value": "x"}}]))), '"content" must be text'),
        (json.dumps([{"role": "user"}]), '"content" must be text'),
        (json.dumps([{"role": 1, "content": "x"}]), '"role" must be text'),
        (json.dumps(chat(("user", "x"), ("user", "y"), id="m")), "message 2: the id 'm' is already used"),
        (json.dumps({"messages": "x"}), "expected a list"),
        (json.dumps(chat(("system", "x"))), "holds no dialogue"),
        (json.dumps({"conversation": {}}), '"speaker_a" must be text'),
        (json.dumps(locomo(session_1="x")), "session_1: expected a list"),
        (json.dumps(locomo(session_1=[{"speaker": "C", "text": "x"}])), "session_1, turn 1: the speaker"),
        (json.dumps(locomo(session_1=[], session_1_date_time="soon")), '"session_1_date_time" must be'),
        (
            json.dumps(locomo(session_1=[], session_1_date_time="1:56 pm on 31 June, 2023")),
            '"session_1_date_time" is no date',
        ),
        (
            json.dumps(locomo(session_1=[], session_1_date_time="1:56 pm on 3 Smarch, 2023")),
            '"session_1_date_time" is no date',
        ),
    ],
)
def test_bad_files_are_refused_with_place_and_advice(text, part):
    assert part in refused(text)


def test_errors_never_quote_what_was_said():
    assert "secret" not in refused(f'{line()}\n{{"user": "secret", "assistant": secret}}')


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(ConversationFormatError, match="cannot be read"):
        load(tmp_path / "none.jsonl")
    with pytest.raises(ConversationFormatError, match="cannot be read"):
        load(tmp_path)
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{}\n{"user": "caf\xe9"}')
    with pytest.raises(ConversationFormatError, match=r"latin\.jsonl, line 2: not UTF-8"):
        load(latin)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([
            "role", "content", "messages", "user", "assistant", "question", "evidence", "at", "id", "text",
            "conversation", "speaker_a", "speaker_b", "session_1", "session_1_date_time", "speaker", "qa",
        ]),
        inner | st.sampled_from(["user", "assistant"]),
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(JSON, min_size=1, max_size=3), st.booleans())
def test_any_json_is_read_or_refused_but_never_crashes(values, as_lines):
    with suppress(ConversationFormatError):
        read("\n".join(map(json.dumps, values)) if as_lines else json.dumps(values))
