"""One turn's reading of all three tiers.

The three retrieve stages run side by side, and a stage on its own would cost a round trip each. So the first stage of
a turn that asks sends one pipeline with every search of the turn, the others wait for it and take their part:
single flight, as the embedder does for the query's vector. A recall costs two round trips to read (search, then the
texts of the pages that were chosen) and one to record visits, whatever the length of the history; by the paper's two
stages one more, for the vectors of the pages of the best segments.
"""

import heapq
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from redis import Redis

from langgraph_memoryos.heat import f_score
from langgraph_memoryos.records import Chain, Fact, Page, Persona, Scope, ScoredPage
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.short_term import newest_that_fit
from langgraph_memoryos.speakers import SpeakerNames
from langgraph_memoryos.stores import query as search
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.facts import FACT_FIELDS, parse_fact
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.stores.pages import PageStore, get_pages_command, parse_chain, parse_page
from langgraph_memoryos.stores.personas import PersonaStore, parse_persona
from langgraph_memoryos.stores.ranking import Candidates, Found, Ranked, rank, word_confidence
from langgraph_memoryos.text import keywords, query_tokens

SEGMENT_PAGES_SCORED = 500
"""Pages of a segment that two-stage search compares with the query at most, the newest."""

_LIGHT = ("light",)
_NOTHING = (0,)
_MAX_OWNERS = 10_000
_MAX_FLIGHTS = 256
_QUERY_KEYWORDS = 12
_PARTS = frozenset({"short_term", "mid_term", "long_term"})


@dataclass(frozen=True, kw_only=True)
class RecallRequest:
    """What a turn asks: whose memory, from which thread, with which words; ``turn_id`` tells turns apart."""

    scope: Scope
    thread_id: str
    query: str
    turn_id: str

    @classmethod
    def of(cls, scope: Mapping[str, Any], query: str) -> "RecallRequest":
        """Build a request from a graph's scope (``user_id``, ``agent_id``, ``thread_id``, ``turn_id``)."""
        return cls(
            scope=Scope(user_id=scope["user_id"], agent_id=scope["agent_id"]), thread_id=scope["thread_id"],
            query=query, turn_id=scope["turn_id"],
        )


