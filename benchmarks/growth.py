"""What a turn costs as a memory grows: time, Redis round trips and bytes. No model is called.

    python -m benchmarks.growth --json OUT [--rounds 10] [--redis-url URL]

A turn is one run of the compiled ``recall`` graph and one of the compiled ``remember`` graph with the
default settings. Four memories stand side by side in one Redis: a user with 100, one with 1,000 and one with
10,000 pages, and one with 1,000 pages among 1,000 other users. They take turns, so a noisy machine slows all
of them alike; a round is as many turns as one eviction takes, and ratios are those of medians over rounds.

The analyst is the deterministic one and the embedder sums word vectors (its share is reported), so model
time does not count. The histories are written by the ``remember`` graph itself, a session of thirty
exchanges at a time; the ``recall`` graph runs once a session and what it visits is visited for every turn of
the session, so segments are as hot, and stay or leave mid-term search, much as if every turn had been lived.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from benchmarks.round_trips import RoundTrip, RoundTripCounter
from benchmarks.small_talk import SECONDS_BETWEEN_TURNS, SmallTalk, WordEmbeddings
from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Exchange, Scope
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.state import MemoryContext

USER = "grower"
SESSION_TURNS = 30
OTHER_USERS = 1_000
PAGES_OF_OTHERS = 10
WINDOW_EXCHANGES = 4
STAGE_TURNS = 12
SIZES = (100, 1_000, 10_000)
CROWDED = "1000_of_1000_users"
_OWN_COMMANDS = ("info",)


def progress(text: str) -> None:
    """Tell a person how far the run is."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Turn:
    """What one turn cost.

    Attributes:
        recall_seconds: Of the ``recall`` graph.
        remember_seconds: Of the ``remember`` graph.
        recall_trips: Round trips of the recall.
        remember_trips: Round trips of the remember.
        embedder_seconds: Time inside the embedder, contained in the first two.
        evicted: Pages that left the short-term queue.
        bare_seconds: The recall's own commands, sent once more without any of our code.
    """

    recall_seconds: float
    remember_seconds: float
    recall_trips: list[RoundTrip]
    remember_trips: list[RoundTrip]
    embedder_seconds: float
    evicted: int
    bare_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Both graphs."""
        return self.recall_seconds + self.remember_seconds


class TimedEmbeddings(WordEmbeddings):
    """The embedder with a stopwatch."""

    seconds = 0.0

    def embed_query(self, text: str) -> list[float]:
        """Embed one text."""
        started = time.perf_counter()
        vector = super().embed_query(text)
        self.seconds += time.perf_counter() - started
        return vector


class StageTimes(BaseCallbackHandler):
    """Seconds per step of a graph, from LangGraph's own events."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self._started: dict[Any, tuple[str, float]] = {}

    def on_chain_start(self, *_: Any, run_id: Any, **event: Any) -> None:
        """Note when a step begins."""
        step = (event.get("metadata") or {}).get("langgraph_node")
        if step and event.get("name") == step and step not in {name for name, _ in self._started.values()}:
            self._started[run_id] = (step, time.perf_counter())

    def on_chain_end(self, *_: Any, run_id: Any, **_event: Any) -> None:
        """Note how long it took."""
        if run_id in self._started:
            step, started = self._started.pop(run_id)
            self.seconds[step].append(time.perf_counter() - started)


