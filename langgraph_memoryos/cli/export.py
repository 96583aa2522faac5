"""``export``: everything known of a user, as JSON Lines."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from langgraph_memoryos.cli.inspection import tell_unknown
from langgraph_memoryos.cli.memory_options import MemoryOptions, User, with_memory_options
from langgraph_memoryos.cli.output import errors, to_json
from langgraph_memoryos.errors import MemoryOSError


@with_memory_options
def export(
    options: MemoryOptions,
    *,
    user: User,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this file instead of standard output.",
            show_default=False,
            dir_okay=False,
        ),
    ] = None,
) -> None:
    """Print everything known of a user, over all agents, as JSON Lines.

    Each line has a "kind": page, segment, fact, trait, profile, history, block, past block or message.
    Pages come first, in order of arrival.
    """
    with options.open(without_model=True) as memory:
        lines = (to_json(entry) for entry in memory.export(user))
        written = _print(lines) if output is None else _write(lines, output)
    if not written:
        tell_unknown(user)
    if output is not None:
        errors.print(f"{written} lines in {output}", soft_wrap=True)


def _print(lines: Iterable[str]) -> int:
    count = 0
    for count, line in enumerate(lines, 1):  # noqa: B007 - the last count is the result
        typer.echo(line)
    return count


def _write(lines: Iterable[str], output: Path) -> int:
    try:
        with output.open("w", encoding="utf-8") as file:
            return sum(bool(file.write(line + "\n")) for line in lines)
    except OSError as error:
        raise MemoryOSError(f"{output} cannot be written ({error.strerror}); name another file.") from error