@dataclass(frozen=True, kw_only=True)
class MidTermRecall:
    """Pages found outside the thread's queue, most relevant first, and the chains they belong to."""

    pages: tuple[ScoredPage, ...] = ()
    chains: tuple[Chain, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LongTermRecall:
    """The whole persona, and the facts nearest to the query, nearest first."""

    persona: Persona = field(default_factory=Persona)
    user_facts: tuple[Fact, ...] = ()
    agent_traits: tuple[Fact, ...] = ()


@dataclass
class _Flight:
    """One pipeline of a turn and which parts of its replies have not been taken yet."""

    replies: "Future[dict[str, Any]]" = field(default_factory=Future)
    left: set[str] = field(default_factory=lambda: set(_PARTS))


class RecallStore:
    """Reads of one turn; thread-safe, bounded, never slower than asking Redis anew."""

    def __init__(
        self, client: Redis, *, namespace: Namespace, embedder: Embedder, settings: MemorySettings,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._embedder = embedder
        self._settings = settings
        self._pages = PageStore(client, namespace=namespace, embedder=embedder)
        self._personas = PersonaStore(client, namespace=namespace)
        self._flights: OrderedDict[RecallRequest, _Flight] = OrderedDict()
        self._names: OrderedDict[Scope, SpeakerNames] = OrderedDict()
        self._lock = threading.Lock()

    def short_term(self, request: RecallRequest) -> tuple[Page, ...]:
        """Return the newest pages of the thread's queue, at most 200, that fit the short-term budget; oldest first."""
        pages: tuple[Page, ...] = self._take(request, "short_term")["queue"]
        return pages

    def mid_term(self, request: RecallRequest) -> MidTermRecall:
        """Return the pages that answer the query best, by the setting ``retrieval``; none for a blank query."""
        return self._pages_of(request, self._take(request, "mid_term"))

    def find(self, request: RecallRequest) -> MidTermRecall:
        """Return the same for a request that no other stage shares."""
        return self._pages_of(request, self._read(request))

    def _pages_of(self, request: RecallRequest, replies: dict[str, Any]) -> MidTermRecall:
        if "vector" not in replies:
            return MidTermRecall()
        if self._settings.retrieval == "two_stage":
            return self._two_stage(request, replies)
        return self._fused(request, replies)

    def long_term(self, request: RecallRequest) -> LongTermRecall:
        """Return the persona and the nearest facts of the user knowledge base and the agent traits."""
        replies = self._take(request, "long_term")
        return LongTermRecall(
            persona=parse_persona(replies["persona"]),
            user_facts=_facts(replies.get("user_knowledge")), agent_traits=_facts(replies.get("agent_traits")),
        )

    def _take(self, request: RecallRequest, part: str) -> dict[str, Any]:
        with self._lock:
            flight = self._flights.get(request)
            first = flight is None or part not in flight.left
            if flight is None or first:
                flight = self._flights[request] = _Flight()
                while len(self._flights) > _MAX_FLIGHTS:
                    self._flights.popitem(last=False)
            flight.left.discard(part)
            if not flight.left:
                self._flights.pop(request, None)
        if first:
            self._fly(request, flight)
        return flight.replies.result()

    def _fly(self, request: RecallRequest, flight: _Flight) -> None:
        try:
            flight.replies.set_result(self._read(request))
        except BaseException as error:  # noqa: BLE001 - handed to every waiting stage
            # A failed read is never handed to a later try.
            with self._lock:
                self._flights.pop(request, None)
            flight.replies.set_exception(error)

    def _read(self, request: RecallRequest) -> dict[str, Any]:
        """Send the pipeline of a turn; the replies by name.

        Speakers' names are left out of what is searched (:class:`SpeakerNames`). They are read once per owner, then with
        every recall; if there are new ones and this question has them, the pipeline is sent once more.
        """
        known = self._names.get(request.scope) or self._learn_names(
            request.scope, self._client.hkeys(self._namespace.keys(request.scope).names))
        asked = known.left_out_of(request.query)
        replies = self._send(request, asked)
        names = self._learn_names(request.scope, replies["names"])
        if names != known and (anew := names.left_out_of(request.query)) != asked:
            replies = self._send(request, anew)
        return replies

    def _learn_names(self, scope: Scope, found: Any) -> SpeakerNames:
        names = SpeakerNames(frozenset(name.decode() for name in found))
        with self._lock:
            if (known := self._names.get(scope)) == names:
                names = known
            self._names[scope] = names
            self._names.move_to_end(scope)
            while len(self._names) > _MAX_OWNERS:
                self._names.popitem(last=False)
        return names

    def _send(self, request: RecallRequest, asked: str) -> dict[str, Any]:
        keys = self._namespace.keys(request.scope)
        pipeline = self._client.pipeline(transaction=False)
        labels = ["queue", "persona", "names"]
        self._pages.queue_command(pipeline, request.scope, request.thread_id)
        self._personas.get_command(pipeline, request.scope)
        pipeline.hkeys(keys.names)
        words = query_tokens(asked)
        found: dict[str, Any] = {"words": len(words)}
        if asked.strip():
            found["vector"] = self._embedder.embed_query(asked)
            for label, command in self._searches(keys, words, found["vector"]).items():
                labels.append(label)
                pipeline.execute_command(*command)
        found |= dict(zip(labels, pipeline.execute(), strict=True))
        queue = [page for values in found["queue"] if (page := parse_page(values))]
        found["queue"] = newest_that_fit(queue, self._settings.max_short_term_tokens)
        found["unshown"] = [page.page_id for page in queue[: len(queue) - len(found["queue"])]]
        return found

    def _searches(self, keys: Keys, words: Sequence[str], vector: np.ndarray) -> dict[str, tuple[Any, ...]]:
        commands = {
            collection: search.vector_search(
                self._namespace.index("fact"),
                f"{search.owner_filter(keys)} @collection:{{{collection}}}",
                vector, count=count, fields=FACT_FIELDS,
            )
            for collection, count in (
                ("user_knowledge", self._settings.top_facts), ("agent_traits", self._settings.top_agent_traits),
            )
            if count
        }
        if self._settings.retrieval == "two_stage":
            return commands | {"segments": search.vector_search(
                self._namespace.index("segment"), search.owner_filter(keys), vector,
                count=self._settings.segment_capacity, fields=("json",),
            )}
        within, count = search.owner_filter(keys), self._candidates_per_search
        commands["semantic"] = search.vector_search(
            self._namespace.index("page"), within, vector, count=count, fields=_LIGHT)
        if words:
            commands["window"] = search.text_search(
                self._namespace.index("window"), within, words, count=count, fields=_LIGHT)
        return commands

    @property
    def _candidates_per_search(self) -> int:
        return max(self._settings.candidate_pages, self._settings.top_pages)

    def _fused(self, request: RecallRequest, replies: dict[str, Any]) -> MidTermRecall:
        """Rank by all searches and load the texts of the best.

        Every page that is not archived is searched, those in queues too; what the asking thread shows as short-term
        memory is left out here.
        """
        semantic = search.vector_field_hits(replies["semantic"])
        window = search.text_field_hits(replies.get("window", _NOTHING))
        candidates = _candidates((semantic, window), without={page.page_id.encode() for page in replies["queue"]})
        found = {
            "semantic": self._found(semantic), "window": self._found(window, confidence=word_confidence(
                max(window.relevance.values(), default=0.0), replies["words"])),
        }
        best = rank(candidates, found, count=self._settings.top_pages)
        if not best:
            return MidTermRecall()
        rows = get_pages_command(
            self._client, self._namespace.keys(request.scope), [item.page_id for item in best])
        return _loaded(rows, request.scope).chosen(best)

    def _found(self, hits: search.FieldHits, *, confidence: float = 1.0) -> Found:
        return Found(
            relevance=hits.relevance, cut=len(hits.relevance) >= self._candidates_per_search, confidence=confidence)

    def _two_stage(self, request: RecallRequest, replies: dict[str, Any]) -> MidTermRecall:
        """Top-m segments by F-score with the query, then top-k of their pages by similarity (paper, section 3.3).

        Of a segment the newest :data:`SEGMENT_PAGES_SCORED` pages are scored. Their vectors are one round trip, the texts
        of the top-k another.
        """
        keys = self._namespace.keys(request.scope)
        chosen = self._best_segments(request.query, search.vector_hits(replies["segments"]))
        scored = scripts.run(
            self._client, "segment_pages", keys=[keys.log],
            args=[keys.segment_pages(""), keys.page(""), SEGMENT_PAGES_SCORED, *chosen],
        ) if chosen else []
        ranked = [
            Ranked(page_id=page_id.decode(), relevance=similarity, parts={
                "semantic": similarity, "segment": chosen.get(segment_id.decode(), 0.0),
            })
            for page_id, segment_id, vector in (*scored, *self._unshown(keys, replies["unshown"]))
            for similarity in [float(np.frombuffer(vector, dtype=np.float32) @ replies["vector"])]
        ]
        best = heapq.nsmallest(self._settings.top_pages, ranked, key=lambda item: (-item.relevance, item.page_id))
        if not best:
            return MidTermRecall()
        rows = get_pages_command(self._client, keys, [item.page_id for item in best])
        return _loaded(rows, request.scope).chosen(best)

    def _unshown(self, keys: Keys, page_ids: Sequence[str]) -> list[tuple[bytes, bytes, bytes]]:
        """Return pages of the asking queue that the prompt has no room for, as rows without a segment."""
        pipeline = self._client.pipeline(transaction=False)
        for page_id in page_ids:
            pipeline.hget(keys.page(page_id), "vector")
        vectors = pipeline.execute() if page_ids else []
        return [(name.encode(), b"", vector) for name, vector in zip(page_ids, vectors, strict=True) if vector]

    def _best_segments(self, query: str, hits: Sequence[search.Hit]) -> dict[str, float]:
        words = keywords(query, _QUERY_KEYWORDS)
        scored = {
            hit.document_id: f_score(
                similarity=self._embedder.calibrated_similarity(hit.relevance), left_keywords=words,
                right_keywords=tuple(json.loads(hit.fields["json"])["keywords"]),
            )
            for hit in hits
        }
        best = sorted(scored, key=lambda name: (-scored[name], name))[: self._settings.top_segments]
        return {name: scored[name] for name in best}


@dataclass(frozen=True)
class _Loaded:
    """Texts of candidate pages and the chains they belong to."""

    pages: dict[str, Page]
    chains: dict[str, Chain]

    def chosen(self, ranked: Sequence[Ranked]) -> MidTermRecall:
        """Return those of the ranked pages that still exist, in their order, with their chains."""
        pages = tuple(
            ScoredPage(page=self.pages[item.page_id], relevance=item.relevance, parts=item.parts)
            for item in ranked if item.page_id in self.pages
        )
        named = dict.fromkeys(scored.page.chain_id for scored in pages)
        return MidTermRecall(pages=pages, chains=tuple(self.chains[name] for name in named if name in self.chains))


def _loaded(rows: Sequence[Sequence[Any]], scope: Scope) -> _Loaded:
    return _Loaded(
        pages={page.page_id: page for row in rows if (page := parse_page(row)) and _belongs(page, scope)},
        chains={chain.chain_id: chain for row in rows if (chain := parse_chain(row))},
    )


def _belongs(page: Page, scope: Scope) -> bool:
    """Whether a page is the owner's by its readable ids; a tag or number is only how it was found."""
    return (page.user_id, page.agent_id) == (scope.user_id, scope.agent_id)


def _candidates(hits: Iterable[search.FieldHits], *, without: set[bytes]) -> Candidates:
    lights: dict[bytes, bytes] = {}
    for answer in hits:
        lights.update(answer.values)
    names = [name for name in lights if name not in without]
    columns = list(zip(*(lights[name].split(b"|") for name in names), strict=True)) or [(), (), (), ()]
    sequences, sittings, previous, lengths = columns
    return Candidates(
        names=names, sequences=list(map(int, sequences)), sittings=sittings, previous=previous,
        lengths=list(map(int, lengths)),
    )


def _facts(reply: Sequence[Any] | None) -> tuple[Fact, ...]:
    if reply is None:
        return ()
    rows = [[hit.fields.get(name) for name in FACT_FIELDS] for hit in search.vector_hits(reply)]
    return tuple(fact for row in rows if (fact := parse_fact(row)))
