"""What a conversation is before it is memory: turns, grouped into exchanges.

One rule serves every source, message lists of a running graph and imported files alike: an exchange is what
the user said, in one or several messages, and everything the agent said before the user spoke again.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    ToolMessage,
)

from langgraph_memoryos.records import Exchange, JoinedExchange

Role = Literal["user", "agent", "tool", "instruction"]
"""Who a message is from; only ``user`` and ``agent`` messages are dialogue."""

ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "ai": "agent",
    "tool": "tool",
    "function": "tool",
    "system": "instruction",
    "developer": "instruction",
}
"""The role names of OpenAI's and LangChain's message lists."""

_NOT_SAID = {"reasoning", "thinking", "tool_use", "tool_call", "tool_result", "function_call"}
_PLACEHOLDERS = {
    "image": "[image]",
    "audio": "[audio]",
    "video": "[video]",
    "file": "[file]",
    "document": "[file]",
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a conversation, asked after it, with what a right answer rests on.

    Attributes:
        text: The question.
        answer: The right answer; empty where the right answer is that it was never said.
        evidence: Source ids of the exchanges that hold the answer.
        category: The file's own name for the kind of question, such as ``temporal`` or LoCoMo's ``2``.
    """

    text: str
    answer: str
    evidence: tuple[str, ...] = ()
    category: str = ""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """All sessions of one user with one agent, in the order they took place.

    Attributes:
        sample_id: Name of the conversation within its file.
        user_name: Display name of the user, or empty.
        agent_name: Display name of the agent, or empty.
        exchanges: The exchanges of all sessions; ``thread_id`` tells the sessions apart.
        questions: Questions that come with the file; they are not part of the dialogue.
        undated: How many of the exchanges have no time of their own in the file.
    """

    sample_id: str
    user_name: str
    agent_name: str
    exchanges: tuple[Exchange, ...]
    questions: tuple[Question, ...] = ()
    undated: int = 0


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of one side. Tool calls and tool results are turns of the agent without text."""

    speaker: Literal["user", "agent"]
    text: str
    turn_id: str
    name: str = ""
    said_at: float | None = None


def group_turns(turns: Iterable[Turn], *, thread_id: str, said_at: float) -> list[Exchange]:
    """Group the turns of one session into exchanges; every text survives verbatim and in order.

    Turns of one side in a row are joined with a newline. An agent that speaks first gives an exchange with an
    empty query, a user without an answer one with an empty reply. Exchanges in which nobody said anything are
    left out, and so are textless turns before the first user turn (the tail of an exchange cut off earlier).

    Args:
        turns: The turns in order.
        thread_id: The session.
        said_at: Seconds since the epoch (UTC) for exchanges none of whose turns has a time of its own.

    Returns:
        The exchanges in order; ``source_ids`` are the ids of all their turns, textless ones included.
    """
    runs: list[list[Turn]] = []
    for turn in turns:
        if not runs or _starts_exchange(runs[-1], turn):
            runs.append([])
        runs[-1].append(turn)
    exchanges = [_exchange(run, thread_id, said_at) for run in runs]
    return [exchange for exchange in exchanges if exchange.query.strip() or exchange.reply.strip()]


def _starts_exchange(run: list[Turn], turn: Turn) -> bool:
    """Whether ``turn`` opens a new exchange: the user speaks, and the agent has said something since."""
    if turn.speaker == "agent":
        return False
    if run[0].speaker == "agent":
        return True
    since = takewhile(lambda earlier: earlier.speaker == "agent", reversed(run))
    return any(earlier.text.strip() for earlier in since)


def _exchange(run: list[Turn], thread_id: str, said_at: float) -> Exchange:
    """Join the turns of one exchange."""

    def joined(speaker: str) -> str:
        return "\n".join(turn.text for turn in run if turn.speaker == speaker and turn.text)

    def named(speaker: str) -> str:
        return next((turn.name for turn in run if turn.speaker == speaker and turn.name), "")

    exchange = Exchange(
        query=joined("user"),
        reply=joined("agent"),
        said_at=next((turn.said_at for turn in run if turn.said_at is not None), said_at),
        thread_id=thread_id,
        source_ids=tuple(turn.turn_id for turn in run),
        user_name=named("user"),
        agent_name=named("agent"),
    )
    later = _later_messages(run)
    return JoinedExchange(**vars(exchange), later=later) if later else exchange


def newest_message(exchange: Exchange) -> Exchange:
    """Return the exchange without what the user's newest message in it follows."""
    if isinstance(exchange, JoinedExchange) and exchange.later:
        return exchange.since(len(exchange.later) - 1)
    return exchange


