"""Who is talking, wherever a LangGraph run may say it."""

from collections.abc import Mapping
from typing import Any

from langgraph_memoryos.ids import readable_id
from langgraph_memoryos.records import Scope

DEFAULT_THREAD = "default"


def named(source: object, name: str) -> Any:
    """Return ``name`` from a mapping or an object, or ``None``."""
    if isinstance(source, Mapping):
        return source.get(name)
    return getattr(source, name, None)


def resolve_scope(
    *, state: Mapping[str, Any], context: object, configurable: Mapping[str, Any], default_agent: str,
) -> tuple[Scope, str]:
    """Return the scope and the thread of a run.

    Each id is taken from the run's context (object or dict), else from ``config["configurable"]``, else from the
    state. A parent graph's context reaches a subgraph as it is, of any class, so nothing is assumed about it.

    Raises:
        IdentityError: if no user id is given, or an id is of a type that names nothing.
    """

    def find(name: str) -> Any:
        found = (named(source, name) for source in (context, configurable, state))
        return next((value for value in found if value is not None), None)

    agent = find("agent_id")
    thread = find("thread_id")
    return (
        Scope(
            user_id=readable_id(find("user_id"), what="user_id"),
            agent_id=readable_id(default_agent if agent is None else agent, what="agent_id"),
        ),
        readable_id(DEFAULT_THREAD if thread is None else thread, what="thread_id"),
    )
