"""Long-term memory for LangGraph agents, organised like an operating system's.

Names are imported when they are first used: opening a memory needs LangGraph, numpy and a Redis client, while a program
that only wants a record or an error should not wait for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # nothing here is an annotation, so nobody reads it at run time
    from langgraph_memoryos.errors import MemoryOSError
    from langgraph_memoryos.memory import MemoryOS
    from langgraph_memoryos.nodes.generate_reply import prompt_messages
    from langgraph_memoryos.records import Exchange, Fact, Page, Segment, Trait
    from langgraph_memoryos.settings import MemorySettings
    from langgraph_memoryos.state import MemoryContext, MemoryState, RecalledMemory
    from langgraph_memoryos.tools import memory_tools
    from langgraph_memoryos.virtual_context import VirtualContext
    from langgraph_memoryos.virtual_settings import VirtualContextSettings

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
    "VirtualContext",
    "VirtualContextSettings",
    "memory_tools",
    "prompt_messages",
]

_HOMES = {
    "MemoryOS": "memory",
    "MemoryOSError": "errors",
    "MemorySettings": "settings",
    "VirtualContext": "virtual_context",
    "VirtualContextSettings": "virtual_settings",
    "memory_tools": "tools",
    "prompt_messages": "nodes.generate_reply",
    **dict.fromkeys(("Exchange", "Fact", "Page", "Segment", "Trait"), "records"),
    **dict.fromkeys(("MemoryContext", "MemoryState", "RecalledMemory"), "state"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    """Return the public names too, imported or not."""
    return sorted({*globals(), *__all__})
