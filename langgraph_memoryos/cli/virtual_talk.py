"""The modes of ``chat`` in which the model works its memory itself: its steps, one line each."""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from langgraph_memoryos.cli.output import console, one_line, printable
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Turn

_LINE = 200
_ENDS = {
    "step_cap": "stopped at the most steps there may be",
    "repeated_failure": "stopped: the same call failed again and again",
    "erased": "stopped: the user's memory was erased meanwhile",
}


class VirtualTalk:
    """One conversation with the graph ``virtual_context``, kept by the checkpointer of the memory's own Redis."""

    def __init__(
        self, memory: MemoryOS, *, settings: VirtualContextSettings, user: str, thread: str, steps: bool
    ) -> None:
        agent = VirtualContext(memory, settings=settings, checkpointer=memory.checkpointer())
        self._graph = agent.graph
        self._context = agent.scope(user).to_json() | {"thread_id": thread}
        checkpoint = agent.checkpoint_thread(**self._context)
        self._config = RunnableConfig(configurable={"thread_id": checkpoint})
        self._steps = steps

    def stream(self, message: str) -> None:
        """Send a message and print what the agent sends, and with ``steps`` all that it does, as it happens."""
        given = {"messages": [HumanMessage(message)]}
        stream: Any = self._graph.stream(given, self._config, context=self._context, stream_mode="updates")
        for updates in stream:
            for name, update in updates.items():
                self._show(name, update or {})

    def _show(self, name: str, update: Mapping[str, Any]) -> None:
        for line in step_lines(name, update) if self._steps else ():
            console.print(f"  {printable(line)}", style="dim", soft_wrap=True)
        if name == "finish_event":
            console.print(turn_line(update["virtual"]), style="dim", soft_wrap=True)
        for said in update.get("messages", ()):
            console.print(printable(said.text), soft_wrap=True)


def step_lines(name: str, update: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a step did, one line each: its name, and what there is to tell of it."""
    told = list(_TOLD[name](update)) if name in _TOLD else []
    yield from (f"{name}: {one_line(line, width=_LINE)}" for line in told)
    if not told:
        yield name


def _recalled(update: Mapping[str, Any]) -> Iterator[str]:
    memory = update["memory"]
    yield f"{len(memory['mid_term'])} pages, {len(memory['user_facts'])} facts"


def _pressure(update: Mapping[str, Any]) -> Iterator[str]:
    tokens = f"{update['pressure']['tokens']} tokens"
    yield f"memory pressure, the model is warned at {tokens}" if "queue" in update else tokens


def _thought_and_calls(update: Mapping[str, Any]) -> Iterator[str]:
    spoken = update["queue"][-1]
    if spoken["text"]:
        yield f"thought {spoken['text']}"
    for call in spoken["calls"]:
        yield f"calls {call['name']}({_arguments(call['arguments'])})"


def _arguments(given: Any) -> str:
    if not isinstance(given, dict):
        return str(given)
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


def _results(update: Mapping[str, Any]) -> Iterator[str]:
    newest_first = takewhile(lambda message: message["kind"] == "function_result", reversed(update["queue"]))
    for result in reversed(list(newest_first)):
        yield f"{result['name']} {'failed' if result['failed'] else 'OK'}: {result['text']}"


def _flushed(update: Mapping[str, Any]) -> Iterator[str]:
    queue = update["queue"]
    summary = queue[0]["text"] if queue and queue[0]["kind"] == "summary" else ""
    yield f"flush, {len(queue)} messages stay in view, summary: {summary}"


def _evicted(update: Mapping[str, Any]) -> Iterator[str]:
    yield f"{len(update['evicted'])} messages leave the queue"


def _judged(update: Mapping[str, Any]) -> Iterator[str]:
    if update["failure"]:
        yield f"{update['failure']} failed, tried again later"


def _filed(update: Mapping[str, Any]) -> Iterator[str]:
    report = update["remembered"]
    yield f"{report['moved_pages']} pages joined {len(report['touched_segments'])} segments"


_TOLD = {
    "recall_memory": _recalled,
    "check_pressure": _pressure,
    "call_model": _thought_and_calls,
    "execute_functions": _results,
    "select_evicted": _evicted,
    "analyse_pages": _judged,
    "assign_segments": _filed,
    "replace_evicted": _flushed,
}


def turn_line(turn: Turn) -> str:
    """Return what an event cost and how it ended, in one line."""
    counts = {"step": turn["steps"], "flush": turn["flushes"], "model call": turn["usage"]["model_calls"]}
    told = [f"{count} {_plural(name, count)}" for name, count in counts.items() if count]
    end = _ENDS.get(turn["reason"], "" if turn["sent"] else "nothing was sent")
    return ", ".join((*told, *([end] if end else ())))


def _plural(name: str, count: int) -> str:
    return name if count == 1 else f"{name}{'es' if name.endswith('sh') else 's'}"
