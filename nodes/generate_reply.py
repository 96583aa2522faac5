"""Step ``generate_reply``: one prompt from all memory, one model call, streamed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk, HumanMessage, SystemMessage
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from langgraph_memoryos.dialogue import exchanges_from_messages, message_text, newest_message
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.prompts.generate_reply import system_prompt
from langgraph_memoryos.state import ChatInput, Messages, RecalledMemory, Remembered, Usage, usage_of
from langgraph_memoryos.stores.pages import PageStore


class GenerateReplyInput(ChatInput, total=False):
    """The conversation, what was recalled for it, and the report of the turn before."""

    memory: RecalledMemory
    remembered: Remembered


class GenerateReplyUpdate(TypedDict):
    """The reply."""

    messages: Messages
    reply_usage: Usage


def prompt_messages(
    messages: Sequence[BaseMessage], memory: RecalledMemory, *, system: str = "",
) -> list[BaseMessage]:
    """Return the whole prompt of a turn, bounded whatever the length of the conversation.

    System text with mid- and long-term memory, then the short-term pages as messages, then the messages since the
    last reply. System messages that begin the conversation or came since the last reply join the system text, since
    many models take only one system message.

    Args:
        messages: The conversation; apart from its system messages, only what follows the last reply is used.
        memory: What ``recall`` gave.
        system: The agent's own instructions.
    """
    asked = _since_reply(messages)
    # A turn that is answered anew is asked, not recalled; a message whose reply the conversation lost is recalled.
    newest = next((message.id for message in reversed(asked) if message.type == "human"), None)
    pages = [page for page in memory["short_term"] if newest not in page["source_ids"]]
    answered = {source for page in pages if page["reply"] for source in page["source_ids"]}
    recent: list[BaseMessage] = []
    for page in pages:
        recent += [HumanMessage(page["query"])] if page["query"] else []
        recent += [AIMessage(page["reply"])] if page["reply"] else []
    instructions = "\n\n".join(dict.fromkeys([system, *_instructions(messages)]))
    return [
        SystemMessage(system_prompt(memory["text"], instructions=instructions)), *recent,
        *(message for message in asked if message.type != "system" and message.id not in answered),
    ]


def _instructions(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the texts of the system messages that begin the conversation, and of those since the last reply."""
    kinds = [message.type for message in messages]
    begins = next((position for position, kind in enumerate(kinds) if kind != "system"), len(kinds))
    asked = max((position for position, kind in enumerate(kinds) if kind == "human"), default=len(kinds))
    replied = max((position for position in range(asked) if kinds[position] == "ai"), default=-1)
    return [
        message_text(message) for position, message in enumerate(messages)
        if message.type == "system" and not begins <= position <= replied
    ]


def _since_reply(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the newest human messages and whatever follows them (tool calls and results of this turn)."""
    start = len(messages)
    seen_human = False
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].type == "human":
            start, seen_human = position, True
        elif seen_human:
            break
    return list(messages[start:]) if seen_human else list(messages[-1:])


@dataclass(frozen=True, kw_only=True)
class GenerateReply:
    """Generate the reply (paper, section 3.4) and keep the exchange before the step ends.

    The page is written here as well as in ``remember``, which then finds it there: a caller that stops reading once
    the reply has arrived would otherwise end the run before ``remember``. A run that is cancelled while the reply is
    being streamed keeps the part that was sent.
    """

    model: BaseChatModel
    store: PageStore
    default_agent: str
    clock: Callable[[], float]
    system: str = ""

    def step(self) -> Runnable[Any, Any]:
        """Return the step for ``invoke`` and ``ainvoke``."""
        return RunnableLambda(self._run, afunc=self._arun, name="generate_reply")

    def _run(self, state: Mapping[str, Any], config: RunnableConfig) -> GenerateReplyUpdate:
        keep = self._keeper(state, config)
        reply = _Reply()
        try:
            for chunk in self.model.stream(self._prompt(state), config):
                reply.add(chunk)
        finally:
            keep(reply.message)
        return reply.update()

    async def _arun(self, state: Mapping[str, Any], config: RunnableConfig) -> GenerateReplyUpdate:
        keep = self._keeper(state, config)
        reply = _Reply()
        try:
            async for chunk in self.model.astream(self._prompt(state), config):
                reply.add(chunk)
        finally:
            await asyncio.shield(asyncio.to_thread(keep, reply.message))
        return reply.update()

    def _prompt(self, state: Mapping[str, Any]) -> list[BaseMessage]:
        return prompt_messages(state.get("messages") or [], state["memory"], system=self.system)

    def _keeper(self, state: Mapping[str, Any], config: RunnableConfig) -> Callable[[BaseMessage | None], None]:
        """Return what writes the page; identity is resolved now, while the run is known to be alive."""
        scope, thread_id = resolve_scope(
            state=state, context=get_runtime().context, configurable=config.get("configurable", {}),
            default_agent=self.default_agent,
        )
        another_user = (state.get("remembered") or {}).get("user_id", scope.user_id) != scope.user_id

        def keep(reply: BaseMessage | None) -> None:
            if reply is None:
                return
            messages = [*(state.get("messages") or []), reply]
            exchanges = exchanges_from_messages(messages, thread_id=thread_id, said_at=self.clock())
            # Blank on both sides is nothing to remember.
            if exchanges:
                # What another user said and got no answer to is not this user's.
                self.store.write(scope, newest_message(exchanges[-1]) if another_user else exchanges[-1])

        return keep


class _Reply:
    """The reply as it grows."""

    def __init__(self) -> None:
        self._chunk: BaseMessageChunk | BaseMessage | None = None

    def add(self, chunk: BaseMessageChunk | BaseMessage) -> None:
        """Take in the next piece."""
        self._chunk = chunk if self._chunk is None else self._chunk + chunk  # type: ignore[assignment]

    @property
    def message(self) -> BaseMessage | None:
        """The message so far, or ``None`` before the first piece."""
        if isinstance(self._chunk, BaseMessageChunk):
            return message_chunk_to_message(self._chunk)
        return self._chunk

    def update(self) -> GenerateReplyUpdate:
        """Return the state update; a model that sent nothing gave an empty reply."""
        message = self.message or AIMessage("")
        return GenerateReplyUpdate(messages=[message], reply_usage=usage_of(message))  # type: ignore[list-item]
