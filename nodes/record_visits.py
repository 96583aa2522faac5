"""Step ``record_visits``: the pages that were handed over count as visits of their segments."""

from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import TypedDict

from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import RecalledMemory, ScopeState
from langgraph_memoryos.stores.segments import SegmentStore


class RecordVisitsInput(TypedDict):
    """What was handed over, to whom."""

    scope: ScopeState
    memory: RecalledMemory


class RecordVisitsUpdate(TypedDict):
    """Nothing changes in the state."""


@dataclass(frozen=True, kw_only=True)
class RecordVisits:
    """Add one visit, now, to each segment that gave a returned page (paper, section 3.3: N_visit and R_recency).

    A turn's visits count once, also when its run dies before the checkpoint of this step and is resumed.
    """

    store: SegmentStore
    clock: Callable[[], float]

    def __call__(self, state: RecordVisitsInput) -> RecordVisitsUpdate:
        """Record and change nothing."""
        segments = dict.fromkeys(segment for page in state["memory"]["mid_term"] if (segment := page["segment_id"]))
        scope = state["scope"]
        self.store.record_visits(
            Scope.from_json(scope), tuple(segments), now=self.clock(), turn_id=scope["turn_id"])
        return RecordVisitsUpdate()
