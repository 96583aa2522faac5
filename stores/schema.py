"""Search indexes as data, created once, and the record of what they were created with.

Vectors are FLAT (exact, cheap to update) and every search is filtered to one user; ``STOPWORDS 0`` because RediSearch
2.10.5 dies on a union that begins with two of its default stop words.

A document that is indexed again, by any change of its hash, even of a field outside the index, counts twice in BM25's
document frequencies until the engine collects its garbage (30 s later, and only above 100 documents by default). A word
that then counts in more documents than there are gets an inverse frequency that wraps around: some 40 instead of
nearly 0 (RediSearch pull request 7223; mended in releases since November 2025). Therefore documents are
written once, what changes is kept beside them, and a new memory's indexes are created without the initial scan, which a
server that loads its append-only file would do again after it has indexed every document.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.commands.search.index_definition import IndexDefinition, IndexType
from redis.exceptions import ResponseError
from redisvl.schema import IndexSchema

from langgraph_memoryos.errors import EmbedderMismatchError, RedisUnavailableError, SchemaMismatchError
from langgraph_memoryos.stores.embedder import BackgroundSimilarity, Embedder
from langgraph_memoryos.stores.keys import Namespace

SCHEMA_VERSION = 2
METRIC = "cosine"


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """What one index is over.

    Attributes:
        fields: Names of the indexed fields.
        documents: Kind of the documents, as in their keys.
        only: Which of them, as a filter expression of the engine; empty: all.
    """

    fields: tuple[str, ...]
    documents: str
    only: str = ""


_KINDS = {
    "page": _Kind(documents="page", fields=("owner", "text", "sequence", "said_at", "light", "vector")),
    "window": _Kind(documents="window", fields=("owner", "text", "light")),
    "segment": _Kind(documents="segment", fields=("owner", "vector")),
    "fact": _Kind(
        documents="fact", only='@status == "current" && @collection != "archival"',
        fields=("owner", "collection", "vector"),
    ),
    # Of the same documents, since what is long-term is one store; an index by itself, since word statistics are not.
    "archive": _Kind(
        documents="fact", only='@status == "current" && @collection == "archival"',
        fields=("owner", "text", "sequence", "said_at", "vector"),
    ),
}
KINDS = tuple(_KINDS)


def index_schema(kind: str, *, namespace: Namespace, dimensions: int) -> IndexSchema:
    """Return the RedisVL schema of one index. An index with text has numbers for filters: a tag would add to BM25."""
    sorted_number: dict[str, Any] = {"type": "numeric", "attrs": {"sortable": True}}
    known: dict[str, dict[str, Any]] = {
        "owner": {"type": "numeric"},
        "collection": {"type": "tag"},
        "text": {"type": "text", "attrs": {"no_stem": True}},
        "sequence": sorted_number,
        "said_at": sorted_number,
        # What ranking needs of a page, in one value that the engine has at hand without reading the document.
        "light": {"type": "text", "attrs": {"no_index": True, "sortable": True, "unf": True}},
        "vector": {"type": "vector", "attrs": {
            "algorithm": "flat", "dims": dimensions, "distance_metric": METRIC, "datatype": "float32",
        }},
    }
    fields = [{"name": name} | known[name] for name in _KINDS[kind].fields]
    index = {
        "name": namespace.index(kind), "prefix": namespace.prefix(_KINDS[kind].documents), "key_separator": ":",
        "storage_type": "hash", "stopwords": [],
    }
    return IndexSchema.from_dict({"index": index, "fields": fields})


@dataclass(frozen=True, kw_only=True)
class IndexOrigin:
    """What the stored vectors were made with."""

    schema_version: int
    embedder: str
    dimensions: int
    metric: str
    background_mean: float
    background_spread: float


def setup(client: Redis, *, namespace: Namespace, embedder: Embedder) -> IndexOrigin:
    """Create what is missing and check what is there; idempotent, safe when many processes call it at once.

    Nothing is written when the stored vectors belong to another embedder.

    Returns:
        The recorded origin; its background similarity is the one measured when the memory was created.

    Raises:
        EmbedderMismatchError: stored vectors have another embedder name, dimension or metric.
        SchemaMismatchError: the data was written by a release with another schema.
    """
    origin = read_origin(client, namespace=namespace)
    if origin is None:
        origin = _record_origin(client, namespace=namespace, embedder=embedder)
    _check(origin, embedder)
    embedder.background = BackgroundSimilarity(mean=origin.background_mean, spread=origin.background_spread)
    has_documents = client.hexists(namespace.meta, "indexed")
    for kind in KINDS:
        schema = index_schema(kind, namespace=namespace, dimensions=embedder.dimensions)
        _create_index(client, schema, only=_KINDS[kind].only, scan=bool(has_documents))
    # Documents are written from here on, so an index that is missing later has to be made of what is there.
    client.hset(namespace.meta, "indexed", 1)
    _wait_until_indexed(client, namespace=namespace)
    return origin


def read_origin(client: Redis, *, namespace: Namespace) -> IndexOrigin | None:
    """Return what the namespace was created with, or ``None`` if it is new."""
    raw: Any = client.hget(namespace.meta, "origin")
    return IndexOrigin(**json.loads(raw)) if raw else None


def _record_origin(client: Redis, *, namespace: Namespace, embedder: Embedder) -> IndexOrigin:
    mine = IndexOrigin(
        schema_version=SCHEMA_VERSION, embedder=embedder.name, dimensions=embedder.dimensions, metric=METRIC,
        background_mean=embedder.background_mean, background_spread=embedder.background_spread,
    )
    # HSETNX: of many processes that arrive together, one decides and the others compare.
    client.hsetnx(namespace.meta, "origin", json.dumps(mine.__dict__))
    return read_origin(client, namespace=namespace) or mine


def _check(origin: IndexOrigin, embedder: Embedder) -> None:
    if origin.schema_version != SCHEMA_VERSION:
        raise SchemaMismatchError(
            f"This memory has schema version {origin.schema_version}, this release reads {SCHEMA_VERSION}: "
            "use the release that wrote it, or another namespace.",
        )
    stored = (origin.embedder, origin.dimensions, origin.metric)
    given = (embedder.name, embedder.dimensions, METRIC)
    if stored != given:
        raise EmbedderMismatchError(
            f"This memory's vectors were made by {stored[0]} ({stored[1]} dimensions, {stored[2]}), but "
            f"{given[0]} ({given[1]} dimensions, {given[2]}) was given: pass the former, use another namespace, or run "
            "`langgraph-memoryos migrate` to embed everything again.",
        )


def _create_index(client: Redis, schema: IndexSchema, *, only: str, scan: bool) -> None:
    """Create an index if it is missing; RedisVL's own ``create`` has neither a filter nor the two options."""
    definition = IndexDefinition(
        prefix=[str(schema.index.prefix)], filter=only or None, index_type=IndexType.HASH)
    try:
        client.ft(schema.index.name).create_index(
            schema.redis_fields, definition=definition, stopwords=schema.index.stopwords, skip_initial_scan=not scan,
            # No search asks for the order of words.
            no_term_offsets=True,
        )
    except ResponseError as error:
        if "already exists" not in str(error).lower():
            raise


