# ruff: noqa: FBT003, Q003
"""Searching recall and archive: pages, totals, order, identifiers, dates, hostile queries, and everyone's own."""

import re
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores import search as search_module
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.search import SearchRequest, SearchStore
from tests.memory_support import START, Clock, exchange, tell
from tests.virtual_support import acts, agent, call, results, say

pytest_plugins = ["tests.memory_fixtures"]

SCOPE = Scope(user_id="u", agent_id="assistant")
UUID = "94071d67-86df-455c-8ee9-691e492ff740"

HOSTILE = [
    "", " ", "(", ")", "*", "%", "@", "-", "|", "~", "'", '"', "\\", "{", "}", "[", "]", ":", ";", "=>", "$", "^", "!", "?",
    "()", "((((", "@text:", "@text:(is|it|joanna)", "(is|it|joanna)", "is it", "the", "it is the of", "*=>[KNN 5 @vector $v]",
    "what's my dog's name?", "dog's", "rock'n'roll", "a-b-c", "-dog", "dog*", "%dog%", "dog|cat", "dog & cat", "\"dog", "dog\\",
    "@user:{*}", "@owner:[-inf +inf]", "FT.SEARCH", "FLUSHALL\r\nFLUSHALL", "\0", "a\0b", "\ud800", "\u200b", "\u202edog",
    "👩‍👧", "🎉🎉", "用户", "我的狗叫什么名字", "犬の名前は", "강아지 이름", "مرحبا", "שלום", "\u0301" * 50, "a" * 100_000,
    "dog " * 10_000, "x y " * 10_000, "1" * 5000, "2024-05-08", "ana@example.com", UUID, f"({UUID})", "C++", "c#", "50%",
    "https://example.com/a?b=c&d=e#f", "/etc/passwd", "{{7*7}}", "<script>", "'; DROP TABLE pages; --", "\t\n\r", "…", "—",
]


@pytest.fixture
def search(memory: MemoryOS) -> SearchStore:
    return memory.parts.pages.sibling(SearchStore)


def everything(search: Any, query: str, *, size: int = 5, **more: Any) -> list[str]:
    """Read all pages and return the texts of their hits."""
    found: list[str] = []
    page, last, total = 0, 0, 0
    while page <= last:
        shown = search(SCOPE, SearchRequest(query=query, page=page, page_size=size, **more))
        found += [getattr(item, "query", None) or item.text for item in shown.items]
        last, total, page = shown.last_page, shown.total, page + 1
    assert len(found) == total
    return found


def test_pages_cover_every_hit_once_with_the_true_total(memory: MemoryOS, search: SearchStore):
    tell(memory, "u", *(exchange(f"The harbour story number {at}", source=f"s{at}") for at in range(23)))
    tell(memory, "u", "Something else entirely: bread and butter")
    found = everything(search.conversation, "harbour story", semantic_hits=0)
    assert len(found) == len(set(found)) == 23
    assert found == everything(search.conversation, "harbour story", semantic_hits=0)
    assert everything(search.conversation, "harbour story", size=7, semantic_hits=0) == found
    mixed = everything(search.conversation, "harbour story")
    assert set(found) <= set(mixed)
    assert len(mixed) == len(set(mixed))


def test_pages_of_the_archive_cover_every_hit_once_with_the_true_total(memory: MemoryOS, search: SearchStore):
    archive = memory.parts.pages.sibling(ArchivalStore)
    archive.insert(SCOPE, [f"The harbour story number {at}" for at in range(23)], now=START)
    archive.insert(SCOPE, ["Something else entirely: bread and butter"], now=START)
    found = everything(search.archive, "harbour story", semantic_hits=0)
    assert len(found) == len(set(found)) == 23
    mixed = everything(search.archive, "harbour story", size=7)
    assert set(found) <= set(mixed)
    assert len(mixed) == len(set(mixed))


@pytest.mark.parametrize("most", [1, 7, 8, 23])
def test_more_hits_than_the_engine_returns_at_once_are_all_on_some_page(
    memory: MemoryOS, search: SearchStore, monkeypatch: pytest.MonkeyPatch, most: int,
):
    monkeypatch.setattr(search_module, "MOST_HITS", most)
    moments = [START + (at * 7 % 5) / 8 for at in range(23)]  # some at the same time, and not in order of arrival
    tell(memory, "u", *(
        exchange(f"The harbour story number {at}", source=f"s{at}", said_at=moment) for at, moment in enumerate(moments)))
    tell(memory, "u", exchange("Bread and butter", source="last", said_at=START - 1))
    archive = memory.parts.pages.sibling(ArchivalStore)
    archive.insert(SCOPE, [f"The harbour story number {at}" for at in range(23)], now=START)
    stories = [f"The harbour story number {at}" for at in sorted(range(23), key=lambda at: (moments[at], at))]

    def between(scope: Scope, request: SearchRequest) -> Any:
        return search.conversation_between(scope, date(2023, 11, 14), date(2023, 11, 14), zone=UTC, request=request)

    assert everything(between, "", size=5) == ["Bread and butter", *stories]
    assert everything(search.conversation, "", size=5) == [*reversed(stories), "Bread and butter"]
    assert everything(search.archive, "", size=4) == [f"The harbour story number {at}" for at in range(22, -1, -1)]
    for one in (search.conversation, search.archive):
        assert sorted(everything(one, "harbour story 3", semantic_hits=0)) == sorted(stories)
        assert set(everything(one, "harbour story 3", semantic_hits=9)) >= set(stories)
    page = next(page for page in memory.parts.pages.iterate("u") if page.query == stories[9])
    for one, query in ((between, ""), (search.conversation, ""), (search.conversation, "harbour")):
        left = everything(one, query, without=(page.page_id, "no page"))
        assert set(stories) - set(left) == {stories[9]}


