# ruff: noqa: FBT001, RUF012
"""What tests of the virtual context share: a chat model that calls tools as a script says, and short ways to run it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings

SMALL: dict[str, Any] = {"context_window_tokens": 4000, "max_summary_tokens": 100}


def call(name: str, _heartbeat: bool | None = None, **arguments: Any) -> dict[str, Any]:
    """Return a tool call."""
    beat = {} if _heartbeat is None else {"request_heartbeat": _heartbeat}
    return {"name": name, "args": {**arguments, **beat}, "id": None, "type": "tool_call"}


def say(text: str) -> AIMessage:
    """Return a reply that sends a message."""
    return AIMessage("", tool_calls=[call("send_message", message=text)])


def acts(*calls: dict[str, Any], thought: str = "") -> AIMessage:
    """Return a reply with several calls."""
    return AIMessage(thought, tool_calls=list(calls))


Script = Callable[[list[BaseMessage]], Any]


class ToolModel(BaseChatModel):
    """Gives scripted replies in order, then ``otherwise``; summaries are asked without tools and answered apart."""

    script: list[Any] = []
    otherwise: Any = None
    summary: Any = "They talked."
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _summarised: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _at: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "tools"

    @property
    def asked(self) -> list[list[BaseMessage]]:
        """Prompts of the loop."""
        return self._asked

    @property
    def summarised(self) -> list[list[BaseMessage]]:
        """Prompts of the summariser."""
        return self._summarised

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=tools, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if "tools" not in kwargs:
            self._summarised.append(messages)
            reply = self.summary
        else:
            self._asked.append(messages)
            reply = self.script[self._at] if self._at < len(self.script) else self.otherwise
            self._at += 1
        reply = reply(messages) if callable(reply) else reply
        if isinstance(reply, Exception):
            raise reply
        message = AIMessage(reply) if isinstance(reply, str) else (reply or say("ok"))
        return ChatResult(generations=[ChatGeneration(message=message.model_copy())])


def agent(
    memory: MemoryOS,
    *script: Any,
    otherwise: Any = None,
    summary: Any = "They talked.",
    checkpointer: Any = None,
    count: Any = None,
    **settings: Any,
) -> tuple[VirtualContext, ToolModel]:
    """Return a virtual context over a scripted model."""
    model = ToolModel(script=list(script), otherwise=otherwise, summary=summary)
    chosen = VirtualContextSettings(**{**SMALL, **settings})
    return VirtualContext(memory, model=model, settings=chosen, checkpointer=checkpointer, count=count), model


def results(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return the envelopes of all function results in a prompt."""
    return [json.loads(str(message.content)) for message in messages if message.type == "tool"]


def system(messages: Sequence[BaseMessage]) -> str:
    """Return the system message."""
    assert isinstance(messages[0], SystemMessage)
    return str(messages[0].content)
