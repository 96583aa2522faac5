"""Step ``analyse_pages``: continuity, chain meta and keywords of the pages that leave the queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.analysts.protocol import Analyst, Thinking
from langgraph_memoryos.records import Chain, Page
from langgraph_memoryos.state import Remembered


class AnalysePagesInput(TypedDict):
    """Pages to judge, oldest first, and what came before them."""

    overflow: list[dict[str, Any]]
    previous: dict[str, Any] | None
    chain: dict[str, Any] | None
    remembered: Remembered


class AnalysePagesUpdate(TypedDict):
    """One analysis per page, or why there is none."""

    analyses: list[dict[str, Any]]
    failure: str
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class AnalysePages:
    """Ask the analyst once about all pages evicted together (paper, section 3.1.1)."""

    analyst: Analyst

    def __call__(self, state: Mapping[str, Any]) -> Thinking[dict[str, Any]]:
        """Return the generator that ends in the update."""
        previous, chain = state.get("previous"), state.get("chain")
        analyses = yield from self.analyst.analyse_pages(
            previous=Page.from_json(previous) if previous else None,
            chain=Chain.from_json(chain) if chain else None,
            pages=[Page.from_json(page) for page in state["overflow"]],
        )
        return {"analyses": [analysis.to_json() for analysis in analyses]}
