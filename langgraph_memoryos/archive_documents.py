"""Documents into archival storage: files or folders, in chunks, with progress.

Loading again adds only what is new, and then retires what the document has no more, unless another document has it or the
model inserted it itself. An interrupted load is completed by loading again; of two loads of one document at once the one
that began last wins, and the other stops.

A document is the file at one absolute path, links resolved. What is shown as its source is the path as it was given, or,
of a file in a folder, the given path of the folder and the file's path in it: ``notes/deep/harbour.md`` of ``notes``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from langgraph_memoryos import ids
from langgraph_memoryos.documents import decode
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.functions import split_text
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivalStore, ArchivedDocument, OvertakenError, version_of
from langgraph_memoryos.text import storable
from langgraph_memoryos.virtual_settings import VirtualContextSettings

MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
_CHUNKS_PER_REPORT = 128
SUFFIXES = MARKDOWN | {".txt", ".text", ".rst", ".log"}
"""What is taken from a folder; a file that is named itself may have any suffix, as long as it is text."""


class DocumentError(MemoryOSError, ValueError):
    """A file or folder cannot be loaded into the archive."""


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """How far the loading (or removing) of one file is.

    Attributes:
        source: Its path as it was given, or found in the folder that was given.
        chunks: Chunks it has.
        stored: Chunks of it that are dealt with by now; all of them in its last report.
        added: Those that were not in the archive before.
        retired: Chunks of its former version that left the search; known in its last report.
        done: Files handled so far, this one included.
        of: Files there are.
        problem: Why it was left out, or empty.
    """

    source: str
    chunks: int
    stored: int
    added: int
    retired: int = 0
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

    Yields a report for each file, and for a long one some before it is finished. A document that cannot be read, or is
    not in the folder any more, stays in the archive as it is; :func:`unload_documents` removes it.

    What a function deleted or updated of a document, or ``forget`` destroyed, stays out as long as the document has that
    chunk unchanged; what a function put in its place stays in. Remove the document and load it to have it whole again.

    Raises:
        DocumentError: there is no such path, or a folder holds nothing to load.
    """
    root = Path(path).expanduser()
    files = _files(root)
    scope = archival.begun(scope)
    for done, file in enumerate(files, start=1):
        report = LoadReport(source=storable(file.as_posix()), chunks=0, stored=0, added=0, done=done, of=len(files))
        try:
            chunks = _chunks(file, settings)
        except (OSError, ValueError) as error:
            yield replace(report, problem=str(error))
            continue
        resolved = str(file.resolve())
        document = ArchivedDocument(
            document_id=ids.document_id(resolved),
            path=storable(resolved),
            name=report.source,
            chunks=len(chunks),
            version=version_of(chunks),
        )
        yield from _carry_out(document, chunks, report, archival=archival, scope=scope, clock=clock)


def _chunks(file: Path, settings: VirtualContextSettings) -> list[str]:
    text = decode(file.read_bytes(), file.name)
    if "\0" in text:
        raise DocumentError(f"{file.name} is a binary file")
    return split_text(text, settings, markdown=file.suffix.lower() in MARKDOWN)


def _carry_out(
    document: ArchivedDocument,
    chunks: list[str],
    report: LoadReport,
    *,
    archival: ArchivalStore,
    scope: Scope,
    clock: Callable[[], float],
) -> Iterator[LoadReport]:
    """Put what is new into the archive before what is old leaves it."""
    try:
        new = archival.begin(scope, document, chunks)
        known = len(chunks) - len(new)
        for start in range(0, len(new), _CHUNKS_PER_REPORT):
            batch = new[start : start + _CHUNKS_PER_REPORT]
            archival.insert(scope, batch, now=clock(), source=document.name, document=document)
            added = start + len(batch)
            if added < len(new):
                yield replace(report, chunks=len(chunks), stored=known + added, added=added)
        retired = archival.finish(scope, document, chunks, now=clock())
    except OvertakenError as error:
        yield replace(report, problem=str(error))
    else:
        yield replace(report, chunks=len(chunks), stored=len(chunks), added=len(new), retired=retired)


def unload_documents(
    path: str | Path, *, archival: ArchivalStore, scope: Scope, clock: Callable[[], float]
) -> Iterator[LoadReport]:
    """Retire what only the document at a path, or the documents loaded from below it, have in the archive.

    The files may be gone already. Yields a report for each document.

    Raises:
        DocumentError: nothing was loaded from there.
    """
    root = storable(str(Path(path).expanduser().resolve()))
    found = [document for document in archival.documents(scope) if Path(document.path).is_relative_to(root)]
    if not found:
        raise DocumentError(f"Nothing in the archive was loaded from {path}.")
    scope = archival.begun(scope)
    for done, document in enumerate(found, start=1):
        report = LoadReport(source=document.name, chunks=0, stored=0, added=0, done=done, of=len(found))
        empty = replace(document, chunks=0, version="")
        yield from _carry_out(empty, [], report, archival=archival, scope=scope, clock=clock)


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
