"""LoCoMo's JSON (snap-research/locomo): long dialogues of two people in dated sessions, with questions."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from langgraph_memoryos.dialogue import Conversation, Question, Turn, group_turns
from langgraph_memoryos.documents import Document
from langgraph_memoryos.records import Exchange

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SESSION_TIME = re.compile(
    r"(\d{1,2}):(\d\d) ?([ap])m on (\d{1,2}) ([a-z]{3})[a-z]*,? (\d{4})", re.IGNORECASE
)
_DIALOGUE_ID = re.compile(r"D:?(\d+):0*(\d+)")


def is_sample(value: object) -> bool:
    """Whether a JSON value is one LoCoMo sample."""
    return isinstance(value, dict) and isinstance(value.get("conversation"), dict)


def read_sample(sample: Document, *, sample_id: str, undated_at: float) -> Conversation:
    """Turn one sample into a conversation: ``speaker_a`` is the user, ``speaker_b`` the agent.

    Each session is a thread of its own (``session_3``), and all its exchanges have the session's time, taken
    as UTC; their order in the list tells which came first. An image's caption belongs to its turn's text, as
    ``text [image: caption]``. Source ids are the ``dia_id`` of the turns.

    Args:
        sample: The sample.
        sample_id: Name for a sample that has none.
        undated_at: Time for sessions without one before which no session is dated either.

    Raises:
        ConversationFormatError: A session is not a list of turns by the two speakers, or its time is no time.
    """
    dialogue = sample.within("conversation")
    user, agent = dialogue.text("speaker_a"), dialogue.text("speaker_b")
    exchanges: list[Exchange] = []
    undated = 0
    for number, session in _sessions(dialogue):
        turns = [_turn(turn, number, order, (user, agent)) for order, turn in enumerate(session, start=1)]
        stated = _session_time(dialogue, number)
        undated_at = undated_at if stated is None else stated
        said = group_turns(_with_unique_ids(turns), thread_id=f"session_{number}", said_at=undated_at)
        undated += len(said) if stated is None else 0
        exchanges += said
    return Conversation(
        sample_id=sample.name("sample_id") or sample_id,
        user_name=user,
        agent_name=agent,
        exchanges=tuple(exchanges),
        questions=tuple(_question(item) for item in _questions(sample)),
        undated=undated,
    )


def _sessions(dialogue: Document) -> Iterator[tuple[int, list[Document]]]:
    """Yield the sessions by number; dates without a session are left out."""
    names = [re.fullmatch(r"session_(\d+)", key) for key in dialogue.fields()]
    for number in sorted(int(name[1]) for name in names if name):
        key = f"session_{number}"
        yield number, Document(f"{dialogue.place}, {key}", dialogue.fields()[key]).items("turn")


def _turn(turn: Document, session: int, order: int, speakers: tuple[str, str]) -> Turn:
    """Return one turn, its caption included."""
    speaker, said = turn.text("speaker"), turn.text("text", "")
    if speaker not in speakers:
        raise turn.error("the speaker is neither speaker_a nor speaker_b; correct the name")
    caption = turn.text("blip_caption", "")
    return Turn(
        speaker="user" if speaker == speakers[0] else "agent",
        text=" ".join(filter(None, [said, f"[image: {caption}]" if caption else ""])),
        turn_id=turn.text("dia_id", "") or f"D{session}:{order}",
        name=speaker,
    )


def _with_unique_ids(turns: list[Turn]) -> Iterator[Turn]:
    """Yield the turns; a repeated id gets the turn's place in the session, so that none is taken twice."""
    seen: set[str] = set()
    for order, turn in enumerate(turns, start=1):
        turn_id = f"{turn.turn_id}#{order}" if turn.turn_id in seen else turn.turn_id
        seen.add(turn_id)
        yield Turn(speaker=turn.speaker, text=turn.text, turn_id=turn_id, name=turn.name)


def _session_time(dialogue: Document, number: int) -> float | None:
    """Return the time that the file states for a session, if it does."""
    key = f"session_{number}_date_time"
    stated = dialogue.text(key, "")
    if not stated.strip():
        return None
    found = _SESSION_TIME.fullmatch(stated.strip())
    if not found:
        return dialogue.time(key)
    hour, minute, half, day, month, year = found.groups()
    try:
        clock = int(hour) % 12 + (12 if half.lower() == "p" else 0)
        month_number = _MONTHS.index(month.lower()) + 1
        return datetime(int(year), month_number, int(day), clock, int(minute), tzinfo=UTC).timestamp()
    except ValueError:
        raise dialogue.error(f'"{key}" is no date; write it like "1:56 pm on 8 May, 2023"') from None


def _questions(sample: Document) -> list[Document]:
    """Return the sample's questions, if it has any."""
    return sample.within("qa").items("question") if sample.fields().get("qa") else []


def _question(item: Document) -> Question:
    """Return one question; evidence ids that share a text are taken apart, ``D:3:04`` read as ``D3:4``."""
    evidence = " ".join(map(str, item.fields().get("evidence") or []))
    answer = item.fields().get("answer")
    found = (f"D{session}:{turn}" for session, turn in _DIALOGUE_ID.findall(evidence))
    return Question(
        text=item.text("question"),
        answer="" if answer is None else str(answer),
        evidence=tuple(dict.fromkeys(found)),
        category=item.name("category"),
    )
