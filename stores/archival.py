"""Archival storage: texts of any length, searched, never bounded (MemGPT, section 2.2).

Items are facts with the collection ``archival``, so export and erase know them, searched by an index of their own.
Unlike statements about the user, two texts are the same only if every character is.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from langgraph_memoryos import ids
from langgraph_memoryos.errors import RecordNotFoundError
from langgraph_memoryos.records import Record, Scope
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.text import index_text, storable

COLLECTION = "archival"
ITEM_FIELDS = ("json", "valid_from", "sequence", "status", "superseded_by")
_UNBOUNDED = 10**12
_BATCH = 32


@dataclass(frozen=True, kw_only=True)
class ArchivalItem(Record):
    """One text of the archive.

    Attributes:
        item_id: Its id.
        number: Short number by which functions address it, unique within the user.
        text: The text.
        source: Name of the document it was loaded from, or empty.
        added_at: Seconds since the epoch.
        current: False once it was updated or deleted by a function; such items are kept, but not found.
    """

    item_id: str
    number: int
    text: str
    source: str = ""
    added_at: float = 0.0
    current: bool = True


def parse_item(document_id: str, values: Sequence[bytes | None]) -> ArchivalItem | None:
    """Build an item from ``ITEM_FIELDS`` values; ``None`` if the document is gone."""
    content, added_at, number, status, _ = values
    if content is None:
        return None
    known = json.loads(content)
    return ArchivalItem(
        item_id=document_id,
        number=int(number or 0),
        text=known["text"],
        source=known.get("source", ""),
        added_at=float(added_at or 0),
        current=status == b"current",
    )


class ArchivalStore:
    """Insert, read, supersede.

    Nothing here destroys: what a function deletes leaves the search and stays on record.
    """

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder) -> None:
        self._client = client
        self._namespace = namespace
        self._embedder = embedder

    def insert(self, scope: Scope, texts: Sequence[str], *, now: float, source: str = "") -> tuple[str, ...]:
        """Store texts in order and return their ids; an identical current text is stored once."""
        clean = [storable(text) for text in texts]
        stored: list[str] = []
        keys = self._namespace.keys(scope)
        self._client.hset(keys.agents, keys.agent, json.dumps(scope.agent_id))
        for start in range(0, len(clean), _BATCH):
            batch = clean[start : start + _BATCH]
            vectors = self._embedder.embed_passages(batch)
            pipeline = self._client.pipeline(transaction=False)
            for text, vector in zip(batch, vectors, strict=True):
                self._put(pipeline, scope, text, vector.tobytes(), now=now, source=source)
            stored += [found.decode() for _, found in pipeline.execute()]
        return tuple(stored)

    def missing(self, scope: Scope, texts: Sequence[str]) -> list[str]:
        """Return the texts that are not stored yet, each once, so that only these are embedded."""
        clean = list(dict.fromkeys(storable(text) for text in texts))
        if not clean:
            return []
        known: Any = self._client.hmget(
            self._namespace.keys(scope).fact_texts(COLLECTION), [_text_key(text) for text in clean]
        )
        return [text for text, item in zip(clean, known, strict=True) if item is None]

    def _put(
        self, pipeline: Any, scope: Scope, text: str, vector: bytes, *, now: float, source: str
    ) -> None:
        keys = self._namespace.keys(scope)
        item_id = ids.fact_id(
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            collection=COLLECTION,
            text_key=_text_key(text),
            # The digest of the text makes it stored once; a deleted text may come back as a new item.
            origin=uuid.uuid4().hex,
        )
        content = json.dumps(
            scope.to_json() | {"fact_id": item_id, "collection": COLLECTION, "text": text, "source": source}
        )
        scripts.run(
            pipeline,
            "put_fact",
            keys=[
                keys.fact(item_id),
                keys.facts(COLLECTION),
                keys.past_facts(COLLECTION),
                keys.fact_texts(COLLECTION),
                keys.sequence,
            ],
            args=[
                item_id,
                _text_key(text),
                now,
                _UNBOUNDED,
                keys.fact(""),
                "[]",
                0,
                "json",
                content,
                "owner",
                keys.owner,
                "collection",
                COLLECTION,
                "said_at",
                now,
                "text",
                index_text(text),
                "vector",
                vector,
            ],
        )

    def count(self, scope: Scope) -> int:
        """Return the number of current items."""
        return int(self._client.zcard(self._namespace.keys(scope).facts(COLLECTION)))

    def get(self, scope: Scope, item_ids: Sequence[str]) -> tuple[ArchivalItem, ...]:
        """Return the items that exist, in the order asked."""
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=False)
        for item_id in item_ids:
            pipeline.hmget(keys.fact(item_id), ITEM_FIELDS)
        rows = zip(item_ids, pipeline.execute(), strict=True)
        return tuple(item for item_id, values in rows if (item := parse_item(item_id, values)))

    def iterate(self, scope: Scope) -> Iterator[ArchivalItem]:
        """Yield every current item in order of arrival."""
        listing, lowest = self._namespace.keys(scope).facts(COLLECTION), "-inf"
        while rows := self._client.zrangebyscore(listing, lowest, "+inf", start=0, num=500, withscores=True):
            names: Any = rows
            yield from self.get(scope, [name.decode() for name, _ in names])
            lowest = f"({int(names[-1][1])}"

    def by_number(self, scope: Scope, number: int) -> ArchivalItem:
        """Return the item with this number, current or past.

        Raises:
            RecordNotFoundError: there is none.
        """
        keys = self._namespace.keys(scope)
        for listing in (keys.facts(COLLECTION), keys.past_facts(COLLECTION)):
            names: Any = self._client.zrangebyscore(listing, number, number)
            if names:
                return self.get(scope, [names[0].decode()])[0]
        raise RecordNotFoundError(
            f"The archive has no item {number}; archival_memory_search shows the numbers."
        )

    def retire(self, scope: Scope, item_id: str, *, now: float, successor: str = "") -> bool:
        """Take an item out of the search, for ``successor`` if one replaces it; it stays on record."""
        keys = self._namespace.keys(scope)
        return bool(
            scripts.run(
                self._client,
                "end_fact",
                keys=[
                    keys.fact(item_id),
                    keys.facts(COLLECTION),
                    keys.past_facts(COLLECTION),
                    keys.fact_texts(COLLECTION),
                ],
                args=[item_id, successor, now],
            )
        )

    def sources(self, scope: Scope) -> dict[str, int]:
        """Return the loaded documents by name, with their numbers of chunks."""
        raw: Any = self._client.hvals(self._namespace.keys(scope).archived_sources)
        entries = [json.loads(value) for value in raw]
        return {entry["name"]: entry["chunks"] for entry in sorted(entries, key=lambda entry: entry["name"])}

    def record_source(self, scope: Scope, name: str, *, chunks: int) -> None:
        """Note that a document was loaded whole."""
        keys: Keys = self._namespace.keys(scope)
        self._client.hset(
            keys.archived_sources, ids.digest("source", name), json.dumps({"name": name, "chunks": chunks})
        )


def _text_key(text: str) -> str:
    return ids.digest("archival", text)
