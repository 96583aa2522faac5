"""What the paper says and the reference code does not do: one test for each known difference."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.errors import EmbedderMismatchError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.nodes.record_visits import RecordVisits
from langgraph_memoryos.records import Exchange, Fact, SegmentSummary, Trait
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.segments import PlacedPage
from langgraph_memoryos.traits import DIMENSIONS
from tests.memory_support import (
    DAY,
    START,
    Clock,
    HashEmbeddings,
    OpenMemory,
    PlayedModel,
    asked,
    exchange,
    exported,
    judged,
    members,
    owner,
    prompt_pages,
    queries,
    run_of,
    tell,
)

pytest_plugins = ["tests.memory_fixtures"]

ANN = owner()
ONE_BY_ONE = {"short_term_capacity_pages": 1, "eviction_batch_pages": 1}
APART = {"segment_threshold": 2.0}
TOGETHER = {"segment_threshold": -1.0}
NEVER_HOT = {"promotion_heat": 1e9}
ALWAYS_HOT = {"promotion_heat": 0.5}


def numbers(**changes: Any) -> MemorySettings:
    return MemorySettings(**{**ONE_BY_ONE, **changes})


def settle(memory: MemoryOS, *said: str | Exchange) -> list[str]:
    """Let Ann say something and a last thing more, so that all of it has left the queue; returns the segments' ids."""
    tell(memory, "ann", *said, exchange("last thing", source=f"last {said}"))
    return [segment.segment_id for segment in memory.parts.segments.active(ANN)]


def digested(memory: MemoryOS) -> None:
    """Mark all pages as digested without learning anything."""
    for segment in memory.parts.segments.active(ANN):
        memory.parts.segments.cool(ANN, {segment.segment_id: [
            page.page_id for page in memory.parts.segments.newest_pages(ANN, [segment.segment_id], limit=999)[segment.segment_id]]})


def recall(memory: MemoryOS, query: str, thread: str = "now", user: str = "ann") -> dict[str, Any]:
    found: dict[str, Any] = memory.recall.invoke(asked(query), run_of(user, thread))["memory"]
    return found


def first_queries(memory: MemoryOS) -> list[str]:
    return [
        memory.parts.segments.newest_pages(ANN, [segment.segment_id], limit=999)[segment.segment_id][0].query
        for segment in memory.parts.segments.active(ANN)
    ]


