"""A client that is killed at a chosen step; runs in a process of its own."""

import os
import signal
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import StateGraph

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from tests.memory_support import HashEmbeddings, PlayedModel, asked, run_of

EVERYTHING = MemorySettings(
    short_term_capacity_pages=1, eviction_batch_pages=1, segment_threshold=-1.0, promotion_heat=0.5,
)
"""Settings under which a second turn goes through every step."""


class Fatal(Runnable[Any, Any]):
    """A step at which the process dies, before or after it did its work, without any clean-up."""

    def __init__(self, step: Runnable[Any, Any], *, after: bool) -> None:
        self._step = step
        self._after = after

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - Runnable's name
        """Work and die, or just die."""
        if self._after:
            self._step.invoke(input, config, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)


def make_fatal(step: str, *, after: bool) -> None:
    """Let every graph that is built from now on die at one step."""
    original = StateGraph.add_node

    def add_node(self: StateGraph[Any], name: Any, *args: Any, **kwargs: Any) -> Any:
        done = original(self, name, *args, **kwargs)
        if name == step:
            self.nodes[name].runnable = Fatal(self.nodes[name].runnable, after=after)
        return done

    StateGraph.add_node = add_node  # type: ignore[method-assign]


def open_client(url: str, namespace: str) -> MemoryOS:
    """Open the memory that a crash interrupts."""
    return MemoryOS.open_sync(
        url, namespace=namespace, embeddings=HashEmbeddings(), analyst=DeterministicAnalyst(), settings=EVERYTHING,
        model=PlayedModel(),
    )


def take_a_turn_and_die(url: str, namespace: str, text: str, step: str, after: bool) -> None:  # noqa: FBT001
    """Say something in ``chat``, in a thread named like the namespace, and be killed at a step."""
    make_fatal(step, after=after)
    memory = open_client(url, namespace)
    graph = memory.builder("chat").compile(checkpointer=memory.checkpointer())
    graph.invoke(asked(text, text), run_of("ann", namespace))
