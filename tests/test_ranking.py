"""Score fusion and locality as plain arithmetic: what lifts a page, and by how much."""

import numpy as np
import pytest

from langgraph_memoryos.stores.ranking import WEIGHTS, Candidates, Found, rank, standardised, word_confidence


def pages(*names: str, sittings: str = "", previous: dict[str, str] | None = None, lengths: int = 5) -> Candidates:
    """Candidates in order of arrival; each in a sitting of its own unless told."""
    before = previous or {}
    return Candidates(
        names=[name.encode() for name in names], sequences=list(range(1, len(names) + 1)),
        sittings=[letter.encode() for letter in (sittings or "".join(chr(97 + i) for i in range(len(names))))],
        previous=[before.get(name, "").encode() for name in names], lengths=[lengths] * len(names),
    )


def found(*, cut: bool = False, confidence: float = 1.0, **relevance: float) -> Found:
    return Found(relevance={name.encode(): value for name, value in relevance.items()}, cut=cut, confidence=confidence)


EQUAL = {"semantic": found(p=0.5, q=0.5, r=0.5)}


def order(candidates: Candidates, count: int = 9, **searches: Found) -> list[str]:
    return [item.page_id for item in rank(candidates, searches, count=count)]


def test_nothing_found_is_nothing_ranked() -> None:
    assert rank(pages(), {}, count=5) == []


def test_equal_pages_come_newest_first_and_the_count_is_a_limit() -> None:
    assert order(pages("p", "q", "r"), semantic=found(p=0.5, q=0.5, r=0.5)) == ["r", "q", "p"]
    assert order(pages("p", "q", "r"), count=1, semantic=found(p=0.5, q=0.5, r=0.5)) == ["r"]


def test_parts_add_up_to_the_relevance() -> None:
    ranked = rank(pages("p", "q", "r", previous={"q": "p"}), {
        "semantic": found(p=0.9, q=0.1, r=0.3), "window": found(p=1.0, q=2.0),
    }, count=3)
    assert {name for item in ranked for name in item.parts} == {*WEIGHTS, "neighbour"}
    for item in ranked:
        assert item.relevance == pytest.approx(sum(item.parts.values()))


def test_a_neighbour_of_a_good_page_is_lifted_on_both_sides() -> None:
    chained = pages("p", "q", "r", "s", previous={"q": "p", "r": "q"}, sittings="aaab")
    alone = pages("p", "q", "r", "s", sittings="aaab")
    search = found(p=0.1, q=0.9, r=0.1, s=0.1)
    lifted = {item.page_id: item.parts["neighbour"] for item in rank(chained, {"semantic": search}, count=4)}
    assert lifted["p"] == lifted["r"] > lifted["q"] >= lifted["s"] == 0
    assert all(item.parts["neighbour"] == 0 for item in rank(alone, {"semantic": search}, count=4))


def test_a_page_of_a_good_sitting_beats_an_equal_one_of_another() -> None:
    assert order(pages("p", "q", "r", sittings="aab"), semantic=found(p=0.9, q=0.2, r=0.2)) == ["p", "q", "r"]


def test_a_page_a_search_did_not_return_scores_nothing_or_the_least_that_was_returned() -> None:
    whole = rank(pages("p", "q", "r"), EQUAL | {"window": found(p=4.0, q=2.0)}, count=3)
    cut = rank(pages("p", "q", "r"), EQUAL | {"window": found(p=4.0, q=2.0, cut=True)}, count=3)
    parts = [{item.page_id: item.parts["window"] for item in ranked} for ranked in (whole, cut)]
    assert parts[0]["q"] > parts[0]["r"]
    assert parts[1]["q"] == parts[1]["r"]


def test_a_word_search_that_found_little_counts_little() -> None:
    assert word_confidence(0.0, 3) == word_confidence(1.0, 0) == 0.0
    assert 0 < word_confidence(2.0, 3) < word_confidence(4.0, 3) < word_confidence(99.0, 3) == 1.0
    half = rank(pages("p", "q"), EQUAL | {"window": found(p=4.0, confidence=0.5)}, count=2)
    full = rank(pages("p", "q"), EQUAL | {"window": found(p=4.0)}, count=2)
    assert half[0].parts["window"] == pytest.approx(full[0].parts["window"] / 2)


def test_standardised_values_have_mean_0_and_spread_1_or_are_all_nothing() -> None:
    values = standardised([1.0, 2.0, 6.0])
    assert (float(values.mean()), float(values.std())) == (pytest.approx(0), pytest.approx(1))
    assert np.array_equal(standardised([3.0, 3.0]), np.zeros(2))
