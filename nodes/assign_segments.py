"""Step ``assign_segments``: pages leave the queue and join segments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.analysts.protocol import PageAnalysis
from langgraph_memoryos.records import Page, Scope
from langgraph_memoryos.state import Remembered, ScopeState
from langgraph_memoryos.stores.segments import PlacedPage, SegmentStore


class AssignSegmentsInput(TypedDict):
    """Pages with their analyses."""

    scope: ScopeState
    overflow: list[dict[str, Any]]
    previous: dict[str, Any] | None
    analyses: list[dict[str, Any]]
    remembered: Remembered


class AssignSegmentsUpdate(TypedDict):
    """Segments that got a page, with the pages to summarise."""

    touched: list[dict[str, Any]]
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class AssignSegments:
    """Move each page into the best segment above theta, or a new one (paper, section 3.2.1, equations 1 to 3).

    Segments whose summary an earlier run could not refresh are handed on as well.
    """

    store: SegmentStore
    threshold: float
    refresh_pages: int
    max_summaries: int = 20
    clock: Callable[[], float]

    def __call__(self, state: AssignSegmentsInput) -> AssignSegmentsUpdate:
        """Return the touched segments."""
        scope = Scope.from_json(state["scope"])
        pages = [Page.from_json(page) for page in state["overflow"]]
        analyses = [PageAnalysis.from_json(analysis) for analysis in state["analyses"]]
        placed = place_in_chains(pages, analyses, previous_chain=(state.get("previous") or {}).get("chain_id", ""))
        joined = self.store.assign(scope, pages, placed, threshold=self.threshold, now=self.clock())
        stale = self.store.stale(scope, limit=self.max_summaries)
        touched = tuple(dict.fromkeys((*joined, *stale)))[: self.max_summaries]
        newest = self.store.newest_pages(scope, touched, limit=self.refresh_pages)
        before = state["remembered"]
        return AssignSegmentsUpdate(
            touched=[
                {"segment": segment.to_json(), "pages": [page.to_json() for page in newest[segment.segment_id]]}
                for segment in self.store.get(scope, touched)
            ],
            remembered=Remembered(**before | {
                "moved_pages": before.get("moved_pages", 0) + len(joined),
                "touched_segments": list(dict.fromkeys([*before.get("touched_segments", []), *joined])),
            }),
        )


def place_in_chains(
    pages: Sequence[Page], analyses: Sequence[PageAnalysis], *, previous_chain: str,
) -> list[PlacedPage]:
    """Return the pages with their chains: one that continues stays in the chain before it, else it opens its own."""
    placed: list[PlacedPage] = []
    chain = previous_chain
    for page, analysis in zip(pages, analyses, strict=True):
        chain = chain if analysis.continues_previous and chain else page.page_id
        placed.append(PlacedPage(
            page_id=page.page_id, chain_id=chain, chain_meta=analysis.chain_meta, keywords=analysis.keywords,
        ))
    return placed
