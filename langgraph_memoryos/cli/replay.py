"""``replay``: a recorded conversation becomes memory, each exchange at its own time."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, OptionalUser, with_memory_options
from langgraph_memoryos.cli.output import console, errors, print_json, printable, progress_bar
from langgraph_memoryos.conversations import load
from langgraph_memoryos.dialogue import Conversation
from langgraph_memoryos.errors import ConversationFormatError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.state import Remembered

_NAMES_SHOWN = 20


@with_memory_options
def replay(
    options: MemoryOptions,
    file: Annotated[Path, typer.Argument(help="JSON Lines, OpenAI message lists, or LoCoMo's JSON.")],
    *,
    sample: Annotated[
        str | None, typer.Option(help="Which conversation of the file.", show_default=False)
    ] = None,
    user: OptionalUser = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Judge pages by rules, not by a model.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a recorded conversation into memory.

    A line of JSON Lines is one exchange; only "user" and "assistant" are needed:

    \b
    {"user": "I moved to Aarhus.", "assistant": "How is it?",
     "at": "2026-05-01T18:00:00Z", "thread": "1", "id": "1"}

    (on one line; "at" without an offset is UTC). OpenAI messages are lists of {"role": ..., "content": ...},
    and may have an "at" as well. What has no date takes that of what was said before it or, if nothing in the
    file is dated, the time of the replay.

    The user is the conversation's own name unless --user says otherwise. Running it again adds nothing, so
    a replay that was broken off can be repeated. When a session of the recording is over, what it left in
    its short-term queue moves on, as idle-time maintenance would do; the last session's queue stays.
    """  # noqa: D301 - the backspace makes click keep the lines as they are
    conversation = choose_conversation(file, sample)
    with options.open(without_model=no_model) as memory:
        report = _replayed(memory, conversation, user=user or conversation.sample_id)
    if as_json:
        print_json(report)
    else:
        _tell(report)


def choose_conversation(file: Path, sample: str | None) -> Conversation:
    """Read the one conversation of a file that is meant.

    Raises:
        ConversationFormatError: the file holds several and none is named, or it cannot be read.
    """
    conversations = load(file, sample)
    if len(conversations) > 1:
        names = [conversation.sample_id for conversation in conversations]
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
        raise ConversationFormatError(
            f"{file.name} holds {len(names)} conversations: choose one with --sample ({shown}).",
        )
    return conversations[0]


@dataclass
class _Tally:
    """What the turns of a replay add up to."""

    statuses: dict[str, int] = field(default_factory=dict)
    moved_pages: int = 0
    model_calls: int = 0
    failure: str = ""

    def add_page(self, remembered: Remembered) -> None:
        """Count one turn."""
        status = remembered.get("status", "none")
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.add_maintenance(remembered)

    def add_maintenance(self, remembered: Remembered) -> None:
        """Count what followed a turn or a session."""
        self.moved_pages += remembered.get("moved_pages", 0)
        self.model_calls += remembered["usage"]["model_calls"]
        self.failure = remembered.get("failure") or self.failure


def _replayed(memory: MemoryOS, conversation: Conversation, *, user: str) -> dict[str, Any]:
    started, tally = time.monotonic(), _Tally()
    exchanges = conversation.exchanges
    ends = {exchange.thread_id: position for position, exchange in enumerate(exchanges)}
    grown: set[str] = set()
    with progress_bar() as bar:
        task = bar.add_task(printable(conversation.sample_id), total=len(exchanges))
        for position, remembered in enumerate(memory.ingest(exchanges, user_id=user)):
            thread_id = exchanges[position].thread_id
            tally.add_page(remembered)
            grown |= {thread_id} if remembered.get("status") != "same" else set()
            if ends[thread_id] == position < len(exchanges) - 1 and thread_id in grown:
                tally.add_maintenance(drain(memory, user, thread_id))
            bar.advance(task)
    return _report(memory, conversation, tally, user=user, seconds=time.monotonic() - started)


def drain(memory: MemoryOS, user: str, thread_id: str) -> Remembered:
    """Empty the short-term queue of a session that is over; the user's other threads may be live and are left alone."""
    given = {"drain": True, "thread_ids": [thread_id]}
    report: Remembered = memory.consolidate.invoke(given, context={"user_id": user})["remembered"]
    return report


def _report(
    memory: MemoryOS,
    conversation: Conversation,
    tally: _Tally,
    *,
    user: str,
    seconds: float,
) -> dict[str, Any]:
    tiers, turns = memory.inspect(user), len(conversation.exchanges)
    counted = {f"pages_{name}": tally.statuses.get(name, 0) for name in ("new", "changed", "same")}
    return {
        "user": user,
        "agent": tiers["agent_id"],
        "sample": conversation.sample_id,
        "turns": turns,
        "undated": conversation.undated,
        "pages_written": counted["pages_new"] + counted["pages_changed"],
        **counted,
        "moved_pages": tally.moved_pages,
        "segments": len(tiers["mid_term"]) + tiers["archived_segments"],
        "facts": len(tiers["user_facts"]) + len(tiers["agent_traits"]),
        "model_calls": tally.model_calls,
        "model_calls_per_turn": round(1 + tally.model_calls / turns, 3),
        "failure": tally.failure,
        "seconds": round(seconds, 2),
    }


def _tell(report: dict[str, Any]) -> None:
    lines = (
        "{sample}: {turns} exchanges of user {user} in {seconds} s",
        "pages        {pages_new} new, {pages_changed} changed, {pages_same} known already",
        "mid-term     {moved_pages} pages moved, {segments} segments in all",
        "long-term    {facts} facts in all",
        "model calls  {model_calls}, per turn with the reply {model_calls_per_turn}",
    )
    for line in lines:
        console.print(printable(line.format_map(report)), soft_wrap=True)
    if report["undated"]:
        told = f"{report['undated']} of {report['turns']} exchanges: they got the time of a neighbour, else that of now"
        console.print(f"undated      {told}", soft_wrap=True)
    if report["failure"]:
        note = f"Maintenance failed at {report['failure']}; nothing is lost: run `consolidate` later."
        errors.print(note, soft_wrap=True)
