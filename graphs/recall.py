"""``recall``: before your agent. Three stages side by side, then one memory inside the token budget."""

from typing import Any

from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.nodes.assemble_memory import AssembleMemory
from langgraph_memoryos.nodes.record_visits import RecordVisits
from langgraph_memoryos.nodes.resolve_turn import ResolveTurn
from langgraph_memoryos.nodes.retrieve_long_term import RetrieveLongTerm
from langgraph_memoryos.nodes.retrieve_mid_term import RetrieveMidTerm
from langgraph_memoryos.nodes.retrieve_short_term import RetrieveShortTerm
from langgraph_memoryos.state import MemoryContext, RecallInput, RecallOutput, RecallState

STAGES = ("retrieve_short_term", "retrieve_mid_term", "retrieve_long_term")


def build_recall_graph(parts: MemoryParts) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of ``recall``: messages in, ``memory`` out. No model is called."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        RecallState, context_schema=MemoryContext, input_schema=RecallInput, output_schema=RecallOutput,
    )
    graph.add_node("resolve_turn", ResolveTurn(
        default_agent=parts.default_agent, new_turn_id=parts.new_turn_id), input_schema=RecallInput)
    add_retrieval(
        graph, parts, after="resolve_turn", before="assemble_memory",
        max_memory_tokens=parts.settings.max_memory_tokens,
    )
    graph.add_edge(START, "resolve_turn")
    return graph


def add_retrieval(
    graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, after: str, before: str, max_memory_tokens: int,
) -> None:
    """Add the three stages after the step that asks, and memory made of what ``before`` is given of them."""
    graph.add_node("retrieve_short_term", RetrieveShortTerm(store=parts.recall))
    graph.add_node("retrieve_mid_term", RetrieveMidTerm(store=parts.recall))
    graph.add_node("retrieve_long_term", RetrieveLongTerm(store=parts.recall))
    graph.add_node("assemble_memory", AssembleMemory(
        max_memory_tokens=max_memory_tokens, chain_metas=parts.settings.chain_meta_in_prompt,
        agent_profile=parts.agent_profile,
    ))
    graph.add_node("record_visits", RecordVisits(store=parts.segments, clock=parts.clock))

    for stage in STAGES:
        graph.add_edge(after, stage)
    graph.add_edge(list(STAGES), before)
    graph.add_edge("assemble_memory", "record_visits")
    graph.add_edge("record_visits", END)
