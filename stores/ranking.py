"""How candidate pages become a ranked list: score fusion and locality, as plain arithmetic without Redis.

Reciprocal-rank fusion throws away how much better a page is; here each search's scores are standardised over the
candidates and added. A conversation stays on its subject for a while, so a page is found by the words of its window (its
own, three times, and those of the page right before it), and lifted when something else in the same sitting answers well.
Sittings are priors that lift their pages, not gates that hide the others. Every weight was chosen on the LoCoMo
development split (`benchmarks/README.md` has the table); they lie on a plateau where none of them matters much by itself.
A third search, for the words of the page alone, was left out again: it found no more.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WEIGHTS = {"semantic": 1.0, "window": 1.2, "length": 0.4, "sitting": 0.3}
NEIGHBOUR_WEIGHT = 0.1
_CONFIDENT_RELEVANCE_PER_WORD = 3.5

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Pages that any search returned, one column per property.

    Columns and not objects: a recall looks at some hundred pages, and an object for each costs more than all arithmetic.

    Attributes:
        names: Ids of the pages.
        sequences: Order of arrival; breaks ties, newer first.
        sittings: Pages of one thread without a long pause between them share it.
        previous: Page before each in its sitting, or empty.
        lengths: Number of content words.
    """

    names: Sequence[bytes]
    sequences: Sequence[int]
    sittings: Sequence[bytes]
    previous: Sequence[bytes]
    lengths: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one search returned.

    Attributes:
        relevance: By page id.
        cut: Whether there were more pages than it could return.
        confidence: How far its scores are to be trusted, in [0, 1].
    """

    relevance: Mapping[bytes, float]
    cut: bool
    confidence: float = 1.0


def word_confidence(best_relevance: float, words: int) -> float:
    """Return how far a word search can be trusted, from its best BM25 score and the number of words asked.

    Where no page holds more than a rare word or two of the question, standardised scores would make much of little: the
    words of a search that found little count less. Measured when it came in: recall@5 of the English slice 76.9 to
    81.1 %, of the Chinese one 74.7 to 81.4 %, LoCoMo recall@10 unchanged.
    """
    return min(1.0, best_relevance / (_CONFIDENT_RELEVANCE_PER_WORD * words)) if words else 0.0


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A candidate's relevance and its named parts."""

    page_id: str
    relevance: float
    parts: dict[str, float]


def rank(
    candidates: Candidates, found: Mapping[str, Found], *, count: int, weights: Mapping[str, float] = WEIGHTS,
    neighbour: float = NEIGHBOUR_WEIGHT,
) -> list[Ranked]:
    """Return the best ``count`` candidates, most relevant first; ties by newer sequence.

    Args:
        candidates: Pages that any search returned.
        found: Searches by name: ``semantic`` (cosine of the page) and ``window`` (BM25 of its window).
        count: How many to return.
        weights: Weight of each part.
        neighbour: Weight of the better of the pages right before and after.
    """
    if not candidates.names:
        return []
    columns = {
        name: search.confidence * standardised(_column(candidates, name, search)) for name, search in found.items()
    }
    columns["length"] = standardised(np.log(np.asarray(candidates.lengths) + 5.0))
    columns["sitting"] = _best_of_sitting(candidates, columns["semantic"])
    parts = {name: weights[name] * column for name, column in columns.items()}
    total = np.sum(list(parts.values()), axis=0)
    parts["neighbour"] = neighbour * _best_neighbour(candidates, total)
    total = total + parts["neighbour"]
    order = np.lexsort((-np.asarray(candidates.sequences), -total))[:count].tolist()
    return [
        Ranked(
            page_id=candidates.names[i].decode(), relevance=float(total[i]),
            parts={name: float(part[i]) for name, part in parts.items()},
        )
        for i in order
    ]


def standardised(values: Sequence[float] | Vector) -> Vector:
    """Return z-scores, shape ``(n,)``; zeros where all values are equal."""
    known = np.asarray(values, dtype=float)
    apart = known - known.sum() / len(known)
    spread = math.sqrt(float(apart @ apart) / len(known))
    return apart / spread if spread > 1e-9 else np.zeros(len(known))  # noqa: PLR2004


def _column(candidates: Candidates, name: str, search: Found) -> Vector:
    """Return a search's relevance of each candidate.

    A page it did not return scores what it must have: nothing, if the words are simply not there, else at most the
    lowest that was returned.
    """
    lowest = min(search.relevance.values(), default=0.0) if name == "semantic" or search.cut else 0.0
    return np.array([search.relevance.get(page, lowest) for page in candidates.names])


def _best_of_sitting(candidates: Candidates, semantic: Vector) -> Vector:
    """Return, for each page, how near the nearest page of its sitting is; windows reach into it by themselves."""
    numbers = {sitting: number for number, sitting in enumerate(dict.fromkeys(candidates.sittings))}
    sittings = np.array([numbers[sitting] for sitting in candidates.sittings])
    best = np.full(len(numbers), -np.inf)
    np.maximum.at(best, sittings, semantic)
    return standardised(best[sittings])


def _best_neighbour(candidates: Candidates, total: Vector) -> Vector:
    """Return, for each page, how far the better of its two neighbours stands above the worst candidate."""
    above = total - total.min()
    places = {page: place for place, page in enumerate(candidates.names)}
    pairs = np.array(
        [(place, places[before]) for place, before in enumerate(candidates.previous) if before in places], dtype=int,
    ).reshape(-1, 2)
    best = np.zeros(len(total))
    np.maximum.at(best, pairs[:, 0], above[pairs[:, 1]])
    np.maximum.at(best, pairs[:, 1], above[pairs[:, 0]])
    return best
