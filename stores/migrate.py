"""Another embedder for a memory that exists: embed everything again, safe to interrupt at any moment.

Four stages, each of which does nothing where it has been done before, so that an interrupted run is simply
repeated:

1. *Stage.* For every page and fact the new vector is laid aside in a key of its own, with a mark of embedder
   and text. This is the long part. The memory is what it was and works with its old embedder; stopping here
   costs nothing.
2. *Mark.* The recorded origin becomes "<embedder> (unfinished migration)". From here on nobody can open the
   memory, so nobody can take its old indexes for whole, until the migration has been run to its end.
3. *Switch.* The indexes go, what was written since stage 1 is staged too, every document's new vector takes
   the place of the old one, and segments get the mean of their pages' vectors. What was staged is not
   embedded again.
4. *Record.* The new origin is written, last, and the indexes are made with the new dimension.

Applications that have the memory open keep writing vectors of the old embedder and have to be stopped before.
Pages are found by SCAN over the namespace's prefix, which returns everything that is there from beginning to
end.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from redis import Redis

from langgraph_memoryos.errors import SchemaMismatchError
from langgraph_memoryos.ids import digest
from langgraph_memoryos.records import Page, Record
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.embedder import Embedder, Vector
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.stores.pages import dialogue_text
from langgraph_memoryos.stores.schema import (
    KINDS,
    METRIC,
    SCHEMA_VERSION,
    IndexOrigin,
    failed_documents,
    read_origin,
    setup,
)
from langgraph_memoryos.stores.segments import mean_vector, newest_members

EMBEDDED_KINDS = ("page", "fact")
UNFINISHED = " (unfinished migration)"
_BATCH = 32

Progress = Callable[[int], object]


@dataclass(frozen=True, kw_only=True)
class Migrated(Record):
    """What a migration did.

    Attributes:
        was_needed: False if the memory's vectors were the embedder's own already; then nothing was touched.
        embedder: Name of the embedder that the vectors are from now.
        dimensions: Length of the vectors now.
        embedded: Texts embedded by this run; those of an earlier, interrupted run are not counted.
        segments: Segments whose vector was made anew.
    """

    was_needed: bool
    embedder: str
    dimensions: int
    embedded: int = 0
    segments: int = 0


class Migration:
    """Moves one namespace to another embedder; run one at a time per namespace."""

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder) -> None:
        self._client = client
        self._namespace = namespace
        self._embedder = embedder
        self._target = IndexOrigin(
            schema_version=SCHEMA_VERSION,
            embedder=embedder.name,
            dimensions=embedder.dimensions,
            metric=METRIC,
            background_mean=embedder.background_mean,
            background_spread=embedder.background_spread,
        )

    def count(self) -> int:
        """Return how many texts are stored, by SCAN."""
        return sum(1 for kind in EMBEDDED_KINDS for _ in self._documents(kind))

    def is_needed(self) -> bool:
        """Whether the stored vectors are another embedder's, or some documents could not be indexed."""
        origin = read_origin(self._client, namespace=self._namespace)
        if origin is None:
            return False
        if origin.schema_version != SCHEMA_VERSION:
            raise SchemaMismatchError(
                f"This memory has schema version {origin.schema_version}, and only version {SCHEMA_VERSION} "
                "can be embedded again: use the release that wrote it.",
            )
        here, there = ((one.embedder, one.dimensions, one.metric) for one in (origin, self._target))
        return here != there or any(
            count > 0 for count in failed_documents(self._client, namespace=self._namespace).values()
        )

    def run(self, progress: Progress = lambda _done: None) -> Migrated:
        """Migrate, from wherever an earlier run stopped.

        Args:
            progress: Told how many more texts have their new vector; sums up to :meth:`count`.

        Raises:
            SchemaMismatchError: the data was written by a release with another schema.
            ModelOutputError: the embedder failed; what was staged is kept.
        """
        target: dict[str, Any] = {"embedder": self._target.embedder, "dimensions": self._target.dimensions}
        if not self.is_needed():
            return Migrated(was_needed=False, **target)
        embedded = self._stage(progress)
        self._record(self._target.embedder + UNFINISHED)
        self._drop_indexes()
        embedded += self._stage(lambda _done: None)
        self._switch()
        segments = self._renew_segments()
        self._record(self._target.embedder)
        setup(self._client, namespace=self._namespace, embedder=self._embedder)
        return Migrated(was_needed=True, embedded=embedded, segments=segments, **target)

    def _documents(self, kind: str) -> Iterator[str]:
        for name in self._client.scan_iter(match=f"{self._namespace.prefix(kind)}*", count=1000):
            yield name.decode()

    def _stage(self, progress: Progress) -> int:
        """Lay a new vector beside every text that has none yet; return how many were embedded."""
        embedded = 0
        for kind in EMBEDDED_KINDS:
            names = self._documents(kind)
            while batch := list(islice(names, _BATCH)):
                embedded += self._stage_batch(kind, batch)
                progress(len(batch))
        return embedded

    def _stage_batch(self, kind: str, names: Sequence[str]) -> int:
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            pipeline.hmget(name, ["json", "vector_of"])
            pipeline.hget(self._staged(name), "of")
        replies = pipeline.execute()
        waiting = []
        for name, (content, used), staged in zip(names, replies[::2], replies[1::2], strict=True):
            text = _embedded_text(kind, content)
            if text is not None and self._mark(text).encode() not in (used, staged):
                waiting.append((name, text))
        if waiting:
            self._write_staged(waiting)
        return len(waiting)

    def _write_staged(self, waiting: Sequence[tuple[str, str]]) -> None:
        vectors = self._embedder.embed_passages([text for _, text in waiting])
        pipeline = self._client.pipeline(transaction=False)
        for (name, text), vector in zip(waiting, vectors, strict=True):
            keys, args = [name, self._staged(name)], [self._mark(text), vector.tobytes()]
            scripts.run(pipeline, "stage_vector", keys=keys, args=args)
        pipeline.execute()

    def _staged(self, name: str) -> str:
        """Return the key where a document's next vector waits; it has the hash tag of the user too."""
        return self._namespace.prefix("next") + name.removeprefix(f"{self._namespace.name}:")

    def _mark(self, text: str) -> str:
        """Return what tells that a vector is this embedder's and of this text."""
        return digest("vector", self._target.embedder, str(self._target.dimensions), METRIC, text)

    def _switch(self) -> None:
        """Put every vector that was laid aside into use; those of erased documents are dropped."""
        staged = self._documents("next")
        while batch := list(islice(staged, _BATCH)):
            self._switch_batch(batch)

    def _switch_batch(self, staged: Sequence[str]) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for name in staged:
            document = f"{self._namespace.name}:{name.removeprefix(self._namespace.prefix('next'))}"
            scripts.run(pipeline, "switch_vector", keys=[document, name])
        pipeline.execute()

    def _renew_segments(self) -> int:
        renewed = 0
        for name in self._documents("segment"):
            vector, cohesion = self._segment_vector(name)
            args = [vector.tobytes(), cohesion]
            renewed += int(scripts.run(self._client, "replace_vector", keys=[name], args=args))
        return renewed

    def _segment_vector(self, name: str) -> tuple[Vector, float]:
        """Return mean and cohesion of the vectors of a segment's newest pages; of no page, its own text's."""
        user, segment_id = name.removeprefix(self._namespace.prefix("segment")).rsplit(":", 1)
        # Which agent's it is does not matter to the keys of pages and members.
        keys = Keys(namespace=self._namespace, user=user.strip("{}"), agent="")
        (members,) = newest_members(self._client, keys, [segment_id])
        vectors = [vector for vector, _ in members if vector.size == self._target.dimensions]
        if not vectors:
            text = _segment_text(self._client.hget(name, "json"))
            vectors = [np.asarray(self._embedder.embed_passages([text])[0], dtype=np.float32)]
        return mean_vector(vectors)

    def _record(self, embedder: str) -> None:
        origin = self._target.__dict__ | {"embedder": embedder}
        self._client.hset(self._namespace.meta, "origin", json.dumps(origin))

    def _drop_indexes(self) -> None:
        present: Any = self._client.execute_command("FT._LIST")
        mine = {self._namespace.index(kind).encode() for kind in KINDS}
        for name in mine & set(present):
            self._client.execute_command("FT.DROPINDEX", name)


def _embedded_text(kind: str, content: bytes | None) -> str | None:
    """Return the text whose vector a document carries; ``None`` if it is gone."""
    if content is None:
        return None
    values = json.loads(content)
    return dialogue_text(Page.from_json(values)) if kind == "page" else str(values["text"])


def _segment_text(content: Any) -> str:
    values = json.loads(content or b"{}")
    return " ".join((values.get("title", ""), values.get("summary", ""), *values.get("keywords", ())))
