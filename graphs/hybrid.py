"""MemoryOS around MemGPT's loop: recall before an event, segments and persona after an eviction."""

from typing import Any

from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.graphs.maintenance import add_filing, add_promotion
from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.questions import ask
from langgraph_memoryos.graphs.recall import add_retrieval
from langgraph_memoryos.nodes import virtual_routes
from langgraph_memoryos.nodes.ask_memory import ask_memory
from langgraph_memoryos.nodes.choose_filed_pages import ChooseFiledPages
from langgraph_memoryos.nodes.derive_summary import DeriveSummary
from langgraph_memoryos.nodes.exclude_queued_pages import exclude_queued_pages
from langgraph_memoryos.nodes.refresh_segments import RefreshSegments
from langgraph_memoryos.state import MaintenanceState, RecallOutput, RecallState
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import VirtualState


class HybridState(VirtualState, MaintenanceState, total=False):
    """Channels of ``virtual_context`` in hybrid mode."""


class HybridRecallState(RecallState, total=False):
    """Channels of the recall before an event: the queue says what needs no recall."""

    queue: list[dict[str, Any]]


def build_hybrid_recall_graph(
    parts: MemoryParts, *, max_memory_tokens: int
) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of the recall: MemoryOS's three stages, without what the queue shows already."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(HybridRecallState, output_schema=RecallOutput)
    graph.add_node("ask_memory", ask_memory)
    graph.add_node("exclude_queued_pages", exclude_queued_pages)
    add_retrieval(
        graph,
        parts,
        after="ask_memory",
        before="exclude_queued_pages",
        max_memory_tokens=max_memory_tokens,
    )
    graph.add_edge(START, "ask_memory")
    graph.add_edge("exclude_queued_pages", "assemble_memory")
    return graph


def add_hybrid_recall(
    graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, settings: VirtualContextSettings, before: str
) -> None:
    """Add ``recall_memory``, which leads to ``before``; what it recalls leaves room for the queue."""
    most = min(parts.settings.max_memory_tokens, settings.recalled_tokens)
    graph.add_node("recall_memory", build_hybrid_recall_graph(parts, max_memory_tokens=most).compile())
    graph.add_edge("recall_memory", before)


def add_hybrid_eviction(
    graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, settings: VirtualContextSettings
) -> None:
    """Let what is evicted join segments; the summary comes from the same, single analysis."""
    graph.add_node("choose_filed_pages", ChooseFiledPages(store=parts.pages))
    add_filing(graph, parts, failed="derive_summary")
    graph.add_node("derive_summary", DeriveSummary(settings=settings))
    graph.add_node("refresh_segments", RefreshSegments(store=parts.segments))
    graph.add_edge("select_evicted", "choose_filed_pages")
    ask(
        graph,
        "choose_filed_pages",
        virtual_routes.has_filed_pages,
        yes=("dialogue", "analyse_pages"),
        no=("no dialogue", "derive_summary"),
    )
    graph.add_edge("assign_segments", "derive_summary")
    graph.add_edge("derive_summary", "refresh_segments")
    graph.add_edge("refresh_segments", "replace_evicted")


def add_hybrid_promotion(graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, after: str) -> None:
    """After an event that filed pages: cold segments leave mid-term search, hot ones update the persona.

    With ``maintenance="deferred"`` nothing follows the event; ``consolidate`` does it later.
    """
    if parts.settings.maintenance == "deferred":
        graph.add_edge(after, END)
        return
    add_promotion(graph, parts, done=END)
    ask(
        graph,
        after,
        virtual_routes.has_flushed,
        yes=("flushed", "evict_cold_segments"),
        no=("not flushed", END),
    )
