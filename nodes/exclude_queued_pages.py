"""Step ``exclude_queued_pages``: what the FIFO queue shows already is not recalled again."""

from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.virtual_queue import parse_queue

_OUTSIDE_PAGES = 6


class ExcludeQueuedPagesInput(TypedDict):
    """The queue and what was retrieved."""

    queue: list[dict[str, Any]]
    short_term: list[dict[str, Any]]
    mid_term: dict[str, Any]


class ExcludeQueuedPagesUpdate(TypedDict):
    """What is left."""

    short_term: list[dict[str, Any]]
    mid_term: dict[str, Any]


def exclude_queued_pages(state: ExcludeQueuedPagesInput) -> ExcludeQueuedPagesUpdate:
    """Return mid-term pages without those of which any message is in the queue.

    The queue takes the place of short-term memory. Pages of this thread that are in neither (imported, or
    evicted in another mode) come first among the recalled ones, the newest few.
    """
    queued = {message.page_id for message in parse_queue(state["queue"]) if message.page_id}
    recalled = [
        scored for scored in state["mid_term"].get("pages", []) if scored["page"]["page_id"] not in queued
    ]
    known = queued | {scored["page"]["page_id"] for scored in recalled}
    outside = [page for page in state["short_term"] if page["page_id"] not in known][-_OUTSIDE_PAGES:]
    first = [{"page": page, "relevance": 0.0, "parts": {}} for page in outside]
    return ExcludeQueuedPagesUpdate(
        short_term=[], mid_term={**state["mid_term"], "pages": [*first, *recalled]}
    )
