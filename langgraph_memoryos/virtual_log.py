"""How messages of the queue enter the log: what was said is quoted from its page, not stored again."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_memoryos.records import Page, Scope
from langgraph_memoryos.stores.messages import Entry
from langgraph_memoryos.virtual_state import QueueMessage, Turn


def scope_of(state: Mapping[str, Any]) -> tuple[Scope, str]:
    """Return scope and thread of a state."""
    return Scope.from_json(state["scope"]), state["scope"]["thread_id"]


def erased(turn: Turn) -> Turn:
    """Return the turn of a user who was erased meanwhile: nothing follows."""
    return Turn(**turn | {"again": False, "reason": "erased"})


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
