"""Step ``retrieve_mid_term``: stage 2 of a recall."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.state import RetrieveInput
from langgraph_memoryos.stores.recall import RecallRequest, RecallStore


class RetrieveMidTermUpdate(TypedDict):
    """Recalled pages, most relevant first, and their chains."""

    mid_term: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RetrieveMidTerm:
    """Find the pages that answer the query (paper, section 3.3, mid-term retrieval; setting ``retrieval``)."""

    store: RecallStore

    def __call__(self, state: RetrieveInput) -> RetrieveMidTermUpdate:
        """Return pages and chains."""
        found = self.store.mid_term(RecallRequest.of(state["scope"], state["query"]))
        return RetrieveMidTermUpdate(mid_term={
            "pages": [scored.to_json() for scored in found.pages], "chains": [chain.to_json() for chain in found.chains],
        })
