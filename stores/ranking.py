"""How candidate pages become a ranked list: score fusion and locality, as plain arithmetic without Redis.

Reciprocal-rank fusion throws away how much better a page is; here each search's scores are standardised over the
candidates and added. A conversation stays on its subject for a while, so a page is also found by the words of the
pages around it (its window), and lifted when something else in the same sitting answers well. Segments and sittings are
priors that lift their pages, not gates that hide the others. Every weight was chosen on the LoCoMo development split
(`benchmarks/README.md` has the table); they lie on a plateau where none of them matters much by itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WEIGHTS = {"semantic": 1.0, "window": 0.75, "keyword": 0.25, "length": 0.5, "sitting": 0.3}
NEIGHBOUR_WEIGHT = 0.1
_CONFIDENT_RELEVANCE_PER_WORD = 2.5

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A page as searches see it.

    Attributes:
        page_id: The page.
        sequence: Order of arrival; breaks ties, newer first.
        sitting: Pages of one thread without a long pause between them share it.
        previous: Page before it in its sitting, or empty.
        length: Number of content words.
    """

    page_id: str
    sequence: int
    sitting: str
    previous: str
    length: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one search returned.

    Attributes:
        relevance: By page id.
        cut: Whether there were more pages than it could return.
        confidence: How far its scores are to be trusted, in [0, 1].
    """

    relevance: dict[str, float]
    cut: bool
    confidence: float = 1.0


def word_confidence(best_relevance: float, words: int) -> float:
    """Return how far a word search can be trusted, from its best BM25 score and the number of words asked.

    Where no page holds more than a rare word or two of the question, standardised scores would make much of little: the
    words of a search that found little count less. Measured: recall@5 of the English slice 76.9 to 81.1, of the Chinese
    one 74.7 to 81.4, LoCoMo recall@10 unchanged.
    """
    return min(1.0, best_relevance / (_CONFIDENT_RELEVANCE_PER_WORD * words)) if words else 0.0


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A candidate's relevance and its named parts."""

    page_id: str
    relevance: float
    parts: dict[str, float]


def rank(
    candidates: Sequence[Candidate], found: dict[str, Found], *, count: int, weights: dict[str, float] = WEIGHTS,
    neighbour: float = NEIGHBOUR_WEIGHT,
) -> list[Ranked]:
    """Return the best ``count`` candidates, most relevant first; ties by newer sequence.

    Args:
        candidates: Pages that any search returned.
        found: Searches by name: ``semantic`` (cosine), ``keyword`` and ``window`` (BM25).
        count: How many to return.
        weights: Weight of each part.
        neighbour: Weight of the better of the pages right before and after.
    """
    if not candidates:
        return []
    columns = {
        name: search.confidence * standardised(_column(candidates, name, search)) for name, search in found.items()
    }
    columns["length"] = standardised(np.log([candidate.length + 5.0 for candidate in candidates]))
    columns["sitting"] = _best_of_sitting(candidates, columns)
    parts = {name: weights[name] * column for name, column in columns.items()}
    total = np.sum(list(parts.values()), axis=0)
    parts["neighbour"] = neighbour * _best_neighbour(candidates, total)
    total = total + parts["neighbour"]
    order = sorted(range(len(candidates)), key=lambda i: (-total[i], -candidates[i].sequence))
    return [
        Ranked(
            page_id=candidates[i].page_id, relevance=float(total[i]),
            parts={name: float(part[i]) for name, part in parts.items()},
        )
        for i in order[:count]
    ]


def standardised(values: Sequence[float] | Vector) -> Vector:
    """Return z-scores, shape ``(n,)``; zeros where all values are equal."""
    known = np.asarray(values, dtype=float)
    spread = float(known.std())
    return (known - known.mean()) / spread if spread > 1e-9 else np.zeros(len(known))  # noqa: PLR2004


def _column(candidates: Sequence[Candidate], name: str, search: Found) -> Vector:
    """Return a search's relevance of each candidate.

    A page it did not return scores what it must have: nothing, if the words are simply not there, else at most the
    lowest that was returned.
    """
    lowest = min(search.relevance.values(), default=0.0) if name == "semantic" or search.cut else 0.0
    return np.array([search.relevance.get(candidate.page_id, lowest) for candidate in candidates])


def _best_of_sitting(candidates: Sequence[Candidate], columns: dict[str, Vector]) -> Vector:
    scores = np.sum([column for name, column in columns.items() if name in ("semantic", "keyword")], axis=0)
    best: dict[str, float] = {}
    for candidate, score in zip(candidates, scores, strict=True):
        best[candidate.sitting] = max(best.get(candidate.sitting, -math.inf), float(score))
    return standardised([best[candidate.sitting] for candidate in candidates])


def _best_neighbour(candidates: Sequence[Candidate], total: Vector) -> Vector:
    above = dict(zip((candidate.page_id for candidate in candidates), total - total.min(), strict=True))
    following = {candidate.previous: candidate.page_id for candidate in candidates if candidate.previous}
    return np.array([
        max(above.get(candidate.previous, 0.0), above.get(following.get(candidate.page_id, ""), 0.0))
        for candidate in candidates
    ])
