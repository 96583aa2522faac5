"""What is printed: text that cannot command the terminal, pure JSON, and dates."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from langgraph_memoryos.dialogue import readable

console = Console(markup=False, highlight=False, emoji=False)
"""Standard output; without colour codes unless it is a terminal."""

errors = Console(stderr=True, markup=False, highlight=False, emoji=False)
"""Standard error: progress, notes, errors."""

_LINE = 100
_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Return text without control characters: what a user said must not command somebody's terminal."""
    return readable(text).translate(_CONTROLS)


def one_line(text: str, *, width: int = _LINE) -> str:
    """Return text as one line of at most ``width`` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def print_json(value: object) -> None:
    """Print one JSON value on one line of standard output."""
    typer.echo(to_json(value))


def to_json(value: object) -> str:
    """Return compact JSON in which every script stays readable."""
    return readable(json.dumps(value, ensure_ascii=False))


def day_and_time(seconds: float) -> str:
    """Return a dialogue time (seconds since the epoch) as a UTC date and time."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s"


def dialogue_lines(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the sides of a page that said something, each with its speaker."""
    sides = ((page["user_name"] or "user", page["query"]), (page["agent_name"] or "assistant", page["reply"]))
    return [(printable(name), text) for name, text in sides if text.strip()]


def progress_bar() -> Progress:
    """Return a progress bar on standard error that shows only on a terminal and leaves nothing there."""
    label = TextColumn("{task.description}", markup=False)
    columns = (label, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
