"""``demo``: two recorded conversations become memory before your eyes, and are asked about weeks later."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from langgraph_memoryos.cli.failures import plain_sentence
from langgraph_memoryos.cli.inspection import print_long_term, print_tiers
from langgraph_memoryos.cli.memory_options import MemoryOptions, with_memory_options
from langgraph_memoryos.cli.output import console, printable
from langgraph_memoryos.cli.questions import ask_weeks_later
from langgraph_memoryos.cli.recorded import RecordedClock
from langgraph_memoryos.cli.sessions import show_sessions
from langgraph_memoryos.cli.streaming import Token, remembered_line, stream_turn
from langgraph_memoryos.demo import chinese, english
from langgraph_memoryos.dialogue import Conversation
from langgraph_memoryos.errors import ModelUnavailableError, RedisUnavailableError
from langgraph_memoryos.graphs import build_chat_graph
from langgraph_memoryos.local_embeddings import bundled_embeddings
from langgraph_memoryos.local_models import choose_chat_model, default_embeddings
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.checkpoints import checkpoint_thread, erase_checkpoints
from langgraph_memoryos.stores.connection import URL_VARIABLE
from langgraph_memoryos.stores.embedded_program import find_server_program
from langgraph_memoryos.stores.throwaway import throwaway_memory

_SEGMENTS_SHOWN = 8
_WEEKS_LATER_SECONDS = 21 * 86_400.0
_THREAD = "weeks later"
_ANSWERED_QUESTION = 1
_REPLY_TOKENS = 60
_PERSONA_NEEDS_A_MODEL = (
    "Rules keep what is stated in plain words. Traits and the rest of the persona need a chat model: "
    "set OPENAI_API_KEY and `replay` a conversation."
)
_BUNDLED_MODEL_LEFT_OUT = (
    "Left out: the small bundled model (it is there so that everything runs) gives no usable answers. "
    "Set OPENAI_API_KEY for a capable one; `langgraph-memoryos chat` talks to either."
)


@with_memory_options
def demo(
    options: MemoryOptions,
    *,
    no_reply: Annotated[
        bool, typer.Option("--no-reply", help="Leave out the reply of the chat model.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name every step of every turn.")
    ] = False,
) -> None:
    """See the memory at work on two recorded conversations, without network or API key.

    Everything happens in a temporary memory of which nothing is left: an embedded Redis of its own or, with
    --redis-url, a namespace of its own there. --data-dir and --namespace are not used.
    """
    with _throwaway(options.redis_url) as (url, namespace):
        clock = RecordedClock()
        with MemoryOptions(
            redis_url=url,
            data_dir=None,
            namespace=namespace,
            agent=options.agent,
            preset=options.preset,
        ).open(without_model=True, embeddings=_embeddings(), clock=clock) as memory:
            for conversation in (english(), chinese()):
                _show(memory, conversation, clock, verbose=verbose)
            if not no_reply:
                _reply(memory, english(), agent=options.agent, namespace=namespace)


@contextmanager
def _throwaway(redis_url: str | None) -> Iterator[tuple[str, str]]:
    """Use the Redis that was asked for, else an embedded one; where none runs, that of the environment."""
    given = redis_url
    if given is None and os.environ.get(URL_VARIABLE):
        try:
            find_server_program()
        except RedisUnavailableError:
            given = os.environ[URL_VARIABLE]
    with throwaway_memory(given) as place:
        yield place


def _embeddings() -> Embeddings:
    """Return the bundled embedder, which needs no network whatever the environment says."""
    try:
        return bundled_embeddings()
    except ModelUnavailableError:
        return default_embeddings()


def _show(memory: MemoryOS, conversation: Conversation, clock: RecordedClock, *, verbose: bool) -> None:
    user = conversation.user_name
    sessions = len({exchange.thread_id for exchange in conversation.exchanges})
    told = f"{user} and {conversation.agent_name}: {len(conversation.exchanges)} turns in {sessions} sessions"
    console.rule(told, align="left")
    show_sessions(memory, conversation, clock, verbose=verbose)
    console.print()
    print_tiers(memory.inspect(user), segments=_SEGMENTS_SHOWN)
    clock.now += _WEEKS_LATER_SECONDS
    ask_weeks_later(memory, conversation, user=user, thread_id=_THREAD)
    console.rule(f"what is known of {user}", align="left")
    print_long_term(memory.inspect(user))
    console.print(_PERSONA_NEEDS_A_MODEL, style="dim", soft_wrap=True)
    console.print()


def _reply(memory: MemoryOS, conversation: Conversation, *, agent: str, namespace: str) -> None:
    """Have the chat model at hand answer one question through ``chat``, token by token."""
    question = conversation.questions[_ANSWERED_QUESTION].text
    console.rule("a reply from the chat graph, after all that", align="left")
    context = {"user_id": conversation.user_name, "agent_id": agent, "thread_id": _THREAD}
    try:
        choice = choose_chat_model()
        if choice.is_bundled:
            console.print(_BUNDLED_MODEL_LEFT_OUT, soft_wrap=True)
            return
        console.print(f"> {printable(question)}", soft_wrap=True)
        _stream_reply(memory, choice.build(max_tokens=_REPLY_TOKENS), question, context, namespace=namespace)
    except Exception as error:
        sentence = plain_sentence(error)
        if sentence is None:
            raise
        console.print(f"Left out. {sentence}", soft_wrap=True)


def _stream_reply(
    memory: MemoryOS,
    model: BaseChatModel,
    question: str,
    context: dict[str, str],
    *,
    namespace: str,
) -> None:
    graph = build_chat_graph(memory.parts, model=model).compile(
        checkpointer=memory.checkpointer(), name="chat"
    )
    thread_id, state = (
        checkpoint_thread(namespace=namespace, **context),
        {"messages": [HumanMessage(question)]},
    )
    try:
        for event in stream_turn(graph, state, context=context, thread_id=thread_id):
            if isinstance(event, Token):
                console.print(printable(event.text), end="", soft_wrap=True)
            elif event.name == "generate_reply":
                console.print()
            elif event.name == "remember":
                console.print(remembered_line(event.update["remembered"]), style="cyan", soft_wrap=True)
    finally:
        erase_checkpoints(memory.connection.client, namespace=namespace, user_id=context["user_id"])
