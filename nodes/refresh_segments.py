"""Step ``refresh_segments``: segments take their new texts and a vector made from their pages."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.records import Scope, Segment, SegmentSummary
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.segments import SegmentStore


class RefreshSegmentsInput(TypedDict):
    """New texts, and the segments as they were when these were made."""

    scope: ScopeState
    touched: list[dict[str, Any]]
    summaries: list[dict[str, Any]]


class RefreshSegmentsUpdate(TypedDict):
    """The texts are used up."""

    summaries: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RefreshSegments:
    """Write the summaries; topics may drift, so the vector is made anew as well.

    A summary that may retell a page which was erased meanwhile is not written.
    """

    store: SegmentStore

    def __call__(self, state: RefreshSegmentsInput) -> RefreshSegmentsUpdate:
        """Write and return nothing left to write."""
        texts = [SegmentSummary.from_json(summary) for summary in state["summaries"]]
        segments = [Segment.from_json(item["segment"]) for item in state["touched"]]
        self.store.refresh(Scope.from_json(state["scope"]), texts, made_from=segments)
        return RefreshSegmentsUpdate(summaries=[])
