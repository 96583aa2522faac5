"""JSON and JSON Lines files read piece by piece, each piece knowing where it stands for the error message."""

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langgraph_memoryos.dialogue import readable
from langgraph_memoryos.errors import ConversationFormatError

_BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class Document:
    """A JSON value and its place in its file, such as ``talk.jsonl, line 3``."""

    place: str
    value: Any

    def error(self, problem: str) -> ConversationFormatError:
        """Return the error that says ``problem`` about this place."""
        return ConversationFormatError(f"{self.place}: {problem}.")

    def items(self, noun: str) -> list["Document"]:
        """Return the elements of a JSON list as documents.

        Raises:
            ConversationFormatError: The value is no list.
        """
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, one {noun} per element")
        return [
            Document(f"{self.place}, {noun} {number}", item)
            for number, item in enumerate(self.value, start=1)
        ]

    def within(self, key: str) -> "Document":
        """Return the value under ``key`` of a JSON object (``None`` if it is missing) at the same place."""
        return Document(self.place, self.fields().get(key))

    def fields(self) -> dict[str, Any]:
        """Return the JSON object.

        Raises:
            ConversationFormatError: The value is no object.
        """
        if not isinstance(self.value, dict):
            raise self.error("expected a JSON object in braces")
        return self.value

    def text(self, key: str, default: str | None = None) -> str:
        """Return the text under ``key``, lone surrogates replaced; a missing key or null gives ``default``.

        Raises:
            ConversationFormatError: The value is no text, or is missing and there is no default.
        """
        value = self.fields().get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.error(f'"{key}" must be text in quotes (use "" for nothing)')
        return readable(value)

    def name(self, key: str) -> str:
        """Return an id under ``key``: text, or a whole number as text; empty if missing."""
        value = self.fields().get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(key, "")

    def time(self, key: str) -> float | None:
        """Return the ISO 8601 time under ``key`` in seconds since the epoch; without an offset it is UTC.

        Raises:
            ConversationFormatError: The value is no ISO 8601 time.
        """
        value = self.fields().get(key)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise self.error(f'"{key}" must be an ISO 8601 time such as "2024-05-08T13:56:00Z"') from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def decode(content: bytes, name: str) -> str:
    """Decode a file's bytes: UTF-8, with or without a byte order mark, or UTF-16 that begins with one.

    Raises:
        ConversationFormatError: The bytes are neither.
    """
    encoding = next(
        (name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), "utf-8-sig"
    )
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Document(f"{name}, line {line}", None).error("not UTF-8 text; save the file as UTF-8") from None


def read_documents(text: str, name: str) -> list[Document]:
    """Parse a file that is one JSON value, or JSON Lines.

    Lines end at a line feed only, so that the other Unicode line breaks may stand inside a text.

    Raises:
        ConversationFormatError: It is neither, with the line where reading stopped.
    """
    text = text.removeprefix("\ufeff")
    lines = list(_lines(text, name))
    if len(lines) > 1 and _is_json(lines[0].value):
        return [Document(line.place, _json(line)) for line in lines]
    if not lines:
        raise Document(name, None).error("the file is empty; give a file that holds a conversation")
    return [Document(name, _json(Document(name, text)))]


def _lines(text: str, name: str) -> Iterator[Document]:
    """Yield the lines that are not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield Document(f"{name}, line {number}", line)


def _is_json(line: str) -> bool:
    """Whether a line is a JSON object or list on its own."""
    try:
        return isinstance(json.loads(line), dict | list)
    except (ValueError, RecursionError):
        return False


def _json(source: Document) -> Any:
    """Parse the text of ``source``."""
    try:
        return json.loads(source.value)
    except json.JSONDecodeError as error:
        place = source.place if ", line " in source.place else f"{source.place}, line {error.lineno}"
        problem = f"not valid JSON ({error.msg} at column {error.colno}); correct it or remove the line"
        raise Document(place, None).error(problem) from None
    except (ValueError, RecursionError):
        raise source.error("this JSON has a number too long or lists too deep to read; shorten it") from None
