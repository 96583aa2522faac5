"""Conversation files, read into exchanges that can be replayed into memory.

Three formats are recognised from the content, never from the file's name:

* our JSON Lines, one exchange per line, ``{"user", "assistant", "at", "thread", "id"}`` with optional
  ``user_name``, ``agent_name`` and ``conversation``, and question lines
  ``{"question", "answer", "evidence"}`` with optional ``category`` and ``conversation``;
* OpenAI message lists, ``[{"role", "content"}, ...]`` or ``{"messages": [...]}``, one or several (a list of
  them, or JSON Lines as in fine-tuning files); one message per line is one conversation;
* LoCoMo's JSON, see :mod:`langgraph_memoryos.locomo`.

Times without an offset are UTC. An exchange without a time takes that of the exchange before it in its
conversation, or of the first one that has a time; if none has, all take ``undated_at``, by default the time
of the call. Equal times are fine: the order of the list is the order of the dialogue. Lone surrogates become
U+FFFD; every other character, NUL included, is kept as it is. Keys that no format knows are ignored.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from langgraph_memoryos.dialogue import (
    ROLES,
    Conversation,
    Question,
    Turn,
    content_text,
    exchanges_from_messages,
    group_turns,
    message_text,
    position_id,
)
from langgraph_memoryos.documents import Document, decode, read_documents
from langgraph_memoryos.locomo import is_sample, read_sample
from langgraph_memoryos.records import Exchange

__all__ = [
    "Conversation",
    "Question",
    "exchanges_from_messages",
    "load",
    "message_text",
    "parse",
]

Kind = Literal["LoCoMo sample", "message list", "message", "exchange or question"]


def load(
    path: str | os.PathLike[str], sample: str | None = None, *, undated_at: float | None = None
) -> list[Conversation]:
    """Read a conversation file.

    Args:
        path: The file.
        sample: Give only the conversation of this ``sample_id``.
        undated_at: Seconds since the epoch (UTC) for conversations without any time; by default now.

    Returns:
        The conversations in the file's order. One that has no id of its own is named after the file, with a
        number if there are several.

    Raises:
        ConversationFormatError: The file cannot be read, is in no known format, holds no dialogue, or has no
            conversation named ``sample``. The message names the line (in a JSON value of several lines: the
            element) and says what to do, and never quotes what was said.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error}); give the path of a conversation file"
        raise Document(str(file), None).error(problem) from error
    return parse(decode(content, file.name), name=file.name, sample=sample, undated_at=undated_at)


def parse(
    text: str, *, name: str, sample: str | None = None, undated_at: float | None = None
) -> list[Conversation]:
    """Read conversations from the text of a file called ``name``; see :func:`load`."""
    documents = _unpacked(read_documents(text, name))
    kind = _common_kind(documents)
    stem, moment = Path(name).stem, time.time() if undated_at is None else undated_at
    if kind == "exchange or question":
        conversations = _from_lines(documents, stem, moment)
    elif kind == "message":
        conversations = [_from_messages(documents, stem, moment)]
    else:
        names = [stem] if len(documents) == 1 else [f"{stem}-{n}" for n in range(1, len(documents) + 1)]
        read = _from_sample if kind == "LoCoMo sample" else _from_message_list
        conversations = [read(*pair, moment) for pair in zip(documents, names, strict=True)]
    if not any(conversation.exchanges for conversation in conversations):
        raise Document(name, None).error("it holds no dialogue; give a file in which somebody says something")
    return _picked(conversations, sample, name)


def _picked(conversations: list[Conversation], sample: str | None, name: str) -> list[Conversation]:
    """Return all conversations, or the one that was asked for."""
    picked = [conversation for conversation in conversations if sample in (None, conversation.sample_id)]
    if not picked:
        known = ", ".join(conversation.sample_id for conversation in conversations[:10])
        more = ", ..." if len(conversations) > 10 else ""  # noqa: PLR2004 (a line's worth of names)
        raise Document(name, None).error(f"no sample is called {sample!r}; choose one of {known}{more}")
    return picked


