"""``load`` and the MemGPT modes of ``chat``: a virtual context, its steps shown as they happen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from langgraph_memoryos.cli.memory_options import MemoryOptions, User, with_memory_options
from langgraph_memoryos.cli.output import console, one_line, printable
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import Mode, VirtualContextSettings


@with_memory_options
def load(
    options: MemoryOptions,
    path: Annotated[Path, typer.Argument(help="A text or Markdown file, or a folder of them.")],
    *,
    user: User,
) -> None:
    """Load documents into a user's archive, where archival_memory_search finds them.

    Loading again adds only what is new.
    """
    with options.open(without_model=True) as memory:
        agent = VirtualContext(memory)
        for report in agent.load_documents(path, user_id=user):
            told = report.problem or f"{report.chunks} chunks, {report.added} new"
            console.print(
                f"{report.done}/{report.of} {printable(report.source)}: {printable(told)}",
                soft_wrap=True,
                highlight=False,
            )


def talk(
    memory: MemoryOS, messages: Iterator[str], *, mode: Mode, user: str, thread: str, steps: bool = False
) -> None:
    """Run a conversation in mode ``memgpt`` or ``hybrid`` and print what the agent sends.

    Args:
        memory: An open memory; its checkpointer keeps the queue.
        messages: What the user says, one after another.
        mode: ``memgpt`` or ``hybrid``.
        user: Whose memory.
        thread: The conversation.
        steps: Also show thoughts, function calls and results, pressure warnings and evictions.
    """
    settings = VirtualContextSettings(mode=mode, calls=preferred_calls(memory))
    agent = VirtualContext(memory, settings=settings, checkpointer=memory.checkpointer())
    who = agent.scope(user).to_json() | {"thread_id": thread}
    config = RunnableConfig(configurable={"thread_id": agent.checkpoint_thread(**who)})
    for message in messages:
        given = {"messages": [HumanMessage(message)]}
        for update in agent.graph.stream(given, config, context=who, stream_mode="updates"):
            for name, values in update.items():
                for line in step_lines(name, values or {}) if steps else ():
                    console.print(f"  {printable(line)}", style="dim", soft_wrap=True, highlight=False)
                for said in (values or {}).get("messages", ()):
                    console.print(printable(str(said.content)), soft_wrap=True, highlight=False)


def preferred_calls(memory: MemoryOS) -> Any:
    """Return how functions are called: the bundled model emits no tool calls, so it fills in a schema."""
    name = str(getattr(memory.reply_model, "model_name", ""))
    return "structured" if "smollm" in name.lower() else "auto"


def step_lines(name: str, values: dict[str, Any]) -> Iterator[str]:
    """Yield what a step did, one line each: thought, calls, results, warning, eviction."""
    queue = values.get("queue") or [{}]
    if name == "call_model":
        if queue[-1].get("text"):
            yield f"thought: {one_line(queue[-1]['text'])}"
        for call in queue[-1].get("calls", ()):
            yield f"call: {call['name']}({one_line(str(call['arguments']))})"
    if name == "execute_functions":
        results = [message for message in queue if message["kind"] == "function_result"]
        for result in results[-len(_last_calls(queue)) :] if _last_calls(queue) else ():
            yield f"{'failed' if result['failed'] else 'result'}: {one_line(result['text'])}"
    if name == "check_pressure" and queue[-1].get("kind") == "memory_pressure":
        yield f"memory pressure: {values['pressure']['tokens']} tokens"
    if name == "replace_evicted":
        turn = values["turn"]
        yield f"flush: {turn['evicted']} messages left the queue, {len(queue)} stay"


def _last_calls(queue: list[dict[str, Any]]) -> list[Any]:
    spoken = [message for message in queue if message["kind"] == "assistant"]
    return list(spoken[-1].get("calls", ())) if spoken else []
