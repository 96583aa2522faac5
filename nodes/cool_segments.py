"""Step ``cool_segments``: digested segments lose the heat that promoted them."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import Remembered, ScopeState
from langgraph_memoryos.stores.segments import SegmentStore


class CoolSegmentsInput(TypedDict):
    """Segments and pages that were digested."""

    scope: ScopeState
    hot: list[dict[str, Any]]
    remembered: Remembered


class CoolSegmentsUpdate(TypedDict):
    """The report; nothing is hot any more."""

    hot: list[dict[str, Any]]
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class CoolSegments:
    """Mark the pages digested and reset ``l_interaction``, only that counter (paper, section 3.2.2).

    With ``archive`` the promoted segments also leave mid-term search (the setting ``after_promotion``).
    """

    store: SegmentStore
    archive: bool = False

    def __call__(self, state: CoolSegmentsInput) -> CoolSegmentsUpdate:
        """Cool and report."""
        scope = Scope.from_json(state["scope"])
        digested = {
            item["segment"]["segment_id"]: [page["page_id"] for page in item["pages"]] for item in state["hot"]
        }
        self.store.cool(scope, digested)
        gone = self._archive(scope, tuple(digested)) if self.archive else ()
        before = state["remembered"]
        return CoolSegmentsUpdate(hot=[], remembered=before | Remembered(
            digested_segments=list(dict.fromkeys([*before.get("digested_segments", []), *digested])),
            archived_segments=[*before.get("archived_segments", []), *gone],
        ))

    def _archive(self, scope: Scope, segment_ids: tuple[str, ...]) -> tuple[str, ...]:
        return self.store.archive(scope, self.store.get(scope, segment_ids))
