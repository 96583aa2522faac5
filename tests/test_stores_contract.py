"""What each store promises: order, atomicity, round trips, errors, and that doing it twice changes nothing."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langgraph_memoryos.errors import EmbedderMismatchError, RecordNotFoundError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Fact, Page, ProfileField, SegmentSummary, Trait
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores.pages import PageWritten
from langgraph_memoryos.stores.recall import RecallRequest
from langgraph_memoryos.stores.schema import KINDS, failed_documents
from langgraph_memoryos.stores.segments import PlacedPage
from tests.memory_support import (
    START,
    HashEmbeddings,
    OpenMemory,
    asked,
    before_round_trip,
    exchange,
    exported,
    members,
    owner,
    run_of,
)

pytest_plugins = ["tests.memory_fixtures"]
ANN = owner()
SHARED = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@contextmanager
def round_trips(memory: MemoryOS) -> Iterator[list[int]]:
    """Count the times a command or a pipeline is sent to the memory's Redis."""
    pool = memory.connection.client.connection_pool
    sent: list[int] = []
    original = pool.get_connection

    def counted(*args: object, **kwargs: object) -> object:
        sent.append(1)
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "get_connection", counted)
        yield sent


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), "2024-05-08", datetime(2024, 5, 8, tzinfo=UTC), None])
def test_exchange_without_a_real_time_is_refused(moment: Any) -> None:
    with pytest.raises(ValueError, match="number of seconds since the epoch"):
        exchange("Hello", said_at=moment)


def write(memory: MemoryOS, *said: str, thread: str = "talk") -> list[PageWritten]:
    return [memory.parts.pages.write(ANN, exchange(text, thread_id=thread)) for text in said]


def placed(page: Page, *words: str, chain: str = "") -> PlacedPage:
    return PlacedPage(page_id=page.page_id, chain_id=chain or page.page_id, chain_meta="meta", keywords=words)


def settle(memory: MemoryOS, *said: str, threshold: float = 2.0) -> list[Page]:
    """Write pages and move them to segments; with the highest threshold each opens its own."""
    pages = [written.page for written in write(memory, *said)]
    memory.parts.segments.assign(ANN, pages, [placed(page) for page in pages], threshold=threshold, now=START)
    return pages


def fact(text: str, *, sources: tuple[str, ...] = (), at: float = START, collection: str = "user_knowledge") -> Fact:
    return Fact(
        fact_id="", collection=collection, text=text, source_page_ids=sources, valid_from=at, **ANN.to_json(),  # type: ignore[arg-type]
    )


