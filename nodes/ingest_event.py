"""Step ``ingest_event``: what happened joins the queue and recall storage, before a model sees it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from langgraph_memoryos import ids
from langgraph_memoryos.dialogue import exchanges_from_messages
from langgraph_memoryos.functions import goes_on, opened
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.records import Exchange, Page, Scope
from langgraph_memoryos.state import NO_USAGE, RecalledMemory, ScopeState
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.stores.messages import MessageStore, ThreadLook
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_input import (
    conversation,
    missed_exchanges,
    newest_of,
    parse_event,
    said_before,
    split_conversation,
    user_message,
)
from langgraph_memoryos.virtual_log import (
    erased,
    in_view,
    interrupted_calls,
    log_entries,
    page_id_of,
    queue_snapshot,
)
from langgraph_memoryos.virtual_queue import CountTokens, parse_queue, truncated
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Pressure, QueueMessage, Turn, VirtualInput


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
class _Part:
    """Messages that go into log and queue together, and the page that quotes what was said in them."""

    messages: Sequence[QueueMessage]
    page: Page | None = None


@dataclass(frozen=True, kw_only=True)
class IngestEvent:
    """Take in new user messages, or another event, or both; write what the user said as a page without a reply.

    The log of the thread is the truth, and the queue is what of it is in view: it has what another event logged
    meanwhile, and nothing that was erased. What the log knows is not taken in again: an event that is finished is none,
    and one that was broken off goes on. When a thread's log begins, the exchanges before the message are taken in as
    well, as far as the conversation's newest 100 messages reach.

    A timed event never runs into a busy thread and respects ``pause_heartbeats``; a person's message always
    runs.

    Raises:
        IdentityError: no user id is given.
        MemoryOSError: it is no event; nothing was written.
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
        now = self.clock()
        event = parse_event(state["event"], now=now) if state.get("event") else None
        listed = conversation(state.get("messages") or [])
        asked = [*([event.message_id] if event else []), *(str(message.id) for message in listed)]
        look, before = self._before(state, scope, thread_id, asked)
        scope = replace(scope, erasures=look.erasures)
        # In a thread that users share, what was said to another one is handled as well.
        before["handled"] = newest_of(listed, (state.get("handled") or "", before["handled"]))
        earlier, new = split_conversation(listed, handled=before["handled"])
        happened = event if event and look.marks[event.message_id] == "unknown" else None
        said = [message for message in new if look.marks[str(message.id)] == "unknown"]
        first = not (look.kept or look.before or look.after)
        missed = self._missed(scope, thread_id, earlier, look, now) if first and (happened or said) else []
        fresh = [_Part(messages=[happened])] if happened else []
        written = self._said(scope, thread_id, said, now) if said else []
        if said and not written and self.messages.erasures(scope) != look.erasures:
            return _forgotten(where, before, user_message(said[-1], now=now), look)
        fresh += written
        newest = fresh[-1].messages[-1] if fresh else _unfinished(listed, event, look, now)
        refused = self._refused(scope, thread_id, newest, look) if newest else "nothing"
        if newest is None or refused:
            kind = newest.kind if newest else event.kind if event else ""
            return self._not_taken(state, scope, where, before, _over(refused, kind=kind, erasures=look.erasures))
        where["turn_id"] = newest.message_id
        handled = newest.message_id if newest.kind == "user_message" else before["handled"]
        if fresh:
            parts = [*missed, *fresh]
            before["queue"] += self._interrupted(state, scope, thread_id, before["queue"], now)
            queue = [*before["queue"], *(self._shown(message) for part in parts for message in part.messages)]
            turn = _begun(newest, _exchange(parts[-1].page, newest, thread_id), look.erasures)
            entries = [entry for part in parts for entry in log_entries(part.messages, part.page)]
            logged = self.messages.append(scope, thread_id, entries, opens=newest.message_id)
            if logged == "twice":
                over = _over("busy", kind=newest.kind, erasures=look.erasures)
                return self._not_taken(state, scope, where, before, over)
            if not logged:
                return _forgotten(where, before, newest, look)
        else:
            queue, turn = self._resumed(scope, thread_id, newest, before["queue"], look)
        # Kept before a model can fail: without a checkpoint, the next event begins here.
        warned = before["pressure"].get("warned", False)
        snapshot = queue_snapshot(queue, handled=handled, warned=warned, event_id=newest.message_id)
        self.messages.save_queue(scope, thread_id, snapshot)
        return IngestEventUpdate(
            scope=where, queue=queue, handled=handled, turn=turn, pressure=before["pressure"], memory=None
        )

    def _not_taken(
        self, state: IngestEventInput, scope: Scope, where: ScopeState, before: IngestEventUpdate, turn: Turn
    ) -> IngestEventUpdate:
        """End an event that is not taken in. A checkpoint keeps its queue, where a call may wait to be carried out."""
        kept = IngestEventUpdate() if _is_own(state, scope) and state.get("queue") else before
        return IngestEventUpdate(**kept | {"scope": where, "turn": turn})

    def _before(
        self, state: IngestEventInput, scope: Scope, thread_id: str, asked: Sequence[str]
    ) -> tuple[ThreadLook, IngestEventUpdate]:
        """Return what the thread's log says, and the queue as it is before the event.

        What is in view is said by the checkpoint, or, without one, by what was kept after the last event of the thread.
        """
        own = _is_own(state, scope) and bool(state.get("queue") or state.get("handled"))
        shown = {message["message_id"]: message for message in state.get("queue") or []} if own else {}
        pressure = (own and state.get("pressure")) or Pressure()
        handled, warned = state.get("handled") or "", pressure.get("warned", False)
        checkpoint = queue_snapshot([*shown.values()], handled=handled, warned=warned, event_id="") if own else None
        look = self.messages.look(scope, thread_id, queue=checkpoint, shown=shown.keys(), asked=asked)
        view = checkpoint or look.kept
        queue = [
            shown[entry["message_id"]]
            if entry["message_id"] in shown and not entry.get("erased")
            else self._shown(QueueMessage.from_json(entry))
            for entry in in_view(view, look)
        ]
        # A queue that something left has room again.
        left = set(view.get("messages", ())) - {message["message_id"] for message in queue}
        return look, IngestEventUpdate(
            queue=queue,
            handled=view.get("handled", ""),
            pressure=Pressure(**pressure | {"warned": view.get("warned", False) and not left}),
        )

    def _interrupted(
        self, state: IngestEventInput, scope: Scope, thread_id: str, queue: Sequence[Mapping[str, Any]], now: float
    ) -> list[dict[str, Any]]:
        """Return calls of a checkpoint that its run did not live to carry out, with the results they have now."""
        if not (_is_own(state, scope) and state.get("queue")):
            return []
        begun = replace(scope, erasures=(state.get("turn") or Turn()).get("erasures", scope.erasures))
        there = {message["message_id"] for message in queue}
        calls = interrupted_calls(state["queue"], self.messages, scope=begun, thread_id=thread_id, moment=now)
        return [message for message in calls if message["message_id"] not in there]

    def _missed(
        self, scope: Scope, thread_id: str, earlier: Sequence[BaseMessage], look: ThreadLook, now: float
    ) -> list[_Part]:
        """Write the exchanges before the event that nobody has taken in; those that were forgotten stay so."""
        parts: list[_Part] = []
        messages = {str(message.id): message for message in earlier}
        for exchange in missed_exchanges(earlier, thread_id=thread_id, said_at=now, marks=look.marks):
            told = [messages[name] for name in exchange.source_ids]
            parts += self._paged(scope, exchange, [part for message in told for part in said_before(message, now=now)])
        return parts

    def _said(self, scope: Scope, thread_id: str, said: Sequence[BaseMessage], now: float) -> list[_Part]:
        """Write what the user says as a page; nothing if it was forgotten."""
        messages = [user_message(message, now=now) for message in said]
        exchanges = exchanges_from_messages(said, thread_id=thread_id, said_at=now)
        return self._paged(scope, exchanges[0], messages) if exchanges else [_Part(messages=messages)]

    def _paged(self, scope: Scope, exchange: Exchange, messages: Sequence[QueueMessage]) -> list[_Part]:
        written = self.pages.write(scope, exchange)
        if written.status == "erased":
            return []
        # A page may begin later than its exchange, where a message before was forgotten.
        there = [
            replace(message, page_id=written.page.page_id)
            for message in messages
            if message.kind != "user_message" or message.message_id in written.page.source_ids
        ]
        return [_Part(messages=there, page=written.page)]

    def _refused(self, scope: Scope, thread_id: str, event: QueueMessage, look: ThreadLook) -> str:
        seconds = self.settings.lease_seconds
        # Delivered again while it runs. One whose queue was not kept was interrupted in this very step, and goes on.
        begun = look.marks.get(event.message_id) == "open" and look.kept.get("event") == event.message_id
        if begun and self.leases.holder(scope, thread_id) == event.message_id:
            return "busy"
        if event.kind != "timed":
            self.leases.seize(scope, thread_id, event.message_id, seconds=seconds)
            return ""
        if self.leases.paused_until(scope) > self.clock():
            return "paused"
        return "" if self.leases.take(scope, thread_id, event.message_id, seconds=seconds) else "busy"

    def _resumed(
        self, scope: Scope, thread_id: str, event: QueueMessage, queue: list[dict[str, Any]], look: ThreadLook
    ) -> tuple[list[dict[str, Any]], Turn]:
        """Return queue and turn of an event that was broken off: its steps and what it said already count."""
        (entry,) = self.messages.get(scope, thread_id, [event.message_id])
        event = QueueMessage.from_json(entry)
        turn = _begun(event, _exchange(None, event, thread_id), look.erasures)
        page = next(iter(self.pages.get(scope, [event.page_id or page_id_of(scope, turn)])), None)
        turn["exchange"] = _exchange(page, event, thread_id).to_json()
        there = {message["message_id"] for message in queue}
        steps = [step + 1 for step in range(self.settings.max_steps) if ids.step_id(event.message_id, step) in there]
        if not steps:
            others = [message for message in queue if message["message_id"] != event.message_id]
            return [*others, self._shown(event)], turn
        if event.message_id not in there:
            # It was evicted while it waited; what it asks stands before its first step.
            names = [message["message_id"] for message in queue]
            at = names.index(ids.step_id(event.message_id, steps[0] - 1))
            queue = [*queue[:at], self._shown(event), *queue[at:]]
        last = ids.step_id(event.message_id, steps[-1] - 1)
        again = _goes_on(parse_queue(queue), last, self.settings)
        sent = [page.reply] if page and page.reply else []
        return queue, Turn(**turn | {"steps": steps[-1], "sent": sent, "again": again})

    def _shown(self, message: QueueMessage) -> dict[str, Any]:
        """Return a message as the queue holds it: one that is larger than the window is visibly truncated."""
        window = self.settings.context_window_tokens
        shown = truncated(message, window, self.count)
        return (shown if shown is message else truncated(message, window // 2, self.count)).to_json()


def _is_own(state: IngestEventInput, scope: Scope) -> bool:
    """Whether a checkpoint is this owner's: that of another user's thread of the same name is nobody else's queue."""
    owner = state.get("scope")
    return owner is None or (owner["user_id"], owner["agent_id"]) == (scope.user_id, scope.agent_id)


def _forgotten(
    where: ScopeState, before: IngestEventUpdate, newest: QueueMessage, look: ThreadLook
) -> IngestEventUpdate:
    """End an event whose user was forgotten while it was taken in.

    A checkpoint has its message all the same: the next event must not take that in.
    """
    turn = erased(_begun(newest, _exchange(None, newest, where["thread_id"]), look.erasures))
    handled = newest.message_id if newest.kind == "user_message" else before["handled"]
    return IngestEventUpdate(**before | {"scope": where, "handled": handled, "turn": turn})


def _unfinished(
    listed: Sequence[BaseMessage], event: QueueMessage | None, look: ThreadLook, now: float
) -> QueueMessage | None:
    """Return the user's newest message, or else the event, if the log has it and its answer was broken off."""
    said = [message for message in listed if message.type == "human"][-1:]
    again = [*(user_message(message, now=now) for message in said), *([event] if event else [])]
    return next((message for message in again if look.marks[message.message_id] == "open"), None)


def _goes_on(queue: Sequence[QueueMessage], step: str, settings: VirtualContextSettings) -> bool:
    """Return whether the model was to be called again after a step; what was thought only was its last word."""
    calls = next(message.calls for message in queue if message.message_id == step)
    failed = {message.call_id for message in queue if message.failed}
    return any(
        call["id"] in failed or goes_on(call["name"], settings, asked=opened(call["name"], call["arguments"])[1])
        for call in calls
    )


def _exchange(page: Page | None, event: QueueMessage, thread_id: str) -> Exchange:
    """Return the exchange of a page, or one that what the agent sends opens: nobody said the event."""
    if page is not None:
        return Exchange.from_json(page.to_json())
    return Exchange(
        query="", reply="", said_at=event.said_at, thread_id=thread_id, source_ids=(event.message_id,)
    )


def _begun(event: QueueMessage, exchange: Exchange, erasures: int) -> Turn:
    begun = _over("", kind=event.kind, erasures=erasures)
    return Turn(**begun | {"event_id": event.message_id, "again": True, "exchange": exchange.to_json()})


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