def _wait_until_indexed(client: Redis, *, namespace: Namespace, timeout_seconds: float = 120.0) -> None:
    """Wait while the engine indexes what it has loaded: after a restart, searches see only part of the documents.

    Raises:
        RedisUnavailableError: if that takes longer than ``timeout_seconds``.
    """
    give_up_at = time.monotonic() + timeout_seconds
    while any(_is_indexing(client, namespace.index(kind)) for kind in KINDS):
        if time.monotonic() > give_up_at:
            raise RedisUnavailableError(
                f"Redis has been indexing for more than {timeout_seconds:.0f} seconds: try again when it is done.",
            )
        time.sleep(0.05)


def _is_indexing(client: Redis, index: str) -> bool:
    reply: Any = client.execute_command("FT.INFO", index)
    values = dict(zip(reply[::2], reply[1::2], strict=False))
    return bool(int(values.get(b"indexing", 0))) or float(values.get(b"percent_indexed", 1)) < 1


def failed_documents(client: Redis, *, namespace: Namespace) -> dict[str, int]:
    """Return, per index, how many documents Redis could not index; anything above 0 is a fault to report."""
    found: dict[str, int] = {}
    for kind in KINDS:
        try:
            reply: Any = client.execute_command("FT.INFO", namespace.index(kind))
        except ResponseError:
            found[kind] = -1
            continue
        values = dict(zip(reply[::2], reply[1::2], strict=False))
        found[kind] = int(values.get(b"hash_indexing_failures", 0))
    return found