class TestHeat:
    def test_the_coldest_goes_not_the_least_retrieved(self, open_memory: OpenMemory, clock: Clock) -> None:
        """Evicts by retrieval count, not heat."""
        memory = open_memory(settings=numbers(**TOGETHER, **NEVER_HOT))
        store = memory.parts.segments
        tell(memory, "ann", *(f"visited {n}" for n in range(2)), "last")
        digested(memory)
        (visited,) = store.active(ANN)
        for _ in range(2):
            store.record_visits(ANN, [visited.segment_id], now=clock.now)
        apart = open_memory(settings=numbers(**APART, **NEVER_HOT, segment_capacity=2))
        pages = [apart.parts.pages.write(ANN, exchange(f"grown {n}")).page for n in range(5)]
        grown = store.assign(ANN, pages[:1], [placed(pages[0])], threshold=2.0, now=clock.now)
        store.assign(ANN, pages[1:], [placed(page) for page in pages[1:]], threshold=-1.0, now=clock.now)
        by_size = {segment.segment_id: segment for segment in store.active(ANN)}
        assert by_size[visited.segment_id].visits == 2
        assert by_size[grown[0]].visits == 0
        (report,) = tell(apart, "ann", "something new")
        assert report["archived_segments"] == [visited.segment_id]

    def test_a_step_that_runs_again_counts_no_visit_twice(self, open_memory: OpenMemory, clock: Clock) -> None:
        """The run died after the step and before its checkpoint, and is resumed."""
        memory = open_memory(settings=numbers(**TOGETHER, **NEVER_HOT))
        (segment,) = settle(memory, "hello")
        step = RecordVisits(store=memory.parts.segments, clock=clock)
        recalled: Any = {"mid_term": [{"segment_id": segment}]}

        def visited(turn_id: str) -> int:
            scope = ScopeState(**ANN.to_json(), thread_id="talk", turn_id=turn_id)
            step({"scope": scope, "memory": recalled})
            return memory.parts.segments.active(ANN)[0].visits

        before = memory.parts.segments.active(ANN)[0].visits
        assert [visited(turn) - before for turn in ("one", "one", "two", "one", "two")] == [1, 1, 2, 2, 2]
        for number in range(300):
            visited(f"turn {number}")
        assert memory.connection.client.llen(memory._namespace.keys(ANN).visiting_turns) == 256

    @pytest.mark.parametrize("waited", [0.0, 1.5 * 1e7])
    def test_recency_has_the_papers_time_constant_and_is_computed_when_read(
        self, open_memory: OpenMemory, clock: Clock, waited: float,
    ) -> None:
        """Recency over 24 h, and stored heat never decays."""
        memory = open_memory(settings=numbers(**NEVER_HOT))
        (segment,) = settle(memory, "hello")
        before = memory.connection.client.hgetall(memory._namespace.keys(ANN).heat)
        clock.now += waited
        (looked_at,) = memory.inspect("ann")["mid_term"]
        assert looked_at["heat"] == pytest.approx(1 + 2.718281828 ** (-waited / 1e7))
        clock.now += DAY
        assert memory.inspect("ann")["mid_term"][0]["heat"] == pytest.approx(looked_at["heat"], rel=0.01)
        clock.now = START - DAY
        assert memory.inspect("ann")["mid_term"][0]["heat"] == 2.0
        assert memory.connection.client.hgetall(memory._namespace.keys(ANN).heat) == before
        assert {name.split(b":")[1] for name in before} == {b"visits", b"interactions", b"visited"}
        assert segment.encode() in next(iter(before))

    def test_old_heat_alone_makes_a_segment_the_victim(self, open_memory: OpenMemory, clock: Clock) -> None:
        """Stored heat never decays: equal counters, and the one visited longer ago must go."""
        memory = open_memory(settings=numbers(**APART, **NEVER_HOT, segment_capacity=2))
        old, new = settle(memory, "old one", "new one")
        digested(memory)
        memory.parts.segments.record_visits(ANN, [old], now=clock.now)
        clock.now += 2e7
        memory.parts.segments.record_visits(ANN, [new], now=clock.now)
        (report,) = tell(memory, "ann", "more")
        assert report["archived_segments"] == [old]

    def test_promotion_resets_interactions_only(self, open_memory: OpenMemory) -> None:
        """Resets both counters on promotion."""
        memory = open_memory(settings=numbers(**TOGETHER, promotion_heat=4.0))
        settle(memory, "one", "two")
        recall(memory, "one two")
        (before,) = memory.parts.segments.active(ANN)
        assert (before.visits, before.interactions) == (1, 2)
        (report,) = tell(memory, "ann", "three")
        (after,) = memory.parts.segments.active(ANN)
        assert report["digested_segments"] == [after.segment_id]
        assert (after.visits, after.interactions) == (1, 0)

    def test_every_hot_segment_is_promoted_in_one_go(self, open_memory: OpenMemory) -> None:
        """Only the hottest segment is ever considered, so one digested hot segment blocks all others."""
        model = PlayedModel()
        memory = open_memory(settings=numbers(**APART, **NEVER_HOT), memory_model=model)
        settle(memory, "I love tea.", "I own boats.", "I play chess.")
        hot = open_memory(settings=numbers(**APART, **ALWAYS_HOT), memory_model=model)
        report = hot.consolidate.invoke({"user_id": "ann"})["remembered"]
        assert sorted(report["digested_segments"]) == sorted(members(memory, ANN))
        assert model.calls.count("PersonaReading") == 1
        assert {fact["text"] for fact in exported(hot, "ann", "fact")} == {"I love tea.", "I own boats.", "I play chess."}
        assert "digested_segments" not in hot.consolidate.invoke({"user_id": "ann"})["remembered"]

    def test_a_digested_segment_that_stays_hot_blocks_nobody(self, open_memory: OpenMemory, clock: Clock) -> None:
        """Only the hottest segment is ever considered: visits keep it hot after its pages were read."""
        memory = open_memory(settings=numbers(**APART, promotion_heat=2.5))
        (first,) = settle(memory, "I love tea.")
        memory.parts.segments.record_visits(ANN, [first], now=clock.now)
        for _ in range(50):
            memory.parts.segments.record_visits(ANN, [first], now=clock.now)
        assert memory.consolidate.invoke({"user_id": "ann"})["remembered"]["digested_segments"] == [first]
        tell(memory, "ann", "I own boats.", "more")
        second = next(s.segment_id for s in memory.parts.segments.active(ANN) if s.interactions)
        memory.parts.segments.record_visits(ANN, [second], now=clock.now)
        assert second in memory.consolidate.invoke({"user_id": "ann"})["remembered"]["digested_segments"]
        assert "I love tea." in [fact["text"] for fact in exported(memory, "ann", "fact")]

    def test_heat_at_the_threshold_does_not_promote(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(**APART, promotion_heat=2.0))
        (report,) = [tell(memory, "ann", "one", "two")[-1]]
        assert "digested_segments" not in report

    def test_archive_after_promotion(self, open_memory: OpenMemory) -> None:
        """after_promotion = "archive": the promoted segment leaves mid-term search but is not destroyed."""
        memory = open_memory(settings=numbers(**APART, **ALWAYS_HOT, after_promotion="archive"))
        tell(memory, "ann", "I love tea.", "I own boats.", "more")
        assert memory.parts.segments.active(ANN) == ()
        assert [page.page.query for page in memory.search("tea boats", user_id="ann")] == ["more"]
        assert queries(memory, "ann") == ["I love tea.", "I own boats.", "more"]
        assert [fact["text"] for fact in exported(memory, "ann", "fact")] == ["I love tea.", "I own boats."]


def placed(page: Any) -> PlacedPage:
    return PlacedPage(page_id=page.page_id, chain_id=page.page_id, chain_meta="", keywords=())


