"""Step ``choose_queue``: which short-term queue a consolidation empties next."""

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.state import NO_USAGE, ConsolidateInput, Remembered, ScopeState
from langgraph_memoryos.stores.pages import PageStore


class ChooseQueueInput(ConsolidateInput, total=False):
    """Whose queues, and how far the run is."""

    queue: str
    lengths: dict[str, int]
    remembered: Remembered


class ChooseQueueUpdate(TypedDict):
    """The chosen queue, or none."""

    scope: ScopeState
    queue: str
    lengths: dict[str, int]
    eviction_rounds: int
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class ChooseQueue:
    """Choose a thread whose queue is over capacity (with ``drain``: not empty); one that did not shrink is left alone.

    With ``thread_ids`` only these threads are looked at, so that a session that is over can be emptied while another
    goes on.

    Raises:
        IdentityError: if no user id is given.
    """

    store: PageStore
    default_agent: str
    capacity: int

    def __call__(self, state: ChooseQueueInput, config: RunnableConfig) -> ChooseQueueUpdate:
        """Return the next queue."""
        scope, _ = resolve_scope(
            state=state, context=get_runtime().context,
            configurable={**config.get("configurable", {}), "thread_id": "consolidate"},
            default_agent=self.default_agent,
        )
        limit = 0 if state.get("drain") else self.capacity
        # A thread of a checkpointer remembers the report of an earlier run, but not its lengths.
        begun = state.get("remembered") if "lengths" in state else None
        tried = state.get("lengths") or {}
        lengths = self.store.threads(scope)
        named = _names(state.get("thread_ids"))
        chosen = next(
            (name for name, length in lengths.items()
             if (named is None or name in named) and limit < length < tried.get(name, length + 1)), "",
        )
        return ChooseQueueUpdate(
            scope=ScopeState(user_id=scope.user_id, agent_id=scope.agent_id, thread_id=chosen, turn_id=""),
            queue=chosen,
            lengths=tried | ({chosen: lengths[chosen]} if chosen else {}),
            eviction_rounds=0,
            remembered=begun or _fresh_report(state.get("remembered") or Remembered()),
        )


def _fresh_report(before: Remembered) -> Remembered:
    """Return an empty report that still tells whose turn the thread's last one was, and what it left behind."""
    report = Remembered(usage=NO_USAGE)
    if "user_id" in before and "agent_id" in before:
        report["user_id"], report["agent_id"] = before["user_id"], before["agent_id"]
    if "behind" in before:
        report["behind"] = before["behind"]
    return report


def _names(thread_ids: Any) -> set[str] | None:
    """Return the named threads; a single one may stand by itself, and a number means its digits."""
    if thread_ids is None:
        return None
    return {str(name) for name in ([thread_ids] if isinstance(thread_ids, str | int) else thread_ids)}
