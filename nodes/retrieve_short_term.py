"""Step ``retrieve_short_term``: stage 1 of a recall."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.state import RetrieveInput
from langgraph_memoryos.stores.recall import RecallRequest, RecallStore


class RetrieveShortTermUpdate(TypedDict):
    """Pages of the queue, oldest first."""

    short_term: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RetrieveShortTerm:
    """Read all pages of the thread's short-term queue (paper, section 3.3, short-term retrieval)."""

    store: RecallStore

    def __call__(self, state: RetrieveInput) -> RetrieveShortTermUpdate:
        """Return the queue."""
        request = RecallRequest.of(state["scope"], state["query"])
        return RetrieveShortTermUpdate(short_term=[page.to_json() for page in self.store.short_term(request)])
