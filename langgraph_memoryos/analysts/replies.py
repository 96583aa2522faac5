"""What came back from a model: messages, fenced text and clients' own errors, as a reply and what it used."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from langgraph_memoryos.analysts.protocol import ModelReply, ModelRequest
from langgraph_memoryos.state import Usage, usage_of

_MAX_OBJECTS_TRIED = 50
_MAX_REPLY_CHARACTERS = 200_000
_UNFINISHED = frozenset({"LengthFinishReasonError", "ContentFilterFinishReasonError"})


def unusable_reply(error: Exception, request: ModelRequest) -> tuple[ModelReply, Usage] | None:
    """Return the reply behind an error that a model's client raises for one it cannot use, else ``None``.

    OpenAI's client validates by itself: it raises for a reply that was cut off (and says what it used) and
    for one that is not JSON or does not fit (and does not say).
    """
    if isinstance(error, ValidationError):
        return _from_rejected(error, request), usage_of(None)
    if type(error).__name__ not in _UNFINISHED:
        return None
    completion = getattr(error, "completion", None)
    counts = getattr(completion, "usage", None)
    usage = Usage(
        model_calls=1,
        input_tokens=getattr(counts, "prompt_tokens", 0) or 0,
        output_tokens=getattr(counts, "completion_tokens", 0) or 0,
    )
    text = _text_of(completion)
    return ModelReply(parsed=None, text=text, error="The reply was cut off; answer more briefly."), usage


def _text_of(completion: Any) -> str:
    """Return how far a completion of OpenAI's client came."""
    choices = getattr(completion, "choices", None)
    return str(choices[0].message.content or "") if choices else ""


def _from_rejected(error: ValidationError, request: ModelRequest) -> ModelReply:
    """Return what fenced or prose-wrapped text holds after all, or the reply with what was wrong."""
    problems = error.errors(include_url=False, include_context=False)
    if problems and problems[0]["type"] == "json_invalid" and isinstance(problems[0]["input"], str):
        return _from_text(problems[0]["input"], request)
    return ModelReply(parsed=None, error=_sentences(error))


def reply_from_raw(answer: Any, request: ModelRequest) -> tuple[ModelReply, Usage]:
    """Return the reply of a model bound to a schema with ``include_raw``."""
    if not isinstance(answer, Mapping):
        return _checked(answer, "", request), usage_of(None)
    raw = answer.get("raw")
    if isinstance(answer.get("parsed"), request.reply_model):
        return ModelReply(parsed=answer["parsed"], text=_text(raw)), usage_of(raw)
    return reply_from_message(raw, request)


def reply_from_message(message: Any, request: ModelRequest) -> tuple[ModelReply, Usage]:
    """Return the reply that a plain message holds, fenced or wrapped in prose."""
    return _from_text(_text(message), request), usage_of(message)


def _from_text(text: str, request: ModelRequest) -> ModelReply:
    error = "The reply holds no JSON object."
    for candidate in _objects(text[:_MAX_REPLY_CHARACTERS]):
        reply = _checked(candidate, text, request)
        if reply.parsed is not None:
            return reply
        error = reply.error
    return ModelReply(parsed=None, text=text, error=error)


def _checked(value: Any, text: str, request: ModelRequest) -> ModelReply:
    try:
        return ModelReply(parsed=request.reply_model.model_validate(value), text=text)
    except ValidationError as error:
        return ModelReply(parsed=None, text=text, error=_sentences(error))


def _sentences(error: ValidationError) -> str:
    """Return what was wrong without the values, which may be what a user said."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'reply'}: {each['msg']}" for each in problems[:5])


def _objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects in fenced or prose-wrapped text, outermost first."""
    decoder = json.JSONDecoder()
    start = 0
    for _ in range(_MAX_OBJECTS_TRIED):
        start = text.find("{", start)
        if start < 0:
            return
        try:
            value, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start += 1
        else:
            yield value


def _text(message: Any) -> str:
    return str(message.text) if isinstance(message, BaseMessage) else ""
