"""``load``: documents into a user's archive, or out of it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from langgraph_memoryos.archive_documents import LoadReport
from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, User, with_memory_options
from langgraph_memoryos.cli.output import console, one_line, print_json, printable, progress_bar
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.virtual_context import VirtualContext


@with_memory_options
def load(
    options: MemoryOptions,
    path: Annotated[Path, typer.Argument(help="A text or Markdown file, or a folder of them.")],
    *,
    user: User,
    remove: Annotated[bool, typer.Option("--remove", help="Take what was loaded from PATH out again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Load documents into a user's archive, where archival_memory_search of `chat --mode memgpt` finds them.

    Loading again adds only what is new, and takes out what a document has no more. A document that is not in the folder
    any more stays until it is removed with --remove, which also takes the path of a file that is gone.
    """
    with options.open(without_model=True) as memory:
        agent = VirtualContext(memory)
        reports = []
        carry_out = agent.unload_documents if remove else agent.load_documents
        for report in _with_progress(carry_out(path, user_id=user)):
            reports.append(report)
            if not as_json:
                _tell(report)
        items = agent.archival.count(agent.scope(user))
    if as_json:
        print_json({"user": user, "files": [_file(report) for report in reports], "items": items})
    if all(report.problem for report in reports):
        raise MemoryOSError(f"Nothing was {'removed' if remove else 'loaded'}: {reports[0].problem}")


def _with_progress(reports: Iterable[LoadReport]) -> Iterator[LoadReport]:
    """Draw every report, and yield the last one of each file."""
    with progress_bar() as progress:
        task = progress.add_task("")
        for report in reports:
            label = f"{report.done}/{report.of} {one_line(report.source[-40:])}"
            progress.update(task, description=label, completed=report.stored, total=report.chunks)
            if report.finished:
                yield report


def _tell(report: LoadReport) -> None:
    told = report.problem or f"{report.chunks} chunks, {report.added} new, {report.retired} retired"
    console.print(
        f"{report.done}/{report.of} {printable(report.source)}: {printable(told)}", soft_wrap=True
    )


def _file(report: LoadReport) -> dict[str, str | int]:
    names = ("source", "chunks", "added", "retired", "problem")
    return {name: value for name, value in asdict(report).items() if name in names}
