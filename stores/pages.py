"""Pages: what was said is one document for life; the tier is a field beside it, never a copy."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeVar

from redis import Redis

from langgraph_memoryos import ids
from langgraph_memoryos.dialogue import readable
from langgraph_memoryos.records import Chain, Exchange, JoinedExchange, Page, Scope
from langgraph_memoryos.stores import erasures, scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.text import content_tokens, index_text

_MUTABLE = ("sequence", "tier", "segment_id", "chain_id", "keywords")
_EXPORT_BATCH = 500
RECENT_PAGES = 200
"""Pages of a thread's queue that a recall reads at most, the newest; older ones are found by search."""

SITTING_GAP_SECONDS = 3600
"""Pages of a thread that are further apart belong to different sittings; a page's window does not cross them."""


StoreT = TypeVar("StoreT")


@dataclass(frozen=True, kw_only=True)
class PageWritten:
    """What a write did: ``status`` is new, same, changed or erased; ``queue_length`` counts the thread's queue."""

    page: Page
    status: str
    queue_length: int


def dialogue_text(page: Exchange) -> str:
    """Return both sides of a page as they are embedded and searched, each with its speaker's name."""
    sides = ((page.user_name or "user", page.query), (page.agent_name or "assistant", page.reply))
    return "\n".join(f"{name}: {text}" for name, text in sides if text)


def untold_segment(scope: Scope) -> str:
    """Return the JSON of a segment that nothing is told of; a script adds its id."""
    return json.dumps(scope.to_json() | {"title": "", "summary": "", "keywords": []})


def parse_page(row: Sequence[bytes | None]) -> Page | None:
    """Build a page from a row of ``read_pages.lua`` or ``get_pages.lua``; ``None`` if the page is gone."""
    if row[0] is None or row[2] is None:
        return None
    content, sequence, tier, segment, chain, keywords = (value or b"" for value in row[:6])
    return Page.from_json(json.loads(content) | {
        "sequence": int(sequence or 0), "tier": tier.decode(), "segment_id": segment.decode(),
        "chain_id": chain.decode(), "keywords": json.loads(keywords or b"[]"),
    })


def get_pages_command(client: Redis, keys: Keys, page_ids: Sequence[str]) -> Any:
    """Read pages by id, or queue the read on a pipeline; rows are read by :func:`parse_page` and :func:`parse_chain`."""
    return scripts.run(
        client, "get_pages", keys=[keys.log], args=[keys.page(""), keys.place(""), keys.chain(""), *page_ids],
    )


def parse_chain(row: Sequence[bytes | None]) -> Chain | None:
    """Build the chain of a page from a row of ``get_pages.lua``, without its last page."""
    chain, meta, count = row[4], row[6], row[7]
    return Chain(chain_id=chain.decode(), meta=meta.decode(), page_count=int(count or 0)) if chain and meta else None


def _after_lost_reply(stored: Mapping[str, Any], exchange: Exchange) -> Exchange | None:
    """Return what an exchange adds to a stored page whose reply the conversation does not hold, else ``None``.

    A run that is broken off once the reply was sent leaves the user's message alone in the checkpoint, so the next turn
    begins with two user messages; the first of them is answered in memory, and that page has to stay.
    """
    if not (stored["query"] and stored["reply"] and isinstance(exchange, JoinedExchange)):
        return None
    for number, (place, start) in enumerate(exchange.later):
        told = exchange.query[: max(start - 1, 0)]
        if told == stored["query"] and set(stored["source_ids"]).isdisjoint(exchange.source_ids[place:]):
            return exchange.since(number)
    return None


def _page_id(scope: Scope, exchange: Exchange, source_id: str) -> str:
    return ids.page_id(
        user_id=scope.user_id, agent_id=scope.agent_id, thread_id=exchange.thread_id, source_id=source_id,
    )


