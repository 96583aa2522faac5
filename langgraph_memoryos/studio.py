"""The graphs as LangGraph's development server serves them (``langgraph.json``, ``make studio``).

The memory is opened when the first graph is asked for: starting the server costs nothing, and a missing Redis
is told in the reply to a request. The graphs carry no checkpointer, because the server brings its own for
threads; what lasts beyond a thread is in Redis.
"""

import asyncio
import atexit
import threading
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from langgraph_memoryos.memory import Graph, GraphName, MemoryOS
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings

DEFAULT_USER = "me"
DEFAULT_AGENT = "assistant"

ServedName = GraphName | Literal["virtual_context"]


class StudioContext(BaseModel):
    """Who is talking; Studio shows it as a form, so every field is one text with a default."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    user_id: str = Field(
        default=DEFAULT_USER, min_length=1,
        description="Whose memory to use. Every thread of this user shares it, no other user sees it.",
    )
    agent_id: str = Field(
        default=DEFAULT_AGENT, min_length=1,
        description="Which agent is talking; each has its own memory of a user.",
    )


class _SharedMemory:
    """One memory for all graphs of the process, opened once, whatever thread or event loop asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._memory: MemoryOS | None = None
        self._graphs: dict[ServedName, Graph] = {}

    def graph(self, name: ServedName) -> Graph:
        """Return a compiled graph; the first call opens the memory and blocks for some seconds."""
        with self._lock:
            if name not in self._graphs:
                self._graphs[name] = self._compiled(self._opened(), name)
            return self._graphs[name]

    def _opened(self) -> MemoryOS:
        if self._memory is None:
            self._memory = MemoryOS.open_sync(settings=MemorySettings.from_env(), agent_id=DEFAULT_AGENT)
            atexit.register(self._memory.close)
        return self._memory

    def _compiled(self, memory: MemoryOS, name: ServedName) -> Graph:
        if name == "virtual_context":
            builder = VirtualContext(memory, settings=VirtualContextSettings.from_env()).builder()
        else:
            builder = memory.builder(name)
        builder.context_schema = StudioContext
        bound: Graph = builder.compile(name=name).with_config(
            configurable={"user_id": DEFAULT_USER},  # for runs that bring no context at all
        )
        return bound


_SHARED = _SharedMemory()


async def chat() -> Graph:
    """Return ``chat`` with the environment's model, else the bundled local one."""
    return await asyncio.to_thread(_SHARED.graph, "chat")


async def recall() -> Graph:
    """Return ``recall``."""
    return await asyncio.to_thread(_SHARED.graph, "recall")


async def remember() -> Graph:
    """Return ``remember``."""
    return await asyncio.to_thread(_SHARED.graph, "remember")


async def consolidate() -> Graph:
    """Return ``consolidate``."""
    return await asyncio.to_thread(_SHARED.graph, "consolidate")


async def virtual_context() -> Graph:
    """Return ``virtual_context`` in the mode that ``LANGGRAPH_MEMORYOS_MODE`` names, else ``memgpt``."""
    return await asyncio.to_thread(_SHARED.graph, "virtual_context")
