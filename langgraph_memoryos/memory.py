"""The face of the library: open a memory, drop its graphs into yours, look into it, take things out."""

import asyncio
import dataclasses
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.redis import RedisSaver
from langgraph.checkpoint.redis.aio import AsyncRedisSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from langgraph_memoryos.analysts import Analyst, DeterministicAnalyst, ModelAnalyst
from langgraph_memoryos.analysts.protocol import SegmentPages, without_model
from langgraph_memoryos.errors import RecordNotFoundError
from langgraph_memoryos.graphs import (
    MemoryParts,
    build_chat_graph,
    build_consolidate_graph,
    build_recall_graph,
    build_remember_graph,
)
from langgraph_memoryos.heat import heat
from langgraph_memoryos.ids import readable_id
from langgraph_memoryos.local_models import choose_chat_model, default_embeddings, has_capable_model
from langgraph_memoryos.off_loop import read_off_loop
from langgraph_memoryos.records import Exchange, ProfileField, Scope, ScoredPage
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.state import Remembered
from langgraph_memoryos.stores.append_only import rewrite_log
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.blocks import BlockStore
from langgraph_memoryos.stores.connection import RedisConnection, open_redis
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.erase import COLLECTIONS, Erased, Eraser
from langgraph_memoryos.stores.facts import FactStore
from langgraph_memoryos.stores.keys import DEFAULT_NAMESPACE, Namespace
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.stores.personas import PersonaStore
from langgraph_memoryos.stores.recall import RecallRequest, RecallStore
from langgraph_memoryos.stores.schema import setup
from langgraph_memoryos.stores.segments import SegmentStore

GraphName = Literal["recall", "remember", "chat", "consolidate"]
Graph = CompiledStateGraph[Any, Any, Any, Any]
_SUPPORT_THREAD = "\x00no-thread"
_EXPORTED_AT_ONCE = 100


