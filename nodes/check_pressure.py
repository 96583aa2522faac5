"""Step ``check_pressure``: how full the window is, the warning, and whether the queue must be flushed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos import ids
from langgraph_memoryos.prompts.virtual_context import MEMORY_PRESSURE, system_text
from langgraph_memoryos.state import RecalledMemory, ScopeState
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_log import erased, log_entries, scope_of
from langgraph_memoryos.virtual_queue import CountTokens, parse_queue, queue_tokens, warning_waits
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Pressure, QueueMessage, Turn


class CheckPressureInput(TypedDict, total=False):
    """Everything that will be in the prompt."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    turn: Turn
    context: str
    memory: RecalledMemory | None
    pressure: Pressure


class CheckPressureUpdate(TypedDict, total=False):
    """How full it is; the queue where a warning joined it."""

    queue: list[dict[str, Any]]
    turn: Turn
    pressure: Pressure


@dataclass(frozen=True, kw_only=True)
class CheckPressure:
    """Count the input of the next call; warn once per period, which a flush ends (MemGPT, section 2.2).

    A warning that falls due after the last function forces one more step, so that the model can act on it; not
    beyond the step cap. One that waits for the model is the warning of a period that begins meanwhile.
    """

    messages: MessageStore
    settings: VirtualContextSettings
    clock: Callable[[], float]
    functions_text: str
    instructions: str = ""
    count: CountTokens = count_tokens

    def __call__(self, state: CheckPressureInput) -> CheckPressureUpdate:
        """Return the pressure, and the warning if one is due."""
        scope, thread_id = scope_of(state)
        turn, queue = state["turn"], state["queue"]
        before = state.get("pressure") or Pressure()
        pressure = self._measure(state, queue, before)
        if pressure["tokens"] < self.settings.warn_tokens or pressure["warned"] or turn["reason"]:
            return CheckPressureUpdate(pressure=pressure)
        if turn["steps"] >= self.settings.max_steps:
            return CheckPressureUpdate(pressure=pressure)
        if warning_waits(parse_queue(queue)):
            return CheckPressureUpdate(pressure=Pressure(**pressure | {"warned": True}))
        warning = self._warning(turn)
        if not self.messages.append(scope, thread_id, log_entries([warning], None)):
            return CheckPressureUpdate(turn=erased(turn), pressure=pressure)
        warned = [*queue, warning.to_json()]
        return CheckPressureUpdate(
            queue=warned,
            turn=Turn(**turn | {"again": True, "warnings": turn["warnings"] + 1}),
            pressure=self._measure(state, warned, Pressure(**before | {"warned": True})),
        )

    def _measure(self, state: Mapping[str, Any], queue: list[dict[str, Any]], before: Pressure) -> Pressure:
        correction = before.get("correction", 1.0)
        memory = (state.get("memory") or {}).get("text", "")
        system = system_text(instructions=self.instructions, context=state["context"], memory=memory)
        fixed = int((self.count(system) + self.count(self.functions_text)) * correction) + 1
        tokens = fixed + int(queue_tokens(parse_queue(queue), self.count) * correction) + 1
        return Pressure(
            tokens=tokens,
            fixed_tokens=fixed,
            warned=before.get("warned", False),
            correction=correction,
            flush=tokens >= self.settings.flush_tokens,
        )

    def _warning(self, turn: Turn) -> QueueMessage:
        name = ids.digest("pressure", turn["event_id"], str(turn["steps"]), str(turn["flushes"]))
        return QueueMessage(
            message_id=name, kind="memory_pressure", text=MEMORY_PRESSURE, said_at=self.clock()
        )
