"""Documents into archival storage: files or folders, in chunks, with progress.

Loading again adds only what is new.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from langgraph_memoryos.documents import decode
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.functions import split_text
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.virtual_settings import VirtualContextSettings

MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
_CHUNKS_PER_REPORT = 128
SUFFIXES = MARKDOWN | {".txt", ".text", ".rst", ".log"}
"""What is taken from a folder; a file that is named itself may have any suffix, as long as it is text."""


class DocumentError(MemoryOSError, ValueError):
    """A file or folder cannot be loaded into the archive."""


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """How far the loading of one file is.

    Attributes:
        source: Its name relative to the folder that was given.
        chunks: Chunks it has.
        stored: Chunks of it that are in the archive by now; all of them in its last report.
        added: Those that were not in the archive before.
        done: Files handled so far, this one included.
        of: Files there are.
        problem: Why it was left out, or empty.
    """

    source: str
    chunks: int
    stored: int
    added: int
    done: int
    of: int
    problem: str = ""

    @property
    def finished(self) -> bool:
        """Whether this is the file's last report."""
        return self.stored == self.chunks


def load_documents(
    path: str | Path,
    *,
    archival: ArchivalStore,
    scope: Scope,
    settings: VirtualContextSettings,
    clock: Callable[[], float],
) -> Iterator[LoadReport]:
    """Load a file, or every text and Markdown file below a folder; what is no text is reported, not fatal.

    Yields a report for each file, and for a long one some before it is finished.

    Raises:
        DocumentError: there is no such path, or a folder holds nothing to load.
    """
    root = Path(path).expanduser()
    files = _files(root)
    for done, file in enumerate(files, start=1):
        source = file.name if file == root else file.relative_to(root).as_posix()
        try:
            text = decode(file.read_bytes(), source)
            if "\0" in text:
                raise DocumentError(f"{source} is a binary file")
        except (OSError, ValueError) as error:
            yield LoadReport(
                source=source, chunks=0, stored=0, added=0, done=done, of=len(files), problem=str(error)
            )
            continue
        chunks = split_text(text, settings, markdown=file.suffix.lower() in MARKDOWN)
        new = archival.missing(scope, chunks)
        known, added = len(chunks) - len(new), 0
        for batch in [new[at : at + _CHUNKS_PER_REPORT] for at in range(0, len(new), _CHUNKS_PER_REPORT)] or [[]]:
            archival.insert(scope, batch, now=clock(), source=source)
            added += len(batch)
            if added == len(new):
                archival.record_source(scope, source, chunks=len(chunks))
            yield LoadReport(
                source=source, chunks=len(chunks), stored=known + added, added=added, done=done, of=len(files)
            )


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise DocumentError(f"There is no file or folder {root}.")
    found = sorted(
        file
        for file in root.rglob("*")
        if file.is_file()
        and file.suffix.lower() in SUFFIXES
        and not any(part.startswith(".") for part in file.relative_to(root).parts)
    )
    if not found:
        raise DocumentError(f"{root} holds no text or Markdown file ({', '.join(sorted(SUFFIXES))}).")
    return found
