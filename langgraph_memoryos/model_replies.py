"""What a chat model answered, as function calls, whatever form it came in."""

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langgraph_memoryos.dialogue import message_text, readable
from langgraph_memoryos.prompts import virtual_context as prompt
from langgraph_memoryos.prompts.function_results import envelope
from langgraph_memoryos.virtual_queue import media_of
from langgraph_memoryos.virtual_settings import FUNCTION_NAMES, VirtualContextSettings
from langgraph_memoryos.virtual_state import QueueMessage

_DECODER = json.JSONDecoder(strict=False)
_LEAD_IN = re.compile(r"[^\n{}\[\]]{0,80}:\s*(?=```|<tool_call>|[{\[])")
_FRAME = re.compile(r"(?:[\s,;\[\]]|```\w*|</?tool_call>)*")
_DEEPEST = 20
_CUT_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)


def native_calls(reply: AIMessage, *, prefix: str) -> tuple[dict[str, Any], ...]:
    """Return the tool calls of a reply, those whose arguments are no JSON object too; each gets an id.

    They are in the order of the reply's content, else valid ones first: the two lists have no common order.
    """
    calls = [
        {"id": call.get("id") or f"{prefix}-{at}", "name": call["name"], "arguments": dict(call["args"])}
        for at, call in enumerate(reply.tool_calls)
    ]
    calls += [
        {
            "id": call.get("id") or f"{prefix}-bad-{at}",
            "name": call.get("name") or "",
            "arguments": call.get("args") or "",
        }
        for at, call in enumerate(reply.invalid_tool_calls)
    ]
    content = reply.content if isinstance(reply.content, list) else []
    parts = [*content, *reply.additional_kwargs.get("tool_calls", ())]
    order = [part.get("call_id") or part.get("id") for part in parts if isinstance(part, dict)]
    calls.sort(key=lambda call: order.index(call["id"]) if call["id"] in order else len(order))
    return tuple(_unique_ids(calls))


def _unique_ids(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: set[str] = set()
    for at, call in enumerate(calls):
        if call["id"] in seen:
            call["id"] = f"{call['id']}-{at}"
        seen.add(call["id"])
    return calls


def readable_calls(calls: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return calls without lone surrogates, which no server takes back and no file can hold.

    No function has nested arguments, so deeply nested ones, which nothing could write as JSON, become a text.
    """
    return tuple(_readable(call) for call in calls)


def _readable(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict | list) and depth == _DEEPEST:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {readable(name): _readable(item, depth + 1) for name, item in value.items()}
    return [_readable(item, depth + 1) for item in value] if isinstance(value, list) else value


def written_calls(text: str, *, prefix: str) -> tuple[dict[str, Any], ...]:
    """Return the calls of which a text consists, written as JSON: in a row, in a list, fenced or tagged, after "Sure:".

    A message that was cut off is said as far as it came. Any other text has no calls, even if it quotes some.
    """
    lead_in = _LEAD_IN.match(text)
    rest = _unframed(text[lead_in.end() :] if lead_in else text)
    calls: list[dict[str, Any]] = []
    while rest:
        try:
            value, end = _DECODER.raw_decode(rest)
            call = _written_call(value)
        except (ValueError, RecursionError):
            call, end = _cut_off(rest), len(rest)
        if call is None:
            return ()
        calls.append({"id": f"{prefix}-{len(calls)}"} | call)
        rest = _unframed(rest[end:])
    return tuple(calls)


def _unframed(text: str) -> str:
    """Return a text without what stands around written calls at its beginning."""
    return text[_FRAME.match(text).end() :]  # type: ignore[union-attr]  # it matches nothing at least


def _written_call(value: Any) -> dict[str, Any] | None:
    """Return the call of a known function that a JSON value is, in any of the forms that models write."""
    value = value.get("call", value) if isinstance(value, dict) else value
    value = value["function"] if isinstance(value, dict) and isinstance(value.get("function"), dict) else value
    if not isinstance(value, dict) or (name := value.get("function", value.get("name"))) not in FUNCTION_NAMES:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    return {"name": name, "arguments": {} if arguments is None else arguments}


def _cut_off(text: str) -> dict[str, Any] | None:
    """Return the call that says a message as far as it came."""
    found = _CUT_MESSAGE.search(text) if text.startswith("{") and '"send_message"' in text else None
    if not found or not found.group(1).strip():
        return None
    return {"name": "send_message", "arguments": {"message": _unescaped(found.group(1))}}


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def spoken(text: str, *, prefix: str) -> dict[str, Any]:
    """Return the call that says ``text`` to the user."""
    return {"id": f"{prefix}-0", "name": "send_message", "arguments": {"message": text}}


def prompt_messages(
    queue: Sequence[QueueMessage],
    *,
    system: str,
    settings: VirtualContextSettings,
    native: bool,
) -> list[BaseMessage]:
    """Return the whole prompt: the system message, then the queue."""
    messages: list[BaseMessage] = [SystemMessage(system)]
    messages.extend(_prompt_message(message, settings, native=native) for message in queue)
    return messages


def _prompt_message(message: QueueMessage, settings: VirtualContextSettings, *, native: bool) -> BaseMessage:
    moment, zone = message.said_at, settings.zone
    if message.kind == "assistant":
        if native:
            calls: Any = [
                {"id": call["id"], "name": call["name"] or "unknown", "args": _object(call["arguments"])}
                for call in message.calls
            ]
            return AIMessage(message.text, tool_calls=calls)
        return AIMessage("\n".join(part for part in (message.text, prompt.call_text(message.calls)) if part))
    if message.kind == "function_result":
        function = "" if native else message.name or "unknown"
        text = envelope(message.text, failed=message.failed, moment=moment, zone=zone, function=function)
        if not native:
            return HumanMessage(text)
        return ToolMessage(
            text,
            tool_call_id=message.call_id,
            name=message.name,
            status="error" if message.failed else "success",
        )
    if message.kind == "summary":
        return HumanMessage(prompt.summary_text(message.text, moment=moment, zone=zone))
    said = prompt.event_text(message.kind, message.text, moment=moment, zone=zone)
    media = media_of(message.blocks)
    return HumanMessage([{"type": "text", "text": said}, *media] if media else said)


def _object(arguments: Any) -> dict[str, Any]:
    return arguments if isinstance(arguments, dict) else {"unreadable": str(arguments)}


def thought_of(reply: BaseMessage) -> str:
    """Return what a reply says beside its calls."""
    return readable(message_text(reply)).strip()
