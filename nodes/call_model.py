"""Step ``call_model``: the whole context in, function calls out."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs
from typing_extensions import TypedDict

from langgraph_memoryos import ids
from langgraph_memoryos.analysts.protocol import ModelReply, ModelRequest
from langgraph_memoryos.analysts.structured import aask, ask
from langgraph_memoryos.function_tools import call_schema, signatures, tool_schemas
from langgraph_memoryos.model_replies import (
    native_calls,
    prompt_messages,
    readable_calls,
    spoken,
    thought_of,
    written_calls,
)
from langgraph_memoryos.prompts.virtual_context import system_text
from langgraph_memoryos.state import RecalledMemory, ScopeState, Usage, added_usage, usage_of
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.virtual_log import scope_of
from langgraph_memoryos.virtual_queue import parse_queue
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Pressure, QueueMessage, Turn

_LARGEST_CORRECTION = 2.0


class CallModelInput(TypedDict, total=False):
    """The context."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    turn: Turn
    context: str
    memory: RecalledMemory | None
    pressure: Pressure


class CallModelUpdate(TypedDict):
    """The queue with the assistant's message at its end, unless the model said nothing."""

    queue: list[dict[str, Any]]
    turn: Turn
    pressure: Pressure


@dataclass(frozen=True, kw_only=True)
class CallModel:
    """One inference (MemGPT, section 2.3): by native tool calls, or by one JSON schema over all functions.

    Text without a call is a thought; if a user waits and nothing was sent yet, it is what the user gets. A reply
    without either is no message.
    """

    model: BaseChatModel
    leases: LeaseStore
    settings: VirtualContextSettings
    native: bool
    clock: Callable[[], float]
    instructions: str = ""

    def step(self) -> Runnable[Any, Any]:
        """Return the step for ``invoke`` and ``ainvoke``."""
        return RunnableLambda(self._run, afunc=self._arun, name="call_model")

    def _run(self, state: Mapping[str, Any], config: RunnableConfig) -> CallModelUpdate:
        quiet = merge_configs(config, RunnableConfig(tags=["nostream"]))
        messages = self._prompt(state)
        self._take(state)
        try:
            if not self.native:
                return self._structured_update(state, *ask(self.model, self._request(messages), config))
            return self._native_update(state, self._bound().invoke(messages, quiet))
        except BaseException:
            self._give_up(state)
            raise

    async def _arun(self, state: Mapping[str, Any], config: RunnableConfig) -> CallModelUpdate:
        quiet = merge_configs(config, RunnableConfig(tags=["nostream"]))
        messages = self._prompt(state)
        await asyncio.to_thread(self._take, state)
        try:
            if not self.native:
                return self._structured_update(state, *await aask(self.model, self._request(messages), config))
            return self._native_update(state, await self._bound().ainvoke(messages, quiet))
        except BaseException:
            await asyncio.to_thread(self._give_up, state)
            raise

    def _take(self, state: Mapping[str, Any]) -> None:
        """Keep the thread busy, also where a run goes on that had freed it when the model failed."""
        scope, thread_id = scope_of(state)
        self.leases.take(scope, thread_id, state["turn"]["event_id"], seconds=self.settings.lease_seconds)

    def _give_up(self, state: Mapping[str, Any]) -> None:
        """Free the thread of an event that is not answered: delivered again, it is taken up again."""
        scope, thread_id = scope_of(state)
        self.leases.release(scope, thread_id, state["turn"]["event_id"], finished=False)

    def _bound(self) -> Runnable[Any, Any]:
        return self.model.bind_tools(list(tool_schemas(self.settings.functions)))

    def _request(self, messages: list[BaseMessage]) -> ModelRequest:
        return ModelRequest(messages=tuple(messages), reply_model=call_schema(self.settings.functions))

    def _prompt(self, state: Mapping[str, Any]) -> list[BaseMessage]:
        system = system_text(
            instructions=self.instructions,
            context=state["context"],
            memory=(state.get("memory") or {}).get("text", ""),
            functions="" if self.native else signatures(self.settings.functions),
        )
        return prompt_messages(
            parse_queue(state["queue"]), system=system, settings=self.settings, native=self.native
        )

    def _native_update(self, state: Mapping[str, Any], reply: Any) -> CallModelUpdate:
        prefix = self._name(state)
        message = reply if isinstance(reply, AIMessage) else AIMessage(thought_of(reply))
        text = thought_of(message)
        calls = native_calls(message, prefix=prefix)
        if not calls and (calls := written_calls(text, prefix=prefix)):
            text = ""
        return self._update(state, text, calls, usage_of(message))

    def _structured_update(self, state: Mapping[str, Any], reply: ModelReply, used: Usage) -> CallModelUpdate:
        prefix = self._name(state)
        if reply.parsed is not None:
            call = reply.parsed.model_dump(mode="json")["call"]
            calls: tuple[dict[str, Any], ...] = (
                {"id": f"{prefix}-0", "name": call["function"], "arguments": call["arguments"]},
            )
            return self._update(state, "", calls, used)
        calls = written_calls(reply.text, prefix=prefix)
        return self._update(state, "" if calls else reply.text.strip(), calls, used)

    def _update(
        self,
        state: Mapping[str, Any],
        text: str,
        calls: tuple[dict[str, Any], ...],
        usage: Usage,
    ) -> CallModelUpdate:
        turn: Turn = state["turn"]
        name = self._name(state)
        if text and not calls and turn["kind"] == "user_message" and not turn["sent"]:
            text, calls = "", (spoken(text, prefix=name),)
        message = QueueMessage(
            message_id=name, kind="assistant", text=text, said_at=self.clock(), calls=readable_calls(calls)
        )
        said = [message.to_json()] if text or calls else []
        return CallModelUpdate(
            queue=[*state["queue"], *said],
            turn=Turn(**turn | {"steps": turn["steps"] + 1, "usage": added_usage(turn["usage"], usage)}),
            pressure=_corrected(state["pressure"], usage["input_tokens"]),
        )

    @staticmethod
    def _name(state: Mapping[str, Any]) -> str:
        return ids.step_id(state["turn"]["event_id"], state["turn"]["steps"])


def _corrected(pressure: Pressure, counted: int) -> Pressure:
    """Learn from the model's own count: where it counted more, the estimate grows, to double at most."""
    estimated = pressure["tokens"] / pressure["correction"]
    correction = min(_LARGEST_CORRECTION, max(pressure["correction"], counted / max(1.0, estimated)))
    return Pressure(**pressure | {"correction": correction})