def test_equal_hits_are_ordered_by_time_then_sequence(memory: MemoryOS, search: SearchStore):
    for at in range(6):
        tell(memory, "u", exchange("The same words", source=f"s{at}", said_at=START + (at // 2), thread_id=f"t{at}"))
    shown = search.conversation(SCOPE, SearchRequest(query="same words", page_size=10, semantic_hits=0))
    assert [(page.said_at - START, page.sequence) for page in shown.items] == [(2, 6), (2, 5), (1, 4), (1, 3), (0, 2), (0, 1)]


@pytest.mark.parametrize("identifier", [
    UUID, "2024-05-08", "ana.maria+news@example.co.uk", "well-being", "RFC-2119", "v1.2.3", "/usr/local/bin", "+43-660-1234567",
])
def test_identifiers_are_found_exactly(memory: MemoryOS, search: SearchStore, identifier: str):
    tell(memory, "u", *(exchange(f"Filler {at} about ships", source=f"f{at}") for at in range(30)))
    tell(memory, "u", exchange(f"Remember {identifier}, please.", source="wanted"))
    shown = search.conversation(SCOPE, SearchRequest(query=identifier))
    assert identifier in shown.items[0].query
    assert shown.total == 1


def test_unspaced_chinese_is_found(memory: MemoryOS, search: SearchStore):
    tell(memory, "u", "我的小狗名字叫豆豆,今年三岁", "我昨天去了图书馆借书", "The weather is fine")
    shown = search.conversation(SCOPE, SearchRequest(query="小狗叫什么名字", semantic_hits=0))
    assert "豆豆" in shown.items[0].query


def test_hostile_queries_neither_raise_nor_miss(memory: MemoryOS, search: SearchStore):
    assert len(HOSTILE) >= 70
    one, _ = agent(memory)
    tell(memory, "u", f"My dog Bello has the tag {UUID}", "ana@example.com is my address", "我的狗叫豆豆")
    tool = {each.name: each for each in one.tools(user_id="u")}["conversation_search"]
    for query in HOSTILE:
        shown = search.conversation(SCOPE, SearchRequest(query=query))
        assert shown.total >= len(shown.items)
        assert isinstance(tool.invoke({"query": query}), str)
        search.archive(SCOPE, SearchRequest(query=query))
    for query, text in (
        ("what's my dog's name?", "Bello"), (UUID, "Bello"), (f"({UUID})", "Bello"), ("dog " * 10_000, "Bello"),
        ("ana@example.com", "address"), ("我的狗叫什么名字", "豆豆"), ("dog|cat", "Bello"), ("@text:(is|it|dog)", "Bello"),
    ):
        assert any(text in page.query for page in search.conversation(SCOPE, SearchRequest(query=query)).items)


def test_a_blank_query_lists_everything_newest_first(memory: MemoryOS, search: SearchStore):
    tell(memory, "u", *(exchange(f"Item {at}", source=f"s{at}", said_at=START + at) for at in range(7)))
    assert everything(search.conversation, "  ", size=3) == [f"Item {at}" for at in range(6, -1, -1)]


def test_archived_pages_and_other_threads_are_found(memory: MemoryOS, search: SearchStore):
    tell(memory, "u", exchange("The zebra crossed", thread_id="one"), exchange("A zebra again", thread_id="two", source="b"))
    assert search.conversation(SCOPE, SearchRequest(query="zebra", semantic_hits=0)).total == 2


def test_nobody_else_is_found(memory: MemoryOS, search: SearchStore):
    tell(memory, "u", "the zebra secret")
    tell(memory, "u", "the zebra secret", agent_id="other")
    tell(memory, "u2", "the zebra secret")
    for user, who, total in (("u", "assistant", 1), ("u", "other", 1), ("U", "assistant", 0), ("u2", "assistant", 1)):
        for query in ("zebra", "", UUID):
            shown = search.conversation(Scope(user_id=user, agent_id=who), SearchRequest(query=query))
            assert shown.total == (0 if query == UUID and total == 0 else shown.total)
            assert all((page.user_id, page.agent_id) == (user, who) for page in shown.items)
            if query == "zebra":
                assert shown.total == total


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Europe/Vienna"])
def test_both_days_are_inclusive_in_the_users_zone(memory: MemoryOS, search: SearchStore, zone: str):
    there = ZoneInfo(zone)
    moments = {
        "before": datetime(2024, 3, 30, 23, 59, 59, tzinfo=there), "first": datetime(2024, 3, 31, 0, 0, 0, tzinfo=there),
        "last": datetime(2024, 4, 1, 23, 59, 59, 999000, tzinfo=there), "after": datetime(2024, 4, 2, tzinfo=there),
    }
    for name, moment in moments.items():
        tell(memory, "u", exchange(name, source=name, said_at=moment.timestamp()))
    shown = search.conversation_between(
        SCOPE, date(2024, 3, 31), date(2024, 4, 1), zone=there, request=SearchRequest(query=""))
    assert [page.query for page in shown.items] == ["first", "last"]


def test_from_the_first_day_there_is_to_the_last_is_always(memory: MemoryOS, search: SearchStore):
    tell(memory, "u", exchange("then", source="a", said_at=-1e9), exchange("now", source="b"))
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        shown = search.conversation_between(
            SCOPE, date(2, 1, 1), date.max, zone=ZoneInfo(zone), request=SearchRequest(query=""))
        assert [page.query for page in shown.items] == ["then", "now"]


def test_conversation_search_date_as_a_function(memory: MemoryOS, clock: Clock):
    one, model = agent(
        memory, say("noted"),
        acts(call("conversation_search_date", True, start="2023-11-15", end="2023-11-15T10:00:00", page=None)), say("x"),
        time_zone="Asia/Tokyo",
    )
    clock.now = datetime(2023, 11, 14, 22, 0, tzinfo=UTC).timestamp()
    one.send("It is morning in Tokyo", user_id="u")
    clock.now += 3600
    one.send("when?", user_id="u")
    message = results(model.asked[2])[-1]["message"]
    assert "Showing 1 of 1 results (page 0, last page 0)" in message
    assert "It is morning in Tokyo" in message
    assert "2023-11-15 07:00 Wed" in message


def test_conversation_search_finds_dialogue_and_nothing_else(memory: MemoryOS):
    one, model = agent(
        memory, say("The capital is Zanzibar"), acts(call("archival_memory_search", query="Zanzibar")),
        acts(call("conversation_search", True, query="Zanzibar")), acts(call("conversation_search", True, query="Zanzibar")), say("done"),
    )
    one.send("hello", user_id="u")
    one.alert("Zanzibar alert", user_id="u")
    one.send("What did you say of Zanzibar?", user_id="u")
    for message in (results(model.asked[3])[-1]["message"], results(model.asked[4])[-1]["message"]):
        assert "Showing 1 of 1 results" in message
        assert "The capital is Zanzibar" in message


def test_page_arguments_are_taken_leniently(memory: MemoryOS):
    one, _ = agent(memory)
    tell(memory, "u", *(exchange(f"harbour {at}", source=f"s{at}") for at in range(12)))
    tool = {each.name: each for each in one.tools(user_id="u")}["conversation_search"]
    heads = [tool.invoke({"query": "harbour", "page": page}).splitlines()[0] for page in (None, "0", 0, " 1 ", 2)]
    assert heads[0] == heads[1] == heads[2] == "Showing 5 of 12 results (page 0, last page 2):"
    assert heads[3:] == ["Showing 5 of 12 results (page 1, last page 2):", "Showing 2 of 12 results (page 2, last page 2):"]
    assert "last page is 2" in tool.invoke({"query": "harbour", "page": 3})


def test_a_hit_of_conversation_search_is_a_visit(memory: MemoryOS):
    tell(memory, "u", *(exchange(f"The harbour story {at}", source=f"s{at}") for at in range(14)))
    before = sum(segment.visits for segment in memory.parts.segments.active(SCOPE))
    one, _ = agent(memory)
    {each.name: each for each in one.tools(user_id="u")}["conversation_search"].invoke({"query": "harbour story 0"})
    assert sum(segment.visits for segment in memory.parts.segments.active(SCOPE)) > before
    quiet, _ = agent(memory, searches_are_visits=False)
    now = sum(segment.visits for segment in memory.parts.segments.active(SCOPE))
    {each.name: each for each in quiet.tools(user_id="u")}["conversation_search"].invoke({"query": "harbour story 0"})
    assert sum(segment.visits for segment in memory.parts.segments.active(SCOPE)) == now


def test_long_hits_are_clipped_to_a_share_of_the_window(memory: MemoryOS):
    one, _ = agent(memory, context_window_tokens=2048)
    tell(memory, "u", *(exchange(f"harbour {at} " + "lorem ipsum " * 3000, source=f"s{at}") for at in range(5)))
    shown = {each.name: each for each in one.tools(user_id="u")}["conversation_search"].invoke({"query": "harbour"})
    assert len(re.findall("harbour", shown)) == 5
    assert len(shown) / 4 < 2048 / 2
