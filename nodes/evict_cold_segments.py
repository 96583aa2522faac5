"""Step ``evict_cold_segments``: over the segment capacity, the coldest leave mid-term search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from langgraph_memoryos.heat import HeatWeights, heat
from langgraph_memoryos.records import Counters, Scope
from langgraph_memoryos.state import Remembered, ScopeState
from langgraph_memoryos.stores.segments import SegmentStore


class EvictColdSegmentsInput(TypedDict):
    """Whose segments."""

    scope: ScopeState
    eviction_rounds: int
    remembered: Remembered


class EvictColdSegmentsUpdate(TypedDict):
    """What left, and what must be digested before it can leave."""

    due: list[str]
    eviction_rounds: int
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class EvictColdSegments:
    """Archive the segments of lowest heat (paper, section 3.2.2).

    A segment that was touched in this run is no victim, and one with pages that no persona update has seen is digested
    first, so nothing the user said vanishes unread. Archived pages stay in recall storage.
    """

    store: SegmentStore
    capacity: int
    weights: HeatWeights
    clock: Callable[[], float]

    def __call__(self, state: EvictColdSegmentsInput) -> EvictColdSegmentsUpdate:
        """Return archived and due segments."""
        scope = Scope.from_json(state["scope"])
        before = state["remembered"]
        victims = self._victims(self.store.counters(scope), kept=before.get("touched_segments", []))
        archived = self.store.archive(scope, [segment for segment in victims if not segment.interactions])
        return EvictColdSegmentsUpdate(
            due=[segment.segment_id for segment in victims if segment.interactions],
            eviction_rounds=state.get("eviction_rounds", 0) + 1,
            remembered=Remembered(**before | {
                "archived_segments": [*before.get("archived_segments", []), *archived],
            }),
        )

    def _victims(self, segments: Sequence[Counters], *, kept: Sequence[str]) -> list[Counters]:
        excess = len(segments) - self.capacity
        if excess <= 0:
            return []
        now = self.clock()
        candidates = [segment for segment in segments if segment.segment_id not in kept]
        return sorted(candidates, key=lambda segment: (
            heat(
                visits=segment.visits, interactions=segment.interactions, last_visit_at=segment.last_visit_at, now=now,
                weights=self.weights,
            ),
            segment.segment_id,
        ))[:excess]
