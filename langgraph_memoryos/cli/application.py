"""The typer application: which commands there are, and what they have in common."""

import contextlib
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from langgraph_memoryos.cli.failures import PlainErrors


@dataclass(frozen=True, kw_only=True)
class CommandPlace:
    """Where a command is, and what the list of commands says of it: the first line of its docstring."""

    module: str
    told: str


COMMANDS = {
    name: CommandPlace(module=module, told=told)
    for name, module, told in (
        ("demo", "demo", "See the memory at work on two recorded conversations, without network or API key."),
        ("chat", "chat", "Talk to an agent that remembers you, in this thread and all others."),
        ("replay", "replay", "Bring a recorded conversation into memory."),
        ("load", "load",
         "Load documents into a user's archive, where archival_memory_search of `chat --mode memgpt` finds them."),
        ("ask", "ask", "Ask a user's memory: see the pages it recalls, and an answer if a chat model is at hand."),
        ("inspect", "inspection",
         "Show what each tier holds of a user: queues, segments with their heat now, facts, persona, blocks, archive."),
        ("export", "export", "Print everything known of a user, over all agents, as JSON Lines."),
        ("forget", "forget",
         "Destroy pages, facts, a thread or, with none of them named, all that is known of a user."),
        ("consolidate", "consolidate",
         "Move what queues hold above their capacity, and update the persona from hot segments."),
        ("migrate", "migrate", "Embed everything again with the embedder that the environment names now."),
        ("doctor", "doctor",
         "Check Python, packages, Redis, indexes and models; exit code 1 if memory cannot work."),
    )
}


class CommandsOnUse(PlainErrors):
    """Commands that are imported when they run, so that the list of them comes at once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=place.told) for name, place in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command itself instead of the entry of the list, and its arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, _load(name) if listed else listed, rest


def _load(name: str | None) -> Any:
    place = COMMANDS[str(name)]
    function = getattr(import_module(f"langgraph_memoryos.cli.{place.module}"), str(name))
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name)(function)
    return typer.main.get_command(single)


app = typer.Typer(
    cls=CommandsOnUse,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with the values of variables could show a password
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Long-term memory for LangGraph agents on Redis.\n\n"
        "Without --redis-url and REDIS_URL, an embedded Redis keeps the memory on this machine. "
        "Without OPENAI_API_KEY, bundled models are used."
    ),
)


def _tell_version(asked: bool) -> None:  # noqa: FBT001 - typer's signature
    if asked:
        typer.echo(f"langgraph-memoryos {version('langgraph-memoryos')}")
        raise typer.Exit


@app.callback()
def start(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell the version and exit."),
    ] = False,
) -> None:
    """Make the standard streams survive what their encoding cannot express."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
