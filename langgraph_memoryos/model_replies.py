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
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import QueueMessage

_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_CUT_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)


def native_calls(reply: AIMessage, *, prefix: str) -> tuple[dict[str, Any], ...]:
    """Return the tool calls of a reply, those whose arguments are no JSON object too; each gets an id."""
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
    return tuple(_unique_ids(calls))


def _unique_ids(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: set[str] = set()
    for at, call in enumerate(calls):
        if call["id"] in seen:
            call["id"] = f"{call['id']}-{at}"
        seen.add(call["id"])
    return calls


def readable_calls(calls: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return calls without lone surrogates, which no server takes back and no file can hold."""
    return tuple(_readable(call) for call in calls)


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {readable(name): _readable(item) for name, item in value.items()}
    return [_readable(item) for item in value] if isinstance(value, list) else value


def written_call(text: str, *, prefix: str) -> tuple[dict[str, Any], ...]:
    """Return the call that a text spells out as JSON, fenced, with prose around it or cut off.

    None if there is none.
    """
    found = _OBJECT.search(text)
    try:
        value = json.loads(found.group()) if found else None
    except (ValueError, RecursionError):
        value = None
    value = value.get("call", value) if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(value.get("function"), str):
        arguments = value.get("arguments")
        return (
            {
                "id": f"{prefix}-0",
                "name": value["function"],
                "arguments": arguments if arguments is not None else {},
            },
        )
    cut = _CUT_MESSAGE.search(text) if '"send_message"' in text else None
    if cut and cut.group(1).strip():
        return (spoken(_unescaped(cut.group(1)), prefix=prefix),)
    return ()


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
