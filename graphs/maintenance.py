"""Eviction and promotion, the part that ``remember`` and ``consolidate`` share."""

from typing import Any

from langgraph.graph import END, StateGraph

from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.questions import ask
from langgraph_memoryos.nodes import routes
from langgraph_memoryos.nodes.analyse_pages import AnalysePages, AnalysePagesInput
from langgraph_memoryos.nodes.assign_segments import AssignSegments
from langgraph_memoryos.nodes.cool_segments import CoolSegments
from langgraph_memoryos.nodes.digest_segments import DigestSegments, DigestSegmentsInput
from langgraph_memoryos.nodes.evict_cold_segments import EvictColdSegments
from langgraph_memoryos.nodes.load_known_persona import LoadKnownPersona
from langgraph_memoryos.nodes.promote_hot_segments import PromoteHotSegments
from langgraph_memoryos.nodes.refresh_segments import RefreshSegments
from langgraph_memoryos.nodes.select_overflow import SelectOverflow
from langgraph_memoryos.nodes.summarise_segments import SummariseSegments, SummariseSegmentsInput
from langgraph_memoryos.nodes.thinking import thinking_step
from langgraph_memoryos.nodes.update_persona import UpdatePersona

FIRST_STEP = "select_overflow"


def add_maintenance(
    graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, done: str, failed: str = END,
) -> None:
    """Add the steps from a full queue to a cool persona.

    Args:
        graph: Where to.
        parts: What the steps are bound to.
        done: What follows them.
        failed: What follows a thinking step that fails; what it should have judged stays as it was.
    """
    settings = parts.settings
    graph.add_node(FIRST_STEP, SelectOverflow(
        store=parts.pages, batch=settings.eviction_batch_pages, capacity=settings.short_term_capacity_pages))
    add_filing(graph, parts, failed=failed)
    graph.add_node("summarise_segments", thinking_step(
        "summarise_segments", SummariseSegments(analyst=parts.analyst), model=parts.memory_model),
        input_schema=SummariseSegmentsInput)
    graph.add_node("refresh_segments", RefreshSegments(store=parts.segments))
    add_promotion(graph, parts, done=done, failed=failed)

    graph.add_edge(FIRST_STEP, "analyse_pages")
    graph.add_edge("assign_segments", "summarise_segments")
    _unless_failed(graph, "summarise_segments", "refresh_segments", failed=failed)
    graph.add_edge("refresh_segments", "evict_cold_segments")


def add_filing(graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, failed: str) -> None:
    """Add the steps that move pages into segments; ``failed`` is what follows when they cannot be judged."""
    settings = parts.settings
    graph.add_node("analyse_pages", thinking_step(
        "analyse_pages", AnalysePages(analyst=parts.analyst), model=parts.memory_model), input_schema=AnalysePagesInput)
    graph.add_node("assign_segments", AssignSegments(
        store=parts.segments, threshold=settings.segment_threshold, refresh_pages=settings.refresh_pages,
        clock=parts.clock,
    ))
    _unless_failed(graph, "analyse_pages", "assign_segments", failed=failed)


def add_promotion(
    graph: StateGraph[Any, Any, Any, Any], parts: MemoryParts, *, done: str, failed: str = END,
) -> None:
    """Add the steps from ``evict_cold_segments`` to a cool persona; ``done`` or ``failed`` is what follows them."""
    settings = parts.settings
    graph.add_node("evict_cold_segments", EvictColdSegments(
        store=parts.segments, capacity=settings.segment_capacity, weights=settings.heat_weights, clock=parts.clock,
    ))
    graph.add_node("promote_hot_segments", PromoteHotSegments(
        store=parts.segments, promotion_heat=settings.promotion_heat, weights=settings.heat_weights,
        digest_pages=settings.digest_pages, clock=parts.clock,
    ))
    graph.add_node("load_known_persona", LoadKnownPersona(facts=parts.facts, personas=parts.personas))
    graph.add_node("digest_segments", thinking_step(
        "digest_segments", DigestSegments(analyst=parts.analyst), model=parts.memory_model),
        input_schema=DigestSegmentsInput)
    graph.add_node("update_persona", UpdatePersona(
        facts=parts.facts, personas=parts.personas, user_knowledge_capacity=settings.user_knowledge_capacity,
        agent_traits_capacity=settings.agent_traits_capacity,
    ))
    graph.add_node("cool_segments", CoolSegments(
        store=parts.segments, archive=settings.after_promotion == "archive"))

    graph.add_edge("evict_cold_segments", "promote_hot_segments")
    ask(graph, "promote_hot_segments", routes.has_hot_segments, yes=("hot", "load_known_persona"), no=("cool", done))
    graph.add_edge("load_known_persona", "digest_segments")
    _unless_failed(graph, "digest_segments", "update_persona", failed=failed)
    graph.add_edge("update_persona", "cool_segments")
    ask(
        graph, "cool_segments", routes.still_over_capacity, yes=("over capacity", "evict_cold_segments"),
        no=("within capacity", done),
    )


def _unless_failed(graph: StateGraph[Any, Any, Any, Any], step: str, following: str, *, failed: str) -> None:
    ask(graph, step, routes.thinking_failed, yes=("failed", failed), no=("judged", following))