@dataclass
class Subject:
    """A memory that is measured: one user with a history, and how many round trips its client makes.

    Attributes:
        name: Such as ``10000``.
        namespace: Its keys.
        memory: Opened with the default settings.
        counter: Round trips of that memory.
        embeddings: Its embedder.
        next_turn: Number of the user's next exchange.
        bytes_per_page: Of Redis memory, indexes included, averaged over the history.
        turns: What was measured.
        commands: Calls and microseconds in the server per command, over all measured turns.
    """

    name: str
    namespace: str
    memory: MemoryOS
    counter: RoundTripCounter
    embeddings: TimedEmbeddings
    next_turn: int = 0
    bytes_per_page: float = 0.0
    turns: list[Turn] = field(default_factory=list)
    commands: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    window: list[AnyMessage] = field(default_factory=list)

    def turn(self, exchange: Exchange, *, callbacks: Sequence[BaseCallbackHandler] = ()) -> Turn:
        """Run one turn."""
        context = MemoryContext(user_id=USER, thread_id=exchange.thread_id)
        config: Any = {"callbacks": list(callbacks)}
        turn_id = exchange.source_ids[0]
        asked = [*self.window, HumanMessage(exchange.query, id=f"{turn_id}-q")]
        answered = [*asked, AIMessage(exchange.reply, id=f"{turn_id}-r")]
        embedding = self.embeddings.seconds
        with self.counter.counting() as recall_trips:
            started = time.perf_counter()
            self.memory.recall.invoke({"messages": asked}, config, context=context)
            recalled = time.perf_counter()
        with self.counter.counting() as remember_trips:
            writing = time.perf_counter()
            report = self.memory.remember.invoke(
                {"messages": answered, "said_at": exchange.said_at}, config, context=context)["remembered"]
            written = time.perf_counter()
        if report.get("failure"):
            raise RuntimeError(report["failure"])
        self.window = answered[-2 * WINDOW_EXCHANGES :]
        self.next_turn += 1
        return Turn(
            recall_seconds=recalled - started, remember_seconds=written - writing, recall_trips=recall_trips,
            remember_trips=remember_trips, embedder_seconds=self.embeddings.seconds - embedding,
            evicted=report.get("moved_pages", 0),
        )

    def measured_turn(self, exchange: Exchange) -> None:
        """Run one turn and keep what it cost, in the server too."""
        before = command_stats(self.memory)
        turn = self.turn(exchange)
        after = command_stats(self.memory)
        turn.bare_seconds = self.counter.replay(turn.recall_trips)
        self.turns.append(turn)
        for command, (calls, microseconds) in after.items():
            known_calls, known_microseconds = before.get(command, (0, 0))
            if command not in _OWN_COMMANDS and calls > known_calls:
                total = self.commands[command]
                total[0] += calls - known_calls
                total[1] += microseconds - known_microseconds


def command_stats(memory: MemoryOS) -> dict[str, tuple[int, int]]:
    """Return calls and microseconds of each command since the server started."""
    found: dict[str, Any] = memory.connection.client.info("commandstats")  # type: ignore[assignment]
    return {
        name.removeprefix("cmdstat_").lower(): (int(stats["calls"]), int(stats["usec"]))
        for name, stats in found.items()
    }


class Clock:
    """The dialogue's own time."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time of the newest exchange."""
        return self.now


class Laboratory:
    """Opens, fills and removes memories in one Redis."""

    def __init__(self, stack: ExitStack, redis_url: str | None) -> None:
        self._stack = stack
        self._place: dict[str, Any] = {"redis_url": redis_url}
        if not redis_url:
            directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            self._place = {"data_dir": Path(stack.enter_context(directory))}
        self._prefix = f"growth-{uuid.uuid4().hex[:8]}"
        self.clock = Clock()

    def open(self, namespace: str, settings: MemorySettings) -> tuple[MemoryOS, TimedEmbeddings]:
        """Open a memory on the laboratory's Redis."""
        embeddings = TimedEmbeddings()
        memory = self._stack.enter_context(MemoryOS.open_sync(
            **self._place, namespace=namespace, settings=settings, embeddings=embeddings,
            embeddings_name=embeddings.model, analyst=DeterministicAnalyst(), clock=self.clock,
        ))
        return memory, embeddings

    def subject(self, name: str, *, pages: int, other_users: int) -> Subject:
        """Return a user with a history of ``pages`` pages, in a memory with other users."""
        namespace = f"{self._prefix}-{name}"
        writer, _ = self.open(namespace, MemorySettings(
            short_term_capacity_pages=SESSION_TURNS - 1, eviction_batch_pages=SESSION_TURNS - 1))
        self._stack.callback(self._remove, writer, namespace)
        self._fill_others(writer, other_users, name)
        before = used_bytes(writer)
        self._fill(writer, pages, name)
        memory, embeddings = self.open(namespace, MemorySettings())
        return Subject(
            name=name, namespace=namespace, memory=memory, counter=RoundTripCounter(memory.connection.client),
            embeddings=embeddings, next_turn=pages, bytes_per_page=(used_bytes(writer) - before) / pages,
        )

    def _fill(self, memory: MemoryOS, pages: int, name: str) -> None:
        talk = SmallTalk(seed=1)
        for first in range(0, pages, SESSION_TURNS):
            turns = min(SESSION_TURNS, pages - first)
            session = talk.exchanges(thread=f"session-{first}", turns=turns, first=first)
            self._import(memory, USER, session)
            self._visit(memory, session)
            if first and first % 1_500 == 0:
                progress(f"  {name}: {first} pages")
        progress(f"  {name}: {pages} pages")

    def _fill_others(self, memory: MemoryOS, users: int, name: str) -> None:
        talk = SmallTalk(seed=2)
        for number in range(users):
            session = talk.exchanges(thread="chat", turns=PAGES_OF_OTHERS, first=0)
            self._import(memory, f"other-{number}", session)
            if number and number % 250 == 0:
                progress(f"  {name}: {number} other users")

    def _import(self, memory: MemoryOS, user: str, exchanges: list[Exchange]) -> None:
        self.clock.now = exchanges[-1].said_at
        report = memory.remember.invoke({
            "exchanges": [exchange.to_json() for exchange in exchanges], "user_id": user,
            "thread_id": exchanges[0].thread_id,
        })["remembered"]
        if report.get("failure"):
            raise RuntimeError(report["failure"])

    def _visit(self, memory: MemoryOS, session: list[Exchange]) -> None:
        """Recall as the session's last turn did, and count its visits for the other turns as well."""
        asked = {"messages": [HumanMessage(session[-1].query)], "user_id": USER, "thread_id": "another"}
        found = memory.recall.invoke(asked)["memory"]["mid_term"]
        scope = Scope(user_id=USER, agent_id=memory.parts.default_agent)
        segment_ids = [page["segment_id"] for page in found if page["segment_id"]]
        for _ in session[1:]:
            memory.parts.segments.record_visits(scope, segment_ids, now=self.clock.now)

    def _remove(self, memory: MemoryOS, namespace: str) -> None:
        if "redis_url" not in self._place:
            return  # the temporary server goes as a whole
        client = memory.connection.client
        for kind in ("page", "segment", "fact"):
            client.execute_command("FT.DROPINDEX", f"{namespace}:index:{kind}")  # type: ignore[no-untyped-call]
        keys = list(client.scan_iter(match=f"{namespace}:*", count=1000))
        for start in range(0, len(keys), 1000):
            client.unlink(*keys[start : start + 1000])


