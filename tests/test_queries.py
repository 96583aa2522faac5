"""Queries: whatever is asked, no syntax error, exact identifiers are found, and the server lives."""

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores.connection import RedisConnection
from langgraph_memoryos.stores.query import text_hits, text_search
from tests.memory_support import START, OpenMemory, asked, exchange, run_of, tell

pytest_plugins = ["tests.memory_fixtures"]

HOSTILE = {
    "empty": "",
    "blank": " \t\n ",
    "stop words": "is it the and of",
    "stop words that killed a server": "@text:(is|it|joanna)",
    "one stop word": "the",
    "punctuation": "?!... --- ;:, '\" () [] {}",
    "star": "*",
    "open bracket": "(",
    "closing": ")]}",
    "field": "@user:{*}",
    "all": "@user:{*} | *",
    "negation": "-oslo -rain",
    "optional": "~oslo",
    "fuzzy": "%%oslo%%",
    "prefix": "os* *lo *sl*",
    "range": "@sequence:[0 +inf]",
    "vector": "*=>[KNN 10 @vector $vector AS distance]",
    "parameter": "$vector $weight: 2.0",
    "attributes": "(oslo) => { $weight: 5.0; $slop: 1 }",
    "quote": '"oslo',
    "backslash": "oslo\\",
    "escapes": "\\(\\)\\@\\-\\|",
    "lua": "'; redis.call('FLUSHALL') --",
    "commands": "FLUSHALL\r\nFT.DROPINDEX x DD\r\n",
    "format": "%s %d {0} {user_id}",
    "null": "\0oslo\0",
    "surrogate": "\ud800 oslo \udfff",
    "emoji": "👩‍👧 🇳🇴",
    "right to left": "\u202eolso\u202c שלום مرحبا",
    "marks": "o\u0301" * 200,
    "one long word": "x" * 50_000,
    "many words": " ".join(f"word{n}" for n in range(10_000)),
    "many stop words": "the " * 10_000,
    "digits": "1 2 3 4 5 6 7 8 9 0",
    "chinese": "我住在哪里？",
    "one character": "我",
}
IDENTIFIERS = (
    "3f2b8c1e-9d4a-4c1b-8f3e-2a1b0c9d8e7f", "ann.smith+news@mail.example.org", "2024-05-08", "08/05/2024", "14:30",
    "192.168.0.17", "https://example.org/a/b?c=d&e=f", "INV-2024/0017", "+47 22 33 44 55", "v1.2.3-rc.4", "snake_case_name",
    "O'Brien", "北京市朝阳区", "mother-in-law", "@joanna", "#launch", "1,234.56", "file_v2.tar.gz", "is-it",
)
PRESETS = {"default": MemorySettings(short_term_capacity_pages=1, eviction_batch_pages=1),
           "paper": MemorySettings.paper(short_term_capacity_pages=1)}


def best_by_words(memory: MemoryOS, query: str) -> str:
    """Return the recalled page whose words fit best, wherever other signals rank it."""
    found = memory.search(query, user_id="ann")
    return max(found, key=lambda page: page.parts["window"]).page.query


@pytest.fixture(params=list(PRESETS))
def settled(open_memory: OpenMemory, request: pytest.FixtureRequest) -> MemoryOS:
    """A memory with pages in mid-term memory and one in the queue."""
    memory = open_memory(settings=PRESETS[request.param])
    tell(memory, "ann", *(exchange(text, thread_id="before") for text in (
        "I live in Oslo and love the rain.", "My sister Joanna has a boat.", "我住在上海。", "Nothing much today.")))
    return memory


