"""Step ``refresh_segments``: segments take their new texts and a vector made from their pages."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.records import Scope, SegmentSummary
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.segments import SegmentStore


class RefreshSegmentsInput(TypedDict):
    """New texts."""

    scope: ScopeState
    summaries: list[dict[str, Any]]


class RefreshSegmentsUpdate(TypedDict):
    """The texts are used up."""

    summaries: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RefreshSegments:
    """Write the summaries; topics may drift, so the vector is made anew as well."""

    store: SegmentStore

    def __call__(self, state: RefreshSegmentsInput) -> RefreshSegmentsUpdate:
        """Write and return nothing left to write."""
        texts = [SegmentSummary.from_json(summary) for summary in state["summaries"]]
        self.store.refresh(Scope.from_json(state["scope"]), texts)
        return RefreshSegmentsUpdate(summaries=[])
