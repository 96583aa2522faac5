"""``virtual_context``: MemGPT's loop. An event in, function calls until the model rests."""

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.function_tools import blocks_of, schema_text
from langgraph_memoryos.functions import MemoryFunctions
from langgraph_memoryos.graphs.chat import build_chat_graph
from langgraph_memoryos.graphs.hybrid import (
    HybridState,
    add_hybrid_eviction,
    add_hybrid_promotion,
    add_hybrid_recall,
)
from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.questions import ask, choose
from langgraph_memoryos.nodes import virtual_routes as routes
from langgraph_memoryos.nodes.build_context import BuildContext
from langgraph_memoryos.nodes.call_model import CallModel, CallModelInput
from langgraph_memoryos.nodes.check_pressure import CheckPressure
from langgraph_memoryos.nodes.execute_functions import ExecuteFunctions
from langgraph_memoryos.nodes.finish_event import FinishEvent
from langgraph_memoryos.nodes.ingest_event import IngestEvent, IngestEventInput
from langgraph_memoryos.nodes.replace_evicted import ReplaceEvicted
from langgraph_memoryos.nodes.select_evicted import SelectEvicted
from langgraph_memoryos.nodes.summarise_evicted import SummariseEvicted, SummariseEvictedInput
from langgraph_memoryos.state import MemoryContext
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.blocks import BlockStore
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.search import SearchStore
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_queue import CountTokens
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import VirtualInput, VirtualOutput, VirtualState


def build_virtual_context_graph(
    parts: MemoryParts,
    *,
    model: BaseChatModel,
    settings: VirtualContextSettings | None = None,
    summary_model: BaseChatModel | None = None,
    count: CountTokens | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of ``virtual_context``: an event in, what was said and a report out.

    Args:
        parts: The collaborators of a memory; ``parts.system`` holds the developer's instructions.
        model: Runs the loop; without tool calling, it fills in one JSON schema over all functions.
        settings: Numbers and mode; ``hybrid`` adds MemoryOS's recall before and its segments after, and
            ``memoryos`` is the graph ``chat``.
        summary_model: Writes the recursive summary; without one it quotes.
        count: Counts tokens of a text without any network; default an estimate, corrected by what the model
            reports.
    """
    chosen = (settings or VirtualContextSettings()).fitted_to(model.profile or {})
    if chosen.mode == "memoryos":
        return build_chat_graph(parts, model=model)
    hybrid = chosen.mode == "hybrid"
    count = count or token_counter(model)
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        HybridState if hybrid else VirtualState,
        context_schema=MemoryContext,
        input_schema=VirtualInput,
        output_schema=VirtualOutput,
    )
    _add_loop(graph, parts, model, chosen, count)
    if hybrid:
        add_hybrid_recall(graph, parts, settings=chosen, before="build_context")
        add_hybrid_eviction(graph, parts, settings=chosen)
        add_hybrid_promotion(graph, parts, after="finish_event")
    else:
        _add_flush(graph, chosen, summary_model, count)
        graph.add_edge("finish_event", END)
    begins = "recall_memory" if hybrid else "build_context"
    ask(graph, "ingest_event", routes.has_event, yes=("event", begins), no=("nothing", "finish_event"))
    return graph


def _add_loop(
    graph: StateGraph[Any, Any, Any, Any],
    parts: MemoryParts,
    model: BaseChatModel,
    settings: VirtualContextSettings,
    count: CountTokens,
) -> None:
    pages, clock = parts.pages, parts.clock
    messages, leases = pages.sibling(MessageStore), pages.sibling(LeaseStore)
    native = uses_native_calls(model, settings)
    graph.add_node(
        "ingest_event",
        IngestEvent(
            pages=pages,
            messages=messages,
            leases=leases,
            settings=settings,
            default_agent=parts.default_agent,
            clock=clock,
            count=count,
        ),
        input_schema=IngestEventInput,
    )
    graph.add_node(
        "build_context",
        BuildContext(
            blocks=pages.sibling(BlockStore),
            archival=pages.sibling(ArchivalStore),
            search=pages.sibling(SearchStore),
            initial=tuple(blocks_of(settings)),
            settings=settings,
        ),
    )
    graph.add_node(
        "check_pressure",
        CheckPressure(
            messages=messages,
            settings=settings,
            clock=clock,
            instructions=parts.system,
            functions_text=schema_text(settings.functions, native=native),
            count=count,
        ),
    )
    graph.add_node("select_evicted", SelectEvicted(settings=settings, count=count))
    graph.add_node(
        "replace_evicted", ReplaceEvicted(messages=messages, settings=settings, clock=clock, count=count)
    )
    graph.add_node(
        "call_model",
        CallModel(
            model=model,
            leases=leases,
            settings=settings,
            native=native,
            clock=clock,
            instructions=parts.system,
        ).step(),
        input_schema=CallModelInput,
    )
    graph.add_node(
        "execute_functions",
        ExecuteFunctions(
            functions=MemoryFunctions.over(pages, parts.segments, settings=settings, clock=clock),
            pages=pages,
            messages=messages,
            settings=settings,
            clock=clock,
        ),
    )
    graph.add_node("finish_event", FinishEvent(messages=messages, leases=leases))
    graph.add_edge(START, "ingest_event")
    graph.add_edge("build_context", "check_pressure")
    choose(
        graph,
        "check_pressure",
        routes.what_next,
        {"full": "select_evicted", "run": "call_model", "rest": "finish_event"},
    )
    graph.add_edge("replace_evicted", "check_pressure")
    graph.add_edge("call_model", "execute_functions")
    graph.add_edge("execute_functions", "build_context")


def _add_flush(
    graph: StateGraph[Any, Any, Any, Any],
    settings: VirtualContextSettings,
    model: BaseChatModel | None,
    count: CountTokens,
) -> None:
    graph.add_node(
        "summarise_evicted",
        SummariseEvicted(
            settings=settings,
            model=model if settings.summaries == "model" else None,
            count=count,
        ).step(),
        input_schema=SummariseEvictedInput,
    )
    graph.add_edge("select_evicted", "summarise_evicted")
    graph.add_edge("summarise_evicted", "replace_evicted")


def uses_native_calls(model: BaseChatModel, settings: VirtualContextSettings) -> bool:
    """Tell whether the model is given tools: as the setting says, else as its profile, else if it can bind any."""
    if settings.calls != "auto":
        return settings.calls == "native"
    calls_tools = (model.profile or {}).get("tool_calling")
    return calls_tools if calls_tools is not None else type(model).bind_tools is not BaseChatModel.bind_tools


def token_counter(model: BaseChatModel) -> Callable[[str], int]:
    """Return the model's own counter where one was given to it, else the offline estimate.

    ``get_num_tokens`` of most classes would download a vocabulary or ask a server, so it is not called.
    """
    own = getattr(model, "custom_get_token_ids", None)
    return (lambda text: len(own(text))) if own is not None else count_tokens
