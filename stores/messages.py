"""The log of every message of a thread, in order, for ever: recall storage (MemGPT, section 2.2).

What user and agent said to each other is in the pages, text and vector once; here it is only referred to.
What is no dialogue (alerts, calls, results, summaries) is kept here and is not searched.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from redis import Redis

from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores import erasures, scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace

_BATCH = 500
_DERIVED = ("summary", "function_result", "assistant")

Entry = dict[str, Any]
"""A message as JSON: ``message_id``, ``kind``, ``text`` and what else the graph says of it. A *quote* stands
for a text that is part of a page: ``{"page": id, "side": "query" | "reply", "start": n, "length": n}``."""


class MessageStore:
    """Append-only logs, one per thread; the same message again changes nothing."""

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder | None = None) -> None:
        del embedder  # the log is not searched
        self._client = client
        self._namespace = namespace

    def erasures(self, scope: Scope) -> int:
        """Return how often everything of the user was erased."""
        raw: Any = self._client.get(self._namespace.keys(scope).erasures)
        return int(raw or 0)

    def append(self, scope: Scope, thread_id: str, entries: Sequence[Entry]) -> bool:
        """Append messages that are not in the log yet, in order, atomically.

        Returns:
            Whether the log has them: not when the user was erased since the scope's ``erasures`` were counted.
        """
        if not entries:
            return True
        keys = self._namespace.keys(scope)
        pairs = [part for entry in entries for part in (entry["message_id"], json.dumps(entry))]
        kept = scripts.run(
            self._client,
            "append_messages",
            keys=[
                keys.messages(thread_id),
                keys.message_contents(thread_id),
                keys.logged_threads,
                keys.erasures,
            ],
            args=[keys.thread_tag(thread_id), json.dumps(thread_id), erasures.expected(scope), *pairs],
        )
        return bool(kept)

    def followed(self, scope: Scope, thread_id: str, message_id: str) -> bool:
        """Return whether a message is in the log and others came after it."""
        keys = self._namespace.keys(scope)
        pipeline = self._client.pipeline(transaction=True)
        pipeline.hexists(keys.message_contents(thread_id), message_id)
        pipeline.lindex(keys.messages(thread_id), -1)
        known, newest = pipeline.execute()
        return bool(known) and newest != message_id.encode()

    def threads(self, scope: Scope) -> tuple[str, ...]:
        """Return the threads that have a log, by name."""
        raw: Any = self._client.hvals(self._namespace.keys(scope).logged_threads)
        return tuple(sorted(json.loads(name) for name in raw))

    def count(self, scope: Scope, thread_id: str) -> int:
        """Return the number of messages of a thread."""
        return int(self._client.llen(self._namespace.keys(scope).messages(thread_id)))

    def all(self, scope: Scope, thread_id: str) -> tuple[Entry, ...]:
        """Return every message of a thread in order, quotes filled in from the pages."""
        keys = self._namespace.keys(scope)
        found: list[Entry] = []
        while ids := self._client.lrange(keys.messages(thread_id), len(found), len(found) + _BATCH - 1):
            found += self._fetch(keys, thread_id, [name.decode() for name in ids])  # type: ignore[union-attr]
        return tuple(entry for entry in found if entry)

    def get(self, scope: Scope, thread_id: str, message_ids: Sequence[str]) -> tuple[Entry, ...]:
        """Return the messages that exist, in the order asked."""
        return tuple(
            entry for entry in self._fetch(self._namespace.keys(scope), thread_id, message_ids) if entry
        )

    def _fetch(self, keys: Keys, thread_id: str, ids: Sequence[str]) -> list[Entry]:
        if not ids:
            return []
        raw: Any = self._client.hmget(keys.message_contents(thread_id), list(ids))
        entries = [json.loads(value) if value else {} for value in raw]
        wanted = list(dict.fromkeys(quote["page"] for entry in entries for quote in _quotes(entry)))
        pages = self._pages(keys, wanted)
        for entry in entries:
            _fill(entry, pages)
        return entries

    def _pages(self, keys: Keys, page_ids: Sequence[str]) -> dict[str, Entry]:
        pipeline = self._client.pipeline(transaction=False)
        for page_id in page_ids:
            pipeline.hget(keys.page(page_id), "json")
        return {
            page_id: json.loads(raw) for page_id, raw in zip(page_ids, pipeline.execute(), strict=True) if raw
        }

    def save_queue(self, scope: Scope, thread_id: str, snapshot: Entry) -> bool:
        """Keep which messages are in the FIFO queue, for a run that has no checkpoint; refused as by :meth:`append`."""
        keys = self._namespace.keys(scope)
        return erasures.write(self._client, keys, scope, ["SET", keys.fifo(thread_id), json.dumps(snapshot)])

    def load_queue(self, scope: Scope, thread_id: str) -> Entry:
        """Return what :meth:`save_queue` kept, or an empty dict."""
        raw: Any = self._client.get(self._namespace.keys(scope).fifo(thread_id))
        return dict(json.loads(raw)) if raw else {}

    def forget_pages(self, scope: Scope, page_ids: Collection[str]) -> None:
        """Of pages that are being erased: drop what quotes them, and what may retell them.

        Summaries, results and inner monologue may hold what an erased page said, and nobody can tell which;
        their texts are emptied in all threads of the agent, their place in the order stays. A message that is
        destroyed meanwhile does not come back. Safe to run again; two round trips per thread.
        """
        keys = self._namespace.keys(scope)
        gone = set(page_ids)
        for thread_id in self.threads(scope):
            contents = keys.message_contents(thread_id)
            raw: Any = self._client.hgetall(contents)
            pipeline = self._client.pipeline(transaction=False)
            for name, value in raw.items():
                entry = json.loads(value)
                if entry["kind"] in _DERIVED or gone & {quote["page"] for quote in _quotes(entry)}:
                    emptied = {part: entry[part] for part in ("message_id", "kind", "said_at")}
                    scripts.run(pipeline, "replace_field", keys=[contents], args=[name, value, json.dumps(emptied)])
            pipeline.unlink(keys.fifo(thread_id))
            pipeline.execute()

    def forget_thread(self, scope: Scope, thread_id: str) -> None:
        """Destroy the log of a thread."""
        keys = self._namespace.keys(scope)
        self._client.unlink(keys.messages(thread_id), keys.message_contents(thread_id), keys.fifo(thread_id))
        self._client.hdel(keys.logged_threads, keys.thread_tag(thread_id))


def _quotes(entry: Entry) -> list[dict[str, Any]]:
    found = [entry["quote"]] if entry.get("quote") else []
    return found + [call["quote"] for call in entry.get("calls", ()) if call.get("quote")]


def _fill(entry: Entry, pages: dict[str, Entry]) -> None:
    """Put the quoted texts where they belong; those of erased pages stay empty."""
    if quote := entry.get("quote"):
        entry["text"] = _quoted(quote, pages)
    for call in entry.get("calls", ()):
        if quote := call.get("quote"):
            call["arguments"] = call["arguments"] | {"message": _quoted(quote, pages)}


def _quoted(quote: dict[str, Any], pages: dict[str, Entry]) -> str:
    side = str(pages.get(quote["page"], {}).get(quote["side"], ""))
    return side[quote["start"] : quote["start"] + quote["length"]]
