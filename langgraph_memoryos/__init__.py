"""Long-term memory for LangGraph agents, organised like an operating system's."""

from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.nodes.generate_reply import prompt_messages
from langgraph_memoryos.records import Exchange, Fact, Page, Segment, Trait
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.state import MemoryContext, MemoryState, RecalledMemory

__all__ = [
    "Exchange",
    "Fact",
    "MemoryContext",
    "MemoryOS",
    "MemoryOSError",
    "MemorySettings",
    "MemoryState",
    "Page",
    "RecalledMemory",
    "Segment",
    "Trait",
    "prompt_messages",
]
