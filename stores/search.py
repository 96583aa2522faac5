"""Paged hybrid search: every hit once, in one order, with the true total (MemGPT, section 2.3).

A hit is a document that holds any content word of the query, or whose vector is among the nearest and nearer
than unrelated texts are. Keyword and vector relevance are standardised and added. A query that *is* an
identifier (a UUID, an e-mail address, a date, a hyphenated word) and stands somewhere verbatim finds just
those documents.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
"""What the query engine returns at most; a search with more hits counts and shows the best of them."""

_ORDER_FIELDS = ("sequence", "said_at")
_IDENTIFIER = re.compile(r"\S*\w[-.@/\\+#:_]\w\S*")
_KEYWORD_WEIGHT = 1.0
_SEMANTIC_WEIGHT = 1.0


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


@dataclass
class _Found:
    """One document as the searches see it."""

    sequence: int
    said_at: float
    keyword: float | None = None
    similarity: float | None = None


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


class SearchStore:
    """Searches over recall storage (pages of all tiers) and archival storage."""

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder) -> None:
        self._client: Any = client
        self._namespace = namespace
        self._embedder = embedder
        self._pages = PageStore(client, namespace=namespace, embedder=embedder)

    def conversation(self, scope: Scope, request: SearchRequest) -> ResultPage:
        """Search what user and agent said to each other, in all threads and tiers."""
        keys = self._namespace.keys(scope)
        ordered = self._ordered("page", search.everything_filter(keys), request)
        return self._result(ordered, request, lambda names: self._load_pages(scope, names))

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
        keys = self._namespace.keys(scope)
        start = _midnight(first, zone)
        # "Until now" is often asked as the last day there is.
        end = _midnight(last + timedelta(days=1), zone) if last < date.max else math.inf
        within = f"{search.everything_filter(keys)} @said_at:[{start} ({end}]"
        found = self._everything("page", within)
        names = sorted(found, key=lambda name: (found[name].said_at, found[name].sequence))
        ordered = [name for name in names if name not in request.without]
        return self._result(ordered, request, lambda chosen: self._load_pages(scope, chosen))

    def archive(self, scope: Scope, request: SearchRequest) -> ResultPage:
        """Search the current items of archival storage."""
        keys = self._namespace.keys(scope)
        ordered = self._ordered("archive", search.owner_filter(keys), request)
        return self._result(ordered, request, lambda names: self._load_items(keys, names))

    def _ordered(self, kind: str, within: str, request: SearchRequest) -> list[str]:
        """Return the ids of all hits, best first; ties: newer first, then later first."""
        if not request.query.strip():
            found = self._everything(kind, within)
        else:
            found = self._verbatim(kind, within, request.query) or self._hybrid(kind, within, request)
        relevance = _relevance(found)
        ordered = sorted(
            found, key=lambda name: (-relevance[name], -found[name].said_at, -found[name].sequence)
        )
        return [name for name in ordered if name not in request.without]

    def _verbatim(self, kind: str, within: str, query: str) -> dict[str, _Found]:
        """Return the documents that hold the identifier the query consists of; none for any other query."""
        if not _IDENTIFIER.fullmatch(query.strip(" \t\r\n\"'`.,;:!?()[]{}<>")):
            return {}
        # The joined form of an identifier is one token of the index.
        whole = [token for token in query_tokens(query) if "_" in token]
        return self._by_text(kind, within, whole[:1]) if whole else {}

    def _hybrid(self, kind: str, within: str, request: SearchRequest) -> dict[str, _Found]:
        terms = query_tokens(request.query)
        found = self._by_text(kind, within, terms) if terms else {}
        if not request.semantic_hits:
            return found
        vector = self._embedder.embed_query(request.query)
        reply = self._client.execute_command(
            *search.vector_search(
                self._namespace.index(kind), within, vector, count=request.semantic_hits, fields=_ORDER_FIELDS
            )
        )
        for hit in search.vector_hits(reply):
            if hit.document_id in found:
                found[hit.document_id].similarity = hit.relevance
            elif hit.relevance > self._embedder.background_mean:
                found[hit.document_id] = _found(hit.fields, similarity=hit.relevance)
        return found

    def _by_text(self, kind: str, within: str, terms: Sequence[str]) -> dict[str, _Found]:
        reply = self._client.execute_command(
            *search.text_search(
                self._namespace.index(kind), within, terms, count=MOST_HITS, fields=_ORDER_FIELDS
            )
        )
        return {hit.document_id: _found(hit.fields, keyword=hit.relevance) for hit in search.text_hits(reply)}

    def _everything(self, kind: str, within: str) -> dict[str, _Found]:
        reply: Any = self._client.execute_command(
            "FT.SEARCH",
            self._namespace.index(kind),
            within,
            "RETURN",
            len(_ORDER_FIELDS),
            *_ORDER_FIELDS,
            "SORTBY",
            "sequence",
            "DESC",
            "LIMIT",
            0,
            MOST_HITS,
            *search.DIALECT,
        )
        rows = zip(reply[1::2], reply[2::2], strict=True)
        return {
            name.rsplit(b":", 1)[-1].decode(): _found(
                dict(zip((f.decode() for f in row[::2]), row[1::2], strict=True))
            )
            for name, row in rows
            if row
        }

    def _result(self, ordered: Sequence[str], request: SearchRequest, load: Any) -> ResultPage:
        start = request.page * request.page_size
        return ResultPage(
            items=load(ordered[start : start + request.page_size]),
            total=len(ordered),
            page=request.page,
            last_page=max(0, len(ordered) - 1) // request.page_size,
        )

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
