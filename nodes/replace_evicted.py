"""Step ``replace_evicted``: the summary takes the place of what left; index 0 of the queue."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos import ids
from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_log import erased, log_entries, overlooked, queue_snapshot, scope_of
from langgraph_memoryos.virtual_queue import (
    CountTokens,
    parse_queue,
    queue_tokens,
    remaining,
    shrunk,
    split_summary,
)
from langgraph_memoryos.virtual_settings import ContextWindowError, VirtualContextSettings
from langgraph_memoryos.virtual_state import Pressure, QueueMessage, Turn


class ReplaceEvictedInput(TypedDict):
    """The queue, what leaves it, and the new summary."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    evicted: list[dict[str, Any]]
    summary: str
    turn: Turn
    pressure: Pressure


class ReplaceEvictedUpdate(TypedDict):
    """The shorter queue; a new period begins."""

    queue: list[dict[str, Any]]
    evicted: list[dict[str, Any]]
    summary: str
    turn: Turn
    pressure: Pressure


@dataclass(frozen=True, kw_only=True)
class ReplaceEvicted:
    """Write the new summary to the log and shorten the queue (MemGPT, section 2.2).

    Messages that must stay but do not fit are visibly truncated; recall storage has them whole.

    Raises:
        ContextWindowError: the newest messages do not fit, however short they are made.
    """

    messages: MessageStore
    settings: VirtualContextSettings
    clock: Callable[[], float]
    count: CountTokens = count_tokens

    def __call__(self, state: ReplaceEvictedInput) -> ReplaceEvictedUpdate:
        """Return the queue that begins with the summary."""
        scope, thread_id = scope_of(state)
        turn, pressure = state["turn"], state["pressure"]
        old, rest = split_summary(parse_queue(state["queue"]))
        kept = remaining(rest, parse_queue(state["evicted"]))
        head, kept_log = [old] if old else [], True
        if state["evicted"]:
            until = state["evicted"][-1]["message_id"]
            head = [self._summary(state["summary"], turn, until=until)]
            kept = [*self._overlooked(state["queue"], scope, thread_id, until), *kept]
            kept_log = bool(self.messages.append(scope, thread_id, log_entries(head, None)))
        room = int((self.settings.flush_tokens - pressure["fixed_tokens"]) / pressure["correction"]) - 3
        fitting = shrunk([*head, *kept], max_tokens=room, count=self.count)
        if queue_tokens(fitting, self.count) > room:
            raise ContextWindowError(
                f"Instructions, working context, functions and recalled memory take {pressure['fixed_tokens']} of "
                f"{self.settings.flush_tokens} tokens, which leaves too little for the newest messages: raise "
                "context_window_tokens, shorten the instructions or the blocks, or offer fewer functions."
            )
        counted = Turn(
            **turn
            | {"flushes": turn["flushes"] + 1, "evicted": turn["evicted"] + len(state["evicted"])}
        )
        return ReplaceEvictedUpdate(
            queue=[message.to_json() for message in fitting],
            evicted=[],
            summary="",
            turn=counted if kept_log else erased(counted),
            pressure=Pressure(**pressure | {"warned": False, "flush": False}),
        )

    def _overlooked(
        self, queue: list[dict[str, Any]], scope: Scope, thread_id: str, until: str
    ) -> list[QueueMessage]:
        """Return messages of an event that ran meanwhile: no summary stands for them, so they stay in view."""
        view = queue_snapshot(queue, handled="", warned=False, event_id="")
        look = self.messages.look(scope, thread_id, queue=view, shown=set(view["messages"]), asked=())
        return [QueueMessage.from_json(entry) for entry in overlooked(view, look, until=until)]

    def _summary(self, text: str, turn: Turn, *, until: str) -> QueueMessage:
        name = ids.digest("summary", turn["event_id"], str(turn["flushes"]))
        return QueueMessage(message_id=name, kind="summary", text=text, said_at=self.clock(), until=until)
