"""Runs of graphs as events: which step is done, and the reply's tokens."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessageChunk
from langgraph.graph.state import CompiledStateGraph

from langgraph_memoryos.dialogue import message_text
from langgraph_memoryos.state import Remembered

Graph = CompiledStateGraph[Any, Any, Any, Any]
REPLY_STEP = "generate_reply"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step is done: ``graph`` is the subgraph it belongs to, or empty."""

    graph: str
    name: str
    update: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Token:
    """A piece of the reply."""

    text: str


def stream_turn(
    graph: Graph,
    state: Mapping[str, Any],
    *,
    context: Mapping[str, Any],
    thread_id: str | None = None,
) -> Iterator[Step | Token]:
    """Run a graph with subgraphs and yield what happens as it happens.

    Args:
        graph: The compiled graph.
        state: Its input.
        context: Who is talking.
        thread_id: Checkpoint thread, for a graph with a checkpointer.
    """
    config: Any = {"configurable": {"thread_id": thread_id}} if thread_id else {}
    stream: Any = graph.stream(
        dict(state),
        config,
        context=dict(context),
        stream_mode=["updates", "messages"],
        subgraphs=True,
    )
    for place, mode, payload in stream:
        if mode == "updates":
            owner = place[-1].partition(":")[0] if place else ""
            yield from (Step(graph=owner, name=name, update=update or {}) for name, update in payload.items())
            continue
        chunk, about = payload
        if about.get("langgraph_node") == REPLY_STEP and isinstance(chunk, AIMessageChunk):
            yield Token(text=message_text(chunk))


def stream_steps(
    graph: Graph,
    state: Mapping[str, Any],
    context: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Run a graph without subgraphs and yield each step with its update."""
    stream: Any = graph.stream(dict(state), context=dict(context), stream_mode="updates")
    for updates in stream:
        for name, update in updates.items():
            yield name, update or {}


def remembered_line(report: Remembered) -> str:
    """Return what a remember or consolidate did, in one line."""
    counts = {
        "page": 1 if report.get("page_id") else 0,
        "page moved to mid-term": report.get("moved_pages", 0),
        "segment touched": len(report.get("touched_segments", ())),
        "segment digested": len(report.get("digested_segments", ())),
        "segment archived": len(report.get("archived_segments", ())),
        "fact": report.get("facts", 0),
        "model call": report["usage"]["model_calls"],
    }
    failure = f"; {report['failure']} failed, tried again later" if report.get("failure") else ""
    return f"remembered: {counted(counts) or 'nothing new'}{failure}"


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts that are not zero, each with its name in the singular or plural."""
    return ", ".join(f"{count} {_plural(name, count)}" for name, count in counts.items() if count)


def _plural(name: str, count: int) -> str:
    head, _, rest = name.partition(" ") if name != "model call" else (name, "", "")
    return f"{head}{'' if count == 1 else 's'}{' ' if rest else ''}{rest}"
