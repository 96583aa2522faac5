"""MemoryOS around MemGPT's loop: recall before an event, segments and persona after an eviction."""

from typing import Any

from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.questions import ask
from langgraph_memoryos.nodes import routes, virtual_routes
from langgraph_memoryos.nodes.analyse_pages import AnalysePages, AnalysePagesInput
from langgraph_memoryos.nodes.ask_memory import ask_memory
from langgraph_memoryos.nodes.assemble_memory import AssembleMemory
from langgraph_memoryos.nodes.assign_segments import AssignSegments
from langgraph_memoryos.nodes.choose_filed_pages import ChooseFiledPages
from langgraph_memoryos.nodes.cool_segments import CoolSegments
from langgraph_memoryos.nodes.derive_summary import DeriveSummary
from langgraph_memoryos.nodes.digest_segments import DigestSegments, DigestSegmentsInput
from langgraph_memoryos.nodes.evict_cold_segments import EvictColdSegments
from langgraph_memoryos.nodes.exclude_queued_pages import exclude_queued_pages
from langgraph_memoryos.nodes.load_known_persona import LoadKnownPersona
from langgraph_memoryos.nodes.promote_hot_segments import PromoteHotSegments
from langgraph_memoryos.nodes.record_visits import RecordVisits
from langgraph_memoryos.nodes.refresh_segments import RefreshSegments
from langgraph_memoryos.nodes.retrieve_long_term import RetrieveLongTerm
from langgraph_memoryos.nodes.retrieve_mid_term import RetrieveMidTerm
from langgraph_memoryos.nodes.retrieve_short_term import RetrieveShortTerm
from langgraph_memoryos.nodes.thinking import thinking_step
from langgraph_memoryos.nodes.update_persona import UpdatePersona
from langgraph_memoryos.state import MaintenanceState, RecallOutput, RecallState
from langgraph_memoryos.virtual_queue import CountTokens
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import VirtualState

_STAGES = ("retrieve_short_term", "retrieve_mid_term", "retrieve_long_term")


class HybridState(VirtualState, MaintenanceState, total=False):
    """Channels of ``virtual_context`` in hybrid mode."""


class HybridRecallState(RecallState, total=False):
    """Channels of the recall before an event: the queue says what needs no recall."""

    queue: list[dict[str, Any]]


def add_automatic_recall(
    graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, after: str, before: str
) -> None:
    """Let every event recall memory first; ``after`` is the step whose route leads here."""
    del after  # its own question decides whether there is an event at all
    graph.add_node("recall_memory", build_hybrid_recall_graph(parts).compile())
    graph.add_edge("recall_memory", before)


def build_hybrid_recall_graph(parts: MemoryParts) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of the recall: MemoryOS's three stages, without what the queue shows already."""
    settings = parts.settings
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(HybridRecallState, output_schema=RecallOutput)
    graph.add_node("ask_memory", ask_memory)
    graph.add_node("retrieve_short_term", RetrieveShortTerm(store=parts.recall))
    graph.add_node("retrieve_mid_term", RetrieveMidTerm(store=parts.recall))
    graph.add_node("retrieve_long_term", RetrieveLongTerm(store=parts.recall))
    graph.add_node("exclude_queued_pages", exclude_queued_pages)
    graph.add_node(
        "assemble_memory",
        AssembleMemory(
            max_memory_tokens=settings.max_memory_tokens,
            max_short_term_tokens=settings.max_short_term_tokens,
            agent_profile=parts.agent_profile,
        ),
    )
    graph.add_node("record_visits", RecordVisits(store=parts.segments, clock=parts.clock))
    graph.add_edge(START, "ask_memory")
    for stage in _STAGES:
        graph.add_edge("ask_memory", stage)
    graph.add_edge(list(_STAGES), "exclude_queued_pages")
    graph.add_edge("exclude_queued_pages", "assemble_memory")
    graph.add_edge("assemble_memory", "record_visits")
    graph.add_edge("record_visits", END)
    return graph


def add_filing(
    graph: StateGraph[Any, Any, Any, Any],
    parts: MemoryParts,
    *,
    settings: VirtualContextSettings,
    count: CountTokens,
) -> None:
    """Let what is evicted join segments; the summary comes from the same, single analysis."""
    del count  # texts of an analysis are bounded by the analyst
    memory = parts.settings
    graph.add_node("choose_filed_pages", ChooseFiledPages(store=parts.pages))
    graph.add_node(
        "analyse_pages",
        thinking_step("analyse_pages", AnalysePages(analyst=parts.analyst), model=parts.memory_model),
        input_schema=AnalysePagesInput,
    )
    graph.add_node(
        "assign_segments",
        AssignSegments(
            store=parts.segments,
            threshold=memory.segment_threshold,
            refresh_pages=memory.refresh_pages,
            clock=parts.clock,
        ),
    )
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
    ask(
        graph,
        "analyse_pages",
        routes.thinking_failed,
        yes=("failed", "derive_summary"),
        no=("judged", "assign_segments"),
    )
    graph.add_edge("assign_segments", "derive_summary")
    graph.add_edge("derive_summary", "refresh_segments")
    graph.add_edge("refresh_segments", "replace_evicted")


def add_promotion(graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, after: str) -> None:
    """After an event that filed pages: cold segments leave mid-term search, hot ones update the persona.

    With ``maintenance="deferred"`` nothing follows the event; ``consolidate`` does it later.
    """
    memory = parts.settings
    if memory.maintenance == "deferred":
        graph.add_edge(after, END)
        return
    graph.add_node(
        "evict_cold_segments",
        EvictColdSegments(
            store=parts.segments,
            capacity=memory.segment_capacity,
            weights=memory.heat_weights,
            clock=parts.clock,
        ),
    )
    graph.add_node(
        "promote_hot_segments",
        PromoteHotSegments(
            store=parts.segments,
            promotion_heat=memory.promotion_heat,
            weights=memory.heat_weights,
            digest_pages=memory.digest_pages,
            clock=parts.clock,
        ),
    )
    graph.add_node("load_known_persona", LoadKnownPersona(facts=parts.facts, personas=parts.personas))
    graph.add_node(
        "digest_segments",
        thinking_step("digest_segments", DigestSegments(analyst=parts.analyst), model=parts.memory_model),
        input_schema=DigestSegmentsInput,
    )
    graph.add_node(
        "update_persona",
        UpdatePersona(
            facts=parts.facts,
            personas=parts.personas,
            user_knowledge_capacity=memory.user_knowledge_capacity,
            agent_traits_capacity=memory.agent_traits_capacity,
        ),
    )
    graph.add_node(
        "cool_segments", CoolSegments(store=parts.segments, archive=memory.after_promotion == "archive")
    )
    ask(
        graph,
        after,
        virtual_routes.has_flushed,
        yes=("flushed", "evict_cold_segments"),
        no=("not flushed", END),
    )
    graph.add_edge("evict_cold_segments", "promote_hot_segments")
    ask(
        graph,
        "promote_hot_segments",
        routes.has_hot_segments,
        yes=("hot", "load_known_persona"),
        no=("cool", END),
    )
    graph.add_edge("load_known_persona", "digest_segments")
    ask(
        graph, "digest_segments", routes.thinking_failed, yes=("failed", END), no=("judged", "update_persona")
    )
    graph.add_edge("update_persona", "cool_segments")
    graph.add_edge("cool_segments", END)
