"""Search indexes as data, created once, and the record of what they were created with.

Indexes are FLAT (exact, cheap to update) and filtered to one user; ``STOPWORDS 0`` because RediSearch 2.10.5 dies on
a union that begins with two of its default stop words. Counters that change on every recall are not in the indexed
documents, since any change of one, even of a field outside the index, indexes it again and counts it twice in BM25's
document frequencies until the engine's garbage collection.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError
from redisvl.index import SearchIndex
from redisvl.schema import IndexSchema

from langgraph_memoryos.errors import EmbedderMismatchError, RedisUnavailableError, SchemaMismatchError
from langgraph_memoryos.stores.embedder import BackgroundSimilarity, Embedder
from langgraph_memoryos.stores.keys import Namespace

SCHEMA_VERSION = 1
METRIC = "cosine"
_TAGS: dict[str, tuple[str, ...]] = {
    "page": ("user", "agent", "thread"),
    "window": (),
    "segment": ("user", "agent", "archived"),
    "fact": ("user", "agent", "collection", "status"),
}
KINDS = tuple(_TAGS)


def index_schema(kind: str, *, namespace: Namespace, dimensions: int) -> IndexSchema:
    """Return the RedisVL schema of one kind of document: case-sensitive tags, text, sequence, FLAT vector."""
    fields: list[dict[str, Any]] = [
        {"name": name, "type": "tag", "attrs": {"case_sensitive": True}} for name in _TAGS[kind]
    ]
    fields += [
        # The owner as a number: unlike a tag it adds nothing to BM25, which would favour short documents.
        {"name": "owner", "type": "numeric"},
        {"name": "text", "type": "text", "attrs": {"no_stem": True}},
        {"name": "sequence", "type": "numeric", "attrs": {"sortable": True}},
        # What ranking needs of a page, in one value that the engine has at hand without reading the document.
        {"name": "light", "type": "text", "attrs": {"no_index": True, "sortable": True, "unf": True}},
    ]
    if kind != "window":
        fields += [
            {"name": "said_at", "type": "numeric", "attrs": {"sortable": True}},
            {"name": "vector", "type": "vector", "attrs": {
                "algorithm": "flat", "dims": dimensions, "distance_metric": METRIC, "datatype": "float32",
            }},
        ]
    index = {
        "name": namespace.index(kind), "prefix": namespace.prefix(kind), "key_separator": ":", "storage_type": "hash",
        "stopwords": [],
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
    for kind in KINDS:
        _create_index(client, index_schema(kind, namespace=namespace, dimensions=embedder.dimensions))
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


def _create_index(client: Redis, schema: IndexSchema) -> None:
    index = SearchIndex(schema, redis_client=client)
    try:
        index.create(overwrite=False)
    except Exception as error:
        # Another process may have created it between the look and the creation.
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
