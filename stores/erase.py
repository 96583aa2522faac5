"""Erasing: the only thing that destroys. What is erased is gone from documents, queues, facts, persona and summaries."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from langgraph_memoryos.errors import RecordNotFoundError
from langgraph_memoryos.records import Collection, Page, Scope
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.facts import FactStore
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.pages import PageStore

_BATCH = 500
COLLECTIONS: tuple[Collection, ...] = ("user_knowledge", "agent_traits", "archival")


@dataclass(frozen=True, kw_only=True)
class Erased:
    """What an erase destroyed, and the segments whose summary must be made anew from the pages they still have."""

    pages: int = 0
    facts: int = 0
    segment_ids: tuple[str, ...] = ()


class Eraser:
    """Destroys pages, facts, threads and users.

    Erased page ids are remembered (as hashes, no text), so that a background step or a replayed turn that still holds
    the page cannot write it back.
    """

    def __init__(self, client: Redis, *, namespace: Namespace, pages: PageStore, facts: FactStore) -> None:
        self._client = client
        self._namespace = namespace
        self._pages = pages
        self._facts = facts
        self._messages = pages.sibling(MessageStore)

    def user(self, user_id: str) -> Erased:
        """Destroy every key of a user, over all agents; run it again and nothing is left to do."""
        keys = self._namespace.keys(Scope(user_id=user_id, agent_id=""))
        self._client.incr(keys.erasures)  # first: no event that runs may write behind the search for keys
        ids: Any = self._client.zrange(keys.log, 0, -1)
        for batch in _batches(ids):
            self._client.sadd(keys.erased, *batch)
        facts = 0
        while found := self._user_keys(user_id, keys):
            facts += sum(name.startswith(self._namespace.prefix("fact").encode()) for name in found)
            for batch in _batches(found):
                self._client.unlink(*batch)
        return Erased(pages=len(ids), facts=facts)

    def _user_keys(self, user_id: str, keys: Keys) -> list[bytes]:
        pattern = self._namespace.user_pattern(user_id)
        kept = {keys.erased.encode(), keys.erasures.encode()}
        return [name for name in self._client.scan_iter(match=pattern, count=1000) if name not in kept]

    def thread(self, scope: Scope, thread_id: str) -> Erased:
        """Destroy all pages and messages of one thread (over all agents of the user) and what only they support."""
        pages = [page for page in self._pages.iterate(scope.user_id) if page.thread_id == thread_id]
        erased = self._erase_pages(pages)
        for agent_id in {*self._pages.agents(scope.user_id), scope.agent_id}:
            mine = Scope(user_id=scope.user_id, agent_id=agent_id)
            keys = self._namespace.keys(mine)
            self._messages.forget_thread(mine, thread_id)
            self._client.hdel(keys.threads, keys.thread_tag(thread_id))
            self._client.hdel(keys.heads, keys.thread_tag(thread_id))
        return erased

    def page(self, scope: Scope, page_id: str) -> Erased:
        """Destroy one page and what only it supports.

        Raises:
            RecordNotFoundError: if the user has no such page.
        """
        pages = self._pages.get(scope, [page_id])
        if not pages:
            raise RecordNotFoundError(f"This user has no page {page_id!r}: `export` lists the page ids.")
        return self._erase_pages(pages)

    def fact(self, scope: Scope, fact_id: str) -> Erased:
        """Destroy one fact.

        Raises:
            RecordNotFoundError: if the user has no such fact.
        """
        facts = self._facts.get(scope, [fact_id])
        if not facts:
            raise RecordNotFoundError(f"This user has no fact {fact_id!r}: `export` lists the fact ids.")
        # The fact may belong to another agent of the user than the one that was named.
        keys = self._namespace.keys(Scope(user_id=scope.user_id, agent_id=facts[0].agent_id))
        self._delete_fact(keys, fact_id, facts[0].collection)
        return Erased(facts=1)

    def _erase_pages(self, pages: Sequence[Page]) -> Erased:
        facts = 0
        touched: dict[str, None] = {}
        for agent_id in dict.fromkeys(page.agent_id for page in pages):
            mine = [page for page in pages if page.agent_id == agent_id]
            scope = Scope(user_id=mine[0].user_id, agent_id=agent_id)
            keys = self._namespace.keys(scope)
            for page in mine:
                self._erase_page(keys, page)
                if page.segment_id:
                    touched[page.segment_id] = None
            erased = {page.page_id for page in mine}
            facts += self._erase_facts(scope, keys, erased)
            self._erase_persona(keys, erased)
            self._drop_empty_segments(keys, touched)
            self._messages.forget_pages(scope, erased)
        return Erased(pages=len(pages), facts=facts, segment_ids=tuple(touched))

    def _erase_page(self, keys: Keys, page: Page) -> None:
        scripts.run(
            self._client, "unlink_page",
            keys=[keys.page(page.page_id), keys.place(page.page_id), keys.window(page.page_id), keys.log,
                  keys.queue(page.thread_id), keys.undigested(page.segment_id or "none"), keys.erased,
                  keys.segment_pages(page.segment_id or "none"), keys.chain(page.chain_id or "none")],
            args=[page.page_id, keys.page(""), keys.place(""), keys.window("")],
        )

    def _erase_facts(self, scope: Scope, keys: Keys, erased: set[str]) -> int:
        gone = 0
        for collection in COLLECTIONS:
            for fact in (*self._facts.current(scope, collection), *self._facts.past(scope, collection)):
                left = [page_id for page_id in fact.source_page_ids if page_id not in erased]
                if len(left) == len(fact.source_page_ids):
                    continue
                if left:
                    self._client.hset(keys.fact(fact.fact_id), "sources", json.dumps(left))
                else:
                    self._delete_fact(keys, fact.fact_id, collection)
                    gone += 1
        return gone

    def _delete_fact(self, keys: Keys, fact_id: str, collection: str) -> None:
        text_digest: Any = self._client.hget(keys.fact(fact_id), "text_digest")
        pipeline = self._client.pipeline(transaction=True)
        pipeline.unlink(keys.fact(fact_id))
        pipeline.zrem(keys.facts(collection), fact_id)
        pipeline.zrem(keys.past_facts(collection), fact_id)
        if text_digest:
            pipeline.hdel(keys.fact_texts(collection), text_digest)
        pipeline.execute()

    def _erase_persona(self, keys: Keys, erased: set[str]) -> None:
        entries: Any = self._client.hgetall(keys.persona)
        for name, raw in entries.items():
            entry = json.loads(raw)
            left = [page_id for page_id in entry["source_page_ids"] if page_id not in erased]
            if len(left) == len(entry["source_page_ids"]):
                continue
            if left:
                self._client.hset(keys.persona, name, json.dumps(entry | {"source_page_ids": left}))
            else:
                self._client.hdel(keys.persona, name)
        history: Any = self._client.lrange(keys.persona_history, 0, -1)
        for raw in history:
            if erased & set(json.loads(raw)["source_page_ids"]):
                self._client.lrem(keys.persona_history, 0, raw)

    def _drop_empty_segments(self, keys: Keys, segment_ids: Iterable[str]) -> None:
        for segment_id in segment_ids:
            if self._client.zcard(keys.segment_pages(segment_id)):
                continue
            pipeline = self._client.pipeline(transaction=True)
            pipeline.unlink(keys.segment(segment_id), keys.segment_pages(segment_id), keys.undigested(segment_id))
            pipeline.zrem(keys.segments, segment_id)
            pipeline.zrem(keys.archive, segment_id)
            pipeline.srem(keys.stale, segment_id)
            pipeline.hdel(keys.heat, *(f"{segment_id}:{name}" for name in ("visits", "visited")))
            pipeline.execute()


def _batches(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))
