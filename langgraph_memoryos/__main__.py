"""``python -m langgraph_memoryos`` is ``langgraph-memoryos``."""

from langgraph_memoryos.cli import app

app(prog_name="langgraph-memoryos")
