"""What comes in from outside, as messages of the queue: an event, and what was said in the parent's conversation."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages

from langgraph_memoryos import ids
from langgraph_memoryos.dialogue import exchanges_from_messages, message_text, position_id, readable
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.model_replies import spoken
from langgraph_memoryos.records import Exchange
from langgraph_memoryos.virtual_log import result_id
from langgraph_memoryos.virtual_state import EVENT_KINDS, QueueMessage

_EARLIEST, _LATEST = -62_135_510_400.0, 253_402_214_400.0
"""Times of a calendar, one day off its ends: the years 1 to 9999."""
_MADE_HERE = {"memoryos": "virtual_context"}


def parse_event(event: Any, *, now: float) -> QueueMessage:
    """Return an event as a message.

    Raises:
        MemoryOSError: it is no event; nothing was written.
    """
    if not isinstance(event, Mapping):
        raise MemoryOSError(f"An event is an object with a kind and a text, not {type(event).__name__}.")
    kind, text, name, moment = (event.get(part) for part in ("kind", "text", "id", "at"))
    if kind not in EVENT_KINDS[1:]:
        raise MemoryOSError(f"An event's kind is one of {', '.join(EVENT_KINDS[1:])}; a user speaks by messages.")
    if not isinstance(text, str | None):
        raise MemoryOSError(f"An event's text must be text, not {type(text).__name__}.")
    if not isinstance(name, str | int | None) or isinstance(name, bool):
        raise MemoryOSError(f"An event's id must be text or an integer, not {type(name).__name__}.")
    moment = now if moment is None else moment
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not _EARLIEST <= moment <= _LATEST:
        raise MemoryOSError(f"An event's at is a time in seconds since the epoch, not {moment!r}.")
    text = readable(text or "")
    event_id = readable(str(name)) if name not in (None, "") else ids.digest("event", kind, text, repr(moment))
    return QueueMessage(message_id=event_id, kind=kind, text=text, said_at=float(moment))


def said_to_user(text: str, name: str) -> AIMessage:
    """Return what the agent said as a message of the conversation, marked as one that recall storage has."""
    return AIMessage(text, id=name, response_metadata=_MADE_HERE)


def conversation(messages: Any) -> list[BaseMessage]:
    """Return what was said in the parent's conversation, each message with an id that is fit for a log."""
    return [
        message.model_copy(update={
            "id": readable(message.id) if message.id else position_id(at, message.type, message_text(message))
        })
        for at, message in enumerate(convert_to_messages(messages))
    ]


def newest_of(messages: Sequence[BaseMessage], names: Sequence[str]) -> str:
    """Return which of some ids comes last in a conversation; the last of them if none is there."""
    return next((str(message.id) for message in reversed(messages) if message.id in names), names[-1])


def split_conversation(
    messages: Sequence[BaseMessage], *, handled: str
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Split a conversation at the user's message that was handled last, and at its newest reply.

    Returns:
        What was said between the two, and the user's messages after both.
    """
    after = max((at + 1 for at, message in enumerate(messages) if message.id == handled), default=0)
    reply = max((at + 1 for at, message in enumerate(messages) if message.type == "ai"), default=0)
    new = [message for message in messages[max(after, reply) :] if message.type == "human"]
    return list(messages[after:reply]), new


def missed_exchanges(
    messages: Sequence[BaseMessage], *, thread_id: str, said_at: float, marks: Mapping[str, str]
) -> list[Exchange]:
    """Return the exchanges of a conversation that no virtual context has seen: of none is any message in a log.

    A reply that a virtual context made shows that its exchange was taken in, perhaps from somebody else.
    """
    seen = {
        str(message.id)
        for message in messages
        if message.response_metadata.items() >= _MADE_HERE.items() or marks.get(str(message.id)) != "unknown"
    }
    exchanges = exchanges_from_messages(messages, thread_id=thread_id, said_at=said_at)
    return [exchange for exchange in exchanges if seen.isdisjoint(exchange.source_ids)]


def user_message(message: BaseMessage, *, now: float) -> QueueMessage:
    """Return what the user said, with its pictures."""
    content = message.content if isinstance(message.content, list) else ()
    return QueueMessage(
        message_id=str(message.id),
        kind="user_message",
        text=message_text(message),
        said_at=now,
        name=readable(message.name or ""),
        blocks=tuple(block for block in content if isinstance(block, dict)),
    )


def said_before(message: BaseMessage, *, now: float) -> list[QueueMessage]:
    """Return a message of an earlier exchange; a reply is what the model would have sent."""
    if message.type == "human":
        return [user_message(message, now=now)]
    name, text = str(message.id), message_text(message)
    if message.type != "ai" or not text.strip():
        return []
    call = spoken(text, prefix=name)
    return [
        QueueMessage(message_id=name, kind="assistant", said_at=now, calls=(call,)),
        QueueMessage(
            message_id=result_id(name, 0), kind="function_result", text="Delivered.", said_at=now,
            call_id=call["id"], name=call["name"],
        ),
    ]
