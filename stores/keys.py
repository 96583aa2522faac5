"""Names of keys. Every key of a user carries the same hash tag, so scripts and transactions stay in one slot."""

import re
from dataclasses import dataclass
from functools import lru_cache

from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.ids import digest
from langgraph_memoryos.records import Scope

DEFAULT_NAMESPACE = "memoryos"
_REMEMBERED_TAGS = 4096
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Namespace:
    """Prefix of all keys and indexes of one memory; several memories can live in one Redis.

    Raises:
        MemoryOSError: if ``name`` has characters outside letters, digits, ``_`` and ``-``.
    """

    name: str = DEFAULT_NAMESPACE

    def __post_init__(self) -> None:
        """Validate the name."""
        if not _NAMESPACE.fullmatch(self.name):
            raise MemoryOSError("A namespace is 1 to 64 letters, digits, '_' or '-', beginning with a letter or digit.")

    def index(self, kind: str) -> str:
        """Return the name of the search index over one kind of document."""
        return f"{self.name}:index:{kind}"

    def prefix(self, kind: str) -> str:
        """Return the key prefix that index covers; it ends in a colon, so that no longer name begins with it."""
        return f"{self.name}:{kind}:"

    @property
    def meta(self) -> str:
        """The hash that records schema version and embedder."""
        return f"{self.name}:meta"

    def user_pattern(self, user_id: str) -> str:
        """Return the SCAN pattern that matches every key of one user and no other."""
        return f"{self.name}:*{{{user_tag(user_id)}}}*"

    def keys(self, scope: Scope) -> "Keys":
        """Return the key names of one user and agent."""
        return Keys(namespace=self, user=user_tag(scope.user_id), agent=agent_tag(scope))


@lru_cache(maxsize=_REMEMBERED_TAGS)
def user_tag(user_id: str) -> str:
    """Return what stands for a user in keys."""
    return digest("user", user_id)


