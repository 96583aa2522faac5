"""Memory as LangChain tools, for people's own agents (``create_agent``, ``ToolNode``)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.runtime import get_runtime

from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.function_tools import blocks_of
from langgraph_memoryos.functions import ARGUMENTS, NO_HEARTBEAT, FunctionCall, MemoryFunctions
from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.records import Scope
from langgraph_memoryos.virtual_settings import FUNCTION_NAMES, VirtualContextSettings

TOOL_NAMES = tuple(name for name in FUNCTION_NAMES if name not in NO_HEARTBEAT)
"""Functions that make sense in any agent: all but the two that belong to MemGPT's own loop."""


def memory_tools(
    parts: MemoryParts,
    *,
    user_id: str | int | None = None,
    agent_id: str | int | None = None,
    names: Sequence[str] = TOOL_NAMES,
    settings: VirtualContextSettings | None = None,
) -> list[BaseTool]:
    """Return functions as LangChain tools for an agent of your own (``create_agent``, ``ToolNode``).

    Args:
        parts: The collaborators of an open memory (``memory.parts``).
        user_id: Whose memory; default: what the run's context or ``config["configurable"]`` says.
        agent_id: Which agent's; default likewise, then the memory's own.
        names: Which functions, of :data:`FUNCTION_NAMES`.
        settings: Numbers; default ``VirtualContextSettings()``.

    Raises:
        ValueError: a name is no function.
    """
    if unknown := [name for name in names if name not in ARGUMENTS]:
        raise ValueError(
            f"There is no function {unknown[0]!r}; the functions are: {', '.join(FUNCTION_NAMES)}."
        )
    chosen = settings or VirtualContextSettings()
    functions = MemoryFunctions.over(parts.pages, parts.segments, settings=chosen, clock=parts.clock)
    given = {
        name: value for name, value in (("user_id", user_id), ("agent_id", agent_id)) if value is not None
    }
    known: set[Scope] = set()
    return [_tool(name, functions, parts.default_agent, given, known) for name in names]


def _tool(
    name: str,
    functions: MemoryFunctions,
    default_agent: str,
    given: Mapping[str, Any],
    known: set[Scope],
) -> BaseTool:
    def run(config: RunnableConfig, **arguments: Any) -> str:
        scope, _ = resolve_scope(
            state={},
            context=given or _context(),
            default_agent=default_agent,
            configurable=dict(config.get("configurable") or {}),
        )
        if scope not in known:
            functions.blocks.ensure(scope, blocks_of(functions.settings))
            known.add(scope)
        try:
            return functions.call(name, arguments, FunctionCall(scope=scope))
        except MemoryOSError as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(
        _named(run, name),
        name=name,
        description=ARGUMENTS[name].__doc__,
        args_schema=ARGUMENTS[name],
        handle_tool_error=True,
    )


def _named(run: Callable[..., str], name: str) -> Callable[..., str]:
    run.__name__ = name
    return run


def _context() -> Any:
    """Return the context of the run around a tool, or nothing where there is none."""
    try:
        return getattr(get_runtime(), "context", None)
    except (RuntimeError, KeyError, LookupError):
        return None
