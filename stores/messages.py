"""The log of every message of a thread, in order, for ever: recall storage (MemGPT, section 2.2).

What user and agent said to each other is in the pages, text and vector once; here it is only referred to.
What is no dialogue (alerts, calls, results, summaries) is kept here and is not searched.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from redis import Redis

from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores import erasures, scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace

_BATCH = 500
_DERIVED = ("summary", "function_result", "assistant")
_ALWAYS = ("message_id", "kind", "said_at", "until")
_MORE = 500

Entry = dict[str, Any]
"""A message as JSON: ``message_id``, ``kind``, ``text`` and what else the graph says of it. A *quote* stands
for a text that is part of a page: ``{"page": id, "side": "query" | "reply", "start": n, "length": n}``."""

Mark = Literal["unknown", "known", "open"]
"""What a log knows of a message: nothing, that it is there, or that it is there and its event was not finished."""
_APPENDED: tuple[Literal["", "once", "twice"], ...] = ("", "once", "twice")
_MARKS: tuple[Mark, ...] = ("unknown", "known", "open")


@dataclass(frozen=True, kw_only=True)
class ThreadLook:
    """What :meth:`MessageStore.look` saw of a thread.

    Attributes:
        erasures: How often everything of the user was erased.
        kept: What :meth:`MessageStore.save_queue` kept last, or an empty dict.
        before: Messages of the queue that are not in ``after``: the summary, and what stayed when others were evicted.
        after: Messages of the log behind the last one that is summarised, in order.
        marks: What the log knows of the messages that were asked about.
    """

    erasures: int
    kept: Entry
    before: tuple[Entry, ...]
    after: tuple[Entry, ...]
    marks: Mapping[str, Mark]


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

    def append(
        self, scope: Scope, thread_id: str, entries: Sequence[Entry], *, opens: str = ""
    ) -> Literal["once", "twice", ""]:
        """Append messages that are not in the log yet, in order, atomically; those that are take the newer text.

        Args:
            scope: Whose log.
            thread_id: Of which thread.
            entries: The messages.
            opens: Id of the event that begins with them; it is open until ``LeaseStore.release`` says it is finished.

        Returns:
            ``once`` when the log has them; ``twice`` when somebody else opened the event a moment ago; an empty text when
            the user was erased since the scope's ``erasures`` were counted. In the latter two nothing is written.
        """
        if not entries:
            return "once"
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
                keys.open_events(thread_id),
            ],
            args=[keys.thread_tag(thread_id), json.dumps(thread_id), erasures.expected(scope), opens, *pairs],
        )
        return _APPENDED[int(kept)]

    def look(
        self, scope: Scope, thread_id: str, *, queue: Entry | None, shown: Collection[str], asked: Sequence[str]
    ) -> ThreadLook:
        """Return what an event needs to know of its thread, in one round trip, or two where quotes are to be filled.

        Args:
            scope: Whose thread.
            thread_id: Which.
            queue: The queue, as for :meth:`save_queue`; ``None`` for the one that is kept.
            shown: Ids of messages whose texts are known, so that their quotes need not be filled in.
            asked: Ids of messages to tell about; at most 500 messages of the log are read beside the queue's own.
        """
        keys = self._namespace.keys(scope)
        erased, kept, rows, marks = scripts.run(
            self._client,
            "look_at_thread",
            keys=[
                keys.messages(thread_id),
                keys.message_contents(thread_id),
                keys.fifo(thread_id),
                keys.open_events(thread_id),
                keys.erasures,
            ],
            args=[_MORE, "" if queue is None else json.dumps(queue), *asked],
        )
        found = [(json.loads(content), after) for _, content, after in rows if content]
        self._fill(keys, [entry for entry, _ in found if entry["message_id"] not in shown])
        return ThreadLook(
            erasures=int(erased),
            kept=json.loads(kept) if kept else {},
            before=tuple(entry for entry, after in found if not after),
            after=tuple(entry for entry, after in found if after),
            marks={name: _MARKS[mark] for name, mark in zip(asked, marks, strict=True)},
        )

    def threads(self, scope: Scope) -> tuple[str, ...]:
        """Return the threads that have a log, by name."""
        raw: Any = self._client.hvals(self._namespace.keys(scope).logged_threads)
        return tuple(sorted(json.loads(name) for name in raw))

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
        self._fill(keys, entries)
        return entries

    def _fill(self, keys: Keys, entries: Sequence[Entry]) -> None:
        """Fill in the quotes of messages."""
        wanted = list(dict.fromkeys(quote["page"] for entry in entries for quote in _quotes(entry)))
        pages = self._pages(keys, wanted) if wanted else {}
        for entry in entries:
            _fill(entry, pages)

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
                    emptied = {part: entry[part] for part in _ALWAYS if part in entry} | {"erased": True}
                    scripts.run(pipeline, "replace_field", keys=[contents], args=[name, value, json.dumps(emptied)])
                    pipeline.srem(keys.open_events(thread_id), name)
            pipeline.execute()

    def forget_thread(self, scope: Scope, thread_id: str) -> None:
        """Destroy the log of a thread."""
        keys = self._namespace.keys(scope)
        self._client.unlink(
            keys.messages(thread_id), keys.message_contents(thread_id), keys.fifo(thread_id), keys.open_events(thread_id)
        )
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
