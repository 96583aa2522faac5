"""Step ``write_page``: what was just said becomes a page, before anything else can fail."""

from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from langgraph_memoryos.dialogue import exchanges_from_messages
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.records import Exchange, Scope
from langgraph_memoryos.state import NO_USAGE, Remembered, RememberInput, ScopeState
from langgraph_memoryos.stores.pages import PageStore, PageWritten


class WritePageUpdate(TypedDict):
    """Scope of the turn and the report of the write."""

    scope: ScopeState
    eviction_rounds: int
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class WritePage:
    """Write the newest exchange, and exchanges before it that never arrived (a run that was broken off).

    No model is called. The same conversation again writes nothing.

    Raises:
        IdentityError: if no user id is given.
    """

    store: PageStore
    default_agent: str
    clock: Callable[[], float]
    max_catch_up: int = 20

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
        before = (state.get("remembered") or {}).get("user_id", scope.user_id)
        # A thread that another user was in before holds what is not this user's: nothing of it is caught up.
        missing = self._missing(scope, exchanges) if before == scope.user_id else exchanges[-1:]
        written = [self.store.write(scope, exchange) for exchange in missing]
        return WritePageUpdate(
            scope=ScopeState(user_id=scope.user_id, agent_id=scope.agent_id, thread_id=thread_id, turn_id=""),
            eviction_rounds=0,
            remembered=_report(scope, written[-1] if written else None),
        )

    def _import(self, scope: Scope, exchanges: list[Exchange]) -> WritePageUpdate:
        """Write exchanges of one thread that were given directly; what was erased before may come back."""
        written = [self.store.write(scope, exchange, revive=True) for exchange in exchanges]
        return WritePageUpdate(
            scope=ScopeState(
                user_id=scope.user_id, agent_id=scope.agent_id, thread_id=exchanges[-1].thread_id, turn_id="",
            ),
            eviction_rounds=0,
            remembered=_report(scope, written[-1]),
        )

    def _missing(self, scope: Scope, exchanges: list[Exchange]) -> list[Exchange]:
        """Return the newest exchange, and before it those up to the first one that memory has seen."""
        recent = exchanges[-self.max_catch_up :]
        if len(recent) < 2:  # noqa: PLR2004
            return recent
        seen = self.store.seen(scope, recent[:-1])
        last_seen = max((position for position, known in enumerate(seen) if known), default=-1)
        if last_seen < 0 and not recent[0].query and self.store.knows_thread(scope, recent[0].thread_id):
            # The app removed older messages, down to a reply that is on a page with its question already.
            return recent[1:]
        return recent[last_seen + 1 :]


def _report(scope: Scope, written: PageWritten | None) -> Remembered:
    if written is None:
        return Remembered(user_id=scope.user_id, usage=NO_USAGE)
    return Remembered(
        user_id=scope.user_id, page_id=written.page.page_id, status=written.status, queue_length=written.queue_length,
        usage=NO_USAGE,
    )