def used_bytes(memory: MemoryOS) -> int:
    """Return the memory that Redis uses, indexes included."""
    found: dict[str, Any] = memory.connection.client.info("memory")  # type: ignore[assignment]
    return int(found["used_memory"])


@contextmanager
def laboratory(redis_url: str | None) -> Iterator[Laboratory]:
    """Give a laboratory whose memories are gone afterwards."""
    with ExitStack() as stack:
        yield Laboratory(stack, redis_url)


def measure(lab: Laboratory, subjects: Sequence[Subject], *, rounds: int) -> None:
    """Let the subjects take turns; the first turns fill their queues and do not count."""
    settings = MemorySettings()
    talk = SmallTalk(seed=3)
    warm_up = settings.short_term_capacity_pages
    turns = warm_up + rounds * settings.eviction_batch_pages
    first = max(subject.next_turn for subject in subjects)
    for number, exchange in enumerate(talk.exchanges(thread="measured", turns=turns, first=first)):
        lab.clock.now += SECONDS_BETWEEN_TURNS
        shift = number % len(subjects)
        for subject in (*subjects[shift:], *subjects[:shift]):
            if number < warm_up:
                subject.turn(exchange)
            else:
                subject.measured_turn(exchange)
    evicted = sum(turn.evicted for turn in subjects[0].turns)
    progress(f"  {turns - warm_up} turns each, {evicted} pages evicted")


def stage_milliseconds(lab: Laboratory, subject: Subject) -> dict[str, float]:
    """Return milliseconds per turn in each step, from turns of their own; LangGraph's share is in them."""
    watch = StageTimes()
    for exchange in SmallTalk(seed=4).exchanges(thread="measured", turns=STAGE_TURNS, first=10**6):
        lab.clock.now += SECONDS_BETWEEN_TURNS
        subject.turn(exchange, callbacks=[watch])
    return {step: round(1e3 * sum(found) / STAGE_TURNS, 3) for step, found in watch.seconds.items()}


def median_of_rounds(turns: Sequence[Turn], value: Any) -> float:
    """Return the median over rounds of the mean of a turn's value; each round has one eviction."""
    size = MemorySettings().eviction_batch_pages
    rounds = [turns[start : start + size] for start in range(0, len(turns), size)]
    return statistics.median(statistics.fmean(value(turn) for turn in found) for found in rounds)


