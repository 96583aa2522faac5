"""``remember``: after your agent. The page first, then what must move."""

from typing import Any

from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.graphs.maintenance import FIRST_STEP, add_maintenance
from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.questions import ask
from langgraph_memoryos.nodes import routes
from langgraph_memoryos.nodes.write_page import WritePage
from langgraph_memoryos.state import MemoryContext, RememberInput, RememberOutput, RememberState


def build_remember_graph(parts: MemoryParts) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of ``remember``: messages in, ``remembered`` out.

    Writing the page asks no model. With ``maintenance="deferred"`` nothing follows it; ``consolidate`` does the rest.
    """
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        RememberState, context_schema=MemoryContext, input_schema=RememberInput, output_schema=RememberOutput,
    )
    graph.add_node("write_page", WritePage(
        store=parts.pages, default_agent=parts.default_agent, clock=parts.clock), input_schema=RememberInput)
    graph.add_edge(START, "write_page")
    if parts.settings.maintenance == "deferred":
        graph.add_edge("write_page", END)
        return graph
    add_maintenance(graph, parts, done=END)
    ask(
        graph, "write_page", routes.short_term_is_full(parts.settings.short_term_capacity_pages),
        yes=("queue full", FIRST_STEP), no=("room left", END),
    )
    return graph
