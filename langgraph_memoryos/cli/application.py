"""The typer application: which commands there are, and what they have in common."""

import contextlib
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from langgraph_memoryos.cli.ask import ask
from langgraph_memoryos.cli.chat import chat
from langgraph_memoryos.cli.consolidate import consolidate
from langgraph_memoryos.cli.demo import demo
from langgraph_memoryos.cli.doctor import doctor
from langgraph_memoryos.cli.export import export
from langgraph_memoryos.cli.failures import PlainErrors
from langgraph_memoryos.cli.forget import forget
from langgraph_memoryos.cli.inspection import inspect
from langgraph_memoryos.cli.migrate import migrate
from langgraph_memoryos.cli.replay import replay

app = typer.Typer(
    cls=PlainErrors,
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


for command in (demo, chat, replay, ask, inspect, export, forget, consolidate, migrate, doctor):
    app.command()(command)