def report_subject(subject: Subject, stages: dict[str, float]) -> dict[str, Any]:
    """Return the numbers of one subject."""
    turns = subject.turns

    def milliseconds(value: Any) -> float:
        return round(1e3 * median_of_rounds(turns, value), 3)

    def redis_seconds(turn: Turn) -> float:
        return sum(trip.seconds for trip in (*turn.recall_trips, *turn.remember_trips))

    inside = subject.memory.inspect(USER)
    queued = sum(inside["short_term"].values())
    in_segments = sum(segment["page_count"] for segment in inside["mid_term"])
    return {
        "pages": inside["pages"], "segments": len(inside["mid_term"]), "pages_in_segments": in_segments,
        "archived_segments": inside["archived_segments"], "pages_in_queues": queued,
        "pages_in_scope": in_segments + queued,
        "turn_ms": milliseconds(lambda turn: turn.seconds),
        "recall_ms": milliseconds(lambda turn: turn.recall_seconds),
        "remember_ms": milliseconds(lambda turn: turn.remember_seconds),
        "redis_ms": milliseconds(redis_seconds),
        "embedder_ms": milliseconds(lambda turn: turn.embedder_seconds),
        "bare_recall_ms": milliseconds(lambda turn: turn.bare_seconds),
        "recall_round_trips": max(len(turn.recall_trips) for turn in turns),
        "remember_round_trips": round(statistics.fmean(len(turn.remember_trips) for turn in turns), 2),
        "remember_round_trips_without_eviction": max(
            (len(turn.remember_trips) for turn in turns if not turn.evicted), default=0),
        "remember_round_trips_with_eviction": max(
            (len(turn.remember_trips) for turn in turns if turn.evicted), default=0),
        "bytes_per_page": round(subject.bytes_per_page),
        "stage_ms": stages,
        "server_commands_per_turn": {
            command: {"calls": round(calls / len(turns), 2), "server_ms": round(spent / len(turns) / 1e3, 4)}
            for command, (calls, spent) in sorted(subject.commands.items(), key=lambda item: -item[1][1])
        },
    }


def run(*, rounds: int, redis_url: str | None = None, sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Measure everything and return the report."""
    started = time.perf_counter()
    with laboratory(redis_url) as lab:
        progress("Writing the histories")
        subjects = [lab.subject(str(size), pages=size, other_users=1) for size in sizes]
        crowded = lab.subject(CROWDED, pages=sizes[1], other_users=OTHER_USERS)
        progress("Measuring")
        measure(lab, [*subjects, crowded], rounds=rounds)
        found = {
            subject.name: report_subject(subject, stage_milliseconds(lab, subject))
            for subject in (*subjects, crowded)
        }
        server: dict[str, Any] = crowded.memory.connection.client.info("server")  # type: ignore[assignment]
    smallest, middle, largest = (found[str(size)] for size in sizes)
    return {
        "method": (
            "One turn is recall + remember through the compiled graphs, default settings, no model: "
            "deterministic analyst, embedder that sums word vectors; "
            f"{rounds} interleaved rounds of {MemorySettings().eviction_batch_pages} turns with one eviction "
            "in each; ratios of medians over rounds. The user of the last row has 1,000 pages among 1,000 "
            f"others with {PAGES_OF_OTHERS} pages each; in all other rows there is one other user."
        ),
        "redis": server.get("redis_version"),
        "turn_time_ratio_10000_to_100": round(largest["turn_ms"] / smallest["turn_ms"], 3),
        "turn_time_ratio_10000_to_1000": round(largest["turn_ms"] / middle["turn_ms"], 3),
        "recall_time_ratio_10000_to_100": round(largest["recall_ms"] / smallest["recall_ms"], 3),
        "remember_time_ratio_10000_to_100": round(largest["remember_ms"] / smallest["remember_ms"], 3),
        "turn_time_ratio_1000_users_to_1": round(found[CROWDED]["turn_ms"] / middle["turn_ms"], 3),
        "recall_round_trips": max(row["recall_round_trips"] for row in found.values()),
        "remember_round_trips": max(row["remember_round_trips"] for row in found.values()),
        "recall_to_bare_redis_ratio": round(largest["recall_ms"] / largest["bare_recall_ms"], 2),
        "bytes_per_page": largest["bytes_per_page"],
        "seconds": round(time.perf_counter() - started, 1),
        "sizes": found,
    }


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    columns = (
        "turn_ms", "recall_ms", "remember_ms", "redis_ms", "bare_recall_ms", "recall_round_trips",
        "remember_round_trips", "segments", "pages_in_scope", "bytes_per_page",
    )
    lines = ["| pages | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in report["sizes"].items():
        lines.append(f"| {name} | " + " | ".join(str(row[column]) for column in columns) + " |")
    lines += ["", "| ratio or count | value |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in report.items() if isinstance(value, int | float)]
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=summary)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the report to this file")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of six turns (default 10)")
    parser.add_argument("--redis-url", help="a Redis with search; default: an embedded one, thrown away")
    given = parser.parse_args()
    report = run(rounds=given.rounds, redis_url=given.redis_url)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(table(report))


if __name__ == "__main__":
    main()
