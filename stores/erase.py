"""Erasing: the only thing that destroys. What is erased is gone from documents, queues, facts, persona and summaries."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from redis import Redis

from langgraph_memoryos.batches import batches
from langgraph_memoryos.records import Collection, Fact, Page, Scope
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.facts import FactStore
from langgraph_memoryos.stores.keys import Keys, Namespace
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.pages import PageStore, untold_segment

_BATCH = 500
COLLECTIONS: tuple[Collection, ...] = ("user_knowledge", "agent_traits", "archival")


@dataclass(frozen=True, kw_only=True)
class Erased:
    """What an erase destroyed.

    Attributes:
        pages: How many pages.
        facts: How many facts.
        segment_ids: Segments that lost pages, whose summary must be made anew if they still have any.
        missing: Ids that were named and were not there.
    """

    pages: int = 0
    facts: int = 0
    segment_ids: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Eraser:
    """Destroys pages, facts, threads and users.

    Erased page ids are remembered (as hashes, no text), so that a background step or a replayed turn that still holds
    the page, or the messages it was made of, cannot write it back, nor what it learnt from it.

    Pages go in this order: their ids are remembered, then what was derived from them goes (facts, persona, messages),
    then each page with its traces, in one script. So an erase that was interrupted leaves pages to name again, and
    running it again finishes it. Every write compares with what is there, so maintenance may run meanwhile.
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
        for batch in batches(ids, _BATCH):
            self._client.sadd(keys.erased, *batch)
        pages = self._pages.iterate(user_id)
        while several := list(islice(pages, _BATCH)):
            self._remember(keys, several)
        facts = 0
        while found := self._user_keys(user_id, keys):
            facts += sum(name.startswith(self._namespace.prefix("fact").encode()) for name in found)
            for batch in batches(found, _BATCH):
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

    def pages(self, scope: Scope, page_ids: Sequence[str]) -> Erased:
        """Destroy pages and what only they support; those that are not there are named in the result."""
        found = self._pages.get(scope, list(dict.fromkeys(page_ids)))
        known = {page.page_id for page in found}
        missing = tuple(page_id for page_id in page_ids if page_id not in known)
        return replace(self._erase_pages(found), missing=missing)

    def facts(self, scope: Scope, fact_ids: Sequence[str]) -> Erased:
        """Destroy facts, each atomically; those that are not there are named in the result."""
        found = self._facts.get(scope, list(dict.fromkeys(fact_ids)))
        known = {fact.fact_id for fact in found}
        missing = tuple(fact_id for fact_id in fact_ids if fact_id not in known)
        return Erased(facts=self._run_erase_fact(found, "anyhow"), missing=missing)

    def _erase_pages(self, pages: Sequence[Page]) -> Erased:
        if not pages:
            return Erased()
        self._remember(self._namespace.keys(_owner(pages[0])), pages)
        facts = 0
        segment_ids: dict[str, None] = {}
        for scope in dict.fromkeys(_owner(page) for page in pages):
            mine = [page for page in pages if _owner(page) == scope]
            erased = {page.page_id for page in mine}
            facts += self._erase_facts(scope, erased)
            self._erase_persona(self._namespace.keys(scope))
            self._messages.forget_pages(scope, erased)
            segment_ids |= dict.fromkeys(self._unlink_pages(scope, mine))
        return Erased(pages=len(pages), facts=facts, segment_ids=tuple(segment_ids))

    def _remember(self, keys: Keys, pages: Sequence[Page]) -> None:
        for batch in batches(sorted(self._pages.erased_ids(pages)), _BATCH):
            self._client.sadd(keys.erased, *batch)

    def _unlink_pages(self, scope: Scope, pages: Sequence[Page]) -> Iterable[str]:
        """Destroy pages, each with its traces in one script; return the segments that pages are left in."""
        keys = self._namespace.keys(scope)
        blank = untold_segment(scope)
        for batch in batches(pages, _BATCH):
            pipeline = self._client.pipeline(transaction=False)
            for page in batch:
                scripts.run(
                    pipeline, "unlink_page",
                    keys=[keys.page(page.page_id), keys.place(page.page_id), keys.queue(page.thread_id), keys.log,
                          keys.erased, keys.segments, keys.archive, keys.heat, keys.stale, keys.names],
                    args=[page.page_id, keys.page(""), keys.place(""), keys.window(""), keys.segment(""),
                          keys.segment_pages(""), keys.undigested(""), keys.chain(""), blank],
                )
            yield from (segment.decode() for segment in pipeline.execute() if segment)

    def _erase_facts(self, scope: Scope, erased: set[str]) -> int:
        resting = [
            fact for collection in COLLECTIONS
            # Current ones first: a fact that is superseded meanwhile is then seen twice, not missed.
            for fact in (*self._facts.current(scope, collection), *self._facts.past(scope, collection))
            if not erased.isdisjoint(fact.source_page_ids)
        ]
        return self._run_erase_fact(resting, "orphaned")

    def _run_erase_fact(self, facts: Sequence[Fact], which: str) -> int:
        gone = 0
        for batch in batches(facts, _BATCH):
            pipeline = self._client.pipeline(transaction=False)
            for fact in batch:
                # A fact may belong to another agent of the user than the one that was named.
                keys = self._namespace.keys(_owner(fact))
                scripts.run(
                    pipeline, "erase_fact",
                    keys=[keys.fact(fact.fact_id), keys.facts(fact.collection), keys.past_facts(fact.collection),
                          keys.fact_texts(fact.collection), keys.erased, keys.holders(fact.fact_id)],
                    args=[fact.fact_id, which],
                )
            gone += sum(pipeline.execute())
        return gone

    def _erase_persona(self, keys: Keys) -> None:
        while not self._erase_entries(keys):
            continue  # one changed after it was read
        # After the entries: one that was replaced meanwhile is in the history by now.
        history: Any = self._client.lrange(keys.persona_history, 0, -1)
        gone = self._gone(keys, history)
        for raw in history:
            if not gone.isdisjoint(json.loads(raw)["source_page_ids"]):
                self._client.lrem(keys.persona_history, 0, raw)

    def _erase_entries(self, keys: Keys) -> bool:
        """Take erased pages from what persona entries rest on; return whether none changed meanwhile."""
        entries: Any = self._client.hgetall(keys.persona)
        gone = self._gone(keys, entries.values())
        pipeline = self._client.pipeline(transaction=False)
        for name, raw in entries.items():
            entry = json.loads(raw)
            left = [page_id for page_id in entry["source_page_ids"] if page_id not in gone]
            if len(left) < len(entry["source_page_ids"]):
                new = json.dumps(entry | {"source_page_ids": left}) if left else ""
                scripts.run(pipeline, "replace_field", keys=[keys.persona], args=[name, raw, new])
        return all(pipeline.execute())

    def _gone(self, keys: Keys, entries: Iterable[bytes]) -> set[str]:
        """Return which source pages of persona entries are erased."""
        sources = list({page_id for raw in entries for page_id in json.loads(raw)["source_page_ids"]})
        flags: Any = self._client.smismember(keys.erased, sources) if sources else ()
        return {page_id for page_id, flag in zip(sources, flags, strict=True) if flag}


def _owner(record: Page | Fact) -> Scope:
    return Scope(user_id=record.user_id, agent_id=record.agent_id)
