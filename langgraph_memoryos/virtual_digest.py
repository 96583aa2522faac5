"""Messages of the queue as a summariser reads them, and a summary that needs no model."""

from collections.abc import Sequence

from langgraph_memoryos.prompts.virtual_context import call_text, transcript_line
from langgraph_memoryos.text_size import clip, count_tokens, split_sentences
from langgraph_memoryos.virtual_state import QueueMessage

_SENTENCE_TOKENS = 40
_READ_CHARACTERS = 20_000
_WHO = {"user_message": "user", "assistant": "assistant", "function_result": "result"}


def said_by(message: QueueMessage) -> list[str]:
    """Return what a message said to somebody: the user's text, or what the assistant sent."""
    if message.kind == "user_message":
        return [message.text]
    arguments = [call["arguments"] for call in message.calls if call["name"] == "send_message"]
    return [str(given["message"]) for given in arguments if isinstance(given, dict) and given.get("message")]


def transcript(message: QueueMessage, *, max_tokens: int) -> str:
    """Return a message as one line for a summariser."""
    text = message.text
    if message.calls:
        other = [call for call in message.calls if call["name"] != "send_message"]
        text = (
            "\n".join(part for part in (*said_by(message), call_text(other) if other else "") if part) or text
        )
    return transcript_line(_WHO.get(message.kind, message.kind), text, max_tokens=max_tokens)


def digest(summary: str, evicted: Sequence[QueueMessage], *, max_tokens: int) -> str:
    """Return a summary without a model: the old one, then the first sentence of everything that was said."""
    lines = [
        f"{_WHO[message.kind]}: {clip(' '.join(sentences[0].split()), _SENTENCE_TOKENS)}"
        for message in evicted
        for text in said_by(message)
        if (sentences := split_sentences(text[:_READ_CHARACTERS]))
    ]
    return joined_summary(summary, "\n".join(lines), max_tokens=max_tokens) or "(no dialogue)"


def joined_summary(old: str, new: str, *, max_tokens: int) -> str:
    """Return the old summary followed by new text; each has half of the room, or what the other leaves."""
    new = clip(new, max(max_tokens // 2, max_tokens - count_tokens(old) - 1))
    old = clip(old, max(1, max_tokens - count_tokens(new) - 1))
    return clip("\n".join(part for part in (old, new) if part), max_tokens)
