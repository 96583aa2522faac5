"""How candidate pages become a ranked list: score fusion and locality, as plain arithmetic without Redis.

Reciprocal-rank fusion throws away how much better a page is; here the scores themselves are standardised and added.
Pages near a good page in the same thread are lifted, since a conversation stays on its subject for some turns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

NEIGHBOUR_WEIGHT = 0.3
SESSION_WEIGHT = 0.2


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A page as searches see it: where it stands and what each search said of it (``None``: not among its results)."""

    page_id: str
    sequence: int
    thread: str
    segment_id: str
    keyword_relevance: float | None
    similarity: float | None


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A candidate's relevance and its named parts."""

    page_id: str
    segment_id: str
    relevance: float
    parts: dict[str, float]


def rank(candidates: Sequence[Candidate]) -> list[Ranked]:
    """Return the candidates, most relevant first; ties by newer sequence.

    relevance = keyword + semantic + 0.3 * best adjacent page of the thread + 0.2 * mean of the thread's best three.
    """
    if not candidates:
        return []
    keyword = standardised([candidate.keyword_relevance for candidate in candidates])
    semantic = standardised([candidate.similarity for candidate in candidates])
    base = keyword + semantic
    neighbour = NEIGHBOUR_WEIGHT * _neighbour_scores(candidates, base)
    session = SESSION_WEIGHT * _session_scores(candidates, base)
    total = base + neighbour + session
    ranked = [
        Ranked(
            page_id=candidate.page_id, segment_id=candidate.segment_id, relevance=float(total[position]),
            parts={
                "keyword": float(keyword[position]), "semantic": float(semantic[position]),
                "neighbour": float(neighbour[position]), "session": float(session[position]),
            },
        )
        for position, candidate in enumerate(candidates)
    ]
    order = sorted(range(len(ranked)), key=lambda i: (-ranked[i].relevance, -candidates[i].sequence))
    return [ranked[i] for i in order]


def standardised(values: Sequence[float | None]) -> np.ndarray:
    """Return values as z-scores, shape ``(n,)``; a missing one counts as the lowest that was seen."""
    known = [value for value in values if value is not None]
    if not known:
        return np.zeros(len(values))
    lowest = min(known)
    filled = np.array([lowest if value is None else value for value in values], dtype=float)
    spread = filled.std()
    return (filled - filled.mean()) / spread if spread > 0 else np.zeros(len(values))


def _neighbour_scores(candidates: Sequence[Candidate], base: np.ndarray) -> np.ndarray:
    place = {(candidate.thread, candidate.sequence): float(score) for candidate, score in zip(candidates, base, strict=True)}
    lowest = float(base.min())
    return np.array([
        max(place.get((c.thread, c.sequence - 1), lowest), place.get((c.thread, c.sequence + 1), lowest))
        for c in candidates
    ])


def _session_scores(candidates: Sequence[Candidate], base: np.ndarray) -> np.ndarray:
    members: dict[str, list[float]] = {}
    for candidate, score in zip(candidates, base, strict=True):
        members.setdefault(candidate.thread, []).append(float(score))
    best: Mapping[str, float] = {
        thread: float(np.mean(sorted(scores, reverse=True)[:3])) for thread, scores in members.items()
    }
    return np.array([best[candidate.thread] for candidate in candidates])
