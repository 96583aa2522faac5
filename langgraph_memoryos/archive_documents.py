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
SUFFIXES = MARKDOWN | {".txt", ".text", ".rst", ".log"}
"""What is taken from a folder; a file that is named itself may have any suffix, as long as it is text."""


class DocumentError(MemoryOSError, ValueError):
    """A file or folder cannot be loaded into the archive."""


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What became of one file.

    Attributes:
        source: Its name relative to the folder that was given.
        chunks: Chunks it has.
        added: Those that were not in the archive yet.
        done: Files handled so far, this one included.
        of: Files there are.
        problem: Why it was left out, or empty.
    """

    source: str
    chunks: int
    added: int
    done: int
    of: int
    problem: str = ""


def load_documents(
    path: str | Path,
    *,
    archival: ArchivalStore,
    scope: Scope,
    settings: VirtualContextSettings,
    clock: Callable[[], float],
) -> Iterator[LoadReport]:
    """Load a file, or every text and Markdown file below a folder; what is no text is reported, not fatal.

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
            yield LoadReport(source=source, chunks=0, added=0, done=done, of=len(files), problem=str(error))
            continue
        chunks = split_text(text, settings, markdown=file.suffix.lower() in MARKDOWN)
        new = archival.missing(scope, chunks)
        archival.insert(scope, new, now=clock(), source=source)
        archival.record_source(scope, source, chunks=len(chunks))
        yield LoadReport(source=source, chunks=len(chunks), added=len(new), done=done, of=len(files))


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