def _page_ids(scope: Scope, exchange: Exchange) -> list[str]:
    """Return the ids of the pages that begin with each of the user's messages; the first is that of the exchange."""
    later = exchange.later if isinstance(exchange, JoinedExchange) else ()
    return [_page_id(scope, exchange, exchange.source_ids[place]) for place in (0, *(place for place, _ in later))]


class PageStore:
    """Recall storage and the short-term queues.

    Order is arrival order (``sequence``). Every write is one atomic script. Writing needs two round trips (three for the
    first one of several messages of the user in a row) and one embedding, reading a queue one round trip.
    """

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder) -> None:
        self._client = client
        self._namespace = namespace
        self._embedder = embedder

    def write(self, scope: Scope, exchange: Exchange, *, revive: bool = False) -> PageWritten:
        """Append an exchange to the thread's queue and to recall storage.

        The page's id is made of user, agent, thread and first source id, so writing the same exchange again (retry,
        replay, time travel) leaves one page; if its text differs the newer text replaces the older, which keeps its time,
        and waits for a persona update again if it is in a segment. An erased page does not come back, unless ``revive``
        says that this is a deliberate import. A page that is answered already is not overwritten by a later user message
        that follows its own in the conversation: that one becomes a page. So does what follows an erased message. If
        a page begins with a later message, and none with the first, that page is written. If everything of the user is
        erased since the scope's ``erasures`` were counted, or since the write began, nothing is written.

        Raises:
            ValueError: if the exchange has no source id.
        """
        page = self._page(scope, exchange)
        keys = self._namespace.keys(scope)
        content_digest = ids.digest(page.query, page.reply)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hmget(keys.page(page.page_id), ["digest", "json", "said_at"])
        pipeline.get(keys.erasures)
        known, counter = pipeline.execute()
        scope = erasures.begun(scope, counter)
        if known[1]:
            if later := _after_lost_reply(json.loads(known[1]), exchange):
                return self.write(scope, later, revive=revive)
            page = replace(page, said_at=float(known[2]))
        elif isinstance(exchange, JoinedExchange) and (later := self._from_known_page(scope, exchange)):
            return self.write(scope, later, revive=revive)
        content = json.dumps({name: value for name, value in page.to_json().items() if name not in _MUTABLE})
        if known[0] == content_digest.encode():
            vector = b""
        else:
            vector = self._embedder.embed_passages([dialogue_text(page)])[0].tobytes()
        thread = keys.thread_tag(page.thread_id)
        words = content_tokens(f"{page.query}\n{page.reply}")
        fields: list[Any] = [
            "json", content, "owner", keys.owner,
            "text", index_text(f"{page.query}\n{page.reply}"), "content", " ".join(words), "vector", vector,
        ]
        status, sequence, length = scripts.run(
            self._client, "write_page",
            keys=[keys.page(page.page_id), keys.place(page.page_id), keys.queue(page.thread_id), keys.log, keys.sequence,
                  keys.erased, keys.threads, keys.agents, keys.heads, keys.names, keys.heat,
                  keys.stale, keys.erasures],
            args=[page.page_id, content_digest, thread, json.dumps(page.thread_id), keys.agent,
                  json.dumps(scope.agent_id), "revive" if revive else "keep", page.said_at, keys.page(""),
                  keys.place(""), keys.window(""), keys.undigested(""), SITTING_GAP_SECONDS, len(words),
                  json.dumps([name for name in (page.user_name, page.agent_name) if name.strip()]), keys.chain(""),
                  keys.segment(""), untold_segment(scope), erasures.expected(scope), *fields],
        )
        if status == b"unread":
            return self.write(scope, exchange, revive=revive)
        if status == b"erased" and isinstance(exchange, JoinedExchange) and exchange.later:
            later = exchange.since(0)
            if later.query.strip():
                return self.write(scope, later)
        stored = Page.from_json(page.to_json() | {"sequence": int(sequence)})
        # To the caller it is one whether a page was erased or all of them.
        status = b"erased" if status == b"forgotten" else status
        return PageWritten(page=stored, status=status.decode(), queue_length=int(length))

    def begun(self, scope: Scope) -> Scope:
        """Return the scope of what begins now and takes several writes: none of them is done once the user is erased."""
        return erasures.counted(self._client, self._namespace.keys(scope), scope)

    @property
    def namespace(self) -> Namespace:
        """The memory these pages are part of."""
        return self._namespace

    def sibling(self, store: Callable[..., StoreT]) -> StoreT:
        """Return another kind of store over the same Redis, namespace and embedder."""
        return store(self._client, namespace=self._namespace, embedder=self._embedder)

    def _from_known_page(self, scope: Scope, exchange: JoinedExchange) -> Exchange | None:
        """Return an exchange from the first later message on that begins a page, else ``None``, in one round trip.

        What comes before it was said to somebody else, in a thread that users or agents share.
        """
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=False)
        for page_id in _page_ids(scope, exchange)[1:]:
            pipeline.exists(keys.page(page_id))
        there = pipeline.execute()
        return exchange.since(there.index(1)) if 1 in there else None

    def seen(self, scope: Scope, exchanges: Sequence[Exchange]) -> tuple[bool, ...]:
        """Return, per exchange, whether it is a page already or was one that has been erased, in one round trip.

        One of several user messages is seen if any of them begins a page, or if all were erased.
        """
        keys = self._namespace.keys(scope)
        begins = [_page_ids(scope, exchange) for exchange in exchanges]
        pipeline = self._client.pipeline(transaction=False)
        for page_id in chain.from_iterable(begins):
            pipeline.exists(keys.page(page_id))
            pipeline.sismember(keys.erased, page_id)
        replies = iter(pipeline.execute())
        flags = [[(bool(next(replies)), bool(next(replies))) for _ in page_ids] for page_ids in begins]
        return tuple(any(known for known, _ in some) or all(erased for _, erased in some) for some in flags)

    def erased_ids(self, pages: Sequence[Page]) -> set[str]:
        """Return the ids to remember of pages of a user that are erased, so that nothing said in them comes back.

        Besides their own these are the ids of pages that would begin with another of their messages: a replayed turn may
        begin with a message that was erased before. Pages that there are keep theirs.
        """
        if not pages:
            return set()
        owners = {page.page_id: Scope(user_id=page.user_id, agent_id=page.agent_id) for page in pages}
        keys = self._namespace.keys(owners[pages[0].page_id])
        others = [
            _page_id(owners[page.page_id], page, source_id) for page in pages for source_id in page.source_ids[1:]
        ]
        pipeline = self._client.pipeline(transaction=False)
        for page_id in others:
            pipeline.exists(keys.page(page_id))
        there = pipeline.execute()
        return {*owners, *(page_id for page_id, known in zip(others, there, strict=True) if not known)}

    def _page(self, scope: Scope, exchange: Exchange) -> Page:
        if not exchange.source_ids:
            raise ValueError("an exchange needs at least one source id")
        page_id = _page_id(scope, exchange, exchange.source_ids[0])
        # Ids stay as they are, since hashes of them name the page; what was said must be fit for Redis and models.
        said = {name: readable(getattr(exchange, name)) for name in ("query", "reply", "user_name", "agent_name")}
        return Page.from_json(exchange.to_json() | said | scope.to_json() | {"page_id": page_id})

    def queue(self, scope: Scope, thread_id: str, *, limit: int = 1000) -> tuple[Page, ...]:
        """Return the oldest ``limit`` pages of a thread's short-term queue, oldest first."""
        keys = self._namespace.keys(scope)
        return self._read(keys, keys.queue(thread_id), limit=limit)

    def queue_length(self, scope: Scope, thread_id: str) -> int:
        """Return how many pages a thread's short-term queue holds."""
        return int(self._client.zcard(self._namespace.keys(scope).queue(thread_id)))

    def knows_thread(self, scope: Scope, thread_id: str) -> bool:
        """Whether the agent has any page of the thread that was not erased with it."""
        keys = self._namespace.keys(scope)
        return bool(self._client.hexists(keys.threads, keys.thread_tag(thread_id)))

    def queue_command(self, pipeline: Redis, scope: Scope, thread_id: str) -> None:
        """Queue on a pipeline the read of what a recall takes from a thread's short-term queue.

        The reply has the newest :data:`RECENT_PAGES` pages, oldest first; parse each with :func:`parse_page`.
        """
        keys = self._namespace.keys(scope)
        _read_command(pipeline, keys, keys.queue(thread_id), limit=RECENT_PAGES, end="newest")

    def threads(self, scope: Scope) -> dict[str, int]:
        """Return the agent's threads with user, each with the length of its short-term queue."""
        keys = self._namespace.keys(scope)
        raw: Any = self._client.hvals(keys.threads)
        names = sorted(json.loads(value) for value in raw)
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            pipeline.zcard(keys.queue(name))
        return dict(zip(names, pipeline.execute(), strict=True))

    def get(self, scope: Scope, page_ids: Sequence[str]) -> tuple[Page, ...]:
        """Return the pages that exist, in the order asked, in one round trip."""
        if not page_ids:
            return ()
        keys = self._namespace.keys(scope)
        rows = get_pages_command(self._client, keys, page_ids)
        return tuple(page for row in rows if (page := parse_page(row)))

    def before(self, scope: Scope, page: Page) -> Page | None:
        """Return the page that was the newest of the same thread and agent when ``page`` was written, in two round trips.

        ``None`` for the first page of a thread and where the page before has been erased.
        """
        keys = self._namespace.keys(scope)
        name: Any = self._client.hget(keys.place(page.page_id), "thread_previous")
        found = self.get(scope, [name.decode()]) if name else ()
        # One that was erased and imported again has come after the page.
        return next((other for other in found if other.sequence < page.sequence), None)

    def chain(self, scope: Scope, chain_id: str) -> Chain | None:
        """Return a dialogue chain with its ``meta``."""
        values: Any = self._client.hmget(self._namespace.keys(scope).chain(chain_id), ["meta", "last", "pages"])
        if values[1] is None:
            return None
        meta, last, count = values
        return Chain(chain_id=chain_id, meta=meta.decode(), last_page_id=last.decode(), page_count=int(count))

    def count(self, user_id: str) -> int:
        """Return how many pages the user has, over all agents."""
        return int(self._client.zcard(self._namespace.keys(Scope(user_id=user_id, agent_id="")).log))

    def agents(self, user_id: str) -> tuple[str, ...]:
        """Return the agents that know the user, by name."""
        keys = self._namespace.keys(Scope(user_id=user_id, agent_id=""))
        raw: Any = self._client.hvals(keys.agents)
        return tuple(sorted(json.loads(name) for name in raw))

    def iterate(self, user_id: str) -> Iterator[Page]:
        """Yield every page of a user over all agents and tiers in order of arrival; safe while pages are added."""
        keys = self._namespace.keys(Scope(user_id=user_id, agent_id=""))
        lowest = "-inf"
        while batch := self._read(keys, keys.log, lowest=lowest, limit=_EXPORT_BATCH):
            yield from batch
            lowest = f"({batch[-1].sequence}"

    def _read(self, keys: Keys, listing: str, *, lowest: str = "-inf", limit: int) -> tuple[Page, ...]:
        rows = _read_command(self._client, keys, listing, lowest=lowest, limit=limit)
        return tuple(page for values in rows if (page := parse_page(values)))


def _read_command(
    client: Redis, keys: Keys, listing: str, *, limit: int, lowest: str = "-inf",
    end: Literal["oldest", "newest"] = "oldest",
) -> Any:
    return scripts.run(client, "read_pages", keys=[listing], args=[keys.page(""), keys.place(""), lowest, limit, end])
