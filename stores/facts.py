"""Facts: the user knowledge base, agent traits and MemGPT's archive, one kind of document with a collection."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from redis import Redis

from langgraph_memoryos import ids
from langgraph_memoryos.records import Collection, Fact, Scope
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.text import tokens

FACT_FIELDS = (
    "json", "sources", "confirmed_at", "valid_from", "valid_to", "superseded_by", "sequence",
)
_BATCH = 500


def text_key(text: str) -> str:
    """Return what makes two statements the same: their words in order, without case, width or punctuation."""
    return ids.digest("text", *tokens(text)) if tokens(text) else ids.digest("text", text)


def parse_fact(values: Sequence[bytes | None]) -> Fact | None:
    """Build a fact from ``FACT_FIELDS`` values; ``None`` if the document is gone."""
    if values[0] is None:
        return None
    content, sources, confirmed, since, until, successor, sequence = (value or b"" for value in values)
    return Fact.from_json(json.loads(content) | {
        "source_page_ids": json.loads(sources or b"[]"), "confirmed_at": float(confirmed or 0),
        "valid_from": float(since or 0), "valid_to": float(until) if until else None,
        "superseded_by": successor.decode(), "sequence": int(sequence or 0),
    })


class FactStore:
    """Statements with provenance and validity.

    A statement said again is confirmed, not added, and keeps the newest 20 pages that say it as its sources; one that is
    contradicted is superseded and keeps its validity times; over the bound of a collection the oldest current one retires
    (first in, first out). None of these destroys.
    Of two that contradict one another the one last said earlier is superseded, whichever arrived first.
    """

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder) -> None:
        self._client = client
        self._namespace = namespace
        self._embedder = embedder

    def add(
        self, scope: Scope, facts: Sequence[Fact], *, capacity: int, supersedes: Sequence[Sequence[str]] = (),
    ) -> tuple[str, ...]:
        """Store facts in order; ``fact_id``, ``sequence`` and validity ends of the arguments are ignored.

        Args:
            scope: Whose facts.
            facts: What to store; a fact all of whose source pages were erased is dropped.
            capacity: Bound of the collection.
            supersedes: Per fact, ids of current facts of the same collection that it contradicts: they are superseded, or
                it is, if they were said later.

        Returns:
            The id of each stored or confirmed fact (``""`` where it was dropped).
        """
        if not facts:
            return ()
        vectors = self._embedder.embed_passages([fact.text for fact in facts])
        replaced = list(supersedes) or [()] * len(facts)
        stored: list[str] = []
        for fact, vector, old_ids in zip(facts, vectors, replaced, strict=True):
            fact_id = self._put(scope, fact, vector.tobytes(), capacity=capacity)
            stored.append(fact_id)
            if fact_id:
                self._supersede(scope, fact, fact_id, old_ids)
        return tuple(stored)

    def _put(self, scope: Scope, fact: Fact, vector: bytes, *, capacity: int) -> str:
        keys = self._namespace.keys(scope)
        key = text_key(fact.text)
        origin = fact.source_page_ids[0] if fact.source_page_ids else repr(fact.valid_from)
        fact_id = ids.fact_id(
            user_id=scope.user_id, agent_id=scope.agent_id, collection=fact.collection, text_key=key, origin=origin,
        )
        content = json.dumps(scope.to_json() | {"fact_id": fact_id, "collection": fact.collection, "text": fact.text})
        fields: list[Any] = [
            "json", content, "owner", keys.owner, "collection", fact.collection, "vector", vector,
        ]
        page_keys = [keys.page(page_id) for page_id in fact.source_page_ids]
        status, found = scripts.run(
            self._client, "put_fact",
            keys=[keys.fact(fact_id), keys.facts(fact.collection), keys.past_facts(fact.collection),
                  keys.fact_texts(fact.collection), keys.sequence, keys.erased],
            args=[fact_id, key, fact.valid_from, capacity, keys.fact(""), json.dumps(fact.source_page_ids),
                  len(page_keys), *page_keys, *fields],
        )
        return "" if status == b"gone" else found.decode()

    def _supersede(self, scope: Scope, fact: Fact, fact_id: str, old_ids: Sequence[str]) -> None:
        keys = self._namespace.keys(scope)
        for old_id in old_ids:
            scripts.run(
                self._client, "supersede_fact",
                keys=[keys.fact(old_id), keys.fact(fact_id), keys.facts(fact.collection),
                      keys.past_facts(fact.collection), keys.fact_texts(fact.collection)],
                args=[old_id, fact_id],
            )

    def current(self, scope: Scope, collection: Collection) -> tuple[Fact, ...]:
        """Return all current facts of a collection, oldest first."""
        keys = self._namespace.keys(scope)
        return tuple(self._iterate(keys, keys.facts(collection)))

    def past(self, scope: Scope, collection: Collection) -> tuple[Fact, ...]:
        """Return superseded and retired facts of a collection, oldest first."""
        keys = self._namespace.keys(scope)
        return tuple(self._iterate(keys, keys.past_facts(collection)))

    def as_of(self, scope: Scope, collection: Collection, moment: float) -> tuple[Fact, ...]:
        """Return the facts that held at a dialogue time (seconds since the epoch), oldest first."""
        known = (*self.past(scope, collection), *self.current(scope, collection))
        held = (fact for fact in known if fact.valid_from <= moment and (fact.valid_to is None or moment < fact.valid_to))
        return tuple(sorted(held, key=lambda fact: fact.sequence))

    def count(self, scope: Scope, collection: Collection) -> int:
        """Return the number of current facts of a collection."""
        return int(self._client.zcard(self._namespace.keys(scope).facts(collection)))

    def get(self, scope: Scope, fact_ids: Sequence[str]) -> tuple[Fact, ...]:
        """Return the facts that exist, in the order asked, in one round trip."""
        return self._fetch(self._namespace.keys(scope), fact_ids)

    def _iterate(self, keys: Keys, listing: str) -> Iterator[Fact]:
        lowest = "-inf"
        while rows := self._client.zrangebyscore(listing, lowest, "+inf", start=0, num=_BATCH, withscores=True):
            names: Any = rows
            yield from self._fetch(keys, [name.decode() for name, _ in names])
            lowest = f"({int(names[-1][1])}"

    def _fetch(self, keys: Keys, fact_ids: Sequence[str]) -> tuple[Fact, ...]:
        if not fact_ids:
            return ()
        pipeline = self._client.pipeline(transaction=False)
        for fact_id in fact_ids:
            pipeline.hmget(keys.fact(fact_id), FACT_FIELDS)
        return tuple(fact for values in pipeline.execute() if (fact := parse_fact(values)))
