"""The bundled conversations and the benchmark slices are complete and consistent."""

import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from langgraph_memoryos.conversations import load
from langgraph_memoryos.demo import chinese, english

SLICES = Path(__file__).parent.parent / "benchmarks" / "slices"
HAN = re.compile(r"[\u4e00-\u9fff]")


def slice_of(language):
    (conversation,) = load(SLICES / f"{language}.jsonl")
    return conversation


CONVERSATIONS = {
    "english demo": english,
    "chinese demo": chinese,
    "english slice": lambda: slice_of("english"),
    "chinese slice": lambda: slice_of("chinese"),
}


def days(conversation):
    times = [exchange.said_at for exchange in conversation.exchanges]
    return (times[-1] - times[0]) / 86_400


@pytest.fixture(params=CONVERSATIONS)
def conversation(request):
    return CONVERSATIONS[request.param]()


@pytest.mark.parametrize(
    ("name", "exchanges", "sessions", "questions", "least_days"),
    [
        ("english demo", 60, 8, 10, 85),
        ("chinese demo", 20, 4, 5, 30),
        ("english slice", 45, 8, 60, 85),
        ("chinese slice", 45, 8, 60, 85),
    ],
)
def test_sizes(name, exchanges, sessions, questions, least_days):
    conversation = CONVERSATIONS[name]()
    assert len(conversation.exchanges) >= exchanges
    assert len({exchange.thread_id for exchange in conversation.exchanges}) >= sessions
    assert len(conversation.questions) >= questions
    assert days(conversation) >= least_days


def test_times_increase(conversation):
    times = [exchange.said_at for exchange in conversation.exchanges]
    assert all(before < after for before, after in pairwise(times))
    assert times[-1] < datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def test_sessions_are_not_interleaved(conversation):
    threads = [exchange.thread_id for exchange in conversation.exchanges]
    changes = sum(before != after for before, after in pairwise(threads))
    assert changes == len(set(threads)) - 1


def test_both_sides_speak_and_are_named(conversation):
    assert conversation.user_name
    assert conversation.agent_name
    assert all(exchange.query.strip() and exchange.reply.strip() for exchange in conversation.exchanges)
    assert {exchange.user_name for exchange in conversation.exchanges} == {conversation.user_name}


def test_ids_are_unique_and_evidence_exists(conversation):
    ids = [source_id for exchange in conversation.exchanges for source_id in exchange.source_ids]
    assert len(ids) == len(set(ids))
    assert all(
        question.evidence and set(question.evidence) <= set(ids) for question in conversation.questions
    )
    assert all(question.text and question.answer and question.category for question in conversation.questions)


def test_texts_and_questions_are_all_different(conversation):
    for texts in (
        [exchange.query for exchange in conversation.exchanges],
        [exchange.reply for exchange in conversation.exchanges],
        [question.text for question in conversation.questions],
    ):
        assert len(texts) == len(set(texts))


def test_the_chinese_ones_are_chinese_and_the_english_ones_english():
    for conversation in (chinese(), slice_of("chinese")):
        assert all(
            HAN.search(exchange.query) and HAN.search(exchange.reply) for exchange in conversation.exchanges
        )
        assert not any(re.search("[A-Za-z]", question.text) for question in conversation.questions)
    for conversation in (english(), slice_of("english")):
        assert not any(HAN.search(exchange.query + exchange.reply) for exchange in conversation.exchanges)


def test_the_slices_are_parallel():
    one, other = slice_of("english"), slice_of("chinese")
    assert [(item.source_ids, item.said_at, item.thread_id) for item in one.exchanges] == [
        (item.source_ids, item.said_at, item.thread_id) for item in other.exchanges
    ]
    assert [(item.evidence, item.category) for item in one.questions] == [
        (item.evidence, item.category) for item in other.questions
    ]


def test_the_slices_ask_every_kind_of_question():
    by_category = {}
    for question in slice_of("english").questions:
        by_category.setdefault(question.category, []).append(question)
    assert all(len(by_category[category]) >= 10 for category in ("single-hop", "multi-hop", "temporal"))
    assert all(len(question.evidence) >= 2 for question in by_category["multi-hop"])
