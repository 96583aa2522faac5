"""The face of MemGPT's virtual context: open it over a memory, talk, look into it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph

from langgraph_memoryos.archive_documents import LoadReport, load_documents, unload_documents
from langgraph_memoryos.dialogue import message_text
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.function_tools import blocks_of
from langgraph_memoryos.graphs import build_virtual_context_graph
from langgraph_memoryos.identity import DEFAULT_THREAD
from langgraph_memoryos.ids import readable_id
from langgraph_memoryos.memory import Graph, MemoryOS
from langgraph_memoryos.off_loop import read_off_loop
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.blocks import BlockStore
from langgraph_memoryos.stores.checkpoints import checkpoint_thread
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.stores.messages import Entry, MessageStore
from langgraph_memoryos.stores.search import SearchStore
from langgraph_memoryos.tools import TOOL_NAMES, memory_tools
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Event, Turn

TIMER = "A timer went off. Do what is due; there may be nothing to do."
"""What the model reads at a tick."""


class VirtualContext:
    """An agent with a virtual context (MemGPT, arXiv 2310.08560), alone or together with MemoryOS.

    Methods that send, load or list have a second form whose name begins with ``a``: it takes the same and never blocks
    the event loop; the model is awaited. A checkpointer has to be one for asyncio then.

    Args:
        memory: An open memory; it stays the caller's to close.
        model: Runs the loop; default: the memory's reply model.
        settings: Numbers and mode.
        checkpointer: Keeps the queue between events; without one it is kept in Redis, without time travel.
        summary_model: Writes the recursive summary; default ``model``, else the memory's model for maintenance.
            With neither, as when only the bundled small model is at hand, the summary quotes.
        count: Counts tokens offline.

    Example:
        >>> agent = VirtualContext(MemoryOS.open_sync(), model=model)           # doctest: +SKIP
        >>> agent.send("I moved to Oslo.", user_id="ana")["sent"]               # doctest: +SKIP
    """

    def __init__(
        self,
        memory: MemoryOS,
        *,
        model: BaseChatModel | None = None,
        settings: VirtualContextSettings | None = None,
        checkpointer: BaseCheckpointSaver[Any] | None = None,
        summary_model: BaseChatModel | None = None,
        count: Callable[[str], int] | None = None,
    ) -> None:
        self._memory = memory
        self._model = model
        self._checkpointer = checkpointer
        self._options: dict[str, Any] = {
            "summary_model": summary_model or model or memory.parts.memory_model,
            "count": count,
        }
        self.settings = settings or VirtualContextSettings()
        pages = memory.parts.pages
        self.blocks: BlockStore = pages.sibling(BlockStore)
        self.archival: ArchivalStore = pages.sibling(ArchivalStore)
        self.log: MessageStore = pages.sibling(MessageStore)
        self.search: SearchStore = pages.sibling(SearchStore)

    def builder(self) -> StateGraph[Any, Any, Any, Any]:
        """Return the uncompiled graph, to compile otherwise or to put into a graph of your own."""
        return build_virtual_context_graph(
            self._memory.parts,
            model=self._model or self._memory.reply_model,
            settings=self.settings,
            **self._options,
        )

    @cached_property
    def graph(self) -> Graph:
        """The compiled graph."""
        return self.builder().compile(checkpointer=self._checkpointer, name="virtual_context")

    def send(
        self,
        text: str,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Handle a user's message; the report's ``sent`` holds what the user reads.

        Args:
            text: What the user says.
            user_id: Who.
            agent_id: To which agent; default: the memory's own.
            thread_id: In which conversation.
        """
        return self._report(self._run(self._message(text), user_id, agent_id, thread_id))

    async def asend(
        self,
        text: str,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Handle a user's message as :meth:`send` does, without blocking the event loop.

        Raises:
            MemoryOSError: the checkpointer has no asynchronous side.
        """
        return self._report(await self._arun(self._message(text), user_id, agent_id, thread_id))

    def alert(
        self,
        text: str,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Handle a system message, such as a failed delivery.

        Args:
            text: What happened, for the model to read.
            user_id: Whose memory.
            agent_id: Which agent is told; default: the memory's own.
            thread_id: In which conversation.

        Raises:
            MemoryOSError: in mode ``memoryos``, which only knows messages.
        """
        return self._report(self._run(self._event("system_alert", text), user_id, agent_id, thread_id))

    async def aalert(
        self,
        text: str,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Do as :meth:`alert`, without blocking the event loop; errors are those of both it and :meth:`asend`."""
        return self._report(await self._arun(self._event("system_alert", text), user_id, agent_id, thread_id))

    def interaction(
        self,
        text: str,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Handle something the user did, such as a login or a finished upload.

        Args and errors are those of :meth:`alert`.
        """
        return self._report(self._run(self._event("user_interaction", text), user_id, agent_id, thread_id))

    async def ainteraction(
        self,
        text: str,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Do as :meth:`interaction`, without blocking the event loop; errors are those of both it and :meth:`asend`."""
        return self._report(await self._arun(self._event("user_interaction", text), user_id, agent_id, thread_id))

    def tick(
        self,
        text: str = TIMER,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Handle a timed event, for a cron or scheduler to call.

        It is skipped while the thread is busy (``reason`` is ``busy``) and during ``pause_heartbeats``
        (``paused``). Args and errors are those of :meth:`alert`.
        """
        return self._report(self._run(self._event("timed", text), user_id, agent_id, thread_id))

    async def atick(
        self,
        text: str = TIMER,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
        thread_id: str | int = DEFAULT_THREAD,
    ) -> Turn:
        """Do as :meth:`tick`, without blocking the event loop; errors are those of both it and :meth:`asend`."""
        return self._report(await self._arun(self._event("timed", text), user_id, agent_id, thread_id))

    def _message(self, text: str) -> dict[str, Any]:
        return {"messages": [HumanMessage(text, id=self._memory.parts.new_turn_id())]}

    def _event(self, kind: str, text: str) -> dict[str, Any]:
        if self.settings.mode == "memoryos":
            raise MemoryOSError("Only a message can be sent in mode memoryos; events need memgpt or hybrid.")
        return {"event": Event(kind=kind, text=text, id=self._memory.parts.new_turn_id())}

    def _run(
        self, given: dict[str, Any], user_id: str | int, agent_id: str | int | None, thread_id: str | int
    ) -> dict[str, Any]:
        graph, config, who = self._prepared(user_id, agent_id, thread_id)
        try:
            result: dict[str, Any] = graph.invoke(given, config, context=who)
        except BaseException:
            self._give_up(given, who)
            raise
        return result

    async def _arun(
        self, given: dict[str, Any], user_id: str | int, agent_id: str | int | None, thread_id: str | int
    ) -> dict[str, Any]:
        kind = type(self._checkpointer)
        if getattr(kind, "aget_tuple", None) is BaseCheckpointSaver.aget_tuple:
            raise MemoryOSError(
                f"{kind.__name__} only serves synchronous calls: give VirtualContext the checkpointer of "
                "`await memory.async_checkpointer()`, or none."
            )
        graph, config, who = await asyncio.to_thread(self._prepared, user_id, agent_id, thread_id)
        try:
            result: dict[str, Any] = await graph.ainvoke(given, config, context=who)
        except BaseException:
            await asyncio.to_thread(self._give_up, given, who)
            raise
        return result

    def _give_up(self, given: dict[str, Any], who: dict[str, Any]) -> None:
        """Free the thread of an event that failed, wherever that was, so that timed events find it free."""
        event_id = given["event"]["id"] if "event" in given else given["messages"][0].id
        leases: LeaseStore = self._memory.parts.pages.sibling(LeaseStore)
        with contextlib.suppress(Exception):  # what failed may be Redis itself
            leases.release(Scope.from_json(who), who["thread_id"], event_id, finished=False)

    def _prepared(
        self, user_id: str | int, agent_id: str | int | None, thread_id: str | int
    ) -> tuple[Graph, RunnableConfig, dict[str, Any]]:
        """Return the graph, and the config and context of a run; starts the model and writes new blocks."""
        who = self.scope(user_id, agent_id).to_json() | {"thread_id": readable_id(thread_id, what="thread_id")}
        # Not the thread's name: two users who both call a thread "default" must not share its checkpoint.
        config = RunnableConfig(configurable={"thread_id": self.checkpoint_thread(**who)})
        return self.graph, config, who

    def _report(self, result: dict[str, Any]) -> Turn:
        if self.settings.mode == "memoryos":
            reply = message_text(result["messages"][-1])
            return Turn(kind="user_message", reason="done", steps=1, sent=[reply])
        report: Turn = result["virtual"]
        return report

    def checkpoint_thread(self, *, user_id: str, agent_id: str, thread_id: str) -> str:
        """Return the ``thread_id`` under which a checkpointer keeps a user's thread."""
        name = self._memory.parts.namespace
        return checkpoint_thread(namespace=name, user_id=user_id, agent_id=agent_id, thread_id=thread_id)

    def load_documents(
        self,
        path: str | Path,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
    ) -> Iterator[LoadReport]:
        """Load text or Markdown files, or folders of them, into the archive; yields a report per file.

        Nothing happens until the iterator is consumed. A changed document takes the place of its former version; see
        :func:`langgraph_memoryos.archive_documents.load_documents`.
        """
        parts = self._memory.parts
        return load_documents(
            path,
            archival=self.archival,
            scope=self.scope(user_id, agent_id),
            settings=self.settings,
            clock=parts.clock,
        )

    def aload_documents(
        self,
        path: str | Path,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
    ) -> AsyncIterator[LoadReport]:
        """Load as :meth:`load_documents` does, in threads; nothing happens until the iterator is consumed."""
        return read_off_loop(lambda: self.load_documents(path, user_id=user_id, agent_id=agent_id), batch=1)

    def aunload_documents(
        self,
        path: str | Path,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
    ) -> AsyncIterator[LoadReport]:
        """Unload as :meth:`unload_documents` does, in threads; nothing happens until the iterator is consumed."""
        return read_off_loop(lambda: self.unload_documents(path, user_id=user_id, agent_id=agent_id), batch=1)

    def unload_documents(
        self,
        path: str | Path,
        *,
        user_id: str | int,
        agent_id: str | int | None = None,
    ) -> Iterator[LoadReport]:
        """Take what was loaded from a file or folder out of the archive; yields a report per document.

        The files may be gone. Nothing happens until the iterator is consumed. The texts leave the search and stay on
        record; those that another document or the model itself has stay in.
        """
        scope = self.scope(user_id, agent_id)
        return unload_documents(path, archival=self.archival, scope=scope, clock=self._memory.parts.clock)

    def messages(
        self,
        user_id: str | int,
        thread_id: str | int = DEFAULT_THREAD,
        *,
        agent_id: str | int | None = None,
    ) -> tuple[Entry, ...]:
        """Return every message of a thread in order, evicted ones and sent texts included."""
        return self.log.all(self.scope(user_id, agent_id), str(thread_id))

    async def amessages(
        self,
        user_id: str | int,
        thread_id: str | int = DEFAULT_THREAD,
        *,
        agent_id: str | int | None = None,
    ) -> tuple[Entry, ...]:
        """Return the :meth:`messages` of a thread, read in another thread of the process."""
        return await asyncio.to_thread(self.messages, user_id, thread_id, agent_id=agent_id)

    def tools(self, *, names: tuple[str, ...] = TOOL_NAMES, **options: Any) -> list[BaseTool]:
        """Return functions as tools for an agent of your own; see :func:`memory_tools`."""
        return memory_tools(self._memory.parts, names=names, settings=self.settings, **options)

    def scope(self, user_id: str | int, agent_id: str | int | None = None) -> Scope:
        """Return the scope of a user and agent, with the blocks a new agent has."""
        scope = Scope(
            user_id=readable_id(user_id, what="user_id"),
            agent_id=self._memory.parts.default_agent
            if agent_id is None
            else readable_id(agent_id, what="agent_id"),
        )
        self.blocks.ensure(scope, blocks_of(self.settings))
        return scope