def test_hostile_query_is_just_text(settled: MemoryOS) -> None:
    before = settled.connection.client.info("server")["run_id"]
    for name, query in HOSTILE.items():
        recalled = settled.recall.invoke(asked(query), run_of("ann"))["memory"]
        found = [page["query"] for page in recalled["mid_term"]]
        assert len(found) == len(set(found)), name
        assert {page.page.user_id for page in settled.search(query, user_id="ann")} <= {"ann"}, name
        assert settled.search(query, user_id="bob") == (), name
        assert settled.connection.client.info("server")["run_id"] == before, name
    assert "My sister Joanna has a boat." in [page.page.query for page in settled.search("Joanna's boat", user_id="ann")]


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("@|(){}[]*-~%$\"'\\:=>;, "), max_size=40))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_is_a_query(settled: MemoryOS, query: str) -> None:
    found = settled.search(query, user_id="ann")
    assert len({page.page.page_id for page in found}) == len(found) <= settled.settings.top_pages
    assert settled.connection.client.ping()


def test_blank_query_still_recalls_queue_and_persona(settled: MemoryOS) -> None:
    settled.set_profile("ann", {"name": "Ann"})
    recalled = settled.recall.invoke(asked("  "), run_of("ann", "before"))["memory"]
    assert [page["query"] for page in recalled["short_term"]] == ["Nothing much today."]
    assert "Ann" in recalled["text"]
    assert recalled["mid_term"] == []


def test_exact_identifiers_are_found_among_their_like(memory: MemoryOS) -> None:
    tell(memory, "ann", *(f"The thing to note is {name} for later." for name in IDENTIFIERS), thread="noise")
    for name in IDENTIFIERS:
        for query in (name, f"What was it about {name}?"):
            assert name in best_by_words(memory, query), query


def test_one_of_many_uuids_is_found(memory: MemoryOS) -> None:
    known = [str(uuid.uuid5(uuid.NAMESPACE_DNS, str(number))) for number in range(30)]
    tell(memory, "ann", *(exchange(f"Order {name} came.", said_at=START + n * 9000, thread_id=f"t{n}")
                          for n, name in enumerate(known)))
    assert known[17] in best_by_words(memory, known[17])


def test_the_only_page_is_found(memory: MemoryOS) -> None:
    """One hit without fields has another shape than several."""
    tell(memory, "ann", "I live in Oslo.")
    assert [found.page.query for found in memory.search("Oslo", user_id="ann")] == ["I live in Oslo."]


def test_chinese_is_found_by_its_words(memory: MemoryOS) -> None:
    said = ("我昨天在上海买了一只猫。", "今天天气很好。", "他喜欢打篮球。")
    tell(memory, "ann", *(exchange(text, reply="好的。", thread_id=text) for text in said))
    assert best_by_words(memory, "猫") == "我昨天在上海买了一只猫。"
    assert best_by_words(memory, "谁喜欢篮球？") == "他喜欢打篮球。"


def test_relevance_is_sorted_and_higher_is_better(settled: MemoryOS) -> None:
    found = settled.search("Oslo rain", user_id="ann")
    ranks = [page.relevance for page in found]
    assert ranks == sorted(ranks, reverse=True)


def test_relevance_counts_every_word_of_a_page_wherever_it_stands(
    redis_connection: RedisConnection, redis_prefix: str,
) -> None:
    """Inside an intersection the engine scores only one of the words, unless the document before matched too."""
    client = redis_connection.client
    client.execute_command(
        "FT.CREATE", redis_prefix, "PREFIX", 1, f"{redis_prefix}:", "STOPWORDS", 0,
        "SCHEMA", "text", "TEXT", "NOSTEM", "owner", "NUMERIC")
    for number in range(40):
        told = number in {4, 5, 8} or (number > 12 and number % 3 == 0)
        words = "amber beaver copper dragon" if told else "nothing here at all"
        client.hset(f"{redis_prefix}:{number}", mapping={"text": words, "owner": 1 if number < 12 else 2})
    terms = ["amber", "beaver", "copper", "dragon"]
    hits = text_hits(client.execute_command(*text_search(redis_prefix, "@owner:[1 1]", terms, count=9, fields=("text",))))
    assert sorted(hit.document_id for hit in hits) == ["4", "5", "8"]
    assert len({round(hit.relevance, 6) for hit in hits}) == 1
