"""Step ``finish_event``: the thread is free again, and the report is ready."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.virtual_log import erased, queue_snapshot, scope_of
from langgraph_memoryos.virtual_state import Pressure, Turn


class FinishEventInput(TypedDict, total=False):
    """What the event caused."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    handled: str
    pressure: Pressure
    turn: Turn


class FinishEventUpdate(TypedDict, total=False):
    """The report; an empty queue where the user was erased."""

    queue: list[dict[str, Any]]
    virtual: Turn
    turn: Turn


@dataclass(frozen=True, kw_only=True)
class FinishEvent:
    """Keep which messages the queue holds, for a run without a checkpoint, and free the thread."""

    messages: MessageStore
    leases: LeaseStore

    def __call__(self, state: FinishEventInput) -> FinishEventUpdate:
        """Return the report."""
        scope, thread_id = scope_of(state)
        turn = Turn(**state["turn"] | {"reason": state["turn"]["reason"] or "done"})
        gone = turn["reason"] == "erased"
        if turn["event_id"] and not gone:
            warned = (state.get("pressure") or {}).get("warned", False)
            snapshot = queue_snapshot(
                state["queue"], handled=state.get("handled", ""), warned=warned, event_id=turn["event_id"]
            )
            gone = not self.messages.save_queue(scope, thread_id, snapshot)
            turn = erased(turn) if gone else turn
        if turn["event_id"]:
            self.leases.release(scope, thread_id, turn["event_id"])
        report = FinishEventUpdate(virtual=turn, turn=turn)
        return FinishEventUpdate(**report, queue=[]) if gone else report
