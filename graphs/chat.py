"""``chat``: recall, reply, remember: a whole agent with memory."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.recall import build_recall_graph
from langgraph_memoryos.graphs.remember import build_remember_graph
from langgraph_memoryos.nodes.generate_reply import GenerateReply, GenerateReplyInput
from langgraph_memoryos.state import ChatInput, ChatState, MemoryContext


def build_chat_graph(parts: MemoryParts, *, model: BaseChatModel) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of ``chat``: a user message in, the reply, ``memory`` and ``remembered`` out.

    Nothing but the recall stands between the message and the first token; maintenance follows the reply.
    """
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(ChatState, context_schema=MemoryContext, input_schema=ChatInput)
    graph.add_node("recall", build_recall_graph(parts).compile())
    graph.add_node("generate_reply", GenerateReply(
        model=model, store=parts.pages, default_agent=parts.default_agent, clock=parts.clock, system=parts.system,
    ).step(), input_schema=GenerateReplyInput)
    graph.add_node("remember", build_remember_graph(parts).compile())
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "generate_reply")
    graph.add_edge("generate_reply", "remember")
    graph.add_edge("remember", END)
    return graph
