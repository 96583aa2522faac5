"""``consolidate``: maintenance for a user, in the background or when idle."""

from typing import Any

from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.graphs.maintenance import FIRST_STEP, add_maintenance
from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.questions import ask
from langgraph_memoryos.nodes import routes
from langgraph_memoryos.nodes.another_queue import count_failure
from langgraph_memoryos.nodes.choose_queue import ChooseQueue
from langgraph_memoryos.state import ConsolidateInput, ConsolidateState, MemoryContext, RememberOutput


def build_consolidate_graph(parts: MemoryParts) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of ``consolidate``: every queue over capacity is emptied, then hot segments are promoted.

    A queue whose pages no model can judge does not keep the others waiting; after three failures the run ends.
    """
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        ConsolidateState, context_schema=MemoryContext, input_schema=ConsolidateInput, output_schema=RememberOutput,
    )
    graph.add_node("choose_queue", ChooseQueue(
        store=parts.pages, default_agent=parts.default_agent,
        capacity=parts.settings.short_term_capacity_pages,
    ))
    add_maintenance(graph, parts, done="another_queue", failed="another_queue")
    graph.add_node("another_queue", count_failure)
    graph.add_edge(START, "choose_queue")
    # Also without a queue to empty: summaries that an earlier run could not refresh are made on the way.
    graph.add_edge("choose_queue", FIRST_STEP)
    ask(graph, "another_queue", routes.has_queue, yes=("next queue", "choose_queue"), no=("last", END))
    return graph
