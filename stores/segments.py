"""Mid-term memory: segments of pages, their counters, and which one a page joins."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from redis import Redis

from langgraph_memoryos import ids
from langgraph_memoryos.heat import f_score
from langgraph_memoryos.records import Counters, Page, Record, Scope, Segment, SegmentSummary
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.stores.pages import get_pages_command, parse_page

_VECTOR_PAGES = 64
_TURNS_KEPT = 256
_COUNTERS = ("visits", "interactions", "visited")
_COUNTER_FIELDS = tuple(name.encode() for name in _COUNTERS)


@dataclass(frozen=True, kw_only=True)
class PlacedPage(Record):
    """A page that left short-term memory: its chain and keywords, as an analyst judged them."""

    page_id: str
    chain_id: str
    chain_meta: str
    keywords: tuple[str, ...]


@lru_cache(maxsize=4096)
def _keywords(content: bytes) -> tuple[str, ...]:
    """Return the keywords in a segment's JSON; of two hundred segments a batch changes a few."""
    return tuple(json.loads(content)["keywords"])


class _Candidates:
    """The segments as assignment sees them: the mean of each one's page vectors, its keywords and size.

    A mean is not scaled to unit length, so its product with a page is the average similarity of the page to the
    segment's pages, on the same scale as the similarity of two pages. (A unit centroid is near everything: with it, two
    to four segments swallowed each LoCoMo conversation.)
    """

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.names: list[str] = [row[0].decode() for row in rows]
        self._keywords: list[set[str]] = [set(_keywords(row[1])) for row in rows]
        self._pages: list[int] = [row[4] for row in rows]
        vectors = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.float32)
        cohesions = np.array([float(row[3] or 1) for row in rows], dtype=np.float32)
        self._means = vectors.reshape(len(rows), -1) * cohesions[:, None] if rows else vectors

    def best(
        self, vector: np.ndarray, keywords: tuple[str, ...], *, calibrate: Callable[[np.ndarray], np.ndarray],
        threshold: float,
    ) -> int | None:
        """Return the number of the segment with the best F-score above ``threshold``; the oldest of equals."""
        if not self.names:
            return None
        scores = calibrate(self._means @ vector)
        words = set(keywords)
        for number, known in enumerate(self._keywords):
            if not words.isdisjoint(known):
                scores[number] = f_score(
                    similarity=float(scores[number]), left_keywords=known, right_keywords=words)
        best = int(np.argmax(scores))
        return best if scores[best] > threshold else None

    def absorb(self, number: int, vector: np.ndarray, keywords: tuple[str, ...]) -> None:
        """Take in a page that joined during this batch, so that the next page sees it."""
        pages = self._pages[number]
        self._means[number] = (self._means[number] * pages + vector) / (pages + 1)
        self._keywords[number].update(keywords)
        self._pages[number] = pages + 1

    def open(self, name: str, vector: np.ndarray, keywords: tuple[str, ...]) -> None:
        """Take in a page that opened a segment."""
        self._means = np.vstack((self._means, vector)) if self.names else vector[None].copy()
        self.names.append(name)
        self._keywords.append(set(keywords))
        self._pages.append(1)


