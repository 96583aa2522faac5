"""Marks of a ranking against the evidence of a question: recall, whole evidence, NDCG, and AUROC of a signal."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NDCG_DEPTH = 10
LOCOMO_CATEGORIES = ("1", "2", "3", "4", "5")
ANSWERABLE = frozenset("1234")


@dataclass(frozen=True, kw_only=True)
class Marks:
    """How one ranking did on one question.

    Attributes:
        category: The question's category.
        recall: Share of the evidence that was found.
        all_evidence: 1 if all of it was found, else 0.
        ndcg: NDCG at 10 of the whole ranking, each piece of evidence counting 1.
    """

    category: str
    recall: float
    all_evidence: float
    ndcg: float


def marked(ranking: Sequence[Any], evidence: set[Any], *, k: int, category: str) -> Marks:
    """Mark the first ``k`` items of a ranking."""
    found = len(evidence & set(ranking[:k]))
    gain = sum(
        1 / math.log2(place + 2) for place, item in enumerate(ranking[:NDCG_DEPTH]) if item in evidence
    )
    best = sum(1 / math.log2(place + 2) for place in range(min(len(evidence), NDCG_DEPTH)))
    return Marks(
        category=category, recall=found / len(evidence), all_evidence=float(found == len(evidence)),
        ndcg=gain / best,
    )


def groups(categories: Iterable[str]) -> dict[str, Callable[[str], bool]]:
    """Return the groups of categories that are reported, by name.

    LoCoMo's ids are numbers, and 5 is apart: there the right answer is that it was never said. Other files name
    their categories as they like; all of them together are called ``all``.
    """
    known = sorted(set(categories))
    alone: dict[str, Callable[[str], bool]] = {
        name: lambda category, name=name: category == name for name in known
    }
    if not set(known) <= set(LOCOMO_CATEGORIES):
        return {"all": lambda _: True} | alone
    return {"1-4": lambda category: category in ANSWERABLE, "1-5": lambda _: True} | alone


def rows(marks: Sequence[Marks], **labels: Any) -> list[dict[str, Any]]:
    """Return one row per group of categories: means over the questions."""
    found = []
    for name, belongs in groups(mark.category for mark in marks).items():
        chosen = [mark for mark in marks if belongs(mark.category)]
        if chosen:
            means = {
                measure: round(float(np.mean([getattr(mark, measure) for mark in chosen])), 4)
                for measure in ("recall", "all_evidence", "ndcg")
            }
            found.append(labels | {"categories": name, "questions": len(chosen)} | means)
    return found


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how often a positive scores higher than a negative; ties count half."""
    above = np.asarray(positive)[:, None]
    below = np.asarray(negative)[None, :]
    return float(np.mean((above > below) + 0.5 * (above == below)))
