"""How a step thinks: an analyst's generator, driven with ``invoke`` or ``ainvoke``, that fails without harm.

A thinking step writes nothing. When the model cannot be reached or twice gives what does not fit, the step reports a
``failure`` and the graph ends there: pages stay where they were, and the next turn tries again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langgraph_memoryos.analysts.protocol import ModelRequest, Thinking
from langgraph_memoryos.analysts.structured import athink, think
from langgraph_memoryos.state import Remembered, Usage, added_usage

State = Mapping[str, Any]
Update = dict[str, Any]
_CALLS = "memory_model_calls"


def thinking_step(
    name: str, begin: Callable[[State], Thinking[Update]], *, model: BaseChatModel | None,
) -> Runnable[Any, Any]:
    """Return a step named ``name`` that runs the generator ``begin(state)`` and returns its update.

    Args:
        name: The step's name in the graph.
        begin: Gives the generator; its result is the state update.
        model: Answers the generator's requests; ``None`` if it makes none.
    """

    def run(state: State, config: RunnableConfig) -> Update:
        with _telling_calls() as asked:
            update, usage = think(_counted(begin(state), asked), model, config)
        return update | _succeeded(state, usage)

    async def arun(state: State, config: RunnableConfig) -> Update:
        with _telling_calls() as asked:
            update, usage = await athink(_counted(begin(state), asked), model, config)
        return update | _succeeded(state, usage)

    def give_up(state: State) -> Update:
        error: BaseException = state["exception"]
        failure = f"{name}: {type(error).__name__}"
        calls = Usage(model_calls=getattr(error, _CALLS, 0), input_tokens=0, output_tokens=0)
        before: Remembered = state.get("remembered") or Remembered()
        return {"failure": failure, "remembered": Remembered(**before | {
            "failure": failure, "usage": added_usage(before.get("usage"), calls),
        })}

    step = RunnableLambda(run, afunc=arun, name=name)
    return step.with_fallbacks([RunnableLambda(give_up)], exception_key="exception")


@contextmanager
def _telling_calls() -> Iterator[list[ModelRequest]]:
    """Let an error say how many model calls were made before it; what they used is not known."""
    asked: list[ModelRequest] = []
    try:
        yield asked
    except Exception as error:
        setattr(error, _CALLS, len(asked))
        raise


def _counted(thinking: Thinking[Update], asked: list[ModelRequest]) -> Thinking[Update]:
    """Pass the requests of a generator on and note each."""
    try:
        request = next(thinking)
        while True:
            asked.append(request)
            request = thinking.send((yield request))
    except StopIteration as done:
        result: Update = done.value
        return result


def _succeeded(state: State, usage: Usage) -> Update:
    before: Remembered = state.get("remembered") or Remembered()
    return {"failure": "", "remembered": Remembered(**before | {"usage": added_usage(before.get("usage"), usage)})}
