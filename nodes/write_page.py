"""Step ``write_page``: what was just said becomes a page, before anything else can fail."""

from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from langgraph_memoryos.dialogue import exchanges_from_messages, newest_message
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.records import Exchange, Scope
from langgraph_memoryos.state import NO_USAGE, Remembered, RememberInput, ScopeState
from langgraph_memoryos.stores.pages import PageStore, PageWritten

_LOOK_BACK = 20
"""Among so many exchanges before the newest the last one that memory has is looked for first."""


class WritePageUpdate(TypedDict):
    """Scope of the turn and the report of the write."""

    scope: ScopeState
    eviction_rounds: int
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class WritePage:
    """Write the newest exchange, and those before it that never arrived.

    These are what a run that was broken off left, or a whole conversation that had no memory until now. One run writes
    ``max_catch_up`` exchanges, the oldest first; later runs of the thread go on with the oldest that is missing, and
    reach the newest at last. No model is called. The same conversation again writes nothing.

    Raises:
        IdentityError: if no user id is given.
    """

    store: PageStore
    default_agent: str
    clock: Callable[[], float]
    max_catch_up: int = 200

    def __call__(self, state: RememberInput, config: RunnableConfig) -> WritePageUpdate:
        """Return what was written."""
        scope, thread_id = resolve_scope(
            state=state, context=get_runtime().context, configurable=config.get("configurable", {}),
            default_agent=self.default_agent,
        )
        if imported := state.get("exchanges"):
            return self._import(scope, [Exchange.from_json(exchange) for exchange in imported])
        said_at = state.get("said_at")
        exchanges = exchanges_from_messages(
            convert_to_messages(state.get("messages") or []), thread_id=thread_id,
            said_at=self.clock() if said_at is None else said_at,
        )
        before = state.get("remembered") or Remembered()
        # A thread that another user or agent was in before holds what is not theirs: nothing of it is caught up.
        if before.get("user_id", scope.user_id) != scope.user_id:
            missing = [newest_message(exchange) for exchange in exchanges[-1:]]
        elif before.get("agent_id", scope.agent_id) != scope.agent_id:
            missing = exchanges[-1:]
        else:
            missing = self._missing(scope, exchanges, before=before)
        written = self._write(scope, missing[: self.max_catch_up])
        return WritePageUpdate(
            scope=ScopeState(user_id=scope.user_id, agent_id=scope.agent_id, thread_id=thread_id, turn_id=""),
            eviction_rounds=0,
            remembered=_report(scope, written[-1] if written else None, behind=len(missing) - len(written)),
        )

    def _import(self, scope: Scope, exchanges: list[Exchange]) -> WritePageUpdate:
        """Write exchanges of one thread that were given directly; what was erased before may come back."""
        written = self._write(scope, exchanges, revive=True)
        return WritePageUpdate(
            scope=ScopeState(
                user_id=scope.user_id, agent_id=scope.agent_id, thread_id=exchanges[-1].thread_id, turn_id="",
            ),
            eviction_rounds=0,
            remembered=_report(scope, written[-1]),
        )

    def _write(self, scope: Scope, exchanges: list[Exchange], *, revive: bool = False) -> list[PageWritten]:
        """Write pages; of several, none after the user is forgotten."""
        begun = self.store.begun(scope) if len(exchanges) > 1 else scope
        return [self.store.write(begun, exchange, revive=revive) for exchange in exchanges]

    def _missing(self, scope: Scope, exchanges: list[Exchange], *, before: Remembered) -> list[Exchange]:
        """Return the newest exchange, and before it those since the last one that memory has seen.

        While the thread is ``behind``, the last seen tells nothing, as a reply is kept at once: all are looked at.
        """
        behind = before.get("behind", 0) > 0
        older, newest = exchanges[:-1], exchanges[-1:]
        # The last seen is most often the one before the newest: one round trip, however long the thread.
        at = 0 if behind else max(len(older) - _LOOK_BACK, 0)
        *seen, newest_seen = self.store.seen(scope, exchanges[at:]) if older else (False,)
        if at and not any(seen):
            seen = [*self.store.seen(scope, older[:at]), *seen]
            at = 0
        if not behind and any(seen):
            at += len(seen) - seen[::-1].index(True)
            return [*older[at:], *newest]
        if not behind and newest_seen and "page_id" in before:
            # The thread's first page of this user and agent: what came before it was told to others.
            return newest
        missing = [exchange for exchange, known in zip(older, seen, strict=True) if not known]
        cut = bool(missing) and missing[0] is older[0] and not older[0].query
        if cut and self.store.knows_thread(scope, older[0].thread_id):
            # The app removed older messages, down to a reply that is on a page with its question already.
            missing = missing[1:]
        return [*missing, *newest]


def _report(scope: Scope, written: PageWritten | None, *, behind: int = 0) -> Remembered:
    report = Remembered(user_id=scope.user_id, agent_id=scope.agent_id, usage=NO_USAGE)
    if behind:
        report["behind"] = behind
    if written is None:
        return report
    return report | Remembered(
        page_id=written.page.page_id, status=written.status, queue_length=written.queue_length,
    )
