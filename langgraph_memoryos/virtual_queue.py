"""Arithmetic of the FIFO queue, without Redis and without a model (MemGPT, section 2.2).

A function call and its results are one group: they leave together or stay together.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langgraph_memoryos.text_size import clip, count_tokens
from langgraph_memoryos.virtual_settings import ContextWindowError
from langgraph_memoryos.virtual_state import QueueMessage

CountTokens = Callable[[str], int]

MESSAGE_OVERHEAD_TOKENS = 24
"""Role, envelope and time of a message, which its text does not show."""
_SHORTEST_CLIP_TOKENS = 16
_CLIPPED = "[truncated: the middle is left out here; the full text is in recall storage]"


def parse_queue(queue: Sequence[dict[str, Any]]) -> list[QueueMessage]:
    """Return the messages of a queue in graph state."""
    return [QueueMessage.from_json(message) for message in queue]


def message_tokens(message: QueueMessage, count: CountTokens = count_tokens) -> int:
    """Return the tokens a message costs in a prompt."""
    calls = sum(
        count(json.dumps(call["arguments"], ensure_ascii=False)) + count(call["name"]) + 8
        for call in message.calls
    )
    # Texts stand in envelopes of JSON, where quotes and line ends are escaped.
    return MESSAGE_OVERHEAD_TOKENS + count(json.dumps(message.text, ensure_ascii=False)) + calls


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
    count: CountTokens = count_tokens,
) -> tuple[list[QueueMessage], list[QueueMessage]]:
    """Split the queue (without its summary) into what is evicted and what is kept.

    Args:
        messages: The queue, oldest first, without the summary.
        free_tokens: Tokens to set free, if the newest ``keep_last`` messages allow it.
        keep_last: Newest messages that stay; a group that reaches into them stays whole.
        count: Counts tokens.
    """
    evictable = len(messages) - keep_last
    evicted: list[QueueMessage] = []
    freed = 0
    for group in groups(messages):
        if freed >= free_tokens or len(evicted) + len(group) > evictable:
            break
        evicted += group
        freed += queue_tokens(group, count)
    return evicted, list(messages[len(evicted) :])


def truncated(message: QueueMessage, max_tokens: int, count: CountTokens = count_tokens) -> QueueMessage:
    """Return the message with the middle of its texts visibly left out, at most about ``max_tokens`` long."""
    if message_tokens(message, count) <= max_tokens:
        return message
    share = max(
        _SHORTEST_CLIP_TOKENS, (max_tokens - MESSAGE_OVERHEAD_TOKENS) // max(1, len(message.calls) + 1)
    )
    text = message.text
    if count(text) > share:
        marked = max(4, share - count(_CLIPPED) - 2)
        text = f"{clip(text, marked)}\n{_CLIPPED}"
    calls = tuple(
        call | {"arguments": _clipped_arguments(call["arguments"], share)} for call in message.calls
    )
    return replace(message, text=text, calls=calls, blocks=())


def _clipped_arguments(arguments: Any, max_tokens: int) -> Any:
    if isinstance(arguments, str):
        return clip(arguments, max_tokens)
    if not isinstance(arguments, dict):
        return arguments
    share = max(4, max_tokens // max(1, len(arguments)))
    return {
        clip(name, share): clip(value, share) if isinstance(value, str) else _small(value, share)
        for name, value in arguments.items()
    }


def _small(value: Any, max_tokens: int) -> Any:
    written = json.dumps(value, ensure_ascii=False)
    return value if count_tokens(written) <= max_tokens else clip(written, max_tokens)


def shrunk(
    messages: Sequence[QueueMessage],
    *,
    max_tokens: int,
    count: CountTokens = count_tokens,
) -> list[QueueMessage]:
    """Truncate the longest messages, visibly, until all together cost at most ``max_tokens``.

    Raises:
        ContextWindowError: they do not fit, however short they are made.
    """
    kept = list(messages)
    costs = [message_tokens(message, count) for message in kept]
    while (excess := sum(costs) - max_tokens) > 0:
        for longest in sorted(range(len(kept)), key=lambda at: -costs[at]):
            shorter = truncated(kept[longest], max(costs[longest] // 2, costs[longest] - excess), count)
            if (cost := message_tokens(shorter, count)) < costs[longest]:
                kept[longest], costs[longest] = shorter, cost
                break
        else:
            raise ContextWindowError(
                "The context window is too small: system instructions, working context and the newest "
                "messages fill it "
                "and nothing is left to evict. Raise context_window_tokens, or offer fewer functions.",
            )
    return kept
