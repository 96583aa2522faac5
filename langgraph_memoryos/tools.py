"""Memory as LangChain tools, for people's own agents (``create_agent``, ``ToolNode``)."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langgraph.runtime import get_runtime

from langgraph_memoryos import ids
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.function_tools import blocks_of
from langgraph_memoryos.functions import ARGUMENTS, NO_HEARTBEAT, FunctionCall, MemoryFunctions
from langgraph_memoryos.graphs.parts import MemoryParts
from langgraph_memoryos.identity import named, resolve_scope
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

    A tool call changes memory once, even when the node that carries it out is resumed and runs again.

    Args:
        parts: The collaborators of an open memory (``memory.parts``).
        user_id: Whose memory; default: what the run's context, else ``config["configurable"]``, says.
        agent_id: Which agent's; default likewise, then the memory's own. What is not given here still comes
            from the run.
        names: Which functions, of :data:`FUNCTION_NAMES`; not ``send_message``, which only the loop can deliver.
        settings: Numbers, and what blocks are; default ``VirtualContextSettings()``, without changing blocks that
            exist.

    Raises:
        ValueError: a name is no function, or ``send_message``.
    """
    if "send_message" in names:
        raise ValueError("send_message delivers only in the loop of VirtualContext: let your own agent answer by itself.")
    if unknown := [name for name in names if name not in ARGUMENTS]:
        raise ValueError(
            f"There is no function {unknown[0]!r}; the functions are: {', '.join(FUNCTION_NAMES)}."
        )
    chosen = settings or VirtualContextSettings()
    functions = MemoryFunctions.over(parts.pages, parts.segments, settings=chosen, clock=parts.clock)
    given = {
        name: value for name, value in (("user_id", user_id), ("agent_id", agent_id)) if value is not None
    }
    declare = settings is not None
    return [_tool(name, functions, parts.default_agent, given, declare=declare) for name in names]


class _Tool(StructuredTool):
    """A tool that is told the id of its call, and that can be invoked without one, by arguments alone."""

    def _parse_input(self, tool_input: str | dict[str, Any], tool_call_id: str | None) -> str | dict[str, Any]:
        return super()._parse_input(tool_input, tool_call_id or "")


def _tool(
    name: str, functions: MemoryFunctions, default_agent: str, given: Mapping[str, Any], *, declare: bool
) -> BaseTool:
    def run(config: RunnableConfig, tool_call_id: Annotated[str, InjectedToolCallId], **arguments: Any) -> str:
        context, configurable = _context(), dict(config.get("configurable") or {})
        scope, thread_id = resolve_scope(
            state={},
            context={each: given.get(each, named(context, each)) for each in ("user_id", "agent_id", "thread_id")},
            default_agent=default_agent,
            configurable=configurable,
        )
        # Some models number their calls from 0 in every reply: the id alone does not tell two calls apart, the node
        # that runs them does. Outside a graph nothing is resumed, so each call there is another.
        node = str(configurable.get("checkpoint_ns") or "")
        told = (thread_id, node, tool_call_id, name, json.dumps(arguments, default=str))
        call_id = ids.digest("tool", *told) if node and tool_call_id else ""
        call = FunctionCall(scope=scope, call_id=call_id)
        try:
            if name.startswith("core_memory"):
                # A new user has no blocks yet, an erased one none any more.
                functions.blocks.ensure(scope, blocks_of(functions.settings), declare=declare)
            return functions.call(name, arguments, call)
        except MemoryOSError as error:
            raise ToolException(str(error)) from error

    return _Tool.from_function(
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
