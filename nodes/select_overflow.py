"""Step ``select_overflow``: which pages leave the short-term queue."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.pages import PageStore


class SelectOverflowInput(TypedDict):
    """Whose queue."""

    scope: ScopeState


class SelectOverflowUpdate(TypedDict):
    """The oldest pages of the queue and what came before them."""

    overflow: list[dict[str, Any]]
    previous: dict[str, Any] | None
    chain: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class SelectOverflow:
    """Read the oldest ``batch`` pages of the queue (paper, section 3.2.1: first in, first out). Nothing leaves yet.

    A queue that is further over its capacity (a model was out of reach for some turns) gives up to ``max_pages``.
    """

    store: PageStore
    batch: int
    capacity: int
    max_pages: int = 20

    def __call__(self, state: SelectOverflowInput) -> SelectOverflowUpdate:
        """Return the pages, the page before them in the thread, and its chain."""
        scope, thread_id = Scope.from_json(state["scope"]), state["scope"]["thread_id"]
        excess = self.store.queue_length(scope, thread_id) - self.capacity
        pages = self.store.queue(scope, thread_id, limit=max(self.batch, min(excess, self.max_pages)))
        previous = self.store.before(scope, pages[0]) if pages else None
        chain = self.store.chain(scope, previous.chain_id) if previous and previous.chain_id else None
        return SelectOverflowUpdate(
            overflow=[page.to_json() for page in pages],
            previous=previous.to_json() if previous else None,
            chain=chain.to_json() if chain else None,
        )
