"""Fixtures of memories on the session's Redis; a test module takes them with ``pytest_plugins``."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from langgraph_memoryos.analysts import DeterministicAnalyst, ModelAnalyst
from langgraph_memoryos.memory import MemoryOS
from tests.memory_support import Clock, HashEmbeddings, OpenMemory


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def open_memory(redis_url: str, redis_prefix: str, clock: Clock) -> Iterator[OpenMemory]:
    """A factory of memories that share one namespace, by default without any model."""
    with ExitStack() as stack:

        def open_one(**options: Any) -> MemoryOS:
            analyst = ModelAnalyst() if "memory_model" in options else DeterministicAnalyst()
            defaults = {"embeddings": HashEmbeddings(), "namespace": redis_prefix, "analyst": analyst, "clock": clock}
            return stack.enter_context(MemoryOS.open_sync(redis_url, **{**defaults, **options}))

        yield open_one


@pytest.fixture
def memory(open_memory: OpenMemory) -> MemoryOS:
    """A memory with default settings."""
    return open_memory()
