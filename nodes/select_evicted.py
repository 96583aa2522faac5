"""Step ``select_evicted``: which messages leave the full queue. Nothing leaves yet."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_queue import (
    CountTokens,
    parse_queue,
    queue_tokens,
    split_queue,
    split_summary,
)
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Pressure, Turn


class SelectEvictedInput(TypedDict):
    """The queue, what is being answered, and how full the window is."""

    queue: list[dict[str, Any]]
    turn: Turn
    pressure: Pressure


class SelectEvictedUpdate(TypedDict):
    """What leaves, and the summary so far."""

    evicted: list[dict[str, Any]]
    summary: str


@dataclass(frozen=True, kw_only=True)
class SelectEvicted:
    """Choose messages from the front until about half of the window would be free (MemGPT, section 2.2).

    The event that is being answered and the last messages stay, and a function call stays or leaves together
    with its results.
    """

    settings: VirtualContextSettings
    count: CountTokens = count_tokens

    def __call__(self, state: SelectEvictedInput) -> SelectEvictedUpdate:
        """Return the oldest messages and the text of the summary before them."""
        summary, rest = split_summary(parse_queue(state["queue"]))
        pressure, correction = state["pressure"], state["pressure"]["correction"]
        old_tokens = queue_tokens([summary], self.count) if summary else 0
        excess = (
            (pressure["tokens"] - self.settings.kept_tokens) / correction
            + self.settings.summary_tokens
            - old_tokens
        )
        evicted, _ = split_queue(
            rest,
            free_tokens=int(excess),
            keep_last=self.settings.keep_last_messages,
            event=(state["turn"]["exchange"] or {}).get("source_ids", ()),
            count=self.count,
        )
        return SelectEvictedUpdate(
            evicted=[message.to_json() for message in evicted], summary=summary.text if summary else ""
        )
