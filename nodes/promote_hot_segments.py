"""Step ``promote_hot_segments``: which segments are hot enough to update the persona."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.heat import HeatWeights, heat
from langgraph_memoryos.records import Scope, Segment
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.segments import SegmentStore


class PromoteHotSegmentsInput(TypedDict):
    """Whose segments, and which are due whatever their heat."""

    scope: ScopeState
    due: list[str]


class PromoteHotSegmentsUpdate(TypedDict):
    """Segments to digest, with their undigested pages."""

    hot: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class PromoteHotSegments:
    """Select *every* segment with heat above tau and undigested pages, hottest first (paper, section 3.2.2)."""

    store: SegmentStore
    promotion_heat: float
    weights: HeatWeights
    digest_pages: int
    clock: Callable[[], float]

    def __call__(self, state: PromoteHotSegmentsInput) -> PromoteHotSegmentsUpdate:
        """Return the hot segments."""
        scope = Scope.from_json(state["scope"])
        now = self.clock()
        due = set(state.get("due") or ())
        heats = {
            segment.segment_id: heat(
                visits=segment.visits, interactions=segment.interactions, last_visit_at=segment.last_visit_at, now=now,
                weights=self.weights,
            )
            for segment in self.store.counters(scope, undigested=True)
        }
        chosen = [name for name, value in heats.items() if value > self.promotion_heat or name in due]
        chosen.sort(key=lambda name: (-heats[name], name))
        return PromoteHotSegmentsUpdate(hot=self._with_pages(scope, chosen) if chosen else [])

    def _with_pages(self, scope: Scope, chosen: list[str]) -> list[dict[str, Any]]:
        pages = self.store.undigested_pages(scope, chosen, limit=self.digest_pages)
        segments: dict[str, Segment] = {segment.segment_id: segment for segment in self.store.get(scope, chosen)}
        return [
            {"segment": segments[name].to_json(), "pages": [page.to_json() for page in pages[name]]}
            for name in chosen if name in pages and name in segments
        ]
