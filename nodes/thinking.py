"""How a step thinks: an analyst's generator, driven with ``invoke`` or ``ainvoke``, that fails without harm.

A thinking step writes nothing. When the model cannot be reached or twice gives what does not fit, the step reports a
``failure`` and the graph ends there: pages stay where they were, and the next turn tries again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langgraph_memoryos.analysts.protocol import Thinking
from langgraph_memoryos.analysts.structured import athink, think
from langgraph_memoryos.state import Remembered, Usage, added_usage

State = Mapping[str, Any]
Update = dict[str, Any]


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
        update, usage = think(begin(state), model, config)
        return update | _succeeded(state, Usage(**usage))

    async def arun(state: State, config: RunnableConfig) -> Update:
        update, usage = await athink(begin(state), model, config)
        return update | _succeeded(state, Usage(**usage))

    def give_up(state: State) -> Update:
        error: BaseException = state["exception"]
        failure = f"{name}: {type(error).__name__}"
        return {"failure": failure, "remembered": Remembered(**(state.get("remembered") or {}) | {"failure": failure})}

    step = RunnableLambda(run, afunc=arun, name=name)
    return step.with_fallbacks([RunnableLambda(give_up)], exception_key="exception")


def _succeeded(state: State, usage: Usage) -> Update:
    before: Remembered = state.get("remembered") or Remembered()
    return {"failure": "", "remembered": Remembered(**before | {"usage": added_usage(before.get("usage"), usage)})}
