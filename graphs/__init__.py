"""Wiring: which step follows which. Each module has one factory that returns an uncompiled builder."""

from langgraph_memoryos.graphs.chat import build_chat_graph
from langgraph_memoryos.graphs.consolidate import build_consolidate_graph
from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.graphs.recall import build_recall_graph
from langgraph_memoryos.graphs.remember import build_remember_graph
from langgraph_memoryos.graphs.virtual_context import build_virtual_context_graph

__all__ = [
    "MemoryParts", "build_chat_graph", "build_consolidate_graph", "build_recall_graph", "build_remember_graph",
    "build_virtual_context_graph",
]
