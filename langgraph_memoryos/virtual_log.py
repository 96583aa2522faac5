"""How messages of the queue enter the log, and which of the log are in the queue.

What was said is quoted from its page, not stored again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_memoryos import ids
from langgraph_memoryos.prompts.function_results import INTERRUPTED
from langgraph_memoryos.records import Exchange, Page, Scope
from langgraph_memoryos.stores.messages import Entry, MessageStore, ThreadLook
from langgraph_memoryos.virtual_queue import groups, parse_queue
from langgraph_memoryos.virtual_state import QueueMessage, Turn

_NO_SUMMARY = "It was erased together with something that was forgotten."


def scope_of(state: Mapping[str, Any]) -> tuple[Scope, str]:
    """Return scope and thread of an event; nothing is written once its user is forgotten."""
    where = state["scope"]
    scope = Scope(user_id=where["user_id"], agent_id=where["agent_id"], erasures=state["turn"]["erasures"])
    return scope, where["thread_id"]


def page_id_of(scope: Scope, turn: Turn) -> str:
    """Return the id of the page that the turn's exchange is, or becomes once something is said."""
    exchange = Exchange.from_json(turn["exchange"] or {})
    return ids.page_id(
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        thread_id=exchange.thread_id,
        source_id=exchange.source_ids[0],
    )


def erased(turn: Turn) -> Turn:
    """Return the turn of a user who was erased meanwhile: nothing follows."""
    return Turn(**turn | {"again": False, "reason": "erased"})


def interrupted_calls(
    queue: list[dict[str, Any]],
    messages: MessageStore,
    *,
    scope: Scope,
    thread_id: str,
    moment: float,
) -> list[dict[str, Any]]:
    """Return the calls of a queue that have no result, each with one, in the log as well: no server takes a call without.

    A run that ended between a call and its result leaves such a call. What the log has of it is true; else the
    result is ``Failed`` and says that nobody knows whether the call was carried out.

    Args:
        queue: The queue as the run left it.
        messages: The log.
        scope: Whose, and when the run began: nothing is written once the user is forgotten, and nothing returned.
        thread_id: Of which thread.
        moment: When the result is given, in seconds since the epoch.
    """
    whole: list[dict[str, Any]] = []
    for group in groups(parse_queue(queue)):
        assistant, answered = group[0], {message.call_id: message for message in group[1:]}
        results = [
            answered.get(call["id"])
            or QueueMessage(
                message_id=result_id(assistant.message_id, at),
                kind="function_result",
                text=INTERRUPTED,
                said_at=moment,
                call_id=call["id"],
                name=call["name"],
                failed=True,
            )
            for at, call in enumerate(assistant.calls)
        ]
        if len(answered) == len(results):
            continue
        names = [message.message_id for message in (assistant, *results)]
        logged = {entry["message_id"]: QueueMessage.from_json(entry) for entry in messages.get(scope, thread_id, names)}
        missing = [message for message in (assistant, *results) if message.message_id not in logged]
        if messages.append(scope, thread_id, log_entries(missing, None)):
            whole += [logged.get(message.message_id, message).to_json() for message in (assistant, *results)]
    return whole


def queue_snapshot(queue: Sequence[Mapping[str, Any]], *, handled: str, warned: bool, event_id: str) -> Entry:
    """Return what a run without a checkpoint needs to go on.

    These are the messages of the queue, the newest that its summary stands for, the user's message and the event that
    were taken in last, and whether the warning was given.
    """
    return {
        "messages": [message["message_id"] for message in queue],
        "until": queue[0].get("until", "") if queue else "",
        "handled": handled,
        "event": event_id,
        "warned": warned,
    }


def in_view(queue: Entry, look: ThreadLook) -> list[Entry]:
    """Return the queue as the log has it: its summary, and every message that this does not stand for, in order.

    So messages of another event that ran meanwhile are there, and erased ones are not. A call without its results, as a
    crash leaves it, is left out.
    """
    logged = {entry["message_id"]: entry for entry in (*look.before, *look.after)}
    found: list[Entry] = []
    if queue.get("until") and (summary := logged.get(queue["messages"][0])):
        found.append(summary | {"text": _NO_SUMMARY} if summary.get("erased") else summary)
    for entry in logged.values():
        if entry["kind"] not in ("summary", "function_result"):
            results = [logged.get(result_id(entry["message_id"], at)) for at in range(len(entry.get("calls", ())))]
            group = [each for each in (entry, *results) if each and not each.get("erased")]
            found += group if len(group) == 1 + len(results) else []
    return found


def overlooked(queue: Entry, look: ThreadLook, *, until: str) -> list[Entry]:
    """Return what another event logged before ``until`` and the queue lacks: the new summary does not stand for it.

    Args:
        queue: Snapshot of the queue before the eviction.
        look: The log as it is now.
        until: Id of the newest message that is evicted.
    """
    order = [entry["message_id"] for entry in look.after]
    summarised = set(order[: order.index(until)]) if until in order else set()
    unseen = summarised.difference(queue["messages"])
    return [entry for entry in in_view(queue, look) if entry["message_id"] in unseen] if unseen else []


def result_id(message_id: str, call: int) -> str:
    """Return the id of the result of a call (from 0) of an assistant's message."""
    return f"{message_id}-result-{call}"


def log_entries(messages: Sequence[QueueMessage], page: Page | None) -> list[Entry]:
    """Return the messages as log entries; texts that stand in ``page`` become quotes of it."""
    entries: list[Entry] = []
    for message in messages:
        entry = {name: value for name, value in message.to_json().items() if value not in ("", [], False)}
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
