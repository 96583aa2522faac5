"""Step ``ingest_event``: what happened joins the queue and recall storage, before a model sees it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from langgraph_memoryos import ids
from langgraph_memoryos.dialogue import message_text, position_id, readable
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.records import Exchange, Page, Scope
from langgraph_memoryos.state import NO_USAGE, RecalledMemory, ScopeState
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_log import erased, log_entries, queue_snapshot, with_results
from langgraph_memoryos.virtual_queue import CountTokens, truncated
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import EVENT_KINDS, Event, Pressure, QueueMessage, Turn, VirtualInput


class IngestEventInput(VirtualInput, total=False):
    """What comes in, and the queue so far."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    handled: str
    pressure: Pressure
    turn: Turn


class IngestEventUpdate(TypedDict, total=False):
    """The queue with the event at its end, and a new turn; what was recalled for the event before is gone."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    handled: str
    turn: Turn
    pressure: Pressure
    memory: RecalledMemory | None


@dataclass(frozen=True, kw_only=True)
class IngestEvent:
    """Take in new user messages, or another event; write what the user said as a page without a reply.

    A timed event never runs into a busy thread and respects ``pause_heartbeats``; a person's message always
    runs.

    Raises:
        IdentityError: no user id is given.
        MemoryOSError: an event of unknown kind.
    """

    pages: PageStore
    messages: MessageStore
    leases: LeaseStore
    settings: VirtualContextSettings
    default_agent: str
    clock: Callable[[], float]
    count: CountTokens = count_tokens

    def __call__(self, state: IngestEventInput, config: RunnableConfig) -> IngestEventUpdate:
        """Return the queue and the turn."""
        scope, thread_id = resolve_scope(
            state=state,
            context=get_runtime().context,
            configurable=config.get("configurable", {}),
            default_agent=self.default_agent,
        )
        where = ScopeState(user_id=scope.user_id, agent_id=scope.agent_id, thread_id=thread_id, turn_id="")
        erasures = self.messages.erasures(scope)
        scope = replace(scope, erasures=erasures)
        restored = self._restored(state, scope, thread_id, erasures)
        if event := state.get("event"):
            new, exchange = self._event(event), None
        else:
            new, exchange = self._said(state, restored["handled"], thread_id)
        if not new:
            return IngestEventUpdate(scope=where, **restored, turn=_over("nothing", kind="", erasures=erasures))
        event_id = new[-1].message_id
        where["turn_id"] = event_id
        kind = new[-1].kind
        # Before the lease: an event that comes twice must not take the thread from the one that is running.
        if event and self._handled(scope, thread_id, event_id, restored["queue"]):
            return IngestEventUpdate(scope=where, **restored, turn=_over("nothing", kind=kind, erasures=erasures))
        if refused := self._refused(scope, thread_id, new[-1]):
            return IngestEventUpdate(scope=where, **restored, turn=_over(refused, kind=kind, erasures=erasures))
        restored["queue"] = with_results(
            restored["queue"], self.messages, scope=scope, thread_id=thread_id, moment=self.clock()
        )
        new, kept = self._written(scope, thread_id, new, exchange)
        turn = _begun(new[-1], exchange or _spoken_first(new[-1], thread_id), erasures)
        handled = restored["handled"] if event else event_id
        if not kept:
            # A checkpoint has the message all the same: the next event must not take it in.
            return IngestEventUpdate(**restored | {"scope": where, "handled": handled, "turn": erased(turn)})
        queue = [*restored["queue"], *(self._shown(message) for message in new)]
        # Kept before a model can fail: without a checkpoint, the next event begins here.
        snapshot = queue_snapshot(queue, handled=handled, warned=restored["pressure"].get("warned", False))
        self.messages.save_queue(scope, thread_id, snapshot)
        return IngestEventUpdate(
            scope=where,
            queue=queue,
            handled=handled,
            turn=turn,
            pressure=restored["pressure"],
            memory=None,
        )

    def _restored(self, state: IngestEventInput, scope: Scope, thread_id: str, erasures: int) -> IngestEventUpdate:
        """Return the queue of the checkpoint, or, without one, that after the last event of the thread."""
        before = state.get("scope")
        # A checkpoint of another user's thread of the same name is nobody else's queue.
        own = before is None or (before["user_id"], before["agent_id"]) == (scope.user_id, scope.agent_id)
        if own and (state.get("queue") or state.get("handled")):
            # A checkpoint outlives an erasure; what it holds of the user is not used.
            gone = (state.get("turn") or Turn()).get("erasures", 0) != erasures
            return IngestEventUpdate(
                queue=[] if gone else list(state.get("queue") or []),
                handled=state.get("handled") or "",
                pressure=(not gone and state.get("pressure")) or Pressure(),
            )
        kept = self.messages.load_queue(scope, thread_id)
        entries = self.messages.get(scope, thread_id, kept.get("messages", ()))
        queue = [self._shown(QueueMessage.from_json(entry)) for entry in entries]
        return IngestEventUpdate(
            queue=queue, handled=kept.get("handled", ""), pressure=Pressure(warned=kept.get("warned", False))
        )

    def _event(self, event: Event) -> list[QueueMessage]:
        kind = event.get("kind", "")
        if kind not in EVENT_KINDS or kind == "user_message":
            raise MemoryOSError(
                f"An event's kind is one of {', '.join(EVENT_KINDS[1:])}; a user speaks by messages."
            )
        moment = event.get("at")
        moment = self.clock() if moment is None else float(moment)
        text = readable(event.get("text") or "")
        event_id = event.get("id") or ids.digest("event", kind, text, repr(moment))
        return [QueueMessage(message_id=event_id, kind=kind, text=text, said_at=moment)]  # type: ignore[arg-type]

    def _said(
        self,
        state: IngestEventInput,
        handled: str,
        thread_id: str,
    ) -> tuple[list[QueueMessage], Exchange | None]:
        """Return the user messages that were not handled yet, and the exchange they open."""
        messages = _since(convert_to_messages(state.get("messages") or []), handled)
        now = self.clock()
        new = [
            QueueMessage(
                message_id=readable(message.id)
                if message.id
                else position_id(at, "user", message_text(message)),
                kind="user_message",
                text=message_text(message),
                said_at=now,
                name=readable(message.name or ""),
                blocks=tuple(block for block in message.content if isinstance(block, dict))
                if isinstance(message.content, list)
                else (),
            )
            for at, message in enumerate(messages)
        ]
        if not new:
            return [], None
        return new, Exchange(
            query="\n".join(message.text for message in new if message.text),
            reply="",
            said_at=now,
            thread_id=thread_id,
            source_ids=tuple(message.message_id for message in new),
            user_name=next((message.name for message in new if message.name), ""),
        )

    def _handled(self, scope: Scope, thread_id: str, event_id: str, queue: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether an event was taken in before; the log still knows it when a flush has evicted it.

        One that is the newest of the log and in no queue is this step's own, which was interrupted: it goes on.
        """
        queued = event_id in {message["message_id"] for message in queue}
        return queued or self.messages.followed(scope, thread_id, event_id)

    def _refused(self, scope: Scope, thread_id: str, event: QueueMessage) -> str:
        seconds = self.settings.lease_seconds
        if event.kind != "timed":
            self.leases.seize(scope, thread_id, event.message_id, seconds=seconds)
            return ""
        if self.leases.paused_until(scope) > self.clock():
            return "paused"
        return "" if self.leases.take(scope, thread_id, event.message_id, seconds=seconds) else "busy"

    def _written(
        self,
        scope: Scope,
        thread_id: str,
        new: Sequence[QueueMessage],
        exchange: Exchange | None,
    ) -> tuple[list[QueueMessage], bool]:
        """Return the messages with their page, and whether the log has them."""
        page: Page | None = None
        if exchange is not None and exchange.query.strip():
            page = self.pages.write(scope, exchange).page
        placed = [replace(message, page_id=page.page_id if page else "") for message in new]
        return placed, self.messages.append(scope, thread_id, log_entries(placed, page))

    def _shown(self, message: QueueMessage) -> dict[str, Any]:
        """Return a message as the queue holds it: one that is larger than the window is visibly truncated."""
        window = self.settings.context_window_tokens
        shown = truncated(message, window, self.count)
        return (shown if shown is message else truncated(message, window // 2, self.count)).to_json()


def _since(messages: Sequence[BaseMessage], handled: str) -> list[BaseMessage]:
    """Return the human messages after the one handled last, or, without it, those since the last reply."""
    at = next((at for at in range(len(messages) - 1, -1, -1) if handled and messages[at].id == handled), None)
    if at is not None:
        return [message for message in messages[at + 1 :] if message.type == "human"]
    found: list[BaseMessage] = []
    for message in reversed(messages):
        if message.type == "ai":
            break
        if message.type == "human":
            found.append(message)
    return found[::-1]


def _begun(event: QueueMessage, exchange: Exchange, erasures: int) -> Turn:
    return Turn(
        event_id=event.message_id,
        kind=event.kind,
        steps=0,
        again=True,
        reason="",
        erasures=erasures,
        exchange=exchange.to_json(),
        sent=[],
        failing={},
        flushes=0,
        evicted=0,
        warnings=0,
        usage=NO_USAGE,
    )


def _spoken_first(event: QueueMessage, thread_id: str) -> Exchange:
    """Return the exchange of an event nobody said: what the agent sends opens the page."""
    return Exchange(
        query="", reply="", said_at=event.said_at, thread_id=thread_id, source_ids=(event.message_id,)
    )


def _over(reason: str, *, kind: str, erasures: int) -> Turn:
    return Turn(
        event_id="",
        kind=kind,
        steps=0,
        again=False,
        reason=reason,
        erasures=erasures,
        exchange=None,
        sent=[],
        failing={},
        flushes=0,
        evicted=0,
        warnings=0,
        usage=NO_USAGE,
    )
