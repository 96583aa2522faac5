"""The command line ``langgraph-memoryos``: one module per command, thin over :class:`MemoryOS`."""

from langgraph_memoryos.cli.application import app

__all__ = ["app"]
