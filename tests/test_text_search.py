"""Every token goes unchanged through the real query engine, escaped by nobody."""

import pytest

from langgraph_memoryos.stores.connection import RedisConnection
from langgraph_memoryos.text import index_text, query_tokens, tokens

TEXTS = [
    "as if inf nan infinity -inf 1e5 0x10 null and or not",
    "see 550E8400-e29b-41d4-a716-446655440000",
    "mail anna.b@example.com",
    "on 2023-05-08 v1.2.3 at 10:30 for 1,000",
    "हिन्दी में लिखना",
    "ฉันชอบกินข้าวผัด",
    "猫 我的猫很可爱",
    "학교에 갔어요",
    "مرحبا بالعالم",
    "José's café",
    "snake_case __x__ a_b",
    "straße İstanbul ﬁne ǅ ẞ Ⅻ ②",
    "𝒳𝓎 𐐀𐐨 ſ K Å",
    "x" * 5000,
    "ΣΊΣΥΦΟΣ ქართული ᏣᎳᎩ Ⴀ",
    "\ud800\0ok",
    "is it joanna",
    "is it",
]


@pytest.fixture
def index(redis_connection: RedisConnection, redis_prefix: str):
    client = redis_connection.client
    client.execute_command(
        *("FT.CREATE", redis_prefix, "ON", "HASH", "PREFIX", 1, f"{redis_prefix}:", "STOPWORDS", 0),
        *("SCHEMA", "text", "TEXT", "NOSTEM"),
    )
    for number, text in enumerate(TEXTS):
        client.hset(f"{redis_prefix}:{number}", mapping={"text": index_text(text)})
    yield redis_prefix
    client.execute_command("FT.DROPINDEX", redis_prefix, "DD")


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_what_was_indexed_is_found(redis_connection: RedisConnection, index: str, number: int):
    text = TEXTS[number]
    queries = [*tokens(text), *query_tokens(text), "|".join(query_tokens(text))]
    for query in queries:
        _, *keys = redis_connection.client.execute_command(
            *("FT.SEARCH", index, f"@text:({query})", "NOCONTENT", "LIMIT", 0, 100, "DIALECT", 2)
        )
        assert f"{index}:{number}".encode() in keys, query


def test_an_exact_identifier_ranks_first(redis_connection: RedisConnection, index: str):
    client = redis_connection.client
    for number in range(20):
        client.hset(
            f"{index}:d{number}",
            mapping={"text": index_text(f"08 was 2023, not 05; 2023-08-{number:02} and 05-08")},
        )
    query = "|".join(query_tokens("What happened on 2023-05-08?"))
    _, first, *_ = client.execute_command(
        *(
            "FT.SEARCH",
            index,
            f"@text:({query})",
            "NOCONTENT",
            "SCORER",
            "BM25STD",
            "LIMIT",
            0,
            3,
            "DIALECT",
            2,
        )
    )
    assert first == f"{index}:3".encode()
