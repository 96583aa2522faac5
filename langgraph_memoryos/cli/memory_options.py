"""The options that every command which opens a memory has, declared once."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores.connection import RedisConnection, open_redis
from langgraph_memoryos.stores.keys import DEFAULT_NAMESPACE

Preset = Literal["default", "paper"]


def _not_empty(value: str | None) -> str | None:
    if value is not None and not value:
        raise typer.BadParameter("must not be empty.")
    return value


_USER_OPTION = typer.Option(
    "--user",
    "-u",
    envvar="LANGGRAPH_MEMORYOS_USER",
    callback=_not_empty,
    show_default=False,
    help="Whose memory.",
)
User = Annotated[str, _USER_OPTION]
OptionalUser = Annotated[str | None, _USER_OPTION]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else there.")]

_SHARED: dict[str, tuple[Any, Any]] = {
    "redis_url": (
        Annotated[
            str | None,
            typer.Option(
                help="URL of a Redis with search; else REDIS_URL, else an embedded one.",
                show_default=False,
                rich_help_panel="Memory",
            ),
        ],
        None,
    ),
    "data_dir": (
        Annotated[
            Path | None,
            typer.Option(
                help="Directory of the embedded Redis; else LANGGRAPH_MEMORYOS_DATA, else the user's own.",
                show_default=False,
                file_okay=False,
                rich_help_panel="Memory",
            ),
        ],
        None,
    ),
    "namespace": (
        Annotated[
            str,
            typer.Option(
                envvar="LANGGRAPH_MEMORYOS_NAMESPACE",
                help="Prefix of all keys.",
                rich_help_panel="Memory",
            ),
        ],
        DEFAULT_NAMESPACE,
    ),
    "agent": (
        Annotated[
            str,
            typer.Option(
                envvar="LANGGRAPH_MEMORYOS_AGENT",
                help="Which agent is talking; each has its own memory of a user.",
                callback=_not_empty,
                rich_help_panel="Memory",
            ),
        ],
        "assistant",
    ),
    "preset": (
        Annotated[
            Preset,
            typer.Option(
                envvar="LANGGRAPH_MEMORYOS_PRESET",
                help="Settings: our own (the environment may change them) or the paper's.",
                rich_help_panel="Memory",
            ),
        ],
        "default",
    ),
}


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """Which memory to open, and how."""

    redis_url: str | None
    data_dir: Path | None
    namespace: str
    agent: str
    preset: Preset

    def __post_init__(self) -> None:
        """Refuse two places at once."""
        if self.redis_url and self.data_dir:
            raise typer.BadParameter("give either --redis-url or --data-dir, not both.")

    def settings(self) -> MemorySettings:
        """Return the preset's numbers; those of the default one can be set by environment variables."""
        return MemorySettings.paper() if self.preset == "paper" else MemorySettings.from_env()

    def open(self, *, without_model: bool = False, **options: Any) -> MemoryOS:
        """Open the memory.

        Args:
            without_model: Pages are judged by rules, and no model is built.
            options: Further arguments of :meth:`MemoryOS.open_sync`.
        """
        if without_model:
            options["analyst"] = DeterministicAnalyst()
        place = {"redis_url": self.redis_url, "data_dir": self.data_dir} | options
        return MemoryOS.open_sync(
            settings=self.settings(),
            namespace=self.namespace,
            agent_id=self.agent,
            **place,
        )

    def connect(self) -> RedisConnection:
        """Open only the Redis, whatever is in it."""
        return open_redis(self.redis_url, data_dir=self.data_dir)


def with_memory_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command; it gets them as its first argument, a :class:`MemoryOptions`."""

    @functools.wraps(command)
    def run(**values: Any) -> None:
        command(MemoryOptions(**{name: values.pop(name) for name in _SHARED}), **values)

    own = list(inspect.signature(command).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _SHARED.items()
    ]
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + shared
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run
