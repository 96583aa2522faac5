"""A recorded conversation becomes memory: a line per session, or every step of every turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from langgraph_memoryos.cli.output import console, day_and_time, one_line, printable, progress_bar
from langgraph_memoryos.cli.recorded import RecordedClock, recorded_graph, user_message
from langgraph_memoryos.cli.streaming import Graph, Step, counted, stream_steps, stream_turn
from langgraph_memoryos.dialogue import Conversation
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Exchange


@dataclass
class _Session:
    """What the turns and the maintenance of one session add up to."""

    turns: int = 0
    moved_pages: int = 0
    facts: int = 0
    segments: dict[str, set[str]] = field(default_factory=lambda: {"touched": set(), "digested": set()})

    def add(self, report: Mapping[str, Any] | None) -> None:
        """Count what one ``remembered`` tells."""
        if report:
            self.moved_pages += report.get("moved_pages", 0)
            self.facts += report.get("facts", 0)
            for name, ids in self.segments.items():
                ids.update(report.get(f"{name}_segments", ()))

    def line(self) -> str:
        """Return it as one line."""
        return counted({
            "turn": self.turns,
            "page moved to mid-term": self.moved_pages,
            "segment touched": len(self.segments["touched"]),
            "segment digested": len(self.segments["digested"]),
            "fact": self.facts,
        })


def show_sessions(
    memory: MemoryOS, conversation: Conversation, clock: RecordedClock, *, verbose: bool
) -> None:
    """Run every turn of a conversation at its own time; after each session its queue moves on.

    Args:
        memory: Where to.
        conversation: What was said.
        clock: The memory's clock, which is set to the time of each turn.
        verbose: Name every step of every turn.
    """
    graph, user = recorded_graph(memory, conversation), conversation.user_name
    for thread_id, exchanges in groupby(conversation.exchanges, key=lambda exchange: exchange.thread_id):
        turns = list(exchanges)
        session = _Session(turns=len(turns))
        for exchange in turns if verbose else _with_progress(thread_id, turns):
            clock.now = exchange.said_at
            session.add(_run_turn(graph, exchange, user, verbose=verbose))
        session.add(_end_session(memory, user, verbose=verbose))
        head = f"{printable(thread_id):<12} {day_and_time(turns[0].said_at)}  "
        console.print(f"{head}{session.line()}", style="cyan" if verbose else None, soft_wrap=True)


def _with_progress(thread_id: str, turns: Sequence[Exchange]) -> Iterator[Exchange]:
    """Yield the turns of a session, with a bar that is gone when they are done."""
    with progress_bar() as bar:
        yield from bar.track(turns, description=printable(thread_id))


def _run_turn(graph: Graph, exchange: Exchange, user: str, *, verbose: bool) -> Mapping[str, Any] | None:
    """Run one turn and return what it remembered; verbose, its steps are printed as they end."""
    if verbose:
        console.print(f"{exchange.thread_id}  {one_line(exchange.query, width=56)}", soft_wrap=True)
    context, report = {"user_id": user, "thread_id": exchange.thread_id}, None
    for event in stream_turn(graph, {"messages": [user_message(exchange)]}, context=context):
        if not isinstance(event, Step):
            continue
        if verbose:
            _tell_step(event.graph or "agent", event.name)
        if not event.graph and event.name == "remember":
            report = event.update["remembered"]
    return report


def _end_session(memory: MemoryOS, user: str, *, verbose: bool) -> Mapping[str, Any] | None:
    """Move what the session left in its queue, as an application would when it is idle."""
    report = None
    for name, update in stream_steps(memory.consolidate, {"drain": True}, {"user_id": user}):
        if verbose:
            _tell_step("consolidate", name)
        report = update.get("remembered") or report
    return report


def _tell_step(graph: str, name: str) -> None:
    console.print(f"    {graph}: {name}", style="dim", soft_wrap=True)