class TestSegments:
    def test_summary_and_vector_follow_the_pages(self, open_memory: OpenMemory) -> None:
        """Segment summary and vector frozen at birth, so topics drift."""
        memory = open_memory(settings=numbers(**TOGETHER))
        client, keys = memory.connection.client, memory._namespace.keys(ANN)
        seen = []
        for text in ("tomato plants in the garden", "violin lessons on Monday", "the quarterly tax report"):
            settle(memory, text)
            (segment,) = memory.parts.segments.active(ANN)
            seen.append((segment.summary, segment.keywords, client.hget(keys.segment(segment.segment_id), "vector")))
            assert text in segment.summary
        assert len(set(seen)) == len({vector for _, _, vector in seen}) == 3

    def test_keywords_count_when_segments_are_chosen(self, open_memory: OpenMemory) -> None:
        """No keyword term at retrieval (two-stage)."""
        memory = open_memory(settings=MemorySettings.paper(
            short_term_capacity_pages=1, segment_threshold=2.0, top_segments=1, top_pages=1))
        settle(memory, *(f"the zebra walks by {n}" for n in range(3)), "qq ww zebra")
        store = memory.parts.segments
        wanted = store.active(ANN)[1].segment_id
        for segment in store.active(ANN):
            words = ("violet", "harbour") if segment.segment_id == wanted else ("other",)
            store.refresh(ANN, [SegmentSummary(segment_id=segment.segment_id, title="", summary="", keywords=words)])
        (found,) = recall(memory, "violet harbour", thread="talk")["mid_term"]
        assert found["segment_id"] == wanted

    @given(st.lists(st.sampled_from(["tea", "boats", "chess", "rain", "music"]), min_size=2, max_size=12),
           st.floats(-1, 2), st.integers(1, 3))
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    def test_a_page_is_in_one_place_and_recalled_once(
        self, open_memory: OpenMemory, topics: list[str], threshold: float, capacity: int,
    ) -> None:
        """A page may enter two segments and then shows up twice."""
        memory = open_memory(settings=numbers(segment_threshold=threshold, segment_capacity=capacity, **ALWAYS_HOT))
        memory.forget("ann")
        tell(memory, "ann", *(f"I love {topic}, time {n}." for n, topic in enumerate(topics)))
        held = [page for pages in members(memory, ANN).values() for page in pages]
        queued = [page.page_id for page in memory.parts.pages.queue(ANN, "talk")]
        assert sorted(held + queued) == sorted(page["page_id"] for page in exported(memory, "ann"))
        found = recall(memory, "I like tea and chess", thread="talk")
        names = [page["page_id"] for page in found["mid_term"] + found["short_term"]]
        assert len(names) == len(set(names))
        assert len(memory.parts.segments.active(ANN)) <= capacity
        memory.close()

    def test_the_segment_just_touched_is_not_the_victim(self, open_memory: OpenMemory, clock: Clock) -> None:
        """A segment that has just been created or touched in this step is not the victim."""
        memory = open_memory(settings=numbers(**APART, **NEVER_HOT, segment_capacity=1))
        (first,) = settle(memory, "first topic")
        for _ in range(9):
            memory.parts.segments.record_visits(ANN, [first], now=clock.now)
        (report,) = tell(memory, "ann", "more")
        assert report["archived_segments"] == [first]
        assert first_queries(memory) == ["last thing"]

    def test_undigested_victims_are_digested_first(self, open_memory: OpenMemory) -> None:
        """Pages that no persona update has seen yet are digested first: nothing the user said may vanish unread."""
        memory = open_memory(settings=numbers(**APART, **NEVER_HOT, segment_capacity=1))
        tell(memory, "ann", "I love tea.", "I own boats.", "I play chess.", "I love rain.")
        assert [fact["text"] for fact in exported(memory, "ann", "fact")] == ["I love tea.", "I own boats."]
        assert first_queries(memory) == ["I play chess."]
        assert all(segment.interactions == 0 for segment in memory.parts.segments.archived(ANN))
        assert len(memory.parts.segments.archived(ANN)) == 2

    def test_a_victim_whose_digest_fails_stays(self, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        """Undigested victims are kept where they cannot be digested."""
        memory = open_memory(settings=numbers(**APART, **NEVER_HOT, segment_capacity=1))
        monkeypatch.setattr(DeterministicAnalyst, "digest_segments", lambda *_, **__: 1 / 0)
        tell(memory, "ann", "I love tea.", "I own boats.", "I play chess.")
        assert memory.parts.segments.archived(ANN) == ()
        assert first_queries(memory) == ["I love tea.", "I own boats."]
        monkeypatch.undo()
        tell(memory, "ann", "I love rain.")
        assert first_queries(memory) == ["I play chess."]

    def test_archived_pages_leave_search_and_stay_in_the_export(self, open_memory: OpenMemory) -> None:
        """Evicted and archived never mean destroyed."""
        memory = open_memory(settings=numbers(**APART, segment_capacity=1))
        said = ["the tea", "the boats", "the chess", "the rain"]
        tell(memory, "ann", *said)
        assert [page["tier"] for page in exported(memory, "ann")] == ["archived", "archived", "mid", "short"]
        assert queries(memory, "ann") == said
        assert {page["query"] for page in recall(memory, "the tea boats chess rain")["mid_term"]} == set(said[2:])

    @pytest.mark.parametrize("capacities", [
        {"user_knowledge_capacity": 1, "agent_traits_capacity": 1}, {"digest_pages": 1}, {"refresh_pages": 1},
        {"top_pages": 1, "top_facts": 0, "top_agent_traits": 0}, {"top_segments": 1, "retrieval": "two_stage"},
        {"max_memory_tokens": 100, "max_short_term_tokens": 100},
    ])
    def test_capacities_of_one(self, open_memory: OpenMemory, capacities: dict[str, Any]) -> None:
        memory = open_memory(settings=numbers(segment_capacity=1, **ALWAYS_HOT, **capacities))
        said = ["I love tea.", "I own boats.", "I play chess.", "I love rain."]
        for text in said:
            tell(memory, "ann", text)
            found = recall(memory, "tea boats", thread="talk")
            assert found["tokens"] <= memory.settings.max_memory_tokens
            assert [page["query"] for page in found["short_term"]] == [text]
        assert queries(memory, "ann") == said
        assert len(memory.parts.segments.active(ANN)) == 1
        assert memory.parts.facts.count(ANN, "user_knowledge") <= memory.settings.user_knowledge_capacity


class TestQueue:
    def test_paper_preset_moves_pages_one_by_one_at_seven(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=MemorySettings.paper())
        reports = tell(memory, "ann", *(f"turn {n}" for n in range(12)))
        assert [report["queue_length"] for report in reports] == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8]
        assert [report.get("moved_pages", 0) for report in reports] == [0] * 7 + [1] * 5
        assert [page.query for page in memory.parts.pages.queue(ANN, "talk")] == [f"turn {n}" for n in range(5, 12)]

    def test_default_preset_moves_a_batch(self, open_memory: OpenMemory) -> None:
        memory = open_memory()
        reports = tell(memory, "ann", *(f"turn {n}" for n in range(20)))
        assert [report.get("moved_pages", 0) for report in reports] == [0] * 12 + [6] + [0] * 5 + [6, 0]
        assert [page.query for page in memory.parts.pages.queue(ANN, "talk")] == [f"turn {n}" for n in range(12, 20)]

    @given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 20))
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    def test_first_in_first_out(self, open_memory: OpenMemory, capacity: int, batch: int, turns: int) -> None:
        memory = open_memory(settings=MemorySettings(
            short_term_capacity_pages=capacity, eviction_batch_pages=min(batch, capacity)))
        memory.forget("ann")
        tell(memory, "ann", *(f"turn {n}" for n in range(turns)))
        left = [page.query for page in memory.parts.pages.queue(ANN, "talk")]
        assert left == [f"turn {n}" for n in range(turns)][-len(left):]
        assert len(left) <= capacity
        tiers = [page["tier"] for page in exported(memory, "ann")]
        assert tiers == ["mid"] * (turns - len(left)) + ["short"] * len(left)
        memory.close()

    def test_chains_go_on_over_evictions_and_break_at_a_new_subject(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers())
        said = ["tomato seeds from Rome", "tomato plants from Rome", "violin bow from Oslo", "violin case from Oslo"]
        tell(memory, "ann", *said, exchange("tomato soup from Rome", said_at=START + DAY), "end")
        chains = [page["chain_id"] for page in exported(memory, "ann")][:5]
        assert chains[0] == chains[1] != chains[2] == chains[3] != chains[4]
        assert chains[4] != chains[0]
        chain = memory.parts.pages.chain(ANN, chains[0])
        assert chain is not None
        assert chain.page_count == 2
        assert "seeds" in chain.meta
        assert "plants" in chain.meta

    def test_deferred_maintenance_only_writes_the_page(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(maintenance="deferred"))
        tell(memory, "ann", "one", "two", "three")
        assert memory.parts.pages.queue_length(ANN, "talk") == 3
        memory.consolidate.invoke({"user_id": "ann"})
        assert memory.parts.pages.queue_length(ANN, "talk") == 1