class SegmentStore:
    """Segments and heat counters of mid-term memory.

    A page is in one segment at most: the move is one script that does nothing when the page has already left the
    queue, so two processes that evict the same user place each page once. Counters live outside the indexed
    documents and change by atomic increments.
    """

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder) -> None:
        self._client = client
        self._namespace = namespace
        self._embedder = embedder

    def assign(
        self, scope: Scope, pages: Sequence[Page], placed: Sequence[PlacedPage], *, threshold: float, now: float,
    ) -> tuple[str, ...]:
        """Move pages from their queue into segments, in order (paper, section 3.2.1).

        Each joins the active segment with the best F-score above ``threshold``, else opens one. Pages that another
        process placed meanwhile, or that were erased, are skipped. What was judged of a chain before one of its pages
        was erased may retell that page, so the chain's meta begins anew.

        Returns:
            The segment of each page that was moved, in order; one that got several pages stands there as often.
        """
        keys = self._namespace.keys(scope)
        vectors = self._vectors([keys.page(page.page_id) for page in pages])
        candidates = self._candidates(keys)
        joined: list[str] = []
        broken: set[str] = set()
        for page, place, vector in zip(pages, placed, vectors, strict=True):
            if vector is None:
                broken.add(place.chain_id)
                continue
            chosen = candidates.best(
                vector, place.keywords, calibrate=self._embedder.calibrated_similarities, threshold=threshold)
            segment_id = ids.segment_id(page.page_id) if chosen is None else candidates.names[chosen]
            told = replace(place, chain_meta="") if place.chain_id in broken else place
            status = self._move(keys, page, told, segment_id=segment_id, vector=vector, now=now)
            if status in (b"gone", b"restarted"):
                broken.add(place.chain_id)
            if status in (b"gone", b"already"):
                continue
            joined.append(segment_id)
            if chosen is None:
                candidates.open(segment_id, vector, place.keywords)
            else:
                candidates.absorb(chosen, vector, place.keywords)
        return tuple(joined)

    def _vectors(self, names: Sequence[str]) -> list[np.ndarray | None]:
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            pipeline.hget(name, "vector")
        return [np.frombuffer(raw, dtype=np.float32) if raw else None for raw in pipeline.execute()]

    def _candidates(self, keys: Keys) -> _Candidates:
        return _Candidates(scripts.run(
            self._client, "active_segments", keys=[keys.segments], args=[keys.segment(""), keys.segment_pages("")]))

    def _move(
        self, keys: Keys, page: Page, place: PlacedPage, *, segment_id: str, vector: np.ndarray, now: float,
    ) -> Any:
        newborn = json.dumps({
            "segment_id": segment_id, "user_id": page.user_id, "agent_id": page.agent_id, "title": "", "summary": "",
            "keywords": list(place.keywords),
        })
        return scripts.run(
            self._client, "assign_page",
            keys=[keys.place(page.page_id), keys.queue(page.thread_id), keys.segment(segment_id),
                  keys.segment_pages(segment_id), keys.segments, keys.archive, keys.heat,
                  keys.undigested(segment_id), keys.chain(place.chain_id), keys.stale, keys.page(page.page_id)],
            args=[page.page_id, segment_id, place.chain_id, place.chain_meta, json.dumps(place.keywords), now,
                  page.said_at, newborn, vector.tobytes(), keys.owner],
        )

    def get(self, scope: Scope, segment_ids: Sequence[str]) -> tuple[Segment, ...]:
        """Return the segments that exist with their counters, in the order asked."""
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=False)
        for segment_id in segment_ids:
            pipeline.hmget(keys.heat, [f"{segment_id}:{name}" for name in _COUNTERS])
            pipeline.hmget(keys.segment(segment_id), ["json", "archived", "created_at", "said_at", "erasures"])
            pipeline.zcard(keys.segment_pages(segment_id))
        rows = pipeline.execute()
        return tuple(
            _parse_segment(values, count, _counters(segment_id, heat))
            for segment_id, heat, values, count in zip(segment_ids, rows[::3], rows[1::3], rows[2::3], strict=True)
            if values[0] is not None
        )

    def active(self, scope: Scope) -> tuple[Segment, ...]:
        """Return all segments in mid-term search, oldest first; at most the segment capacity, two round trips."""
        return self.get(scope, self._listed(self._namespace.keys(scope).segments))

    def archived(self, scope: Scope) -> tuple[Segment, ...]:
        """Return all segments that left mid-term search, oldest first."""
        return self.get(scope, self._listed(self._namespace.keys(scope).archive))

    def _listed(self, listing: str) -> list[str]:
        names: Any = self._client.zrange(listing, 0, -1)
        return [name.decode() for name in names]

    def counters(self, scope: Scope, *, undigested: bool = False) -> tuple[Counters, ...]:
        """Return the counters of all active segments, or of those with undigested pages, oldest first; one round trip."""
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=True)
        pipeline.zrange(keys.segments, 0, -1)
        pipeline.hgetall(keys.heat)
        names, heat = pipeline.execute()
        return tuple(
            Counters(**_counters(name.decode(), [heat.get(name + b":" + field) for field in _COUNTER_FIELDS]))
            for name in names
            if not undigested or heat.get(name + b":interactions", b"0") != b"0"
        )

    def stale(self, scope: Scope, *, limit: int) -> tuple[str, ...]:
        """Return up to ``limit`` ids of segments that pages joined since their summary was made."""
        found: Any = self._client.srandmember(self._namespace.keys(scope).stale, limit)
        return tuple(sorted(name.decode() for name in found))

    def newest_pages(self, scope: Scope, segment_ids: Sequence[str], *, limit: int) -> dict[str, tuple[Page, ...]]:
        """Return the newest ``limit`` pages of each segment, oldest first, in one round trip."""
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=False)
        for segment_id in segment_ids:
            scripts.run(
                pipeline, "read_pages", keys=[keys.segment_pages(segment_id)],
                args=[keys.page(""), keys.place(""), "-inf", limit, "newest"],
            )
        return {
            segment_id: tuple(page for values in rows if (page := parse_page(values)))
            for segment_id, rows in zip(segment_ids, pipeline.execute(), strict=True)
        }

    def undigested_pages(self, scope: Scope, segment_ids: Sequence[str], *, limit: int) -> dict[str, tuple[Page, ...]]:
        """Return, per segment, pages that no persona update has seen, oldest first, ``limit`` pages over all."""
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=False)
        for segment_id in segment_ids:
            pipeline.zrange(keys.undigested(segment_id), 0, limit - 1)
        names = [name.decode() for listed in pipeline.execute() for name in listed]
        rows = get_pages_command(self._client, keys, names) if names else ()
        pages = sorted((page for row in rows if (page := parse_page(row))), key=lambda page: page.sequence)
        found: dict[str, tuple[Page, ...]] = {}
        for page in pages[:limit]:
            found[page.segment_id] = (*found.get(page.segment_id, ()), page)
        return found

    def refresh(
        self, scope: Scope, texts: Sequence[SegmentSummary], *, made_from: Sequence[Segment] = (),
    ) -> None:
        """Replace title, summary and keywords, and make the vector anew from the pages (newest 64).

        A segment that was erased meanwhile is skipped; so is one in ``made_from`` (the segments as they were read
        before the texts were made) that a page was erased from since, as its text may retell that page.
        """
        if not texts:
            return
        keys = self._namespace.keys(scope)
        erasures = {segment.segment_id: segment.erasures for segment in made_from}
        members = newest_members(self._client, keys, [text.segment_id for text in texts])
        pipeline = self._client.pipeline(transaction=False)
        for text, pages in zip(texts, members, strict=True):
            if not pages:
                continue
            vector, cohesion = mean_vector([vector for vector, _ in pages])
            scripts.run(
                pipeline, "refresh_segment", keys=[keys.segment(text.segment_id), keys.stale],
                args=[
                    text.segment_id, json.dumps(text.to_json() | scope.to_json()),
                    vector.tobytes(), cohesion, max(said_at for _, said_at in pages),
                    erasures.get(text.segment_id, ""),
                ],
            )
        pipeline.execute()

    def record_visits(self, scope: Scope, segment_ids: Sequence[str], *, now: float, turn_id: str = "") -> None:
        """Add one to ``n_visit`` of each active segment and set its last visit, atomically, in one round trip.

        Args:
            scope: Whose segments.
            segment_ids: Which were visited.
            now: When, in seconds since the epoch.
            turn_id: The visiting turn; the same one again (among the agent's last 256 with this user) changes nothing.
                Empty: counted in any case.
        """
        if not segment_ids:
            return
        keys = self._namespace.keys(scope)
        scripts.run(
            self._client, "record_visits", keys=[keys.segments, keys.heat, keys.visiting_turns],
            args=[now, turn_id, _TURNS_KEPT, *dict.fromkeys(segment_ids)],
        )

    def archive(self, scope: Scope, segments: Sequence[Counters | Segment]) -> tuple[str, ...]:
        """Take segments and their pages out of mid-term search.

        A segment that was visited or grew since it was read, or that holds undigested pages, stays.

        Returns:
            Ids of the segments that were archived.
        """
        keys = self._namespace.keys(scope)
        return tuple(
            segment.segment_id for segment in segments
            if scripts.run(
                self._client, "archive_segment",
                keys=[keys.segment(segment.segment_id), keys.segment_pages(segment.segment_id), keys.segments,
                      keys.archive, keys.heat, keys.undigested(segment.segment_id)],
                args=[segment.segment_id, keys.page(""), keys.place(""), keys.window(""), segment.visits,
                      -keys.owner],
            )
        )

    def cool(self, scope: Scope, digested: Mapping[str, Sequence[str]]) -> None:
        """Mark pages digested, atomically; pages that joined meanwhile wait for the next update.

        With them ``l_interaction`` falls to 0; ``n_visit`` stays (paper, section 3.2.2).

        Args:
            scope: Whose segments.
            digested: Page ids per segment id.
        """
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=True)
        for segment_id, page_ids in digested.items():
            if page_ids:
                scripts.run(
                    pipeline, "cool_segment", keys=[keys.undigested(segment_id), keys.heat],
                    args=[segment_id, *page_ids],
                )
        pipeline.execute()


