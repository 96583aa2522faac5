"""Step ``choose_filed_pages``: which evicted messages are pages that can join segments (hybrid mode)."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import NO_USAGE, Remembered, ScopeState
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.virtual_queue import parse_queue


class ChooseFiledPagesInput(TypedDict):
    """The queue and what leaves it."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    evicted: list[dict[str, Any]]


class ChooseFiledPagesUpdate(TypedDict):
    """The pages and what came before them."""

    overflow: list[dict[str, Any]]
    previous: dict[str, Any] | None
    chain: dict[str, Any] | None
    analyses: list[dict[str, Any]]
    touched: list[dict[str, Any]]
    failure: str
    eviction_rounds: int
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class ChooseFiledPages:
    """Read the short-term pages of which no message stays in the queue, oldest first. Nothing moves yet."""

    store: PageStore

    def __call__(self, state: ChooseFiledPagesInput) -> ChooseFiledPagesUpdate:
        """Return the pages, the page before them in the thread, and its chain."""
        scope = Scope.from_json(state["scope"])
        evicted = parse_queue(state["evicted"])
        gone = {message.message_id for message in evicted}
        staying = {
            message.page_id for message in parse_queue(state["queue"]) if message.message_id not in gone
        }
        names = dict.fromkeys(message.page_id for message in evicted if message.page_id)
        found = self.store.get(scope, [name for name in names if name not in staying])
        pages = sorted((page for page in found if page.tier == "short"), key=lambda page: page.sequence)
        previous = self.store.before(scope, pages[0]) if pages else None
        chain = self.store.chain(scope, previous.chain_id) if previous and previous.chain_id else None
        return ChooseFiledPagesUpdate(
            overflow=[page.to_json() for page in pages],
            previous=previous.to_json() if previous else None,
            chain=chain.to_json() if chain else None,
            analyses=[],
            touched=[],
            failure="",
            eviction_rounds=0,
            remembered=Remembered(usage=NO_USAGE),
        )
