"""Search commands over our indexes, and their replies.

RedisVL creates the indexes; its text query escapes characters that the index splits on, so identifiers and unspaced
Chinese would not be found. Here a query is made of tokens that never need escaping (:mod:`langgraph_memoryos.text`)
and of hashed tags, so no input can be a syntax error or reach another user. The dialect is always stated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from langgraph_memoryos.stores.keys import Keys

DIALECT = ("TIMEOUT", 20_000, "DIALECT", 2)


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One row of a search reply.

    Attributes:
        document_id: Id after the key prefix.
        relevance: BM25 for a text search, cosine similarity for a vector search; higher is nearer.
        fields: The returned fields, as bytes.
    """

    document_id: str
    relevance: float
    fields: dict[str, bytes]


def owner_filter(keys: Keys) -> str:
    """Return the filter for one user and agent; every search begins with it. Archived pages are not in it."""
    return f"@owner:[{keys.owner} {keys.owner}]"


def everything_filter(keys: Keys) -> str:
    """Return the filter for all pages of one user and agent, archived ones too."""
    return f"(@owner:[{keys.owner} {keys.owner}]|@owner:[-{keys.owner} -{keys.owner}])"


def words_filter(within: str, terms: Sequence[str]) -> str:
    """Return the filter for documents that hold any of ``terms`` (at least one)."""
    return f"{within} @text:({'|'.join(terms)})"


def after_filter(within: str, order: str, said_at: str, sequence: str) -> str:
    """Return the filter for what a listing in this order has after a document; times and numbers as they are stored."""
    if order == "ASC":
        return f"{within} (@said_at:[({said_at} +inf]|(@said_at:[{said_at} {said_at}] @sequence:[({sequence} +inf]))"
    return f"{within} (@said_at:[-inf ({said_at}]|(@said_at:[{said_at} {said_at}] @sequence:[-inf ({sequence}]))"


def count(index: str, within: str) -> tuple[Any, ...]:
    """Return a search that counts only: the reply's first element."""
    return ("FT.SEARCH", index, within, "LIMIT", 0, 0, *DIALECT)


def among(index: str, within: str, names: Sequence[str]) -> tuple[Any, ...]:
    """Return a search for which of these keys (at least one) the filter fits; replies are read by :func:`among_ids`."""
    return ("FT.SEARCH", index, within, "NOCONTENT", "INKEYS", len(names), *names, "LIMIT", 0, len(names), *DIALECT)


def listing(
    index: str, within: str, order: str, *, start: int, number: int, without: Sequence[str] = (),
) -> tuple[Any, ...]:
    """Return a listing by time, then sequence, of all documents but some keys; replies are read by :func:`listed_ids`.

    ``start + number`` is what the engine returns of a search at most (``MAXSEARCHRESULTS``); its reply has no total.
    """
    left_out = ("FILTER", " && ".join(f"@__key != '{name}'" for name in without)) if without else ()
    return (
        "FT.AGGREGATE", index, within, "LOAD", 1, "@__key", *left_out,
        "SORTBY", 4, "@said_at", order, "@sequence", order, "LIMIT", start, number, *DIALECT,
    )


def vector_search(
    index: str, within: str, vector: np.ndarray, *, count: int, fields: Sequence[str],
) -> tuple[Any, ...]:
    """Return an exact nearest-neighbour search; replies are read by :func:`vector_hits`."""
    return (
        "FT.SEARCH", index, f"({within})=>[KNN {count} @vector $vector AS distance]",
        "PARAMS", 2, "vector", vector.tobytes(), "RETURN", len(fields) + 1, "distance", *fields,
        "SORTBY", "distance", "LIMIT", 0, count, *DIALECT,
    )


def text_search(
    index: str, within: str, terms: Sequence[str], *, count: int, fields: Sequence[str],
) -> tuple[Any, ...]:
    """Return a BM25 search for any of ``terms`` (at least one); replies are read by :func:`text_hits`.

    The union ``a|b`` only selects, with weight 0; what scores are the same terms, each optional (``~``). Inside an
    intersection RediSearch 2.10.5 scores only the first matching term of a union whenever the filter is the rarer side,
    so that a page with all words of the question would rank below one with a single word. The engine counts term
    frequency and length over all text fields of a document together, so texts whose scores are to stay apart are
    documents of different indexes.
    """
    returned = ("RETURN", len(fields), *fields) if fields else ("NOCONTENT",)
    selected = f"(@text:({'|'.join(terms)}))=>{{$weight: 0}}"
    scored = " ".join(f"(~@text:{term})" for term in terms)
    return (
        "FT.SEARCH", index, f"{within} {selected} {scored}", "SCORER", "BM25STD", "WITHSCORES", *returned,
        "LIMIT", 0, count, *DIALECT,
    )


def among_ids(reply: Sequence[Any]) -> set[str]:
    """Read a search for some keys."""
    return {_document_id(name) for name in reply[1:]}


def listed_ids(reply: Sequence[Any]) -> list[str]:
    """Read a listing."""
    return [_document_id(row[row.index(b"__key") + 1]) for row in reply[1:]]


def vector_hits(reply: Sequence[Any]) -> list[Hit]:
    """Read a vector search; cosine distance becomes similarity."""
    hits = []
    for name, values in zip(reply[1::2], reply[2::2], strict=True):
        fields = _fields(values)
        hits.append(Hit(document_id=_document_id(name), relevance=1.0 - float(fields.pop("distance")), fields=fields))
    return hits


def text_hits(reply: Sequence[Any]) -> list[Hit]:
    """Read a BM25 search, with or without fields."""
    if isinstance(reply[3] if len(reply) > 3 else b"", bytes):  # noqa: PLR2004 - the next name, where fields would be
        rows: Any = ((name, score, ()) for name, score in zip(reply[1::2], reply[2::2], strict=True))
    else:
        rows = zip(reply[1::3], reply[2::3], reply[3::3], strict=True)
    return [
        Hit(document_id=_document_id(name), relevance=float(score), fields=_fields(values))
        for name, score, values in rows
    ]


@dataclass(frozen=True, kw_only=True)
class FieldHits:
    """A reply with a single returned field, by document id; in bytes and without an object per row, for long replies.

    Attributes:
        relevance: As in :class:`Hit`.
        values: The field. A document that was erased between search and fetch is missing here.
    """

    relevance: dict[bytes, float]
    values: dict[bytes, bytes]


def vector_field_hits(reply: Sequence[Any]) -> FieldHits:
    """Read a vector search that returned one field."""
    names = [name.rpartition(b":")[2] for name in reply[1::2]]
    rows = [(name, row) for name, row in zip(names, reply[2::2], strict=True) if row]
    return FieldHits(
        relevance={name: 1.0 - float(row[1]) for name, row in rows},
        values={name: row[3] for name, row in rows if len(row) > 3},  # noqa: PLR2004 - distance, then the field
    )


def text_field_hits(reply: Sequence[Any]) -> FieldHits:
    """Read a BM25 search that returned one field."""
    names = [name.rpartition(b":")[2] for name in reply[1::3]]
    return FieldHits(
        relevance=dict(zip(names, map(float, reply[2::3]), strict=True)),
        values={name: row[1] for name, row in zip(names, reply[3::3], strict=True) if row},
    )


def _document_id(name: bytes) -> str:
    return name.rsplit(b":", 1)[-1].decode()


def _fields(values: Sequence[bytes] | None) -> dict[str, bytes]:
    # A document that expired between search and fetch comes back without fields.
    values = values or ()
    return {name.decode(): value for name, value in zip(values[::2], values[1::2], strict=True)}
