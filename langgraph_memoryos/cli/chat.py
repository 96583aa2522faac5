"""``chat``: talk to an agent that remembers."""

import getpass
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from langchain_core.messages import HumanMessage

from langgraph_memoryos.cli.failures import plain_sentence
from langgraph_memoryos.cli.memory_options import MemoryOptions, OptionalUser, with_memory_options
from langgraph_memoryos.cli.output import console, errors, printable
from langgraph_memoryos.cli.streaming import Graph, Step, Token, remembered_line, stream_turn
from langgraph_memoryos.cli.virtual_talk import VirtualTalk
from langgraph_memoryos.dialogue import readable
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.local_models import has_capable_model
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.checkpoints import checkpoint_thread
from langgraph_memoryos.virtual_settings import Mode, VirtualContextSettings


@with_memory_options
def chat(
    options: MemoryOptions,
    *,
    user: OptionalUser = None,
    thread: Annotated[str, typer.Option(help="The conversation; come back to it by its name.")] = "default",
    system: Annotated[str, typer.Option(help="The agent's instructions.", show_default=False)] = "",
    mode: Annotated[
        Mode,
        typer.Option(
            envvar="LANGGRAPH_MEMORYOS_MODE",
            help="Who works the memory: code alone (memoryos), the model by function calls (memgpt), or both.",
        ),
    ] = "memoryos",
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Judge pages by rules, not by a model.")
    ] = False,
    steps: Annotated[bool, typer.Option("--steps", help="Show each step of the graph as it ends.")] = False,
) -> None:
    """Talk to an agent that remembers you, in this thread and all others.

    The user is the login name unless --user says otherwise. Messages can be piped in, one a line.
    Ctrl-D ends.
    """
    user = user or _login_name()
    with options.open(without_model=no_model, system=system) as memory:
        talk: _Talk | VirtualTalk
        if mode == "memoryos":
            talk = _Talk(memory, options=options, user=user, thread=thread, steps=steps)
        else:
            settings = VirtualContextSettings.from_env(mode=mode)
            talk = VirtualTalk(memory, settings=settings, user=user, thread=thread, steps=steps)
        if not has_capable_model():
            errors.print(
                "The small bundled model answers: it shows that all runs, its words are of no use. "
                "Set OPENAI_API_KEY for another.", style="dim", soft_wrap=True,
            )
        if sys.stdin.isatty():
            console.print(
                f"Memory of {printable(user)}, thread {printable(thread)}; Ctrl-D ends.", style="dim"
            )
        try:
            for message in _messages():
                _take_turn(talk, message)
        except KeyboardInterrupt:
            console.print()


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        raise MemoryOSError("This system has no login name: say with --user whose memory to use.") from None


def _messages() -> Iterator[str]:
    """Yield what the user types or pipes in; blank lines are skipped, and the end of input ends it."""
    while True:
        try:
            line = input("> ") if sys.stdin.isatty() else sys.stdin.readline()
        except EOFError:
            console.print()
            return
        if not line and not sys.stdin.isatty():
            return
        if line.strip():
            yield readable(line.strip())


def _take_turn(talk: "_Talk | VirtualTalk", message: str) -> None:
    """Have a message answered; at a terminal, a failing model does not end the conversation."""
    try:
        talk.stream(message)
    except Exception as error:
        sentence = plain_sentence(error)
        if sentence is None or not sys.stdin.isatty():
            raise
        errors.print(f"\nError: {printable(sentence)}", soft_wrap=True)


class _Talk:
    """One conversation with the ``chat`` graph, kept by the checkpointer of the memory's own Redis."""

    def __init__(
        self, memory: MemoryOS, *, options: MemoryOptions, user: str, thread: str, steps: bool
    ) -> None:
        self._graph: Graph = memory.builder("chat").compile(checkpointer=memory.checkpointer(), name="chat")
        self._context = {"user_id": user, "agent_id": options.agent, "thread_id": thread}
        # Not the thread's name: two users who both call a thread "default" must not share its checkpoint.
        self._checkpoint = checkpoint_thread(namespace=options.namespace, **self._context)
        self._steps = steps

    def stream(self, message: str) -> None:
        """Send a message and print the reply as it comes."""
        remembered, replying = "", False
        state = {"messages": [HumanMessage(message)]}
        for event in stream_turn(self._graph, state, context=self._context, thread_id=self._checkpoint):
            if isinstance(event, Token):
                console.print(printable(event.text), end="", soft_wrap=True)
                replying = True
                continue
            if replying:
                console.print()
                replying = False
            if self._steps:
                console.print(f"  {event.graph or 'chat'}: {event.name}", style="dim")
            remembered = _report(event) or remembered
        console.print(remembered, style="dim", soft_wrap=True)


def _report(step: Step) -> str:
    """Return the line that tells what the turn stored, if this step was the last."""
    if step.graph or step.name != "remember":
        return ""
    return remembered_line(step.update["remembered"])