def _later_messages(run: list[Turn]) -> tuple[tuple[int, int], ...]:
    """Return, per user turn but the first, its place in the run and where its text begins in the joined query."""
    found: list[tuple[int, int]] = []
    start = 0
    for place, turn in enumerate(run):
        if turn.speaker == "user":
            found.append((place, start))
            start += len(turn.text) + 1 if turn.text else 0
    return tuple(found[1:])


def exchanges_from_messages(
    messages: Sequence[BaseMessage], *, thread_id: str, said_at: float
) -> list[Exchange]:
    """Group a LangChain message list into exchanges, by the rule of :func:`group_turns`.

    System messages and removals are no dialogue. Tool results, and agent messages that only call tools, add
    no text, but their ids belong to the exchange they serve.

    Args:
        messages: The messages of one thread, in order. One without an id gets a hash of its text and position
            (give the list from its beginning: a slice would give such a message another id), one of the user also of
            what the agent answers, so that two conversations that begin with the same word stay two.
        thread_id: The thread.
        said_at: Dialogue time in seconds since the epoch (UTC); messages carry none, so all exchanges get it.
    """
    turns = (_turn(position, message, _answers(messages, position)) for position, message in enumerate(messages))
    return group_turns((turn for turn in turns if turn), thread_id=thread_id, said_at=said_at)


def _answers(messages: Sequence[BaseMessage], position: int) -> Iterator[str]:
    """Yield what is said between the user's message at ``position`` and the next one."""
    if _role(messages[position]) == "user":
        following = (messages[number] for number in range(position + 1, len(messages)))
        yield from map(message_text, takewhile(lambda later: _role(later) != "user", following))


def _turn(position: int, message: BaseMessage, answers: Iterator[str]) -> Turn | None:
    """Return the message as a turn, or nothing if it is no part of the dialogue."""
    role = _role(message)
    if role == "instruction":
        return None
    text = message_text(message)
    return Turn(
        speaker="user" if role == "user" else "agent",
        text="" if role == "tool" else text,
        turn_id=readable(message.id) if message.id else position_id(position, role, text, *answers),
        name="" if role == "tool" else readable(message.name or ""),
    )


def _role(message: BaseMessage) -> Role:
    """Tell whom a LangChain message is from; kinds that nobody says count as instructions."""
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage):
        return "agent"
    if isinstance(message, ToolMessage | FunctionMessage):
        return "tool"
    if isinstance(message, ChatMessage):
        return ROLES.get(message.role.lower(), "instruction")
    return "instruction"


def message_text(message: BaseMessage) -> str:
    """Return what a message says, content blocks flattened as in :func:`content_text`."""
    return content_text(message.content)


def content_text(content: object) -> str:
    """Flatten message content: the text of its blocks, one per line, and ``[image]`` and the like for media.

    Reasoning, tool calls and tool results were not said to anybody and give nothing.
    """
    blocks = content if isinstance(content, list) else [content]
    return readable("\n".join(filter(None, map(_block_text, blocks))))


def _block_text(block: object) -> str:
    """Return the text of one content block, or a placeholder."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return ""
    kind = str(block.get("type", ""))
    if any(name in kind for name in _NOT_SAID):
        return ""
    said = next((block[key] for key in ("text", "refusal") if isinstance(block.get(key), str)), None)
    if said is not None:
        return str(said)
    return next((text for name, text in _PLACEHOLDERS.items() if name in kind), "")


def readable(text: str) -> str:
    """Return ``text`` with each lone surrogate, which no UTF-8 store can hold, replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def position_id(position: int, *parts: Any) -> str:
    """Return a stable id for a message that has none: a hash of its position and of what it says."""
    content = "\0".join([str(position), *map(str, parts)])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]
