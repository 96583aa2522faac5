"""Archival storage: texts of any length, searched, never bounded (MemGPT, section 2.2).

Items are facts with the collection ``archival``, so export and erase know them, searched by an index of their own.
Unlike statements about the user, two texts are the same only if every character is.

A text is in the archive as long as somebody has it: a loaded document, or the model, which inserted it itself. What a
document had before and has no more, it lets go of; with the last holder a text retires. What a function deletes goes
whoever has it, and stays out as long as its documents have it unchanged.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from redis import Redis

from langgraph_memoryos import ids
from langgraph_memoryos.batches import batches
from langgraph_memoryos.errors import ErasedError, MemoryOSError, RecordNotFoundError
from langgraph_memoryos.records import Record, Scope
from langgraph_memoryos.stores import erasures, scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Namespace
from langgraph_memoryos.text import index_text, storable

COLLECTION = "archival"
ITEM_FIELDS = ("json", "valid_from", "sequence", "status", "superseded_by")
CHANGES_KEPT = 1000
"""Changes whose result is kept: a step that is retried after more changes than this makes its own again."""

_BATCH = 32
_DIGESTS = 500


class OvertakenError(MemoryOSError):
    """Another load of the same document began, or it was removed: this one writes no more."""


@dataclass(frozen=True, kw_only=True)
class ArchivalItem(Record):
    """One text of the archive.

    Attributes:
        item_id: Its id.
        number: Short number by which functions address it, unique within the user.
        text: The text.
        source: Name of a document that has it, or empty.
        added_at: Seconds since the epoch.
        current: False once a function updated or deleted it, or its document has it no more; it is kept, but not found.
    """

    item_id: str
    number: int
    text: str
    source: str = ""
    added_at: float = 0.0
    current: bool = True


@dataclass(frozen=True, kw_only=True)
class ArchivedDocument(Record):
    """One version of a loaded document; while this is its entry, no load of another version writes.

    Attributes:
        document_id: Its id, a hash of the path.
        path: Where it is: absolute, links resolved.
        name: What is shown as the source of its texts.
        chunks: How many texts it has.
        version: Hash of the texts.
    """

    document_id: str
    path: str
    name: str
    chunks: int = 0
    version: str = ""

    @property
    def entry(self) -> str:
        """The document as it is stored, and compared."""
        return json.dumps(self.to_json())


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

    def insert(
        self,
        scope: Scope,
        texts: Sequence[str],
        *,
        now: float,
        source: str = "",
        document: ArchivedDocument | None = None,
    ) -> tuple[str, ...]:
        """Store texts in order and return their ids; an identical current text is stored once.

        Without a document they are the model's own, and no load retires them.

        Raises:
            OvertakenError: another load of the document began.
            ErasedError: without a document, everything of the user was erased meanwhile.
        """
        clean = [storable(text) for text in texts]
        stored: list[str] = []
        if document is None:  # the entry of one is erased with its user
            scope = self.begun(scope)
        for batch in batches(clean, _BATCH):
            vectors = self._embedder.embed_passages(batch)
            pipeline = self._client.pipeline(transaction=False)
            for text, vector in zip(batch, vectors, strict=True):
                self._put(pipeline, scope, text, vector.tobytes(), now=now, source=source, document=document)
            replies = pipeline.execute()
            if document is None and None in replies:
                raise ErasedError
            stored += [found.decode() for found in _unless_overtaken(replies)]
        return tuple(stored)

    def begun(self, scope: Scope) -> Scope:
        """Return the scope of what begins now and takes several writes: none of them is done once the user is erased."""
        return erasures.counted(self._client, self._namespace.keys(scope), scope)

    def begin(self, scope: Scope, document: ArchivedDocument, texts: Sequence[str]) -> list[str]:
        """Begin to load a version of a document, and stop what loads another; return its texts to insert, each once.

        Those that are in the archive already the document has from now on, without being embedded.

        Raises:
            OvertakenError: everything of the user was erased since the scope's ``erasures`` were counted.
        """
        keys = self._namespace.keys(scope)
        clean = {_text_key(text): text for text in map(storable, texts)}
        pipeline = self._client.pipeline()  # a transaction: another load begins before all of it, or after
        erasures.write(
            pipeline, keys, scope,
            ["HSET", keys.agents, keys.agent, json.dumps(scope.agent_id)],
            ["HSET", keys.documents, document.document_id, document.entry],
        )
        for batch in batches(list(clean), _DIGESTS):
            scripts.run(
                pipeline,
                "take_chunks",
                keys=[keys.fact_texts(COLLECTION), keys.chunks(document.document_id), keys.documents],
                args=[document.document_id, document.entry, keys.holders(""), *batch],
            )
        written, *replies = pipeline.execute()
        _unless_overtaken([written or None, *replies])
        return [clean[digest.decode()] for missing in replies for digest in missing]

    def finish(self, scope: Scope, document: ArchivedDocument, texts: Sequence[str], *, now: float) -> int:
        """Let a document go of all texts but these, and return how many retired: those nobody else has.

        Of a document without texts no entry is kept.

        Raises:
            OvertakenError: another load of the document began.
        """
        keys = self._namespace.keys(scope)
        former: Any = self._client.smembers(keys.chunks(document.document_id))
        dropped = {digest.decode() for digest in former}.difference(_text_key(storable(text)) for text in texts)
        pipeline = self._client.pipeline(transaction=False)
        for batch in batches(sorted(dropped), _DIGESTS):
            scripts.run(
                pipeline,
                "release_chunks",
                keys=[
                    keys.documents,
                    keys.facts(COLLECTION),
                    keys.past_facts(COLLECTION),
                    keys.fact_texts(COLLECTION),
                    keys.chunks(document.document_id),
                ],
                args=[document.document_id, document.entry, keys.fact(""), keys.holders(""), now, *batch],
            )
        retired: int = sum(_unless_overtaken(pipeline.execute()))
        if not texts:
            args = [document.document_id, document.entry, ""]
            scripts.run(self._client, "replace_field", keys=[keys.documents], args=args)
        return retired

    def _put(
        self,
        pipeline: Any,
        scope: Scope,
        text: str,
        vector: bytes,
        *,
        now: float,
        source: str,
        document: ArchivedDocument | None,
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
        content = scope.to_json() | {"fact_id": item_id, "collection": COLLECTION, "text": text, "source": source}
        fields = {
            "json": json.dumps(content),
            "owner": keys.owner,
            "collection": COLLECTION,
            "status": "current",
            "said_at": now,
            "text": index_text(text),
            "vector": vector,
            "sources": "[]",
            "confirmed_at": now,
            "valid_from": now,
            "valid_to": "",
            "superseded_by": "",
        }
        holder, entry = (document.document_id, document.entry) if document else ("", "")
        scripts.run(
            pipeline,
            "put_chunk",
            keys=[
                keys.fact(item_id),
                keys.facts(COLLECTION),
                keys.fact_texts(COLLECTION),
                keys.sequence,
                keys.documents,
                keys.chunks(holder),
                keys.agents,
                keys.erasures,
            ],
            args=[
                item_id,
                _text_key(text),
                holder,
                entry,
                keys.holders(""),
                keys.agent,
                json.dumps(scope.agent_id),
                erasures.expected(scope),
                *chain.from_iterable(fields.items()),
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
                    keys.holders(item_id),
                ],
                args=[item_id, successor, now],
            )
        )

    def told(self, scope: Scope, change_id: str) -> str | None:
        """Return what :meth:`remember` was given for a change, or ``None``: it was not made yet."""
        raw: Any = self._client.hget(self._namespace.keys(scope).archival_changes, change_id)
        return None if raw is None else raw.decode()

    def remember(self, scope: Scope, change_id: str, told: str) -> None:
        """Remember that a change was made and what it gave; the newest 1,000 of an agent are kept."""
        keys = self._namespace.keys(scope)
        names = [keys.archival_changes, keys.archival_change_order, keys.erasures]
        args = [change_id, told, CHANGES_KEPT, erasures.expected(scope)]
        scripts.run(self._client, "remember_change", keys=names, args=args)

    def documents(self, scope: Scope) -> tuple[ArchivedDocument, ...]:
        """Return the loaded documents, those whose load was interrupted included, by name and path."""
        raw: Any = self._client.hvals(self._namespace.keys(scope).documents)
        found = [ArchivedDocument.from_json(json.loads(entry)) for entry in raw]
        return tuple(sorted(found, key=lambda document: (document.name, document.path)))

    def sources(self, scope: Scope) -> dict[str, int]:
        """Return the loaded documents' numbers of chunks by name, of several with one name by path."""
        found = self.documents(scope)
        times = Counter(document.name for document in found)
        return {
            document.name if times[document.name] == 1 else document.path: document.chunks
            for document in found
        }


def version_of(texts: Sequence[str]) -> str:
    """Return what tells one version of a document from another."""
    return ids.digest("version", *map(_text_key, map(storable, texts)))


def _text_key(text: str) -> str:
    return ids.digest("archival", text)


def _unless_overtaken(replies: Sequence[Any]) -> Sequence[Any]:
    if None in replies:
        raise OvertakenError("Another load of the same document began, or it was removed or forgotten.")
    return replies