class MemoryOS:
    """A long-term memory of users for LangGraph agents.

    Open it with :meth:`open_sync` or ``await`` :meth:`open`; use it as a context manager or call :meth:`close`.
    One object serves many users, threads and event loops: nothing in it belongs to a loop. What waits for Redis or a
    model has a second form whose name begins with ``a``, which waits without blocking the event loop.

    Example:
        >>> memory = MemoryOS.open_sync()                                     # doctest: +SKIP
        >>> builder.add_node("recall", memory.recall)                         # doctest: +SKIP
        >>> builder.add_node("remember", memory.remember)                     # doctest: +SKIP
    """

    def __init__(self, *, parts: MemoryParts, connection: RedisConnection, namespace: Namespace) -> None:
        self._parts = parts
        self._connection = connection
        self._namespace = namespace
        self._eraser = Eraser(connection.client, namespace=namespace, pages=parts.pages, facts=parts.facts)
        self._reply_model: BaseChatModel | None = None
        self._starting_model = threading.Lock()

    @classmethod
    def open_sync(
        cls,
        redis_url: str | None = None,
        *,
        model: BaseChatModel | None = None,
        memory_model: BaseChatModel | None = None,
        embeddings: Embeddings | None = None,
        embeddings_name: str | None = None,
        analyst: Analyst | None = None,
        settings: MemorySettings | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        agent_id: str = "assistant",
        agent_profile: Mapping[str, str] | None = None,
        system: str = "",
        data_dir: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open a memory, creating what is missing.

        Args:
            redis_url: A Redis with search; default ``REDIS_URL``, else an embedded server.
            model: Answers in ``chat``; default: OpenAI-compatible by environment, else the bundled local model.
            memory_model: Judges pages (a cheaper one will do); default ``model``. With neither given, and only the
                bundled model at hand, the deterministic analyst is used: that model invents facts.
            embeddings: Any LangChain embeddings; default by environment, else a bundled local embedder.
            embeddings_name: Name recorded with the vectors, where it cannot be derived from ``embeddings``.
            analyst: Replaces the choice of analyst, such as ``DeterministicAnalyst()`` to use no model at all.
            settings: Numbers; default ``MemorySettings()``.
            namespace: Prefix of all keys; several memories can share one Redis.
            agent_id: Agent of runs that name none.
            agent_profile: Static profile of the agent (``name``, ``role``, ``character``), in every prompt.
            system: The agent's instructions in ``chat``.
            data_dir: Where the embedded server keeps its data.
            clock: Seconds since the epoch; for tests and replays.

        Raises:
            RedisUnavailableError: no Redis answers and none can be started.
            SearchUnavailableError: the Redis has no query engine.
            EmbedderMismatchError: the stored vectors were made by another embedder.
            ModelUnavailableError: no embedder is at hand.
        """
        name = Namespace(name=namespace)
        connection = open_redis(redis_url, data_dir=data_dir)
        try:
            embedder = Embedder(embeddings or default_embeddings(), name=embeddings_name)
            setup(connection.client, namespace=name, embedder=embedder)
            chosen = settings or MemorySettings()
            analyst, memory_model = _analysis(analyst, memory_model or model)
            parts = _parts(
                connection, name, embedder, chosen, analyst=analyst, memory_model=memory_model, default_agent=agent_id,
                agent_profile=_profile(agent_profile or {}), system=system, clock=clock,
            )
        except BaseException:
            connection.close()
            raise
        memory = cls(parts=parts, connection=connection, namespace=name)
        memory._reply_model = model
        return memory

    @classmethod
    async def open(cls, redis_url: str | None = None, **options: Any) -> Self:
        """Open a memory without blocking the event loop; arguments as in :meth:`open_sync`."""
        return await asyncio.to_thread(lambda: cls.open_sync(redis_url, **options))

    # Graphs

    def builder(self, name: GraphName) -> StateGraph[Any, Any, Any, Any]:
        """Return the uncompiled builder of a graph, to compile with a checkpointer or to extend."""
        if name == "recall":
            return build_recall_graph(self._parts)
        if name == "remember":
            return build_remember_graph(self._parts)
        if name == "consolidate":
            return build_consolidate_graph(self._parts)
        return build_chat_graph(self._parts, model=self.reply_model)

    @cached_property
    def recall(self) -> Graph:
        """The compiled ``recall`` graph: a node before your agent; fills ``memory``."""
        return self.builder("recall").compile(name="recall")

    @cached_property
    def remember(self) -> Graph:
        """The compiled ``remember`` graph: a node after your agent; fills ``remembered``."""
        return self.builder("remember").compile(name="remember")

    @cached_property
    def consolidate(self) -> Graph:
        """The compiled ``consolidate`` graph: maintenance of one user."""
        return self.builder("consolidate").compile(name="consolidate")

    @cached_property
    def chat(self) -> Graph:
        """The compiled ``chat`` graph without a checkpointer: recall, reply, remember.

        Raises:
            ModelUnavailableError: no chat model was given and none is at hand.
        """
        return self.builder("chat").compile(name="chat")

    @property
    def reply_model(self) -> BaseChatModel:
        """The model that answers in ``chat``; the default one is started when it is first needed."""
        with self._starting_model:
            if self._reply_model is None:
                self._reply_model = choose_chat_model().build()
            return self._reply_model

    async def areply_model(self) -> BaseChatModel:
        """Return :attr:`reply_model`; after it, neither that nor :attr:`chat` waits for the model to start."""
        return await asyncio.to_thread(lambda: self.reply_model)

    def checkpointer(self) -> RedisSaver:
        """Return a checkpointer for ``invoke`` and ``stream`` in the memory's own Redis."""
        saver = RedisSaver(redis_client=self._connection.client)
        saver.setup()
        return saver

    async def async_checkpointer(self) -> AsyncRedisSaver:
        """Return a checkpointer for ``ainvoke`` and ``astream`` in the memory's own Redis.

        It belongs to the running loop; :meth:`aclose` closes its connections.
        """
        saver = AsyncRedisSaver(redis_client=self._connection.async_client())
        await saver.asetup()
        return saver

    # Content

    def ingest(
        self, exchanges: Iterable[Exchange], *, user_id: str | int, agent_id: str | int | None = None,
    ) -> Iterator[Remembered]:
        """Import exchanges with their own times, one after another; yields a report for each.

        Nothing happens until the iterator is consumed. The same exchange again changes nothing.
        """
        scope = self._scope(user_id, agent_id)
        for exchange in exchanges:
            yield self.remember.invoke(_import_of(exchange, scope))["remembered"]

    async def aingest(
        self, exchanges: Iterable[Exchange], *, user_id: str | int, agent_id: str | int | None = None,
    ) -> AsyncIterator[Remembered]:
        """Import exchanges as :meth:`ingest` does; the model for maintenance is awaited.

        ``exchanges`` itself is iterated in the loop.
        """
        scope = self._scope(user_id, agent_id)
        for exchange in exchanges:
            yield (await self.remember.ainvoke(_import_of(exchange, scope)))["remembered"]

    def search(
        self, query: str, *, user_id: str | int, agent_id: str | int | None = None,
    ) -> tuple[ScoredPage, ...]:
        """Return the pages that answer a query best, most relevant first, each with the parts of its score.

        All pages but archived ones are searched, those in short-term queues too; no visit is recorded.
        """
        request = RecallRequest(
            scope=self._scope(user_id, agent_id), thread_id=_SUPPORT_THREAD, query=query,
            turn_id=self._parts.new_turn_id(),
        )
        return self._parts.recall.find(request).pages

    async def asearch(
        self, query: str, *, user_id: str | int, agent_id: str | int | None = None,
    ) -> tuple[ScoredPage, ...]:
        """Search in a thread; all is as in :meth:`search`."""
        return await asyncio.to_thread(self.search, query, user_id=user_id, agent_id=agent_id)

    def export(self, user_id: str | int) -> Iterator[dict[str, Any]]:
        """Yield everything known of a user as JSON objects with a ``kind``: page, segment, fact, trait, profile, ….

        Pages come in order of arrival over all agents and tiers, archived ones included. Of a virtual context there
        are also blocks, what they were before each change, and the messages of each thread; its archive is facts.
        """
        user = readable_id(user_id, what="user_id")
        for page in self._parts.pages.iterate(user):
            yield {"kind": "page"} | page.to_json()
        for agent_id in dict.fromkeys((self._parts.default_agent, *self._parts.pages.agents(user))):
            yield from self._export_agent(Scope(user_id=user, agent_id=agent_id))

    def aexport(self, user_id: str | int) -> AsyncIterator[dict[str, Any]]:
        """Yield what :meth:`export` yields, read in threads, 100 objects at a time."""
        return read_off_loop(lambda: self.export(user_id), batch=_EXPORTED_AT_ONCE)

    def _export_agent(self, scope: Scope) -> Iterator[dict[str, Any]]:
        parts = self._parts
        for segment in (*parts.segments.active(scope), *parts.segments.archived(scope)):
            yield {"kind": "segment"} | segment.to_json()
        for collection in COLLECTIONS:
            for fact in (*parts.facts.past(scope, collection), *parts.facts.current(scope, collection)):
                yield {"kind": "fact"} | fact.to_json()
        owner = scope.to_json()
        persona = parts.personas.get(scope)
        for trait in persona.user_traits:
            yield {"kind": "trait"} | owner | trait.to_json()
        for section, entries in (("user", persona.user_profile), ("agent", persona.agent_profile)):
            for entry in entries:
                yield {"kind": "profile", "of": section} | owner | entry.to_json()
        for replaced in parts.personas.history(scope):
            yield {"kind": "history"} | owner | replaced
        yield from self._export_virtual_context(scope)

    def _export_virtual_context(self, scope: Scope) -> Iterator[dict[str, Any]]:
        owner, pages = scope.to_json(), self._parts.pages
        blocks, messages = pages.sibling(BlockStore), pages.sibling(MessageStore)
        for block in blocks.all(scope):
            yield {"kind": "block"} | owner | block.to_json()
            for past in blocks.history(scope, block.label):
                yield {"kind": "past block"} | owner | past.to_json()
        for thread_id in messages.threads(scope):
            for message in messages.all(scope, thread_id):
                yield owner | {"thread_id": thread_id} | message | {"kind": "message", "of": message["kind"]}

    def inspect(self, user_id: str | int, *, agent_id: str | int | None = None) -> dict[str, Any]:
        """Return what each tier holds: counts, queues, segments with their heat now, facts, persona, blocks, archive."""
        scope = self._scope(user_id, agent_id)
        parts, now = self._parts, self._parts.clock()
        archive = parts.pages.sibling(ArchivalStore)
        segments = [
            segment.to_json() | {"heat": heat(
                visits=segment.visits, interactions=segment.interactions, last_visit_at=segment.last_visit_at, now=now,
                weights=parts.settings.heat_weights,
            )}
            for segment in parts.segments.active(scope)
        ]
        return scope.to_json() | {
            "pages": parts.pages.count(scope.user_id),
            "short_term": {name: length for name, length in parts.pages.threads(scope).items() if length},
            "mid_term": sorted(segments, key=lambda segment: -float(segment["heat"])),
            "archived_segments": len(parts.segments.archived(scope)),
            "user_facts": [fact.to_json() for fact in parts.facts.current(scope, "user_knowledge")],
            "agent_traits": [fact.to_json() for fact in parts.facts.current(scope, "agent_traits")],
            "persona": parts.personas.get(scope).to_json(),
            "blocks": [block.to_json() for block in parts.pages.sibling(BlockStore).all(scope)],
            "archive": {"items": archive.count(scope), "documents": archive.sources(scope)},
        }

    async def ainspect(self, user_id: str | int, *, agent_id: str | int | None = None) -> dict[str, Any]:
        """Inspect in a thread; all is as in :meth:`inspect`."""
        return await asyncio.to_thread(self.inspect, user_id, agent_id=agent_id)

    def set_profile(
        self, user_id: str | int, values: Mapping[str, str], *, agent_id: str | int | None = None,
        of: Literal["user", "agent"] = "user",
    ) -> None:
        """Set static profile fields of a user, or of the agent for this user; older values go to the history."""
        scope = self._scope(user_id, agent_id)
        for entry in _profile(values, valid_from=self._parts.clock()):
            self._parts.personas.set_profile(scope, "user_profile" if of == "user" else "agent_profile", entry)

    async def aset_profile(
        self, user_id: str | int, values: Mapping[str, str], *, agent_id: str | int | None = None,
        of: Literal["user", "agent"] = "user",
    ) -> None:
        """Set profile fields in a thread; all is as in :meth:`set_profile`."""
        await asyncio.to_thread(self.set_profile, user_id, values, agent_id=agent_id, of=of)

    def forget(
        self, user_id: str | int, *, page_id: str | Sequence[str] | None = None,
        fact_id: str | Sequence[str] | None = None, thread_id: str | int | None = None,
        agent_id: str | int | None = None,
    ) -> Erased:
        """Destroy pages, facts, one thread, or, with none of these named, everything of a user.

        What only rests on erased pages goes with them (facts, persona entries, chain texts), and summaries of segments
        are made anew from the pages they still have. Blocks and the archive say nothing of where they come from: they
        only go with the whole user, an archived text also by its fact id. Checkpoints belong to your checkpointer:
        delete those there. When a user is forgotten, what is being written, or belongs to an event of the virtual context
        that runs, is not kept; what is remembered after that, as the reply of a ``chat`` that runs, is new. An embedded
        server writes its files anew, once per call however many ids it names, so that the text is gone from the disk as
        well. An interrupted call is finished by calling again.

        Raises:
            RecordNotFoundError: a page or fact that was named is not there; the others are destroyed all the same.
            ValueError: more than one of pages, facts and thread is named.
        """
        if sum(item is not None for item in (page_id, fact_id, thread_id)) > 1:
            raise ValueError("Name pages, facts or one thread to forget, or none of them for the whole user.")
        scope = self._scope(user_id, agent_id)
        if fact_id is not None:
            erased = self._eraser.facts(scope, _listed(fact_id))
        elif page_id is not None:
            erased = self._resummarised(scope, self._eraser.pages(scope, _listed(page_id)))
        elif thread_id is not None:
            erased = self._resummarised(scope, self._eraser.thread(scope, readable_id(thread_id, what="thread_id")))
        else:
            erased = self._eraser.user(scope.user_id)
        rewrite_log(self._connection)
        if erased.missing:
            what = "page" if fact_id is None else "fact"
            raise RecordNotFoundError(
                f"This user has no {what} {', '.join(map(repr, erased.missing))}: `export` lists the {what} ids.",
            )
        return erased

    async def aforget(
        self, user_id: str | int, *, page_id: str | Sequence[str] | None = None,
        fact_id: str | Sequence[str] | None = None, thread_id: str | int | None = None,
        agent_id: str | int | None = None,
    ) -> Erased:
        """Forget in a thread; all is as in :meth:`forget`. A caller that is cancelled does not stop the thread."""
        return await asyncio.to_thread(
            self.forget, user_id, page_id=page_id, fact_id=fact_id, thread_id=thread_id, agent_id=agent_id,
        )

    def _resummarised(self, scope: Scope, erased: Erased) -> Erased:
        """Make the summaries of touched segments anew; the deterministic analyst cannot fail half-way."""
        parts = self._parts
        for segment in parts.segments.get(scope, erased.segment_ids):
            # Erasing reaches all agents of the user, so a segment may belong to another one than was named.
            owner = Scope(user_id=segment.user_id, agent_id=segment.agent_id)
            newest = parts.segments.newest_pages(owner, [segment.segment_id], limit=parts.settings.refresh_pages)
            given = SegmentPages(
                segment=dataclasses.replace(segment, title="", summary="", keywords=()),
                pages=newest[segment.segment_id],
            )
            texts = without_model(DeterministicAnalyst().summarise_segments([given]))
            parts.segments.refresh(owner, texts, made_from=[segment])
        return erased

    def _scope(self, user_id: str | int, agent_id: str | int | None) -> Scope:
        return Scope(
            user_id=readable_id(user_id, what="user_id"),
            agent_id=self._parts.default_agent if agent_id is None else readable_id(agent_id, what="agent_id"),
        )

    # Life

    @property
    def connection(self) -> RedisConnection:
        """The connection to Redis."""
        return self._connection

    @property
    def settings(self) -> MemorySettings:
        """The numbers this memory was opened with."""
        return self._parts.settings

    @property
    def parts(self) -> MemoryParts:
        """The collaborators, for graphs of your own."""
        return self._parts

    def close(self) -> None:
        """Give up the connection; an embedded server that nobody else uses stops."""
        self._connection.close()

    async def aclose(self) -> None:
        """Close without blocking the event loop, with the connections of :meth:`async_checkpointer`."""
        await self._connection.close_async_clients()
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        """Return the memory."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the memory."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close without blocking the event loop."""
        await self.aclose()


def _import_of(exchange: Exchange, scope: Scope) -> dict[str, Any]:
    """Return the state in which ``remember`` takes in an exchange."""
    return {"exchanges": [exchange.to_json()], **scope.to_json(), "thread_id": exchange.thread_id}


def _listed(named: str | Sequence[str]) -> Sequence[str]:
    return [named] if isinstance(named, str) else named


def _analysis(analyst: Analyst | None, model: BaseChatModel | None) -> tuple[Analyst, BaseChatModel | None]:
    """Return the analyst and its model: the given ones, else by what model is at hand."""
    if analyst is not None:
        return analyst, model
    if model is None and has_capable_model():
        model = choose_chat_model().build()
    return (ModelAnalyst(), model) if model is not None else (DeterministicAnalyst(), None)


def _profile(values: Mapping[str, str], *, valid_from: float = 0.0) -> tuple[ProfileField, ...]:
    return tuple(ProfileField(name=name, value=value, valid_from=valid_from) for name, value in values.items())


def _parts(
    connection: RedisConnection, namespace: Namespace, embedder: Embedder, settings: MemorySettings, **rest: Any,
) -> MemoryParts:
    client = connection.client
    return MemoryParts(
        pages=PageStore(client, namespace=namespace, embedder=embedder),
        segments=SegmentStore(client, namespace=namespace, embedder=embedder),
        facts=FactStore(client, namespace=namespace, embedder=embedder),
        personas=PersonaStore(client, namespace=namespace),
        recall=RecallStore(client, namespace=namespace, embedder=embedder, settings=settings),
        settings=settings,
        **rest,
    )
