"""Heat of a segment: how much it is used, how much it holds, how fresh it is (paper, section 3.2, equation 4).

Heat is a function of time, so it is computed whenever it is read and never stored.
"""

import math
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HeatWeights:
    """Weights of the three addends; see :class:`langgraph_memoryos.settings.MemorySettings` for their meaning."""

    visits: float = 1.0
    interactions: float = 1.0
    recency: float = 1.0
    recency_time_constant_seconds: float = 1e7


def recency(*, last_visit_at: float, now: float, time_constant_seconds: float) -> float:
    """Return ``exp(-dt / mu)`` in (0, 1], where ``dt`` is never negative (a clock set back counts as no time)."""
    return math.exp(-max(0.0, now - last_visit_at) / time_constant_seconds)


def heat(*, visits: int, interactions: int, last_visit_at: float, now: float, weights: HeatWeights) -> float:
    """Return ``alpha * n_visit + beta * l_interaction + gamma * exp(-dt / mu)``.

    Args:
        visits: ``n_visit``, recalls that used a page of the segment.
        interactions: ``l_interaction``, pages that joined since the last promotion.
        last_visit_at: Seconds since the epoch.
        now: Seconds since the epoch.
        weights: alpha, beta, gamma and mu.
    """
    freshness = recency(
        last_visit_at=last_visit_at, now=now, time_constant_seconds=weights.recency_time_constant_seconds,
    )
    return weights.visits * visits + weights.interactions * interactions + weights.recency * freshness


def keyword_overlap(left: Collection[str], right: Collection[str]) -> float:
    """Return the Jaccard similarity of two keyword sets in [0, 1]; two empty sets share nothing."""
    first, second = _as_set(left), _as_set(right)
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared) if shared else 0.0


def _as_set(words: Collection[str]) -> AbstractSet[str]:
    return words if isinstance(words, AbstractSet) else set(words)


def f_score(*, similarity: float, left_keywords: Collection[str], right_keywords: Collection[str]) -> float:
    """Return ``cos + Jaccard``, the paper's match of a page (or query) and a segment, in about [-1, 2].

    ``similarity`` is the cosine above the embedder's background, so that one threshold fits every embedder.
    """
    return similarity + keyword_overlap(left_keywords, right_keywords)