class TestPersona:
    def test_traits_are_the_papers_ninety_dimensions(self, open_memory: OpenMemory) -> None:
        """51 "90 dimensions" in free text: anything else a model invents is not stored."""
        assert len(DIMENSIONS) == 90
        assert [sum(each.group == group for each in DIMENSIONS.values()) for group in (
            "basic_needs_and_personality", "ai_alignment", "content_interests")] == [40, 7, 43]

        def judge(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> str:
            if reply_model.__name__ != "PersonaReading":
                return judged(reply_model, messages)
            traits = [
                {"dimension": name, "level": "high", "reason": "They said so.", "page": 1, "evidence": "love long hikes"}
                for name in ("outdoors", "star_sign", "Openness!", "openness")
            ]
            return json.dumps({"user_profile": [], "user_traits": traits, "user_facts": [], "agent_facts": []})

        memory = open_memory(settings=numbers(**ALWAYS_HOT), memory_model=PlayedModel(judge=judge))
        settle(memory, "I love long hikes.")
        page = exported(memory, "ann")[0]["page_id"]
        traits = exported(memory, "ann", "trait")
        assert {trait["dimension"] for trait in traits} == {"outdoors", "openness"}
        assert all(trait["source_page_ids"] == [page] and trait["valid_from"] == START for trait in traits)
        assert "outdoors: high (They said so.)" in recall(memory, "?")["text"]

    def test_what_an_agent_knows_is_kept_per_user(self, open_memory: OpenMemory) -> None:
        """Agent knowledge shared by all users of one agent id, so one user's facts reach another."""
        memory = open_memory()
        fact = {"fact_id": "", "collection": "agent_traits", "text": "I promised Ann a surprise party."}
        memory.parts.facts.add(ANN, [Fact(**fact, **ANN.to_json())], capacity=9)
        assert "surprise" in recall(memory, "party?")["text"]
        assert "surprise" not in str(recall(memory, "party?", user="bob"))
        assert memory.parts.facts.current(owner("bob"), "agent_traits") == ()

    def test_static_profiles_are_in_every_prompt(self, open_memory: OpenMemory) -> None:
        """No static profiles."""
        memory = open_memory(agent_profile={"name": "Robo", "role": "running coach"}, settings=numbers(**ALWAYS_HOT))
        settle(memory, "My name is Ann Smith.")
        text = recall(memory, "what shall we cook?")["text"]
        assert "- name: Robo" in text
        assert "- role: running coach" in text
        assert "- name: Ann Smith" in text

    @pytest.mark.parametrize("said", ["我住在上海，我喜欢喝茶。", "Ich wohne in Köln und liebe lange, sehr lange Wanderungen im Harz."])
    def test_language_and_length_are_left_alone(self, open_memory: OpenMemory, said: str) -> None:
        """Answers forced to English, 30 words at most."""
        model = PlayedModel(reply=lambda _: "这是一个很长的回答。" * 40)
        memory = open_memory(settings=numbers(**ALWAYS_HOT), model=model)
        answer = memory.chat.invoke(asked(said), run_of("ann"))["messages"][-1].text
        assert answer == "这是一个很长的回答。" * 40
        memory.chat.invoke(asked("more"), run_of("ann"))
        assert exported(memory, "ann")[0]["query"] == said
        assert any(fact["text"] in said for fact in exported(memory, "ann", "fact"))
        instructions = str(model.prompts[-1][0].content)
        assert "language of the user's last message" in instructions
        assert not re.search(r"\b\d+ words\b|in English", instructions)

    def test_the_same_fact_again_is_refreshed(self, open_memory: OpenMemory) -> None:
        """The same fact stored over and over, pushing others out of the FIFO."""
        memory = open_memory(settings=numbers(**ALWAYS_HOT, user_knowledge_capacity=3))
        tell(memory, "ann", *(exchange(text, said_at=START + at, source=str(at)) for at, text in enumerate(
            ["I own a boat.", "I love tea.", *["I love tea!"] * 6, "I love rain.", "end"])))
        facts = memory.parts.facts.current(ANN, "user_knowledge")
        assert [fact.text for fact in facts] == ["I own a boat.", "I love tea.", "I love rain."]
        assert (facts[1].valid_from, facts[1].confirmed_at, len(facts[1].source_page_ids)) == (START + 1, START + 7, 7)

    def test_a_hundred_facts_first_in_first_out(self, open_memory: OpenMemory) -> None:
        """FIFO 100, in order of arrival."""
        memory = open_memory(settings=MemorySettings(**ALWAYS_HOT, short_term_capacity_pages=20, eviction_batch_pages=20))
        tell(memory, "ann", *(f"I own a boat number {n}." for n in range(126)))
        memory.consolidate.invoke({"user_id": "ann", "drain": True})
        memory.consolidate.invoke({"user_id": "ann"})
        facts = [fact.text for fact in memory.parts.facts.current(ANN, "user_knowledge")]
        assert facts == [f"I own a boat number {n}." for n in range(26, 126)]
        assert len(memory.parts.facts.past(ANN, "user_knowledge")) == 26

    def test_consolidate_empties_only_the_queues_of_the_threads_it_is_told(self, open_memory: OpenMemory) -> None:
        memory = open_memory()
        for thread in ("live", "over", "also over"):
            tell(memory, "ann", exchange("hello", thread_id=thread))
        memory.consolidate.invoke({"user_id": "ann", "drain": True, "thread_ids": ["over"]})
        assert memory.parts.pages.threads(ANN) == {"live": 1, "over": 0, "also over": 1}
        memory.consolidate.invoke({"user_id": "ann", "drain": True, "thread_ids": []})
        assert memory.parts.pages.threads(ANN) == {"live": 1, "over": 0, "also over": 1}
        memory.consolidate.invoke({"user_id": "ann", "drain": True})
        assert memory.parts.pages.threads(ANN) == {"live": 0, "over": 0, "also over": 0}

    @pytest.mark.parametrize("nothing", ["None", "none.", "N/A", "null", "No new facts.", "", "  ", "Unknown", "无"])
    def test_none_is_never_a_fact(self, open_memory: OpenMemory, nothing: str) -> None:
        """"None" stored as a fact."""

        def judge(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> str:
            if reply_model.__name__ != "PersonaReading":
                return judged(reply_model, messages)
            said = prompt_pages(messages)[0]["user"]
            fact = {"text": nothing, "page": 1, "evidence": said, "supersedes": []}
            told = {"name": "name", "value": nothing, "page": 1, "evidence": said}
            trait = {"dimension": "play", "level": nothing, "reason": nothing, "page": 1, "evidence": said}
            return json.dumps({
                "user_profile": [told], "user_traits": [trait], "user_facts": [fact], "agent_facts": [fact]})

        memory = open_memory(settings=numbers(**ALWAYS_HOT), memory_model=PlayedModel(judge=judge))
        settle(memory, "None of my friends like unknown null music.")
        kinds = {item["kind"] for item in memory.export("ann")}
        assert kinds == {"page", "segment"}
        assert not memory.parts.segments.active(ANN)[0].interactions

    def test_what_the_assistant_said_is_no_fact_about_the_user(self, open_memory: OpenMemory) -> None:
        def judge(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> str:
            if reply_model.__name__ != "PersonaReading":
                return judged(reply_model, messages)
            fact = {"text": "The user should visit Bergen.", "page": 1, "evidence": "you should visit Bergen", "supersedes": []}
            return json.dumps({"user_profile": [], "user_traits": [], "user_facts": [fact], "agent_facts": [fact]})

        memory = open_memory(settings=numbers(**ALWAYS_HOT), memory_model=PlayedModel(judge=judge))
        tell(memory, "ann", exchange("Any ideas?", "Yes, you should visit Bergen."), "end")
        assert [fact["collection"] for fact in exported(memory, "ann", "fact")] == ["agent_traits"]

    def test_recalled_memory_is_not_learnt_again(self, open_memory: OpenMemory) -> None:
        """Recalled memory inside a prompt is never extracted as if the user had said it."""
        model = PlayedModel()
        memory = open_memory(settings=numbers(**ALWAYS_HOT), model=model, memory_model=model)
        graph = memory.builder("chat").compile(checkpointer=InMemorySaver())
        for text in ("I live in Oslo.", "Where do I live?", "And now?", "Thanks."):
            graph.invoke(asked(text), run_of("ann"))
        assert any("Oslo" in str(prompt[0].content) for prompt in model.prompts)
        pages = exported(memory, "ann")
        assert sum("Oslo" in page["query"] + page["reply"] for page in pages) == 1
        oslo = next(fact for fact in exported(memory, "ann", "fact") if "Oslo" in fact["text"])
        assert oslo["source_page_ids"] == [pages[0]["page_id"]]

    def test_times_are_those_of_the_dialogue(self, open_memory: OpenMemory, clock: Clock) -> None:
        memory = open_memory(settings=numbers(**ALWAYS_HOT))
        clock.now = START + 1000 * DAY
        tell(memory, "ann", exchange("I love tea.", said_at=START - 5 * DAY), exchange("end", said_at=START))
        (fact,) = exported(memory, "ann", "fact")
        assert fact["valid_from"] == exported(memory, "ann")[0]["said_at"] == START - 5 * DAY


JUNK: dict[str, Callable[[str], Any]] = {
    "rate limit": lambda _: RuntimeError("Error code: 429 - rate limit"),
    "time-out": lambda _: TimeoutError("request timed out"),
    "empty": lambda _: "",
    "null": lambda _: "null",
    "prose": lambda _: "I'm sorry, but I cannot help with that.",
    "error text": lambda _: "Error: model overloaded",
    "truncated": lambda good: good[: len(good) // 2],
    "missing key": lambda _: "{}",
    "wrong type": lambda _: '{"pages": "all", "segments": 7, "user_facts": {"a": 1}}',
    "list": lambda _: "[]",
}


class TestFailingModel:
    @pytest.mark.parametrize("kind", JUNK)
    @pytest.mark.parametrize("call", ["PageReadings", "SegmentReadings", "PersonaReading"])
    def test_junk_changes_nothing_and_is_caught_up(self, open_memory: OpenMemory, kind: str, call: str) -> None:
        """Pages leave STM before three LLM calls, so bad JSON loses them; an outage writes the error over the profile."""
        broken = [True]

        def judge(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> Any:
            good = judged(reply_model, messages[:2])
            return JUNK[kind](good) if broken[0] and reply_model.__name__ == call else good

        model = PlayedModel(judge=judge)
        memory = open_memory(settings=numbers(**ALWAYS_HOT), memory_model=model)
        memory.set_profile("ann", {"name": "Ann"})
        tell(memory, "ann", "I love tea.")
        (report,) = tell(memory, "ann", "I own boats.")
        assert report["failure"]
        assert queries(memory, "ann") == ["I love tea.", "I own boats."]
        stored = str([item for item in memory.export("ann") if item["kind"] != "page"])
        assert not re.search(r"429|timed out|sorry|overloaded|Error", stored)
        assert exported(memory, "ann", "fact") == []
        assert [entry["value"] for entry in exported(memory, "ann", "profile")] == ["Ann"]
        assert memory.parts.pages.queue_length(ANN, "talk") == (2 if call == "PageReadings" else 1)
        broken[0] = False
        assert "failure" not in tell(memory, "ann", "end")[0]
        assert [fact["text"] for fact in exported(memory, "ann", "fact")] == ["I love tea.", "I own boats."]
        assert all(segment.summary for segment in memory.parts.segments.active(ANN))
        assert memory.parts.pages.queue_length(ANN, "talk") == 1

    def test_one_bad_reply_is_shown_its_error_and_asked_for_once_more(self, open_memory: OpenMemory) -> None:
        tries: list[str] = []

        def judge(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> Any:
            tries.append(str(messages[-1].content))
            return "{}" if len(tries) == 1 else judged(reply_model, messages[:2])

        memory = open_memory(settings=numbers(**NEVER_HOT), memory_model=PlayedModel(judge=judge))
        reports = tell(memory, "ann", "one", "two")
        assert "cannot be used" in tries[1]
        assert "failure" not in reports[-1]
        assert reports[-1]["usage"]["model_calls"] == len(tries) == 3

    def test_a_hostile_model_removes_no_page(self, open_memory: OpenMemory) -> None:
        """Merge all, delete all, invent ids: supersede only."""
        memory = open_memory(settings=numbers(**ALWAYS_HOT))
        settle(memory, "I love tea.", "I own boats.")

        def judge(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> str:
            if reply_model.__name__ != "PersonaReading":
                return judged(reply_model, messages)
            said = prompt_pages(messages)[0]["user"]
            fact = {"text": said, "page": 1, "evidence": said, "supersedes": ["U1", "U2", "U99", "all", "*"]}
            return json.dumps({"user_profile": [], "user_traits": [], "user_facts": [fact], "agent_facts": []})

        hostile = open_memory(settings=numbers(**ALWAYS_HOT), memory_model=PlayedModel(judge=judge))
        tell(hostile, "ann", "I play chess.")
        assert queries(hostile, "ann") == ["I love tea.", "I own boats.", "last thing", "I play chess."]
        texts = {fact["text"] for fact in exported(hostile, "ann", "fact")}
        assert {"I love tea.", "I own boats."} <= texts
        past = hostile.parts.facts.past(ANN, "user_knowledge")
        assert all(fact.valid_to is not None and fact.superseded_by for fact in past)
        assert hostile.search("tea", user_id="ann")


class TestCost:
    def test_ids_are_never_paths(
        self, open_memory: OpenMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """User ids used as file paths."""
        monkeypatch.chdir(tmp_path)
        for name in ("../../escape", "/etc/passwd", "a/b", "..", "con:nul"):
            tell(open_memory(), name, "hello")
        assert list(tmp_path.rglob("*")) == []

    def test_a_save_costs_the_same_however_much_there_is(self, open_memory: OpenMemory) -> None:
        """Whole-file JSON rewrite each turn: bytes and commands of a turn must not grow with the history."""
        memory = open_memory(settings=numbers(**ALWAYS_HOT, segment_capacity=3, user_knowledge_capacity=5))
        client = memory.connection.client

        def cost(first: int) -> tuple[int, int]:
            before = client.info()
            tell(memory, "ann", *(f"I love topic{n} and tea." for n in range(first, first + 3)))
            after = client.info()
            return tuple(after[key] - before[key] for key in ("total_commands_processed", "total_net_input_bytes"))  # type: ignore[return-value]

        # A segment's vector is made of its newest 64 pages, so the cost settles once there are so many.
        tell(memory, "ann", *(f"I love topic{n} and tea." for n in range(70)))
        early = cost(70)
        tell(memory, "ann", *(f"I love topic{n} and tea." for n in range(73, 150)))
        late = cost(150)
        assert late[0] <= early[0] * 1.2
        assert late[1] <= early[1] * 1.2

    def test_an_embedder_change_is_refused_loudly(self, open_memory: OpenMemory) -> None:
        """An embedder change makes recall silently empty."""
        tell(open_memory(), "ann", "I love tea.")
        with pytest.raises(EmbedderMismatchError, match="hash-128"):
            open_memory(embeddings=HashEmbeddings(dimensions=32))
        assert [page.page.query for page in open_memory().search("tea", user_id="ann")] == ["I love tea."]

    @pytest.mark.parametrize("mode", ["stream", "astream"])
    async def test_no_model_call_before_the_first_token(self, open_memory: OpenMemory, mode: str) -> None:
        """4 to 6 sequential LLM calls before the user sees the reply."""
        model = PlayedModel()
        memory = open_memory(settings=numbers(**ALWAYS_HOT), model=model, memory_model=model)
        for turn in range(4):
            first, before = len(model.calls), []
            if mode == "stream":
                events = memory.chat.stream(asked(f"I like {turn}."), run_of("ann"), stream_mode="messages")
                before.extend(list(model.calls[first:]) for _ in events)
            else:
                later = memory.chat.astream(asked(f"I like {turn}."), run_of("ann"), stream_mode="messages")
                before.extend([list(model.calls[first:]) async for _ in later])
            assert before[0] == ["reply"]
        assert set(model.calls) == {"reply", "PageReadings", "SegmentReadings", "PersonaReading"}

    @pytest.mark.parametrize("mode", ["messages", "updates"])
    def test_maintenance_never_speaks_in_the_reply_stream(self, open_memory: OpenMemory, mode: str) -> None:
        model = PlayedModel()
        memory = open_memory(settings=numbers(**ALWAYS_HOT), model=model, memory_model=model)
        memory.chat.invoke(asked("I love tea."), run_of("ann"))
        events = list(memory.chat.stream(asked("I own boats."), run_of("ann"), stream_mode=mode, subgraphs=True))
        if mode == "messages":
            assert "".join(str(message.content) for _, (message, _) in events) == "Noted, thank you."
        else:
            steps = [name for _, update in events for name in update]
            assert steps.index("generate_reply") < steps.index("write_page") < steps.index("analyse_pages")

    @pytest.mark.parametrize(("preset", "ceiling"), [(MemorySettings(), 2.0), (MemorySettings(promotion_heat=0.5), 2.0)])
    def test_a_hundred_turns_cost_at_most_two_calls_each(
        self, open_memory: OpenMemory, preset: MemorySettings, ceiling: float,
    ) -> None:
        """Model calls per turn, reply included, as the library counts them and as the model does."""
        model = PlayedModel()
        memory = open_memory(settings=preset, model=model, memory_model=model)
        counted = tokens = 0
        for turn in range(100):
            result = memory.chat.invoke(asked(f"I love {('tea', 'boats', 'chess')[turn % 3]} number {turn}."), run_of("ann"))
            counted += result["reply_usage"]["model_calls"] + result["remembered"]["usage"]["model_calls"]
            tokens += result["reply_usage"]["input_tokens"] + result["remembered"]["usage"]["input_tokens"]
        assert counted == len(model.calls)
        assert tokens == 10 * counted
        assert model.calls.count("reply") == 100
        assert counted / 100 <= ceiling
        assert exported(memory, "ann", "fact")

    @pytest.mark.parametrize(("answer", "calls"), [("{}", 2), (TimeoutError("slow"), 1)])
    def test_calls_of_a_failed_step_are_counted_too(self, open_memory: OpenMemory, answer: Any, calls: int) -> None:
        model = PlayedModel(judge=lambda *_: answer)
        memory = open_memory(settings=numbers(), memory_model=model)
        report = tell(memory, "ann", "one", "two")[-1]
        assert report["failure"].startswith("analyse_pages")
        assert report["usage"]["model_calls"] == len(model.calls) == calls

    def test_what_a_prompt_has_no_room_for_in_the_queue_is_searched(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=MemorySettings(max_short_term_tokens=300, maintenance="deferred"))
        tell(memory, "ann", "My locker code is 4711.", *(f"Turn {n}: " + "tea word " * 60 for n in range(20)))
        found = recall(memory, "What is my locker code?", thread="talk")
        assert 1 <= len(found["short_term"]) < 20
        assert "4711" in found["text"]
        shown = {page["page_id"] for page in found["short_term"]}
        assert shown.isdisjoint(page["page_id"] for page in found["mid_term"])

    def test_the_papers_search_finds_what_the_prompt_has_no_room_for(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=MemorySettings.paper(max_short_term_tokens=300))
        tell(memory, "ann", "My locker code is 4711.", *(f"Turn {n}: " + "tea word " * 60 for n in range(5)))
        assert "4711" in recall(memory, "What is my locker code?", thread="talk")["text"]

    def test_an_edited_page_is_told_anew(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(**NEVER_HOT))
        settle(memory, exchange("My pin is xyzzyplugh.", source="pin"))
        assert "xyzzyplugh" in str(memory.inspect("ann")["mid_term"])
        (report,) = tell(memory, "ann", exchange("My cat is grey.", source="pin"))
        assert report["status"] == "changed"
        tell(memory, "ann", "one thing more")
        assert "xyzzyplugh" not in str(memory.inspect("ann")["mid_term"]) + recall(memory, "pin cat")["text"]
        assert "grey" in str(memory.inspect("ann")["mid_term"])

    def test_an_edited_archived_page_stays_out_of_the_search(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(**APART, **NEVER_HOT, segment_capacity=1))
        tell(memory, "ann", exchange("the tea", source="tea"), "the boats", "the chess", "the rain")
        assert exported(memory, "ann")[0]["tier"] == "archived"
        tell(memory, "ann", exchange("the tea is green", source="tea"))
        assert "the tea is green" in queries(memory, "ann")
        assert "the tea is green" not in [page.page.query for page in memory.search("tea green", user_id="ann")]

    def test_memory_stays_inside_its_budget(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(max_memory_tokens=200, max_short_term_tokens=150))
        memory.set_profile("ann", {"name": "x" * 5000})
        for n in range(5):
            memory.parts.personas.set_trait(ANN, Trait(dimension=list(DIMENSIONS)[n], level="high", reason="r " * 90))
        tell(memory, "ann", *(f"tea {n} " + "tea word " * 200 for n in range(6)))
        found = recall(memory, "tea", thread="talk")
        assert 0 < found["tokens"] <= 200
        assert sum(len(page["query"] + page["reply"]) for page in found["short_term"]) < 150 * 5
        assert found["mid_term"]


class TestRunsOnOneThread:
    """A server that gives every graph a checkpointer (LangGraph Studio) keeps the state of earlier runs."""

    def test_a_queue_that_grew_again_is_emptied_again(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(maintenance="deferred"))
        graph = memory.builder("consolidate").compile(checkpointer=InMemorySaver())
        for said in (("one", "two", "three"), ("four", "five")):
            tell(memory, "ann", *said)
            report = graph.invoke({}, run_of("ann", "maintenance"))["remembered"]
            assert memory.parts.pages.queue_length(ANN, "talk") == 1
        assert report["moved_pages"] == 2

    def test_a_consolidation_does_not_forget_whose_the_last_turn_was(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(maintenance="deferred"))
        (report,) = tell(memory, "ann", "one")
        state = {"user_id": "ann", "remembered": report}
        after = memory.builder("consolidate").compile(checkpointer=InMemorySaver()).invoke(state, run_of("ann", "t"))
        assert {name: after["remembered"].get(name) for name in ("user_id", "agent_id")} == {
            "user_id": "ann", "agent_id": report["agent_id"],
        }

    def test_a_failed_run_is_tried_again(self, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        memory = open_memory(settings=numbers(maintenance="deferred"))
        graph = memory.builder("consolidate").compile(checkpointer=InMemorySaver())
        tell(memory, "ann", "one", "two", "three")
        with monkeypatch.context() as patch:
            patch.setattr(DeterministicAnalyst, "analyse_pages", lambda *_, **__: 1 / 0)
            assert "failure" in graph.invoke({}, run_of("ann", "maintenance"))["remembered"]
        assert "failure" not in graph.invoke({}, run_of("ann", "maintenance"))["remembered"]
        assert memory.parts.pages.queue_length(ANN, "talk") == 1

    def test_a_queue_no_model_can_judge_does_not_hold_up_the_others(self, open_memory: OpenMemory) -> None:
        def judge(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> str:
            if "poison" in str(messages):
                raise ValueError("refused by a content filter")
            return judged(reply_model, messages)

        memory = open_memory(settings=numbers(maintenance="deferred"), memory_model=PlayedModel(judge=judge))
        for thread in ("a", "c"):
            tell(memory, "ann", exchange(f"poison {thread}", thread_id=thread), "two", thread=thread)
        for thread in ("b", "d"):
            tell(memory, "ann", f"tea {thread}", "two", thread=thread)
        report = memory.consolidate.invoke({"user_id": "ann", "drain": True})["remembered"]
        assert report["failure"]
        assert memory.parts.pages.threads(ANN) == {"a": 2, "b": 0, "c": 2, "d": 0}

    @pytest.mark.parametrize(("named", "left"), [
        (["12"], {"1": 1, "12": 0}), ("12", {"1": 1, "12": 0}), ([12], {"1": 1, "12": 0}), (None, {"1": 0, "12": 0}),
    ])
    def test_named_threads_are_those_and_no_others(
        self, open_memory: OpenMemory, named: Any, left: dict[str, int],
    ) -> None:
        memory = open_memory(settings=numbers(maintenance="deferred"))
        for thread in ("1", "12"):
            tell(memory, "ann", f"tea {thread}", thread=thread)
        memory.consolidate.invoke({"user_id": "ann", "drain": True, "thread_ids": named})
        assert memory.parts.pages.threads(ANN) == left

    def test_a_consolidation_gives_up_after_three_failures(self, open_memory: OpenMemory) -> None:
        model = PlayedModel(judge=lambda *_: TimeoutError("down"))
        memory = open_memory(settings=numbers(maintenance="deferred"), memory_model=model)
        for thread in "abcdef":
            tell(memory, "ann", f"tea {thread}", thread=thread)
        assert memory.consolidate.invoke({"user_id": "ann", "drain": True})["remembered"]["failure"]
        assert len(model.calls) == 3

    def test_each_turn_archives_what_is_over_capacity(self, open_memory: OpenMemory) -> None:
        memory = open_memory(settings=numbers(**APART, **NEVER_HOT, segment_capacity=1))
        graph = memory.builder("remember").compile(checkpointer=InMemorySaver())
        for turn in range(6):
            graph.invoke({"messages": [("user", f"topic {turn}"), ("ai", "ok")]}, run_of("ann"))
            assert len(memory.parts.segments.active(ANN)) <= 1

    def test_a_time_is_for_one_turn_only(self, open_memory: OpenMemory, clock: Clock) -> None:
        memory = open_memory()
        graph = memory.builder("remember").compile(checkpointer=InMemorySaver())
        graph.invoke({"messages": [("user", "then"), ("ai", "ok")], "said_at": START - DAY}, run_of("ann"))
        graph.invoke({"messages": [("user", "now"), ("ai", "ok")]}, run_of("ann"))
        assert [page["said_at"] for page in exported(memory, "ann")] == [START - DAY, clock.now]
