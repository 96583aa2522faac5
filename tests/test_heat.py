"""Heat and F-score as arithmetic: equation 4, the Jaccard of keywords, and their ranges."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_memoryos.heat import HeatWeights, f_score, heat, keyword_overlap, recency
from langgraph_memoryos.records import Segment
from langgraph_memoryos.settings import MemorySettings

counts = st.integers(0, 10_000)
times = st.floats(0, 4e9)
weights = st.builds(
    HeatWeights, visits=st.floats(0, 10), interactions=st.floats(0, 10), recency=st.floats(0, 10),
    recency_time_constant_seconds=st.floats(1, 1e9),
)
words = st.lists(st.text(max_size=3), max_size=6).map(tuple)


@given(counts, counts, times, times, weights)
def test_more_visits_or_interactions_are_never_colder(
    visits: int, interactions: int, last: float, now: float, chosen: HeatWeights,
) -> None:
    def at(visits: int, interactions: int) -> float:
        return heat(visits=visits, interactions=interactions, last_visit_at=last, now=now, weights=chosen)

    assert at(visits + 1, interactions) >= at(visits, interactions)
    assert at(visits, interactions + 1) >= at(visits, interactions)


@given(counts, counts, times, st.floats(0, 1e9), st.floats(0, 1e9))
def test_heat_only_falls_as_time_goes_by(
    visits: int, interactions: int, last: float, waited: float, longer: float,
) -> None:
    def after(seconds: float) -> float:
        return heat(
            visits=visits, interactions=interactions, last_visit_at=last, now=last + seconds, weights=HeatWeights(),
        )

    assert after(waited + longer) <= after(waited) <= after(0) == visits + interactions + 1.0


@given(times, st.floats(0, 4e9))
def test_clock_set_back_counts_as_no_time(last: float, back: float) -> None:
    assert recency(last_visit_at=last, now=last - back, time_constant_seconds=1e7) == 1.0


def test_recency_is_one_over_e_after_the_time_constant() -> None:
    paper = MemorySettings.paper().recency_time_constant_seconds
    assert paper == 1e7
    assert recency(last_visit_at=0.0, now=paper, time_constant_seconds=paper) == pytest.approx(1 / math.e)


def test_each_weight_belongs_to_its_addend() -> None:
    chosen = HeatWeights(visits=2, interactions=3, recency=5)
    assert heat(visits=7, interactions=11, last_visit_at=0, now=0, weights=chosen) == 2 * 7 + 3 * 11 + 5


def test_settings_give_their_own_weights() -> None:
    given_settings = MemorySettings(
        heat_visits_weight=2, heat_interactions_weight=3, heat_recency_weight=4, recency_time_constant_seconds=5,
    )
    assert dataclasses.astuple(given_settings.heat_weights) == (2, 3, 4, 5)


def test_heat_is_no_field_of_a_segment() -> None:
    names = {field.name for field in dataclasses.fields(Segment)}
    assert not {name for name in names if "heat" in name or "recency" in name}


@given(words, words)
def test_overlap_is_symmetric_bounded_and_full_only_for_equal_sets(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    found = keyword_overlap(left, right)
    assert found == keyword_overlap(right, left)
    assert 0.0 <= found <= 1.0
    assert (found == 1.0) == (set(left) == set(right) != set())
    assert (found == 0.0) == (not set(left) & set(right))


def test_overlap_counts_each_word_once() -> None:
    assert keyword_overlap(("a", "a", "b"), ("b", "c", "c")) == pytest.approx(1 / 3)


@given(st.floats(-1, 1), words, words)
def test_f_score_is_similarity_plus_overlap(similarity: float, left: tuple[str, ...], right: tuple[str, ...]) -> None:
    found = f_score(similarity=similarity, left_keywords=left, right_keywords=right)
    assert -1.0 <= found <= 2.0
    assert found == similarity + keyword_overlap(left, right)


@pytest.mark.parametrize("name", ["heat_visits_weight", "heat_interactions_weight", "heat_recency_weight"])
def test_weights_are_finite(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        MemorySettings(**{name: math.inf})
