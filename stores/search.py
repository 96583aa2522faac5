"""Paged hybrid search: every hit once, in one order, with the true total (MemGPT, section 2.3).

A hit is a document that holds any content word of the query, or whose vector is among the nearest and nearer
than unrelated texts are. Keyword and vector relevance are standardised and added. A query that *is* an
identifier (a UUID, an e-mail address, a date, a hyphenated word) and stands somewhere verbatim finds just
those documents.

A listing (a blank query, some days) is ordered by time and read in slices, so it has any number of pages. Of a query
with more than 10,000 hits by words, the best 10,000 are ranked; the pages after them list the others, newest first.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

import numpy as np
from redis import Redis

from langgraph_memoryos.records import Page, Scope
from langgraph_memoryos.stores import query as search
from langgraph_memoryos.stores.archival import ITEM_FIELDS, ArchivalItem, parse_item
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.text import query_tokens

MOST_HITS = 10_000
"""What the query engine returns of one search at most (our own server; others by default a million)."""

_ORDER_FIELDS = ("sequence", "said_at")
_IDENTIFIER = re.compile(r"\S*\w[-.@/\\+#:_]\w\S*")
_KEYWORD_WEIGHT = 1.0
_SEMANTIC_WEIGHT = 1.0
_Load = Callable[[Sequence[str]], tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class ResultPage:
    """One page of hits.

    Attributes:
        items: Hits of this page: ``Page`` records or ``ArchivalItem`` records, best first.
        total: Hits on all pages.
        page: This page's number, from 0.
        last_page: The last page's number; 0 also when there are no hits.
    """

    items: tuple[Any, ...]
    total: int
    page: int
    last_page: int


@dataclass(frozen=True, kw_only=True)
class _Corpus:
    """What is searched: an index, which of its documents, and what their keys begin with."""

    index: str
    within: str
    prefix: str


@dataclass
class _Found:
    """One document as the searches see it."""

    sequence: int
    said_at: float
    keyword: float | None = None
    similarity: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Hits:
    """What is ranked, the words that were looked for, and how many documents hold any of them."""

    found: dict[str, _Found]
    terms: Sequence[str] = ()
    worded: int = 0


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """What is asked.

    Attributes:
        query: Any text at all; a blank one lists everything, newest first.
        page: Page number, from 0.
        page_size: Hits per page, at least 1.
        semantic_hits: How many nearest vectors may be hits; 0 searches words only.
        without: Document ids that are not hits (the message that is just being answered).
    """

    query: str
    page: int = 0
    page_size: int = 5
    semantic_hits: int = 100
    without: Sequence[str] = field(default_factory=tuple)

    @property
    def first(self) -> int:
        """How many hits are on the pages before."""
        return self.page * self.page_size


class SearchStore:
    """Searches over recall storage (pages of all tiers) and archival storage."""

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder) -> None:
        self._client: Any = client
        self._namespace = namespace
        self._embedder = embedder
        self._pages = PageStore(client, namespace=namespace, embedder=embedder)

    def conversation(self, scope: Scope, request: SearchRequest) -> ResultPage:
        """Search what user and agent said to each other, in all threads and tiers."""
        return self._search(self._said(scope), request, lambda names: self._load_pages(scope, names))

    def count_conversation(self, scope: Scope, *, without: str) -> int:
        """Return how many exchanges :meth:`conversation` can find, not counting the page ``without``."""
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.execute_command(*search.count(self._namespace.index("page"), search.everything_filter(keys)))
        pipeline.exists(keys.page(without))
        (found, *_), excluded = pipeline.execute()
        return int(found) - int(excluded)

    def conversation_between(
        self,
        scope: Scope,
        first: date,
        last: date,
        *,
        zone: tzinfo,
        request: SearchRequest,
    ) -> ResultPage:
        """Return what was said on the days from ``first`` to ``last``, both included, oldest first.

        Days begin and end at midnight in ``zone``; the query of ``request`` is not used.
        """
        start = _midnight(first, zone)
        # "Until now" is often asked as the last day there is.
        end = _midnight(last + timedelta(days=1), zone) if last < date.max else math.inf
        said = self._said(scope)
        days = replace(said, within=f"{said.within} @said_at:[{start} ({end}]")
        return self._list(days, "ASC", request, lambda names: self._load_pages(scope, names))

    def archive(self, scope: Scope, request: SearchRequest) -> ResultPage:
        """Search the current items of archival storage."""
        keys = self._namespace.keys(scope)
        kept = _Corpus(
            index=self._namespace.index("archive"), within=search.owner_filter(keys), prefix=keys.fact("")
        )
        return self._search(kept, request, lambda names: self._load_items(keys, names))

    def _said(self, scope: Scope) -> _Corpus:
        keys = self._namespace.keys(scope)
        within = search.everything_filter(keys)
        return _Corpus(index=self._namespace.index("page"), within=within, prefix=keys.page(""))

    def _search(self, corpus: _Corpus, request: SearchRequest, load: _Load) -> ResultPage:
        """Return a page of the hits, best first; ties: newer first, then later first."""
        if not request.query.strip():
            return self._list(corpus, "DESC", request, load)
        hits = self._verbatim(corpus, request.query) or self._hybrid(corpus, request)
        ranked = [name for name in _best_first(hits.found) if name not in request.without]
        names, total = ranked[request.first : request.first + request.page_size], len(ranked)
        if hits.worded > MOST_HITS:
            words = replace(corpus, within=search.words_filter(corpus.within, hits.terms))
            total = self._count_many(words, hits, request.without)
            if len(names) < request.page_size:
                others, _ = self._listed(words, "DESC", start=0, number=hits.worded, without=request.without)
                ranked += [name for name in others if name not in hits.found]
                names = ranked[request.first : request.first + request.page_size]
        return _result(load(names), total, request)

    def _count_many(self, words: _Corpus, hits: _Hits, without: Sequence[str]) -> int:
        """Return how many hits there are when not all that hold a word were ranked."""
        nearest = [name for name, found in hits.found.items() if found.keyword is None]
        unsure = [words.prefix + name for name in (*nearest, *without)]
        reply = self._client.execute_command(*search.among(words.index, words.within, unsure)) if unsure else ()
        worded = search.among_ids(reply)
        wordless = [name for name in nearest if name not in worded]
        left_out = [name for name in without if name in worded or name in wordless]
        return hits.worded + len(wordless) - len(left_out)

    def _list(self, corpus: _Corpus, order: str, request: SearchRequest, load: _Load) -> ResultPage:
        """Return a page of everything, by time, then sequence."""
        names, total = self._listed(
            corpus, order, start=request.first, number=request.page_size, without=request.without
        )
        return _result(load(names), total, request)

    def _listed(
        self, corpus: _Corpus, order: str, *, start: int, number: int, without: Sequence[str]
    ) -> tuple[list[str], int]:
        """Return ids from a place in a listing on, and the length of all of it.

        One round trip, and two more for each 10,000 documents before the place or to be returned.
        """
        left_out = [corpus.prefix + name for name in without]
        pipeline = self._client.pipeline(transaction=False)
        pipeline.execute_command(*search.count(corpus.index, corpus.within))
        if left_out:
            pipeline.execute_command(*search.among(corpus.index, corpus.within, left_out))
        names: list[str] = []
        total, within = -1, corpus.within
        while True:
            # Of a slice that is passed over only the last document is read: there the next one begins.
            offset = min(start, MOST_HITS - 1)
            wanted = min(number - len(names), MOST_HITS - offset)
            listing = search.listing(corpus.index, within, order, start=offset, number=wanted, without=left_out)
            pipeline.execute_command(*listing)
            *counts, reply = pipeline.execute()
            if total < 0:
                total = int(counts[0][0]) - sum(int(known[0]) for known in counts[1:])
            found = search.listed_ids(reply)
            if start < MOST_HITS:
                names += found
            start = max(0, start - MOST_HITS)
            if len(names) == number or len(found) < wanted:
                return names, total
            place: Any = self._client.hmget(corpus.prefix + found[-1], _ORDER_FIELDS)
            if None in place:  # erased meanwhile
                return names, total
            sequence, said_at = (value.decode() for value in place)
            within = search.after_filter(corpus.within, order, said_at, sequence)

    def _verbatim(self, corpus: _Corpus, query: str) -> _Hits | None:
        """Return the documents that hold the identifier the query consists of; none for any other query."""
        if not _IDENTIFIER.fullmatch(query.strip(" \t\r\n\"'`.,;:!?()[]{}<>")):
            return None
        # The joined form of an identifier is one token of the index.
        whole = [token for token in query_tokens(query) if "_" in token]
        hits = self._by_text(corpus, whole[:1]) if whole else None
        return hits if hits and hits.found else None

    def _hybrid(self, corpus: _Corpus, request: SearchRequest) -> _Hits:
        terms = query_tokens(request.query)
        hits = self._by_text(corpus, terms) if terms else _Hits(found={})
        if not request.semantic_hits:
            return hits
        vector = self._embedder.embed_query(request.query)
        reply = self._client.execute_command(
            *search.vector_search(
                corpus.index, corpus.within, vector, count=request.semantic_hits, fields=_ORDER_FIELDS
            )
        )
        for hit in search.vector_hits(reply):
            if hit.document_id in hits.found:
                hits.found[hit.document_id].similarity = hit.relevance
            elif hit.relevance > self._embedder.background_mean:
                hits.found[hit.document_id] = _found(hit.fields, similarity=hit.relevance)
        return hits

    def _by_text(self, corpus: _Corpus, terms: Sequence[str]) -> _Hits:
        reply = self._client.execute_command(
            *search.text_search(corpus.index, corpus.within, terms, count=MOST_HITS, fields=_ORDER_FIELDS)
        )
        found = {hit.document_id: _found(hit.fields, keyword=hit.relevance) for hit in search.text_hits(reply)}
        return _Hits(found=found, terms=terms, worded=int(reply[0]))

    def _load_pages(self, scope: Scope, names: Sequence[str]) -> tuple[Page, ...]:
        return tuple(
            page
            for page in self._pages.get(scope, names)
            # The readable ids decide: a filter is only how a page was found.
            if (page.user_id, page.agent_id) == (scope.user_id, scope.agent_id)
        )

    def _load_items(self, keys: Keys, names: Sequence[str]) -> tuple[ArchivalItem, ...]:
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            pipeline.hmget(keys.fact(name), ITEM_FIELDS)
        rows = zip(names, pipeline.execute(), strict=True)
        return tuple(item for name, row in rows if (item := parse_item(name, row)))


def _found(fields: Mapping[str, bytes], **scores: float) -> _Found:
    return _Found(
        sequence=int(fields.get("sequence", b"0")), said_at=float(fields.get("said_at", b"0")), **scores
    )


def _best_first(found: Mapping[str, _Found]) -> list[str]:
    relevance = _relevance(found)
    return sorted(found, key=lambda name: (-relevance[name], -found[name].said_at, -found[name].sequence))


def _result(items: tuple[Any, ...], total: int, request: SearchRequest) -> ResultPage:
    last_page = max(0, total - 1) // request.page_size
    return ResultPage(items=items, total=total, page=request.page, last_page=last_page)


def _relevance(found: Mapping[str, _Found]) -> dict[str, float]:
    """Return the sum of standardised scores.

    A document that one search did not return has its lowest score there.
    """
    keyword = _standardised([item.keyword for item in found.values()])
    semantic = _standardised([item.similarity for item in found.values()])
    total = _KEYWORD_WEIGHT * keyword + _SEMANTIC_WEIGHT * semantic
    # Rounded, so that equal documents are ties and time decides, not the last bit.
    return {name: round(float(value), 9) for name, value in zip(found, total, strict=True)}


def _standardised(values: Sequence[float | None]) -> np.ndarray:
    known = [value for value in values if value is not None]
    if not known:
        return np.zeros(len(values))
    filled = np.array([min(known) if value is None else value for value in values], dtype=float)
    spread = filled.std()
    return (filled - filled.mean()) / spread if spread > 0 else np.zeros(len(values))


def _midnight(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time.min, tzinfo=zone).timestamp()
