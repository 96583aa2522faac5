"""Arithmetic of the FIFO queue, without Redis and without a model (MemGPT, section 2.2).

A function call and its results are one group: they leave together or stay together.
"""

import itertools
import json
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from langgraph_memoryos.text_size import clip, count_tokens
from langgraph_memoryos.virtual_state import QueueMessage

CountTokens = Callable[[str], int]

MESSAGE_OVERHEAD_TOKENS = 24
"""Role, envelope and time of a message, which its text does not show."""
CALL_OVERHEAD_TOKENS = 8
"""Id and envelope of a function call."""
LEAST_MEDIA_TOKENS = 85
"""What an image, file, audio or video costs at least: as a thumbnail does with OpenAI."""
MOST_IMAGE_TOKENS = 1600
"""What a picture costs at most with Anthropic, which shrinks larger ones; assumed of one given by its address."""
MEDIA_CHARACTERS_PER_TOKEN = 100
"""Characters (mostly base64) of such a block that count as one token more."""
_SHORTEST_CLIP_TOKENS = 16
_ROUNDING_TOKENS = 4
_CLIPPED = "[truncated: the middle is left out here; the full text is in recall storage]"
_LEFT_OUT = "[{count} attached item(s) left out here: too large for the context window]"


def parse_queue(queue: Sequence[dict[str, Any]]) -> list[QueueMessage]:
    """Return the messages of a queue in graph state."""
    return [QueueMessage.from_json(message) for message in queue]


def message_tokens(message: QueueMessage, count: CountTokens = count_tokens) -> int:
    """Return the tokens a message costs in a prompt; what is attached to it counts as :func:`media_tokens` says."""
    return (
        MESSAGE_OVERHEAD_TOKENS
        + _written_tokens(message.text, count)
        + sum(
            CALL_OVERHEAD_TOKENS + count(call["name"]) + _written_tokens(call["arguments"], count)
            for call in message.calls
        )
        + sum(map(media_tokens, media_of(message.blocks)))
    )


def _written_tokens(value: Any, count: CountTokens) -> int:
    """Return the tokens of a text or of arguments as a prompt has them: in JSON, quotes and line ends escaped."""
    return count(json.dumps(value, ensure_ascii=False))