def newest_members(client: Redis, keys: Keys, segment_ids: Sequence[str]) -> list[list[tuple[np.ndarray, float]]]:
    """Return vector and time of the newest 64 pages of each segment, in two round trips."""
    pipeline = client.pipeline(transaction=False)
    for segment_id in segment_ids:
        pipeline.zrange(keys.segment_pages(segment_id), -_VECTOR_PAGES, -1)
    listed = pipeline.execute()
    for name in (name for names in listed for name in names):
        pipeline.hmget(keys.page(name.decode()), ["vector", "said_at"])
    rows = iter(pipeline.execute())
    return [
        [(np.frombuffer(vector, dtype=np.float32), float(said_at))
         for vector, said_at in (next(rows) for _ in names) if vector]
        for names in listed
    ]


def mean_vector(vectors: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """Return the direction of the mean of unit vectors, and its length: the cohesion of what they belong to."""
    mean = np.mean(vectors, axis=0)
    cohesion = float(np.linalg.norm(mean))
    return np.asarray(mean / max(cohesion, 1e-9), dtype=np.float32), cohesion


def _counters(segment_id: str, heat: Sequence[bytes | None]) -> dict[str, Any]:
    visits, interactions, visited = heat
    return {
        "segment_id": segment_id, "visits": int(visits or 0), "interactions": int(interactions or 0),
        "last_visit_at": float(visited or 0),
    }


def _parse_segment(values: Sequence[Any], count: int, counters: Mapping[str, Any]) -> Segment:
    content, archived, created_at, updated_at, erasures = values
    return Segment.from_json(json.loads(content) | counters | {
        "page_count": count, "archived": archived == b"yes", "created_at": float(created_at or 0),
        "updated_at": float(updated_at or 0), "erasures": int(erasures or 0),
    })
