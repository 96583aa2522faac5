"""``consolidate``: maintenance of one user, at an idle moment."""

from typing import Annotated

import typer

from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, User, with_memory_options
from langgraph_memoryos.cli.output import console, errors, print_json
from langgraph_memoryos.cli.streaming import remembered_line, stream_steps
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.state import NO_USAGE, Remembered


@with_memory_options
def consolidate(
    options: MemoryOptions,
    *,
    user: User,
    drain: Annotated[
        bool, typer.Option("--drain", help="Also empty queues that are below capacity.")
    ] = False,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Judge pages by rules, not by a model.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move what queues hold above their capacity, and update the persona from hot segments."""
    report = Remembered(usage=NO_USAGE)
    with options.open(without_model=no_model) as memory:
        for step, update in stream_steps(memory.consolidate, {"drain": drain}, {"user_id": user}):
            errors.print(step, style="dim")
            report = update.get("remembered") or report
    if as_json:
        print_json(report)
    else:
        console.print(remembered_line(report), soft_wrap=True)
    if report.get("failure"):
        raise MemoryOSError(f"Maintenance failed at {report['failure']}; nothing is lost: try again later.")