def media_of(blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the content blocks that are not text; text stands in the message's own."""
    return [block for block in blocks if not isinstance(block.get("text"), str)]


def media_tokens(block: dict[str, Any]) -> int:
    """Estimate the tokens of an image, file, audio or video by the size of its block; an image has a bound.

    What a provider really counts depends on pixels, pages and seconds, which only a decoder would know.
    """
    written = json.dumps(block, default=str)
    estimate = LEAST_MEDIA_TOKENS + len(written) // MEDIA_CHARACTERS_PER_TOKEN
    if "image" not in f"{block.get('type')} {block.get('mime_type')}":
        return estimate
    return MOST_IMAGE_TOKENS if "://" in written else min(MOST_IMAGE_TOKENS, estimate)


def queue_tokens(messages: Sequence[QueueMessage], count: CountTokens = count_tokens) -> int:
    """Return the tokens of all messages."""
    return sum(message_tokens(message, count) for message in messages)


def groups(messages: Sequence[QueueMessage]) -> list[list[QueueMessage]]:
    """Split messages into what leaves together: an assistant message with the results that follow it."""
    found: list[list[QueueMessage]] = []
    for message in messages:
        if message.kind == "function_result" and found and found[-1][0].calls:
            found[-1].append(message)
        else:
            found.append([message])
    return found


def split_summary(queue: list[QueueMessage]) -> tuple[QueueMessage | None, list[QueueMessage]]:
    """Return the summary, if the queue begins with one, and the rest."""
    if queue and queue[0].kind == "summary":
        return queue[0], queue[1:]
    return None, queue


def split_queue(
    messages: Sequence[QueueMessage],
    *,
    free_tokens: int,
    keep_last: int,
    event: Collection[str] = (),
    count: CountTokens = count_tokens,
) -> tuple[list[QueueMessage], list[QueueMessage]]:
    """Split the queue (without its summary) into what is evicted and what is kept.

    What is being answered stays: the event, and the newest step after it with all that no model has seen yet.

    Args:
        messages: The queue, oldest first, without the summary.
        free_tokens: Tokens to set free, if what has to stay allows it.
        keep_last: Newest messages that stay, warnings not counted; a group that reaches into them stays whole.
        event: Ids of the messages of the event that is being answered.
        count: Counts tokens.
    """
    stays = _stays_from(messages, keep_last=keep_last, event=event)
    evicted: list[QueueMessage] = []
    freed = at = 0
    for group in groups(messages):
        at += len(group)
        if freed >= free_tokens or at > stays:
            break
        if not any(message.message_id in event for message in group):
            evicted += group
            freed += queue_tokens(group, count)
    return evicted, remaining(messages, evicted)


def _stays_from(messages: Sequence[QueueMessage], *, keep_last: int, event: Collection[str]) -> int:
    """Return the place from which on everything stays."""
    counted = [at for at, message in enumerate(messages) if message.kind != "memory_pressure"]
    last = counted[-keep_last] if len(counted) >= keep_last else 0
    begun = next((at for at, message in enumerate(messages) if message.message_id in event), len(messages))
    steps = (at for at in range(begun, len(messages)) if messages[at].kind == "assistant")
    return min(last, max(steps, default=begun))


def remaining(messages: Sequence[QueueMessage], evicted: Sequence[QueueMessage]) -> list[QueueMessage]:
    """Return the messages without the evicted ones, which are in the same order."""
    leaving = deque(message.message_id for message in evicted)
    kept = []
    for message in messages:
        if leaving and leaving[0] == message.message_id:
            leaving.popleft()
        else:
            kept.append(message)
    return kept


def warning_waits(messages: Sequence[QueueMessage]) -> bool:
    """Return whether a memory-pressure warning is in the queue that no model has seen yet."""
    unseen = itertools.takewhile(lambda message: message.kind != "assistant", reversed(messages))
    return any(message.kind == "memory_pressure" for message in unseen)


def shrunk(
    messages: Sequence[QueueMessage],
    *,
    max_tokens: int,
    count: CountTokens = count_tokens,
) -> list[QueueMessage]:
    """Truncate the longest messages, visibly, until all together cost at most ``max_tokens``, or none can be shorter."""
    kept = list(messages)
    costs = [message_tokens(message, count) for message in kept]
    while (excess := sum(costs) - max_tokens) > 0:
        for longest in sorted(range(len(kept)), key=lambda at: -costs[at]):
            target = max(costs[longest] // 2, costs[longest] - excess - _ROUNDING_TOKENS)
            shorter = truncated(kept[longest], target, count)
            if (cost := message_tokens(shorter, count)) < costs[longest]:
                kept[longest], costs[longest] = shorter, cost
                break
        else:
            break
    return kept


def truncated(message: QueueMessage, max_tokens: int, count: CountTokens = count_tokens) -> QueueMessage:
    """Return the message at most about ``max_tokens`` long: without attachments that do not fit, texts clipped.

    Both are visible, and recall storage has the message whole.
    """
    if message_tokens(message, count) <= max_tokens:
        return message
    message = _with_fewer_media(message, max_tokens, count)
    if message_tokens(message, count) <= max_tokens:
        return message
    bare = replace(message, text="", calls=tuple(call | {"arguments": ""} for call in message.calls))
    parts = bool(message.text) + len(message.calls)
    share = max(_SHORTEST_CLIP_TOKENS, (max_tokens - message_tokens(bare, count)) // max(1, parts))
    text = message.text
    if _written_tokens(text, count) > share:
        marked = max(4, share - count(_CLIPPED) - 2)
        text = f"{_clipped(text.removesuffix(_CLIPPED).rstrip(), marked, count)}\n{_CLIPPED}"
    calls = tuple(
        call | {"arguments": _shorter(call["arguments"], share, count)} for call in message.calls
    )
    return replace(message, text=text, calls=calls)


def _with_fewer_media(message: QueueMessage, max_tokens: int, count: CountTokens) -> QueueMessage:
    """Return the message without its first attachments, as many as have to go, and a note of it."""
    media = media_of(message.blocks)
    shorter = message
    for left_out in range(1, len(media) + 1):
        note = _LEFT_OUT.format(count=left_out)
        shorter = replace(message, text=f"{message.text}\n{note}", blocks=tuple(media[left_out:]))
        if message_tokens(shorter, count) <= max_tokens:
            break
    return shorter


def _clipped(text: str, max_tokens: int, count: CountTokens) -> str:
    """Return the text with its middle left out, so that it costs at most about ``max_tokens`` as it is written."""
    room = max_tokens
    while (cost := _written_tokens(clipped := clip(text, room), count)) > max_tokens and room > 0:
        room = min(room - 1, room * max_tokens // cost)
    return clipped


def _shorter(arguments: Any, max_tokens: int, count: CountTokens) -> Any:
    """Return arguments, or one of them, with long texts clipped; an object stays one."""
    if _written_tokens(arguments, count) <= max_tokens:
        return arguments
    whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    if not isinstance(arguments, dict):
        return _clipped(whole, max_tokens, count)
    room = max_tokens - _written_tokens(dict.fromkeys(arguments, ""), count)
    share = max(4, room // max(1, len(arguments)))
    shorter = {name: _shorter(value, share, count) for name, value in arguments.items()}
    if _written_tokens(shorter, count) <= max_tokens:
        return shorter
    return {"truncated": _clipped(whole, max_tokens - 5, count)}