@lru_cache(maxsize=_REMEMBERED_TAGS)
def agent_tag(scope: Scope) -> str:
    """Return what stands for an agent *of one user* in keys."""
    return digest("agent", scope.user_id, scope.agent_id)


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Key names of one user and agent."""

    namespace: Namespace
    user: str
    agent: str

    def _key(self, kind: str, *rest: str) -> str:
        return ":".join((f"{self.namespace.name}:{kind}:{{{self.user}}}", *rest))

    @property
    def owner(self) -> int:
        """Number that stands for user and agent in filters: 52 bits of :attr:`agent`, exact as a double.

        Two owners may share a number once in 10^15; the readable ids are compared after every fetch.
        """
        return int(self.agent[:13], 16)

    def thread_tag(self, thread_id: str) -> str:
        """Return what stands for a thread in keys."""
        return digest("thread", self.agent, thread_id)

    def page(self, page_id: str) -> str:
        """Hash: what was said, indexed; written once."""
        return self._key("page", page_id)

    def place(self, page_id: str) -> str:
        """Hash: where a page is now (tier, segment, chain, keywords, next page, the page before it in its thread).

        Not indexed, so it may change.
        """
        return self._key("place", page_id)

    def window(self, page_id: str) -> str:
        """Hash: a page's words and those of the page before it, indexed."""
        return self._key("window", page_id)

    def segment(self, segment_id: str) -> str:
        """Hash: one segment, indexed; its counters live in :attr:`heat`."""
        return self._key("segment", segment_id)

    def segment_pages(self, segment_id: str) -> str:
        """Sorted set: page ids of a segment by sequence."""
        return self._key("members", segment_id)

    def undigested(self, segment_id: str) -> str:
        """Sorted set: page ids of a segment that no persona update has seen, by sequence; ``l_interaction`` of them."""
        return self._key("undigested", segment_id)

    def fact(self, fact_id: str) -> str:
        """Hash: one fact, indexed."""
        return self._key("fact", fact_id)

    def chain(self, chain_id: str) -> str:
        """Hash: one dialogue chain."""
        return self._key("chain", chain_id)

    def queue(self, thread_id: str) -> str:
        """Sorted set: page ids of a thread's short-term queue by sequence."""
        return self._key("queue", self.agent, self.thread_tag(thread_id))

    @property
    def log(self) -> str:
        """Sorted set: all page ids of the user by sequence, whatever their tier and agent (recall storage)."""
        return self._key("log")

    @property
    def sequence(self) -> str:
        """Counter: order of arrival of pages within the user."""
        return self._key("sequence")

    @property
    def erased(self) -> str:
        """Set: ids of erased pages, so that a late write or a replayed turn cannot bring them back."""
        return self._key("erased")

    @property
    def erasures(self) -> str:
        """Counter: how often everything of the user was erased; what began before the last time writes no more."""
        return self._key("erasures")

    @property
    def threads(self) -> str:
        """Hash: thread tag to JSON of the readable thread id, for this agent."""
        return self._key("threads", self.agent)

    @property
    def names(self) -> str:
        """Hash: display name of a speaker to the number of pages with it, for this agent."""
        return self._key("speakers", self.agent)

    @property
    def heads(self) -> str:
        """Hash: thread tag to the id of the newest page of the thread, for this agent."""
        return self._key("heads", self.agent)

    @property
    def agents(self) -> str:
        """Hash: agent tag to the readable agent id."""
        return self._key("agents")

    @property
    def segments(self) -> str:
        """Sorted set: ids of active segments by the sequence of their first page."""
        return self._key("segments", self.agent)

    @property
    def archive(self) -> str:
        """Sorted set: ids of archived segments by the sequence of their first page."""
        return self._key("archive", self.agent)

    @property
    def heat(self) -> str:
        """Hash: ``<segment>:visits|interactions|visited`` of active segments; the second counts :meth:`undigested`."""
        return self._key("heat", self.agent)

    @property
    def visiting_turns(self) -> str:
        """List: ids of the newest turns whose visits were counted, so that a repeated step counts none twice."""
        return self._key("turns", self.agent)

    @property
    def stale(self) -> str:
        """Set: ids of segments whose summary does not tell of all their pages yet."""
        return self._key("stale", self.agent)

    def facts(self, collection: str) -> str:
        """Sorted set: ids of current facts of a collection by sequence (the bounded list)."""
        return self._key("facts", self.agent, collection)

    def past_facts(self, collection: str) -> str:
        """Sorted set: ids of superseded and retired facts of a collection by sequence."""
        return self._key("past", self.agent, collection)

    def fact_texts(self, collection: str) -> str:
        """Hash: digest of a current fact's normalised text to its id."""
        return self._key("texts", self.agent, collection)

    @property
    def persona(self) -> str:
        """Hash: ``user_profile/<name>``, ``user_traits/<dimension>``, ``agent_profile/<name>`` to JSON."""
        return self._key("persona", self.agent)

    @property
    def persona_history(self) -> str:
        """List: JSON of persona entries that newer ones replaced, oldest first."""
        return self._key("history", self.agent)

    def block(self, label: str) -> str:
        """Hash: text, version and last change of one working-context block of this agent."""
        return self._key("block", self.agent, digest("block", label))

    @property
    def blocks(self) -> str:
        """Hash: block tag to JSON of the readable label and what the agent's settings say of the block."""
        return self._key("blocks", self.agent)

    def block_history(self, label: str) -> str:
        """List: JSON of a block before each of its newest changes, oldest first."""
        return self._key("blockpast", self.agent, digest("block", label))

    def block_changes(self, label: str) -> str:
        """Sorted set: ids of the newest changes by version, so that a retried step does not make them twice."""
        return self._key("blockdone", self.agent, digest("block", label))

    def messages(self, thread_id: str) -> str:
        """List: ids of all messages of a thread, in order (MemGPT's recall storage)."""
        return self._key("messages", self.agent, self.thread_tag(thread_id))

    def message_contents(self, thread_id: str) -> str:
        """Hash: message id to JSON; what was said to each other stands in the pages and is only referred to."""
        return self._key("contents", self.agent, self.thread_tag(thread_id))

    @property
    def logged_threads(self) -> str:
        """Hash: thread tag to JSON of the readable id of each thread that has a message log, for this agent."""
        return self._key("logged", self.agent)

    def fifo(self, thread_id: str) -> str:
        """Text: JSON of the ids in a thread's FIFO queue after its last event, and up to which message is summarised."""
        return self._key("fifo", self.agent, self.thread_tag(thread_id))

    def open_events(self, thread_id: str) -> str:
        """Set: ids of events of a thread that were taken in and are not finished."""
        return self._key("open", self.agent, self.thread_tag(thread_id))

    def lease(self, thread_id: str) -> str:
        """Text with expiry: id of the event that keeps a thread busy."""
        return self._key("lease", self.agent, self.thread_tag(thread_id))

    @property
    def pause(self) -> str:
        """Text with expiry: until when timed events are ignored, for this agent."""
        return self._key("pause", self.agent)

    @property
    def documents(self) -> str:
        """Hash: id of a loaded document to its entry, JSON of its path, name, number of chunks and version."""
        return self._key("documents", self.agent)

    @property
    def archival_changes(self) -> str:
        """Hash: id of a change of the archive to what it gave, for the newest; a retried step makes none twice."""
        return self._key("archivedone", self.agent)

    @property
    def archival_change_order(self) -> str:
        """List: ids of the changes in :attr:`archival_changes`, oldest first."""
        return self._key("archiveorder", self.agent)

    def chunks(self, document_id: str) -> str:
        """Set: digests of a loaded document's texts, those that were taken out of the archive since included."""
        return self._key("chunks", self.agent, document_id)

    def holders(self, item_id: str) -> str:
        """Set: ids of the documents that have an archived text, and ``""`` if it was inserted on its own."""
        return self._key("holders", item_id)
