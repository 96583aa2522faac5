"""How a structured model call is made: the only place that knows how models differ.

Transport errors (time-out, rate limit, no connection) propagate: the graph retries them. A reply that does
not fit is no error here but a :class:`ModelReply` that says what was wrong, so that the analyst can ask once
more.
"""

import json
from typing import Any, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs

from langgraph_memoryos.analysts.protocol import ModelReply, ModelRequest, Thinking
from langgraph_memoryos.analysts.replies import reply_from_message, reply_from_raw, unusable_reply
from langgraph_memoryos.errors import ModelUnavailableError
from langgraph_memoryos.state import NO_USAGE, Usage, added_usage

T = TypeVar("T")

# LangGraph leaves models tagged so out of the reply stream.
_QUIET = RunnableConfig(tags=["nostream"])
_REFUSED_STATUS = frozenset({400, 404, 415, 422, 501})


def ask(
    model: BaseChatModel,
    request: ModelRequest,
    config: RunnableConfig | None = None,
) -> tuple[ModelReply, Usage]:
    """Make one structured call and return the reply and what it used.

    Raises:
        Exception: Whatever the model's transport raises.
    """
    quiet = merge_configs(config, _QUIET)
    structured = _structured(model, request)
    if structured is not None:
        try:
            return reply_from_raw(structured.invoke(list(request.messages), quiet), request)
        except Exception as error:
            if (unusable := unusable_reply(error, request)) is not None:
                return unusable
            if not _rejects_response_format(error):
                raise
    return reply_from_message(model.invoke(_with_schema(request), quiet), request)


async def aask(
    model: BaseChatModel,
    request: ModelRequest,
    config: RunnableConfig | None = None,
) -> tuple[ModelReply, Usage]:
    """Make one structured call without blocking; see :func:`ask`."""
    quiet = merge_configs(config, _QUIET)
    structured = _structured(model, request)
    if structured is not None:
        try:
            return reply_from_raw(await structured.ainvoke(list(request.messages), quiet), request)
        except Exception as error:
            if (unusable := unusable_reply(error, request)) is not None:
                return unusable
            if not _rejects_response_format(error):
                raise
    return reply_from_message(await model.ainvoke(_with_schema(request), quiet), request)


def think(
    thinking: Thinking[T],
    model: BaseChatModel | None,
    config: RunnableConfig | None = None,
) -> tuple[T, Usage]:
    """Drive an analyst's generator to its end and return its result and the usage of all its calls.

    Raises:
        ModelUnavailableError: The generator asks a model and there is none.
        ModelOutputError: Raised by the analyst.
    """
    used = NO_USAGE
    reply: ModelReply | None = None
    while True:
        request, result = _advance(thinking, reply)
        if request is None:
            return cast("T", result), used
        reply, usage = ask(_available(model), request, config)
        used = added_usage(used, usage)


async def athink(
    thinking: Thinking[T],
    model: BaseChatModel | None,
    config: RunnableConfig | None = None,
) -> tuple[T, Usage]:
    """Drive an analyst's generator without blocking; see :func:`think`."""
    used = NO_USAGE
    reply: ModelReply | None = None
    while True:
        request, result = _advance(thinking, reply)
        if request is None:
            return cast("T", result), used
        reply, usage = await aask(_available(model), request, config)
        used = added_usage(used, usage)


def _advance(thinking: Thinking[T], reply: ModelReply | None) -> tuple[ModelRequest | None, T | None]:
    try:
        return (next(thinking) if reply is None else thinking.send(reply)), None
    except StopIteration as done:
        return None, done.value


def _available(model: BaseChatModel | None) -> BaseChatModel:
    if model is None:
        raise ModelUnavailableError("This analyst needs a chat model and none is configured.")
    return model


def _structured(model: BaseChatModel, request: ModelRequest) -> Runnable[Any, Any] | None:
    """Return the model bound to the schema, or ``None`` if its class cannot do that."""
    try:
        return model.with_structured_output(request.reply_model, method="json_schema", include_raw=True)
    except (NotImplementedError, ValueError, TypeError):
        return None


def _rejects_response_format(error: Exception) -> bool:
    """Tell whether a server refuses structured output, as opposed to failing."""
    status = getattr(error, "status_code", None)
    message = str(error).lower()
    named = any(
        word in message for word in ("response_format", "json_schema", "structured output", "grammar")
    )
    return isinstance(error, NotImplementedError) or (status in _REFUSED_STATUS and named)


def _with_schema(request: ModelRequest) -> list[BaseMessage]:
    schema = json.dumps(request.reply_model.model_json_schema(), ensure_ascii=False)
    rule = SystemMessage(
        f"Answer with one JSON object only, without prose, that fits this JSON schema:\n{schema}"
    )
    return _after_system(list(request.messages), rule)


def _after_system(messages: list[BaseMessage], rule: SystemMessage) -> list[BaseMessage]:
    """Return the messages with the rule added to the system message (many chat templates allow only one)."""
    if messages and isinstance(messages[0], SystemMessage):
        return [SystemMessage(f"{messages[0].text}\n\n{rule.text}"), *messages[1:]]
    return [rule, *messages]