class TestPages:
    def test_a_page_comes_back_as_it_was_said(self, memory: MemoryOS) -> None:
        said = exchange("Où est\tle café ?\n我喜欢咖啡", "Là.", source="m1", user_name="Zoé", agent_name="Bot")
        written = memory.parts.pages.write(ANN, said)
        page = memory.parts.pages.get(ANN, [written.page.page_id])[0]
        assert page == written.page
        assert (written.status, written.queue_length, page.sequence, page.tier) == ("new", 1, 1, "short")
        assert page.to_json() | said.to_json() == page.to_json()
        assert (page.to_json()["source_ids"], page.user_id) == (["m1"], "ann")

    def test_the_same_exchange_again_is_one_page(self, memory: MemoryOS) -> None:
        first, second = write(memory, "hello", "hello")
        assert (first.status, second.status) == ("new", "same")
        assert second.page.sequence == first.page.sequence
        assert [page.query for page in memory.parts.pages.iterate("ann")] == ["hello"]

    def test_a_newer_reply_takes_the_place_of_the_older(self, memory: MemoryOS) -> None:
        memory.parts.pages.write(ANN, exchange("hello", "partial", source="m1"))
        written = memory.parts.pages.write(ANN, exchange("hello", "the whole reply", source="m1"))
        assert (written.status, written.queue_length) == ("changed", 1)
        assert [page.reply for page in memory.parts.pages.queue(ANN, "talk")] == ["the whole reply"]
        assert [found.page.reply for found in memory.search("whole", user_id="ann")] == ["the whole reply"]

    def test_a_newer_text_keeps_the_time_and_is_digested_again(self, memory: MemoryOS) -> None:
        (page,) = settle(memory, "hello")
        store = memory.parts.segments
        (segment,) = store.active(ANN)
        store.cool(ANN, {segment.segment_id: [page.page_id]})
        said = exchange("hello", "the whole reply", said_at=START + 999)
        for status in ("changed", "same"):
            written = memory.parts.pages.write(ANN, said)
            (stored,) = memory.parts.pages.get(ANN, [page.page_id])
            assert (written.status, written.page.said_at, stored.said_at) == (status, START, START)
            waiting = store.undigested_pages(ANN, [segment.segment_id], limit=9)
            assert waiting == {segment.segment_id: (stored,)}

    def test_two_first_writes_that_race_agree_on_the_time(self, memory: MemoryOS) -> None:
        pages = memory.parts.pages
        with before_round_trip(memory, 1, lambda: pages.write(ANN, exchange("hello", "one", source="m1"))):
            written = pages.write(ANN, exchange("hello", "two", source="m1", said_at=START + 9))
        assert (written.status, written.page.said_at) == ("changed", START)
        assert [(page.reply, page.said_at) for page in pages.queue(ANN, "talk")] == [("two", START)]

    def test_what_redis_cannot_hold_is_replaced_in_texts_and_names(self, memory: MemoryOS) -> None:
        said = exchange("a\ud83d", "b\0", user_name="\ud83d", agent_name="Bot\udc00", source="m\ud83d")
        (report,) = memory.ingest([said], user_id="ann")
        assert not report.get("failure")
        (page,) = memory.parts.pages.iterate("ann")
        assert (page.query, page.reply) == ("a\ufffd", "b\0")
        assert (page.user_name, page.agent_name) == ("\ufffd", "Bot\ufffd")
        assert page.source_ids == ("m\ud83d",)

    def test_a_rewrite_that_races_with_another_text_stays_searchable(self, memory: MemoryOS) -> None:
        """The vector is left out where the stored text is the same; it must not be lost if that changes meanwhile."""
        pages = memory.parts.pages
        pages.write(ANN, exchange("hello", "one", source="m1"))
        with before_round_trip(memory, 1, lambda: pages.write(ANN, exchange("hello", "two", source="m1"))) as raced:
            pages.write(ANN, exchange("hello", "one", source="m1"))
        assert raced
        assert not any(failed_documents(memory.connection.client, namespace=memory._namespace).values())
        assert [found.page.reply for found in memory.search("hello", user_id="ann")] == ["one"]

    def test_an_exchange_without_source_is_refused(self, memory: MemoryOS) -> None:
        with pytest.raises(ValueError, match="source id"):
            memory.parts.pages.write(ANN, exchange("hello", source_ids=()))
        assert memory.parts.pages.count("ann") == 0

    def test_order_is_that_of_arrival_whatever_the_times_say(self, memory: MemoryOS) -> None:
        for number in range(12):
            memory.parts.pages.write(ANN, exchange(f"turn {number}", said_at=START - number % 3))
        texts = [f"turn {number}" for number in range(12)]
        assert [page.query for page in memory.parts.pages.queue(ANN, "talk")] == texts
        assert [page.query for page in memory.parts.pages.queue(ANN, "talk", limit=3)] == texts[:3]
        assert [page.query for page in memory.parts.pages.iterate("ann")] == texts

    def test_long_lists_come_back_whole(self, memory: MemoryOS, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("langgraph_memoryos.stores.pages._EXPORT_BATCH", 3)
        write(memory, *(f"turn {number}" for number in range(10)))
        assert [page.sequence for page in memory.parts.pages.iterate("ann")] == list(range(1, 11))

    def test_pages_that_arrive_during_an_export_break_nothing(
        self, memory: MemoryOS, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("langgraph_memoryos.stores.pages._EXPORT_BATCH", 2)
        write(memory, "one", "two", "three")
        pages = memory.parts.pages.iterate("ann")
        seen = [next(pages).query]
        write(memory, "four")
        assert seen + [page.query for page in pages] == ["one", "two", "three", "four"]

    def test_before_finds_the_page_before_it_in_its_thread_and_agent(self, memory: MemoryOS) -> None:
        pages = memory.parts.pages
        first = pages.write(ANN, exchange("first")).page
        pages.write(ANN, exchange("elsewhere", thread_id="other"))
        pages.write(owner("ann", "coach"), exchange("to the coach"))
        second = pages.write(ANN, exchange("second")).page
        assert pages.before(ANN, second) == first
        assert pages.before(ANN, first) is None

    def test_before_finds_it_however_much_was_said_elsewhere_and_long_ago(self, memory: MemoryOS) -> None:
        pages = memory.parts.pages
        first = pages.write(ANN, exchange("first", said_at=START - 90_000)).page
        write(memory, *(f"elsewhere {at}" for at in range(25)), thread="other")
        second, third = (written.page for written in write(memory, "second", "third"))
        assert pages.before(ANN, second) == first
        assert pages.before(ANN, third) == second
        memory.forget("ann", page_id=second.page_id)
        assert pages.before(ANN, third) is None
        pages.write(ANN, exchange("second"), revive=True)
        assert pages.before(ANN, third) is None

    def test_get_skips_what_is_gone_and_keeps_the_order(self, memory: MemoryOS) -> None:
        one, two = (written.page for written in write(memory, "one", "two"))
        assert memory.parts.pages.get(ANN, [two.page_id, "gone", one.page_id]) == (two, one)
        assert memory.parts.pages.get(ANN, []) == ()

    def test_threads_are_listed_with_the_length_of_their_queues(self, memory: MemoryOS) -> None:
        write(memory, "one", "two", thread="a:{b}")
        write(memory, "three", thread="用户")
        assert memory.parts.pages.threads(ANN) == {"a:{b}": 2, "用户": 1}
        assert memory.parts.pages.queue_length(ANN, "a:{b}") == 2
        assert memory.parts.pages.queue_length(ANN, "nobody") == 0

    def test_seen_knows_pages_and_erased_ones(self, memory: MemoryOS) -> None:
        known, erased = (written.page for written in write(memory, "known", "erased"))
        memory.forget("ann", page_id=erased.page_id)
        asked = [exchange("known"), exchange("erased"), exchange("new")]
        assert memory.parts.pages.seen(ANN, asked) == (True, True, False)
        assert known in memory.parts.pages.iterate("ann")

    def test_an_erased_page_comes_back_only_by_a_deliberate_import(self, memory: MemoryOS) -> None:
        page = write(memory, "secret")[0].page
        memory.forget("ann", page_id=page.page_id)
        late = memory.parts.pages.write(ANN, exchange("secret"))
        assert (late.status, late.queue_length) == ("erased", 0)
        assert memory.parts.pages.count("ann") == 0
        assert memory.parts.pages.write(ANN, exchange("secret"), revive=True).status == "new"
        assert memory.parts.pages.count("ann") == 1

    def test_round_trips(self, memory: MemoryOS) -> None:
        pages = memory.parts.pages
        with round_trips(memory) as sent:
            pages.write(ANN, dataclasses.replace(exchange("hello"), user_name="Ann", agent_name="Juniper"))
        assert len(sent) == 2

    def test_speakers_names_are_written_with_the_page(self, memory: MemoryOS) -> None:
        def names() -> set[bytes]:
            return set(memory.connection.client.hkeys(memory._namespace.keys(ANN).names))

        said = dataclasses.replace(exchange("hello"), user_name="Ann", reply="")
        memory.parts.pages.write(ANN, said)
        assert names() == {b"Ann"}
        memory.parts.pages.write(ANN, dataclasses.replace(said, reply="Hi.", agent_name="Juniper Two"))
        assert names() == {b"Ann", b"Juniper Two"}

    def test_a_name_that_is_no_text_does_not_keep_the_page_from_being_written(self, memory: MemoryOS) -> None:
        written = memory.parts.pages.write(ANN, dataclasses.replace(exchange("hello"), user_name="A\ud800\0"))
        memory.forget("ann", page_id=written.page.page_id)
        assert memory.connection.client.hkeys(memory._namespace.keys(ANN).names) == []

    def test_round_trips_of_reads(self, memory: MemoryOS) -> None:
        pages = memory.parts.pages
        with round_trips(memory) as sent:
            pages.queue(ANN, "talk")
            pages.get(ANN, ["a", "b", "c"])
            pages.seen(ANN, [exchange("a"), exchange("b")])
        assert len(sent) == 3

    @given(st.lists(st.integers(0, 5), max_size=12))
    @SHARED
    def test_any_order_of_writes_keeps_first_in_first_out(self, open_memory: OpenMemory, said: list[int]) -> None:
        memory = open_memory()
        memory.forget("fifo")
        scope = owner("fifo")
        for number in said:
            memory.parts.pages.write(scope, exchange(str(number)), revive=True)
        unique = list(dict.fromkeys(map(str, said)))
        assert [page.query for page in memory.parts.pages.queue(scope, "talk")] == unique
        memory.close()


class TestSegments:
    def test_a_page_moves_once_and_leaves_the_queue(self, memory: MemoryOS) -> None:
        page = settle(memory, "alpha")[0]
        moved = memory.parts.pages.get(ANN, [page.page_id])[0]
        assert (moved.tier, moved.chain_id) == ("mid", page.page_id)
        assert memory.parts.pages.queue(ANN, "talk") == ()
        again = memory.parts.segments.assign(ANN, [page], [placed(page)], threshold=-1.0, now=START)
        assert again == ()
        both = write(memory, "beta", "gamma")
        joined = memory.parts.segments.assign(
            ANN, [page, *(one.page for one in both)], [placed(page), *(placed(one.page) for one in both)], threshold=-1.0,
            now=START)
        assert joined == (moved.segment_id,) * 2
        assert members(memory, ANN) == {moved.segment_id: [page.page_id, *(one.page.page_id for one in both)]}
        assert memory.parts.segments.active(ANN)[0].interactions == 3

    def test_similar_pages_share_a_segment_and_others_do_not(self, memory: MemoryOS) -> None:
        pages = settle(
            memory, "my tomato plants have yellow leaves", "my tomato plants have brown leaves",
            "quarterly tax report deadline", threshold=0.5,
        )
        segment = {page.query: page.segment_id for page in memory.parts.pages.get(ANN, [p.page_id for p in pages])}
        first, second, third = (segment[page.query] for page in pages)
        assert first == second != third

    def test_keywords_alone_can_lift_a_page_over_the_threshold(self, memory: MemoryOS) -> None:
        one, two = (written.page for written in write(memory, "qqqq wwww", "zzzz xxxx"))
        assign = memory.parts.segments.assign
        assign(ANN, [one], [placed(one, "garden", "roses")], threshold=0.6, now=START)
        assign(ANN, [two], [placed(two, "garden", "roses")], threshold=0.6, now=START)
        assert [segment.page_count for segment in memory.parts.segments.active(ANN)] == [2]

    def test_the_threshold_itself_is_not_enough(self, memory: MemoryOS) -> None:
        one, two = (written.page for written in write(memory, "same words", "same words "))
        assign = memory.parts.segments.assign
        assign(ANN, [one], [placed(one, "k")], threshold=2.0, now=START)
        assign(ANN, [two], [placed(two, "k")], threshold=2.0, now=START)
        assert [segment.page_count for segment in memory.parts.segments.active(ANN)] == [1, 1]

    def test_an_erased_page_is_not_placed(self, memory: MemoryOS) -> None:
        page = write(memory, "alpha")[0].page
        memory.forget("ann", page_id=page.page_id)
        assert memory.parts.segments.assign(ANN, [page], [placed(page)], threshold=0.0, now=START) == ()
        assert memory.parts.segments.active(ANN) == ()

    def test_pages_of_a_segment_are_oldest_first(self, memory: MemoryOS) -> None:
        pages = settle(memory, "a one", "a two", "a three", threshold=-1.0)
        segment = memory.parts.segments.active(ANN)[0]
        newest = memory.parts.segments.newest_pages(ANN, [segment.segment_id], limit=2)[segment.segment_id]
        assert [page.query for page in newest] == ["a two", "a three"]
        assert (segment.page_count, segment.interactions) == (3, 3)
        waiting = memory.parts.segments.undigested_pages(ANN, [segment.segment_id], limit=2)
        assert [page.page_id for page in waiting[segment.segment_id]] == [page.page_id for page in pages[:2]]

    def test_visits_count_once_per_call_and_the_clock_never_goes_back(self, memory: MemoryOS) -> None:
        settle(memory, "alpha", "beta")
        first, second = memory.parts.segments.active(ANN)
        memory.parts.segments.record_visits(ANN, [first.segment_id, first.segment_id], now=START + 50)
        memory.parts.segments.record_visits(ANN, [first.segment_id, "gone"], now=START + 10)
        now_first, now_second = memory.parts.segments.active(ANN)
        assert (now_first.visits, now_first.last_visit_at) == (2, START + 50)
        assert now_second == second
        assert memory.parts.segments.get(ANN, ["gone"]) == ()

    def test_cooling_resets_interactions_only(self, memory: MemoryOS) -> None:
        pages = settle(memory, "alpha", "alpha two", threshold=-1.0)
        store = memory.parts.segments
        segment = store.active(ANN)[0]
        store.record_visits(ANN, [segment.segment_id], now=START)
        for _ in range(2):
            store.cool(ANN, {segment.segment_id: [page.page_id for page in pages]})
            cooled = store.active(ANN)[0]
            assert (cooled.visits, cooled.interactions) == (1, 0)

    def test_cooling_leaves_pages_that_joined_meanwhile(self, memory: MemoryOS) -> None:
        pages = settle(memory, "alpha", "alpha two", threshold=-1.0)
        store = memory.parts.segments
        store.cool(ANN, {store.active(ANN)[0].segment_id: [pages[0].page_id]})
        cooled = store.active(ANN)[0]
        assert cooled.interactions == 1

    def test_archiving_waits_for_digestion(self, memory: MemoryOS) -> None:
        pages = settle(memory, "alpha")
        store = memory.parts.segments
        assert store.archive(ANN, store.active(ANN)) == ()
        store.cool(ANN, {store.active(ANN)[0].segment_id: [pages[0].page_id]})
        archived = store.archive(ANN, store.active(ANN))
        assert archived == tuple(segment.segment_id for segment in store.archived(ANN))
        assert store.active(ANN) == ()
        assert store.archived(ANN)[0].archived
        assert memory.parts.pages.get(ANN, [pages[0].page_id])[0].tier == "archived"
        assert memory.search("alpha", user_id="ann") == ()

    def test_archiving_is_refused_when_the_segment_was_used_since_it_was_judged(self, memory: MemoryOS) -> None:
        pages = settle(memory, "alpha")
        store = memory.parts.segments
        store.cool(ANN, {store.active(ANN)[0].segment_id: [pages[0].page_id]})
        judged = store.active(ANN)
        store.record_visits(ANN, [judged[0].segment_id], now=START)
        assert store.archive(ANN, judged) == ()
        assert [segment.segment_id for segment in store.active(ANN)] == [judged[0].segment_id]

    def test_refresh_replaces_the_texts_and_skips_what_is_gone(self, memory: MemoryOS) -> None:
        settle(memory, "alpha")
        store = memory.parts.segments
        segment = store.active(ANN)[0]
        assert store.stale(ANN, limit=5) == (segment.segment_id,)
        text = SegmentSummary(segment_id=segment.segment_id, title="T", summary="S", keywords=("k",))
        store.refresh(ANN, [text, SegmentSummary(segment_id="gone", title="x", summary="", keywords=())])
        found = store.active(ANN)
        assert [(each.title, each.summary, each.keywords) for each in found] == [("T", "S", ("k",))]
        assert store.stale(ANN, limit=5) == ()

    def test_chain_counts_each_page_once(self, memory: MemoryOS) -> None:
        one, two = (written.page for written in write(memory, "one", "two"))
        both = [placed(page, chain=one.page_id) for page in (one, two)]
        for _ in range(2):
            memory.parts.segments.assign(ANN, [one, two], both, threshold=0.5, now=START)
        chain = memory.parts.pages.chain(ANN, one.page_id)
        assert chain is not None
        assert (chain.page_count, chain.last_page_id, chain.meta) == (2, two.page_id, "meta")
        assert memory.parts.pages.chain(ANN, "none") is None

    def test_round_trips_of_reading(self, memory: MemoryOS) -> None:
        settle(memory, "alpha", "beta", "gamma")
        names = [segment.segment_id for segment in memory.parts.segments.active(ANN)]
        with round_trips(memory) as sent:
            memory.parts.segments.counters(ANN)
            memory.parts.segments.get(ANN, names)
            memory.parts.segments.record_visits(ANN, names, now=START)
        assert len(sent) == 3


class TestFacts:
    def test_the_same_statement_is_confirmed_not_added(self, memory: MemoryOS) -> None:
        one, two = (written.page.page_id for written in write(memory, "one", "two"))
        store = memory.parts.facts
        first = store.add(ANN, [fact("I like tea.", sources=(one,))], capacity=9)
        second = store.add(ANN, [fact("i LIKE  tea", sources=(two,), at=START + 5)], capacity=9)
        assert first == second
        (kept,) = store.current(ANN, "user_knowledge")
        assert (kept.text, kept.source_page_ids) == ("I like tea.", (one, two))
        assert (kept.valid_from, kept.confirmed_at) == (START, START + 5)

    def test_of_many_confirmations_the_newest_sources_stay(self, memory: MemoryOS) -> None:
        names = [written.page.page_id for written in write(memory, *(f"tea {number}" for number in range(25)))]
        store = memory.parts.facts
        for at, name in enumerate((*names, names[-1])):
            store.add(ANN, [fact("I like tea", sources=(name,), at=START + at)], capacity=9)
        (kept,) = store.current(ANN, "user_knowledge")
        assert kept.source_page_ids == tuple(names[-20:])
        assert kept.confirmed_at == START + 25
        store.add(ANN, [fact("I like soup", sources=tuple(names))], capacity=9)
        assert store.current(ANN, "user_knowledge")[1].source_page_ids == tuple(names[-20:])

    def test_an_older_page_does_not_turn_confirmation_back(self, memory: MemoryOS) -> None:
        memory.parts.facts.add(ANN, [fact("I like tea", at=START)], capacity=9)
        memory.parts.facts.add(ANN, [fact("I like tea", at=START - 99)], capacity=9)
        assert memory.parts.facts.current(ANN, "user_knowledge")[0].confirmed_at == START

    @given(st.lists(st.integers(0, 8), max_size=20), st.integers(1, 4))
    @SHARED
    def test_any_order_of_facts_is_a_bounded_queue(
        self, open_memory: OpenMemory, said: list[int], capacity: int,
    ) -> None:
        memory = open_memory()
        memory.forget("fifo")
        store, scope = memory.parts.facts, owner("fifo")
        kept: list[str] = []
        for at, number in enumerate(said):
            text = f"number {number}"
            store.add(scope, [fact(text, at=START + at)], capacity=capacity)
            kept = kept if text in kept else [*kept, text][-capacity:]
        assert [each.text for each in store.current(scope, "user_knowledge")] == kept
        assert store.count(scope, "user_knowledge") == len(kept)
        known = {each.text for each in (*store.past(scope, "user_knowledge"), *store.current(scope, "user_knowledge"))}
        assert known == {f"number {number}" for number in said}
        memory.close()

    def test_over_capacity_the_oldest_retires_in_order_and_stays_readable(self, memory: MemoryOS) -> None:
        store = memory.parts.facts
        store.add(ANN, [fact(f"fact {number}") for number in range(103)], capacity=100)
        assert [each.text for each in store.current(ANN, "user_knowledge")] == [f"fact {n}" for n in range(3, 103)]
        assert [each.text for each in store.past(ANN, "user_knowledge")] == [f"fact {n}" for n in range(3)]

    def test_a_contradiction_supersedes_with_validity_times(self, memory: MemoryOS) -> None:
        store = memory.parts.facts
        (old,) = store.add(ANN, [fact("lives in Rome", at=START)], capacity=9)
        (new,) = store.add(ANN, [fact("lives in Oslo", at=START + 100)], capacity=9, supersedes=[[old]])
        assert [each.text for each in store.current(ANN, "user_knowledge")] == ["lives in Oslo"]
        (past,) = store.past(ANN, "user_knowledge")
        assert (past.valid_to, past.superseded_by) == (START + 100, new)
        held = [[each.text for each in store.as_of(ANN, "user_knowledge", START + at)] for at in (-1, 0, 99, 100)]
        assert held == [[], ["lives in Rome"], ["lives in Rome"], ["lives in Oslo"]]

    def test_older_dialogue_told_later_does_not_supersede(self, memory: MemoryOS) -> None:
        store = memory.parts.facts
        (new,) = store.add(ANN, [fact("lives in Oslo", at=2000)], capacity=9)
        for _ in range(2):
            store.add(ANN, [fact("lives in Rome", at=1000)], capacity=9, supersedes=[[new]])
            assert [each.text for each in store.current(ANN, "user_knowledge")] == ["lives in Oslo"]
            (past,) = store.past(ANN, "user_knowledge")
            assert (past.text, past.valid_to, past.superseded_by) == ("lives in Rome", 2000, new)

    def test_what_was_said_again_since_is_not_superseded(self, memory: MemoryOS) -> None:
        store = memory.parts.facts
        for at in (1000, 3000):
            (kept,) = store.add(ANN, [fact("lives in Oslo", at=at)], capacity=9)
        store.add(ANN, [fact("lives in Rome", at=2000)], capacity=9, supersedes=[[kept]])
        assert [each.text for each in store.current(ANN, "user_knowledge")] == ["lives in Oslo"]
        assert [each.valid_to for each in store.past(ANN, "user_knowledge")] == [3000]

    def test_a_fact_never_supersedes_itself_or_what_is_not_current(self, memory: MemoryOS) -> None:
        store = memory.parts.facts
        (known,) = store.add(ANN, [fact("likes tea")], capacity=9)
        store.add(ANN, [fact("likes tea")], capacity=9, supersedes=[[known, "invented"]])
        assert [each.text for each in store.current(ANN, "user_knowledge")] == ["likes tea"]

    def test_a_fact_of_erased_pages_only_is_dropped(self, memory: MemoryOS) -> None:
        page = write(memory, "secret")[0].page.page_id
        memory.forget("ann", page_id=page)
        assert memory.parts.facts.add(ANN, [fact("knows a secret", sources=(page,))], capacity=9) == ("",)
        assert memory.parts.facts.current(ANN, "user_knowledge") == ()

    def test_collections_are_apart(self, memory: MemoryOS) -> None:
        memory.parts.facts.add(ANN, [fact("likes tea")], capacity=9)
        memory.parts.facts.add(ANN, [fact("likes tea", collection="agent_traits")], capacity=9)
        ids = {each.fact_id for name in ("user_knowledge", "agent_traits") for each in memory.parts.facts.current(ANN, name)}
        assert len(ids) == 2

    def test_forgotten_fact_can_be_learnt_again(self, memory: MemoryOS) -> None:
        (fact_id,) = memory.parts.facts.add(ANN, [fact("likes tea")], capacity=9)
        memory.forget("ann", fact_id=fact_id)
        assert memory.parts.facts.current(ANN, "user_knowledge") == ()
        assert memory.parts.facts.add(ANN, [fact("likes tea")], capacity=9) == (fact_id,)
        with pytest.raises(RecordNotFoundError, match="no fact"):
            memory.forget("ann", fact_id="invented")

    def test_fact_of_another_agent_is_forgotten_whole(self, memory: MemoryOS) -> None:
        coach = owner("ann", "coach")
        (fact_id,) = memory.parts.facts.add(coach, [fact("likes tea")], capacity=9)
        memory.forget("ann", fact_id=fact_id)
        assert memory.parts.facts.count(coach, "user_knowledge") == 0
        assert memory.parts.facts.add(coach, [fact("likes tea")], capacity=9) == (fact_id,)


class TestPersonas:
    def test_another_level_supersedes_and_the_same_adds_sources(self, memory: MemoryOS) -> None:
        one, two, three = (written.page.page_id for written in write(memory, "one", "two", "three"))
        store = memory.parts.personas

        def seen(level: str, page: str, at: float) -> None:
            store.set_trait(ANN, Trait(dimension="play", level=level, reason="r", source_page_ids=(page,), valid_from=at))

        seen("high", one, START)
        seen("high", two, START + 1)
        seen("low", three, START + 2)
        (trait,) = store.get(ANN).user_traits
        assert (trait.level, trait.source_page_ids, trait.valid_to) == ("low", (three,), None)
        (old,) = store.history(ANN)
        assert (old["field"], old["level"], old["source_page_ids"], old["valid_to"]) == (
            "user_traits/play", "high", [one, two], START + 2)

    def test_older_dialogue_told_later_goes_to_the_history(self, memory: MemoryOS) -> None:
        store = memory.parts.personas

        def told(city: str, at: float) -> None:
            store.set_profile(ANN, "user_profile", ProfileField(name="city", value=city, valid_from=at))

        told("Oslo", 2000)
        for _ in range(2):  # a step may run again
            told("Vienna", 1000)
            told("Vienna", 1001)
            assert [(entry.value, entry.valid_from) for entry in store.get(ANN).user_profile] == [("Oslo", 2000)]
            history = [(old["value"], old["valid_from"], old["valid_to"]) for old in store.history(ANN)]
            assert history == [("Vienna", 1000, 2000)]
        told("Oslo", 4000)
        told("Rome", 3000)
        assert store.get(ANN).user_profile[0].value == "Oslo"
        assert [(old["value"], old["valid_to"]) for old in store.history(ANN)] == [("Vienna", 2000), ("Rome", 4000)]
        told("Graz", 1500)
        assert [(old["value"], old["valid_to"]) for old in store.history(ANN)] == [
            ("Vienna", 1500), ("Graz", 2000), ("Rome", 4000)]

    def test_entries_of_erased_pages_are_dropped(self, memory: MemoryOS) -> None:
        page = write(memory, "secret")[0].page.page_id
        memory.forget("ann", page_id=page)
        memory.parts.personas.set_profile(ANN, "user_profile", ProfileField(name="name", value="X", source_page_ids=(page,)))
        assert memory.parts.personas.get(ANN).user_profile == ()

    def test_profiles_of_user_and_agent_are_apart(self, memory: MemoryOS) -> None:
        memory.set_profile("ann", {"name": "Ann"})
        memory.set_profile("ann", {"name": "Robo", "role": "coach"}, of="agent")
        persona = memory.parts.personas.get(ANN)
        assert [(entry.name, entry.value) for entry in persona.user_profile] == [("name", "Ann")]
        assert [(entry.name, entry.value) for entry in persona.agent_profile] == [("name", "Robo"), ("role", "coach")]

    def test_an_entry_changed_by_another_process_meanwhile_is_not_lost(
        self, memory: MemoryOS, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        client = memory.connection.client
        original = client.hget

        def racing(*args: object) -> object:
            found = original(*args)
            monkeypatch.setattr(client, "hget", original)
            memory.set_profile("ann", {"name": "Second"})
            return found

        memory.set_profile("ann", {"name": "First"})
        monkeypatch.setattr(client, "hget", racing)
        memory.set_profile("ann", {"name": "Third"})
        assert memory.parts.personas.get(ANN).user_profile[0].value == "Third"
        assert [entry["value"] for entry in memory.parts.personas.history(ANN)] == ["First", "Second"]


class TestRecall:
    @staticmethod
    def request(query: str = "alpha", turn: str = "t1") -> RecallRequest:
        return RecallRequest(scope=ANN, thread_id="talk", query=query, turn_id=turn)

    def test_three_stages_of_a_turn_cost_two_round_trips(self, memory: MemoryOS) -> None:
        settle(memory, "alpha", "beta")
        write(memory, "gamma")
        memory.parts.recall.short_term(self.request(turn="t0"))
        with round_trips(memory) as sent:
            short = memory.parts.recall.short_term(self.request())
            mid = memory.parts.recall.mid_term(self.request())
            memory.parts.recall.long_term(self.request())
        assert len(sent) == 2
        assert [page.query for page in short] == ["gamma"]
        assert {found.page.query for found in mid.pages} == {"alpha", "beta"}

    def test_names_of_speakers_are_read_once_and_noticed_when_they_change(self, memory: MemoryOS) -> None:
        spoken = dataclasses.replace(exchange("Zoë bakes bread"), user_name="Zoë")
        memory.parts.pages.write(ANN, spoken)
        asked = self.request("What does Nora cook for Zoë?")
        for expected, turn in ((3, "t1"), (2, "t2")):
            with round_trips(memory) as sent:
                (found,) = memory.parts.recall.mid_term(dataclasses.replace(asked, turn_id=turn, thread_id="x")).pages
            assert len(sent) == expected
        # No word of the page is left in the question once the name is out.
        assert found.parts["window"] == 0
        memory.parts.pages.write(ANN, dataclasses.replace(exchange("Soup", source="n"), agent_name="Nora"))
        with round_trips(memory) as sent:
            memory.parts.recall.mid_term(dataclasses.replace(asked, turn_id="t3", thread_id="x"))
        assert len(sent) == 3

    def test_of_a_long_queue_the_newest_pages_are_recent_and_the_others_are_found(
        self, memory: MemoryOS, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("langgraph_memoryos.stores.pages.RECENT_PAGES", 3)
        write(memory, "alpha", "beta", "gamma", "delta", "epsilon")
        short, mid = memory.parts.recall.short_term(self.request()), memory.parts.recall.mid_term(self.request())
        assert [page.query for page in short] == ["gamma", "delta", "epsilon"]
        assert {each.page.query for each in mid.pages} == {"alpha", "beta"}
        assert [page.query for page in memory.parts.pages.queue(ANN, "talk", limit=2)] == ["alpha", "beta"]

    @pytest.mark.parametrize("told", [False, True])
    def test_the_meta_of_a_chain_is_told_if_the_setting_says_so(self, open_memory: OpenMemory, *, told: bool) -> None:
        memory = open_memory(settings=MemorySettings(chain_meta_in_prompt=told))
        pages = [written.page for written in write(memory, "alpha", "beta")]
        both = [dataclasses.replace(placed(page, chain=pages[0].page_id), chain_meta="They spoke of letters.") for page in pages]
        memory.parts.segments.assign(ANN, pages, both, threshold=0.5, now=START)
        recalled = memory.recall.invoke(asked("alpha"), run_of("ann", "other"))["memory"]["text"]
        assert "alpha" in recalled
        assert ("They spoke of letters." in recalled) is told

    def test_the_next_turn_reads_anew(self, memory: MemoryOS) -> None:
        assert memory.parts.recall.short_term(self.request()) == ()
        write(memory, "alpha")
        assert len(memory.parts.recall.short_term(self.request(turn="t2"))) == 1

    def test_a_failed_read_is_tried_again(self, memory: MemoryOS, monkeypatch: pytest.MonkeyPatch) -> None:
        write(memory, "alpha")
        with monkeypatch.context() as patch:
            patch.setattr(memory.parts.recall, "_read", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                memory.parts.recall.short_term(self.request())
        assert len(memory.parts.recall.short_term(self.request())) == 1

    def test_a_page_in_another_threads_queue_is_found_and_one_in_mine_is_not(self, memory: MemoryOS) -> None:
        write(memory, "alpha here")
        write(memory, "alpha there", thread="other")
        found = memory.parts.recall.mid_term(self.request()).pages
        assert [each.page.query for each in found] == ["alpha there"]


class TestSetup:
    def test_another_embedder_is_refused_and_changes_nothing(self, open_memory: OpenMemory) -> None:
        memory = open_memory()
        write(memory, "alpha")
        client = memory.connection.client
        before = client.hgetall(memory._namespace.meta)
        with pytest.raises(EmbedderMismatchError, match=r"hash-128.*128.*hash-64.*64"):
            open_memory(embeddings=HashEmbeddings(dimensions=64))
        with pytest.raises(EmbedderMismatchError, match=r"hash-128.*renamed"):
            open_memory(embeddings_name="renamed")
        assert client.hgetall(memory._namespace.meta) == before
        assert [found.page.query for found in memory.search("alpha", user_id="ann")] == ["alpha"]

    def test_opening_again_keeps_everything(self, open_memory: OpenMemory) -> None:
        write(open_memory(), "alpha")
        again = open_memory()
        assert [found.page.query for found in again.search("alpha", user_id="ann")] == ["alpha"]

    def test_nothing_that_was_stored_failed_to_be_indexed(self, memory: MemoryOS) -> None:
        settle(memory, "alpha", "", "\ud800\0", "用户")
        memory.parts.facts.add(ANN, [fact("x"), fact("用户 \0")], capacity=9)
        failed = failed_documents(memory.connection.client, namespace=memory._namespace)
        assert failed == dict.fromkeys(KINDS, 0)


class TestForgettingOverAgents:
    """A user may talk to several agents; forgetting reaches all of them without mixing them up."""

    @pytest.mark.parametrize("named", [{"thread_id": "talk"}, {"page_id": None}])
    def test_summaries_of_another_agents_segments_are_made_anew_and_stay_its_own(
        self, open_memory: OpenMemory, named: dict[str, str | None],
    ) -> None:
        memory = open_memory(settings=MemorySettings(
            short_term_capacity_pages=1, eviction_batch_pages=1, segment_threshold=-1.0))
        said = [exchange("canary words", thread_id="talk"), *(exchange(f"turn {n}", thread_id="other") for n in range(3)),
                exchange("more words", thread_id="talk")]
        list(memory.ingest(said, user_id="ann", agent_id="coach"))
        assert "canary" in str(exported(memory, "ann", "segment"))
        page = next(page["page_id"] for page in exported(memory, "ann") if page["query"] == "canary words")
        memory.forget("ann", **{key: value or page for key, value in named.items()})
        segments = exported(memory, "ann", "segment")
        assert segments
        assert "canary" not in str(segments)
        assert {segment["agent_id"] for segment in segments} == {"coach"}

    def test_export_tells_of_agents_that_have_no_pages(self, memory: MemoryOS) -> None:
        memory.parts.pages.write(owner("ann", "coach"), exchange("hello"))
        memory.set_profile("ann", {"name": "Ann"})
        memory.set_profile("ann", {"name": "Annie"}, agent_id="tutor")
        assert {(entry["agent_id"], entry["value"]) for entry in exported(memory, "ann", "profile")} == {
            ("assistant", "Ann"), ("tutor", "Annie")}

    def test_segments_that_lost_all_pages_leave_nothing_behind(self, memory: MemoryOS) -> None:
        pages = settle(memory, "alpha", "beta")
        for page in pages:
            memory.forget("ann", page_id=page.page_id)
        assert memory.parts.segments.active(ANN) == ()
        assert memory.parts.segments.stale(ANN, limit=9) == ()
