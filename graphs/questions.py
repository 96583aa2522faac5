"""Conditional edges: a question after a step, with the answers as labels in the picture."""

from collections.abc import Callable, Hashable
from typing import Any

from langgraph.graph import StateGraph


def ask(
    graph: StateGraph[Any, Any, Any, Any], step: str, question: Callable[[Any], bool], *, yes: tuple[str, str],
    no: tuple[str, str],
) -> None:
    """Let a yes-or-no ``question`` decide what follows ``step``; ``yes`` and ``no`` are (label, next step)."""

    def answer(state: Any) -> str:
        return yes[0] if question(state) else no[0]

    choose(graph, step, answer, {yes[0]: yes[1], no[0]: no[1]})


def choose(
    graph: StateGraph[Any, Any, Any, Any], step: str, question: Callable[[Any], str], answers: dict[Hashable, str],
) -> None:
    """Let ``question`` decide what follows ``step``; ``answers`` are next steps by label."""

    def route(state: Any) -> str:
        return question(state)

    # Without a schema of its own a route sees only what its step reads or writes.
    route.__annotations__["state"] = graph.state_schema
    graph.add_conditional_edges(step, route, answers)