def _unpacked(documents: list[Document]) -> list[Document]:
    """Take a file that is one JSON list apart, unless the list is itself a list of messages."""
    if len(documents) > 1 or not isinstance(documents[0].value, list) or not documents[0].value:
        return documents
    items = documents[0].items("item")
    return documents if _kind(items[0]) == "message" else items


def _kind(document: Document) -> Kind:
    """Tell what a JSON value is, by its keys."""
    value = document.value
    if isinstance(value, list) or (isinstance(value, dict) and "messages" in value):
        return "message list"
    if is_sample(value):
        return "LoCoMo sample"
    if isinstance(value, dict) and "role" in value:
        return "message"
    if isinstance(value, dict) and value.keys() & {"user", "assistant", "question"}:
        return "exchange or question"
    raise document.error(
        'this is no conversation; give lines with "user" and "assistant", '
        'messages with "role" and "content", or LoCoMo\'s JSON'
    )


def _common_kind(documents: list[Document]) -> Kind:
    """Return the kind that all documents of the file are of."""
    kind = _kind(documents[0])
    for document in documents:
        if _kind(document) != kind:
            raise document.error(
                f"expected another {kind}, as before; put other formats into files of their own"
            )
    return kind


def _from_sample(sample: Document, sample_id: str, undated_at: float) -> Conversation:
    """Read one LoCoMo sample."""
    return read_sample(sample, sample_id=sample_id, undated_at=undated_at)


def _from_message_list(document: Document, sample_id: str, undated_at: float) -> Conversation:
    """Read one OpenAI message list, bare or under ``messages``."""
    messages = document if isinstance(document.value, list) else document.within("messages")
    return _from_messages(messages.items("message"), sample_id, undated_at)


def _from_messages(messages: Sequence[Document], sample_id: str, undated_at: float) -> Conversation:
    """Group OpenAI messages into a conversation of one thread, named like the conversation."""
    turns: list[Turn] = []
    places: dict[str, str] = {}
    for position, message in enumerate(messages):
        if turn := _turn(message, position):
            _claim(places, turn.turn_id, message)
            turns.append(turn)
    times = _filled([turn.said_at for turn in turns], undated_at)
    dated = [replace(turn, said_at=said_at) for turn, said_at in zip(turns, times, strict=True)]
    exchanges = group_turns(dated, thread_id=sample_id, said_at=undated_at)
    with_time = {turn.turn_id for turn in turns if turn.said_at is not None}
    undated = sum(with_time.isdisjoint(exchange.source_ids) for exchange in exchanges)
    return _conversation(sample_id, exchanges, [], undated=undated)


def _turn(message: Document, position: int) -> Turn | None:
    """Return one OpenAI message as a turn; instructions are no dialogue, and tool results have no text."""
    role = ROLES.get(message.text("role").lower())
    if role is None:
        raise message.error(f"the role is unknown; use one of {', '.join(ROLES)}")
    if role == "instruction":
        return None
    text = "" if role == "tool" else _said(message, role)
    return Turn(
        speaker="user" if role == "user" else "agent",
        text=text,
        turn_id=message.name("id") or position_id(position, role, text or message.value),
        name="" if role == "tool" else message.text("name", ""),
        said_at=message.time("at"),
    )


def _said(message: Document, role: str) -> str:
    """Return the text of a message; an agent that calls a tool or refuses may have no content."""
    fields = message.fields()
    content = fields.get("content")
    if (
        content is None
        and role == "agent"
        and fields.keys() & {"content", "tool_calls", "function_call", "refusal"}
    ):
        return message.text("refusal", "")
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text", "") if isinstance(block, dict) else block for block in blocks]
    if not all(isinstance(text, str) for text in texts):
        raise message.error('"content" must be text or a list of content blocks')
    return content_text(content)


