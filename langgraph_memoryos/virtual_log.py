"""How messages of the queue enter the log: what was said is quoted from its page, not stored again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph_memoryos.prompts.function_results import INTERRUPTED
from langgraph_memoryos.records import Page, Scope
from langgraph_memoryos.stores.messages import Entry, MessageStore
from langgraph_memoryos.virtual_queue import groups, parse_queue
from langgraph_memoryos.virtual_state import QueueMessage, Turn


def scope_of(state: Mapping[str, Any]) -> tuple[Scope, str]:
    """Return scope and thread of an event; nothing is written once its user is forgotten."""
    where = state["scope"]
    scope = Scope(user_id=where["user_id"], agent_id=where["agent_id"], erasures=state["turn"]["erasures"])
    return scope, where["thread_id"]


def erased(turn: Turn) -> Turn:
    """Return the turn of a user who was erased meanwhile: nothing follows."""
    return Turn(**turn | {"again": False, "reason": "erased"})


def result_id(assistant: QueueMessage, at: int) -> str:
    """Return the id of the result of an assistant message's call number ``at``."""
    return f"{assistant.message_id}-result-{at}"


def with_results(
    queue: list[dict[str, Any]],
    messages: MessageStore,
    *,
    scope: Scope,
    thread_id: str,
    moment: float,
) -> list[dict[str, Any]]:
    """Return the queue with a result for every call, in the log as well: no server takes a call without one.

    A run that ended between a call and its result leaves such a call. What the log has of it is true; else the
    result is ``Failed`` and says that nobody knows whether the call was carried out.

    Args:
        queue: The queue as the run left it.
        messages: The log.
        scope: Whose.
        thread_id: Of which thread.
        moment: When the result is given, in seconds since the epoch.
    """
    whole: list[dict[str, Any]] = []
    for group in groups(parse_queue(queue)):
        assistant, answered = group[0], {message.call_id for message in group[1:]}
        whole += [message.to_json() for message in group]
        missing = [
            QueueMessage(
                message_id=result_id(assistant, at),
                kind="function_result",
                text=INTERRUPTED,
                said_at=moment,
                call_id=call["id"],
                name=call["name"],
                failed=True,
            )
            for at, call in enumerate(assistant.calls)
            if call["id"] not in answered
        ]
        if missing:
            # A message that the log has already stays there as it is.
            messages.append(scope, thread_id, log_entries([assistant, *missing], None))
            found = messages.get(scope, thread_id, [message.message_id for message in missing])
            logged = {entry["message_id"]: QueueMessage.from_json(entry) for entry in found}
            whole += [_as_logged(message, logged.get(message.message_id, message)).to_json() for message in missing]
    return whole


def _as_logged(message: QueueMessage, logged: QueueMessage) -> QueueMessage:
    return replace(message, text=logged.text, failed=logged.failed, said_at=logged.said_at)


def queue_snapshot(queue: Sequence[Mapping[str, Any]], *, handled: str, warned: bool) -> Entry:
    """Return what a run without a checkpoint needs to go on: which messages are in the queue."""
    return {"messages": [message["message_id"] for message in queue], "handled": handled, "warned": warned}


def log_entries(messages: Sequence[QueueMessage], page: Page | None) -> list[Entry]:
    """Return the messages as log entries; texts that stand in ``page`` become quotes of it."""
    entries: list[Entry] = []
    for message in messages:
        entry = {name: value for name, value in message.to_json().items() if value not in ("", (), False)}
        entry |= {"message_id": message.message_id, "kind": message.kind, "said_at": message.said_at}
        if page is not None:
            _quote(entry, page)
        entries.append(entry)
    return entries


def _quote(entry: Entry, page: Page) -> None:
    if entry["kind"] == "user_message" and (quote := _found(page, "query", entry.get("text", ""))):
        entry["quote"] = quote
        del entry["text"]
    if entry.get("calls"):
        entry["calls"] = [_quoted_call(call, page) for call in entry["calls"]]


def _quoted_call(call: dict[str, Any], page: Page) -> dict[str, Any]:
    arguments = call["arguments"]
    message = (
        arguments.get("message") if call["name"] == "send_message" and isinstance(arguments, dict) else None
    )
    if not isinstance(message, str) or not (quote := _found(page, "reply", message)):
        return call
    rest = {name: value for name, value in arguments.items() if name != "message"}
    return call | {"arguments": rest, "quote": quote}


def _found(page: Page, side: str, text: str) -> dict[str, Any] | None:
    whole = page.query if side == "query" else page.reply
    # The newest of equal texts: replies grow at their end.
    start = whole.rfind(text) if text else -1
    return {"page": page.page_id, "side": side, "start": start, "length": len(text)} if start >= 0 else None
