"""Deep memory retrieval (MemGPT, section 3.1.1): one question about one turn of five earlier sessions.

Run with ``python -m benchmarks.dmr [--data PATH] [--policy search|model|full-context] --json OUT``.
``PATH`` is JSON Lines: ``sessions`` (lists of ``{"user": ..., "assistant": ...}``), ``question``, ``answer``.
Without it a seeded set of the same shape is made: the answer stands in one turn, other turns hold values of
the same kind for other people, and some facts are contradicted later. ``search`` asks no model: right is a
question whose answer stands on the first page of conversation_search.
"""

import argparse
import json
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from benchmarks.running import throwaway, write_report
from langgraph_memoryos.dialogue import message_text
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Exchange
from langgraph_memoryos.stores.search import SearchRequest, SearchStore
from langgraph_memoryos.text import squeeze
from langgraph_memoryos.text_size import clip
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings

WINDOW_TOKENS = 2048
_PEOPLE = ("sister", "neighbour", "boss", "cousin", "teacher", "roommate")
_KINDS = {
    "dog is called": ("Bello", "Waffles", "Juniper", "Pixel", "Turnip", "Mango"),
    "favourite city is": ("Lisbon", "Oslo", "Kyoto", "Tbilisi", "Quito", "Bergen"),
    "instrument is the": ("oboe", "cello", "banjo", "harp", "tuba", "sitar"),
    "dream job is": ("pilot", "baker", "judge", "diver", "weaver", "surgeon"),
}
_SMALL_TALK = ("It rained all day.", "I slept badly.", "The train was late.", "Lunch was soup again.")


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """Sessions of (user, assistant) turns, a question about them and its answer."""

    sessions: list[list[tuple[str, str]]]
    question: str
    answer: str


def synthetic(count: int, *, seed: int = 5) -> list[Dialogue]:
    """Return dialogues of five sessions with the answer planted in one turn."""
    rng = random.Random(seed)
    return [_dialogue(rng) for _ in range(count)]


def _dialogue(rng: random.Random) -> Dialogue:
    kind = rng.choice(list(_KINDS))
    values = rng.sample(_KINDS[kind], 5)
    said = [
        f"My {person}'s {kind} {value}."
        for person, value in zip(rng.sample(_PEOPLE, 3), values[2:], strict=True)
    ]
    contradicted = rng.random() < 0.3
    facts = [f"My {kind} {values[1]}."] if contradicted else []
    facts.append(f"{'Actually that changed: my' if contradicted else 'My'} {kind} {values[0]}.")
    sessions: list[list[tuple[str, str]]] = [
        [(rng.choice(_SMALL_TALK), "I see.") for _ in range(6)] for _ in range(5)
    ]
    for at, text in enumerate(sorted(facts, key=facts.index)):
        sessions[at * 3 if contradicted else rng.randrange(5)].insert(
            rng.randrange(6), (text, "Good to know.")
        )
    for text in said:
        sessions[rng.randrange(5)].insert(rng.randrange(6), (text, "How nice."))
    return Dialogue(sessions=sessions, question=f"Remind me: my {kind} what?", answer=values[0])


def read_dialogues(path: Path) -> list[Dialogue]:
    """Read dialogues from JSON Lines."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return [
        Dialogue(
            sessions=[[(turn["user"], turn["assistant"]) for turn in session] for session in row["sessions"]],
            question=row["question"],
            answer=row["answer"],
        )
        for row in rows
    ]


def exchanges(dialogue: Dialogue) -> Iterator[Exchange]:
    """Yield the sessions as exchanges, a day apart."""
    for session, turns in enumerate(dialogue.sessions):
        for at, (user, assistant) in enumerate(turns):
            yield Exchange(
                query=user,
                reply=assistant,
                said_at=1.7e9 + session * 86_400 + at * 60,
                thread_id=f"session-{session}",
                source_ids=(f"{session}-{at}",),
            )


def answer(memory: MemoryOS, dialogue: Dialogue, user: str, *, policy: str) -> str:
    """Return what a policy answers, or what it would have to read the answer from."""
    if policy == "search":
        store = memory.parts.pages.sibling(SearchStore)
        scope = VirtualContext(memory).scope(user)
        hits = store.conversation(scope, SearchRequest(query=dialogue.question)).items
        return "\n".join(page.query for page in hits)
    if policy == "full-context":
        told = "\n".join(
            f"user: {user}\nassistant: {reply}" for turns in dialogue.sessions for user, reply in turns
        )
        prompt = [
            SystemMessage(f"Answer in one word from this dialogue:\n{clip(told, WINDOW_TOKENS)}"),
            HumanMessage(dialogue.question),
        ]
        return message_text(memory.reply_model.invoke(prompt))
    agent = VirtualContext(memory, settings=VirtualContextSettings(context_window_tokens=2 * WINDOW_TOKENS))
    return " ".join(agent.send(dialogue.question, user_id=user, thread_id="question")["sent"])


def run(memory: MemoryOS, dialogues: Sequence[Dialogue], *, policy: str) -> dict[str, Any]:
    """Return the share of questions whose answer was found."""
    right = 0
    for dialogue in dialogues:
        user = f"dmr-{uuid.uuid4().hex}"
        list(memory.ingest(exchanges(dialogue), user_id=user))
        right += squeeze(dialogue.answer) in squeeze(answer(memory, dialogue, user, policy=policy))
        memory.forget(user)
    return {"policy": policy, "questions": len(dialogues), "accuracy": right / len(dialogues)}


def main() -> None:
    """Run the benchmark and print its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--policy", choices=("search", "model", "full-context"), action="append")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    dialogues = (read_dialogues(given.data) if given.data else synthetic(given.questions))[: given.questions]
    with throwaway() as memory:
        rows = [run(memory, dialogues, policy=policy) for policy in given.policy or ["search"]]
    print(json.dumps(rows, indent=2))
    write_report(given.json, {"synthetic": given.data is None, "rows": rows})


if __name__ == "__main__":
    main()