def _from_lines(lines: list[Document], stem: str, undated_at: float) -> list[Conversation]:
    """Read our JSON Lines: one exchange or question per line, by conversation."""
    grouped: dict[str, list[Document]] = {}
    for line in lines:
        grouped.setdefault(line.name("conversation") or stem, []).append(line)
    return [_from_own_lines(own, sample_id, undated_at) for sample_id, own in grouped.items()]


def _from_own_lines(lines: list[Document], sample_id: str, undated_at: float) -> Conversation:
    """Read the lines of one conversation."""
    spoken = [line for line in lines if "question" not in line.fields()]
    if not spoken:
        raise lines[0].error('this question is about no exchange; give it the "conversation" it belongs to')
    places: dict[str, str] = {}
    stated = [line.time("at") for line in spoken]
    times = _filled(stated, undated_at)
    exchanges = [
        _exchange(line, position, said_at, sample_id)
        for position, (line, said_at) in enumerate(zip(spoken, times, strict=True))
    ]
    for line, exchange in zip(spoken, exchanges, strict=True):
        _claim(places, exchange.source_ids[0], line)
    asked = [line for line in lines if "question" in line.fields()]
    questions = [_question(line, places) for line in asked]
    return _conversation(sample_id, exchanges, questions, undated=stated.count(None))


def _exchange(line: Document, position: int, said_at: float, sample_id: str) -> Exchange:
    """Return one exchange line."""
    query, reply = line.text("user"), line.text("assistant")
    if not query.strip() and not reply.strip():
        raise line.error("neither side says anything; remove the line")
    thread_id = line.name("thread") or sample_id
    return Exchange(
        query=query,
        reply=reply,
        said_at=said_at,
        thread_id=thread_id,
        source_ids=(line.name("id") or position_id(position, thread_id, query, reply),),
        user_name=line.text("user_name", ""),
        agent_name=line.text("agent_name", ""),
    )


def _question(line: Document, places: dict[str, str]) -> Question:
    """Return one question line; its evidence must be in the conversation."""
    evidence = line.fields().get("evidence")
    if not isinstance(evidence, list) or not all(isinstance(item, str) for item in evidence):
        raise line.error('"evidence" must be a list of exchange ids (use [] for none)')
    if missing := [item for item in evidence if item not in places]:
        raise line.error(f"no exchange has the evidence id {missing[0]!r}; correct the id")
    return Question(
        text=line.text("question"),
        answer=line.text("answer"),
        evidence=tuple(evidence),
        category=line.name("category"),
    )


def _claim(places: dict[str, str], source_id: str, document: Document) -> None:
    """Note where an id is used; a second use would make ingestion take two exchanges for one."""
    if source_id in places:
        raise document.error(
            f"the id {source_id!r} is already used at {places[source_id]}; give each its own"
        )
    places[source_id] = document.place


def _filled(times: Sequence[float | None], undated_at: float) -> list[float]:
    """Give each missing time that of the one before, or the first that is known, or ``undated_at``."""
    latest = next((moment for moment in times if moment is not None), undated_at)
    filled = []
    for moment in times:
        latest = latest if moment is None else moment
        filled.append(latest)
    return filled


def _conversation(
    sample_id: str, exchanges: Sequence[Exchange], questions: Sequence[Question], *, undated: int
) -> Conversation:
    """Name the speakers of the whole conversation after the first exchange that names them."""
    user = next((exchange.user_name for exchange in exchanges if exchange.user_name), "")
    agent = next((exchange.agent_name for exchange in exchanges if exchange.agent_name), "")
    named = (
        replace(exchange, user_name=exchange.user_name or user, agent_name=exchange.agent_name or agent)
        for exchange in exchanges
    )
    return Conversation(
        sample_id=sample_id,
        user_name=user,
        agent_name=agent,
        exchanges=tuple(named),
        questions=tuple(questions),
        undated=undated,
    )
