"""Step ``ask_memory``: what an event asks of memory, in hybrid mode."""

from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.virtual_queue import parse_queue


class AskMemoryInput(TypedDict):
    """The queue with the event at its end."""

    queue: list[dict[str, Any]]


class AskMemoryUpdate(TypedDict):
    """The query."""

    query: str


def ask_memory(state: AskMemoryInput) -> AskMemoryUpdate:
    """Return the texts of the newest messages from outside as the query."""
    asked: list[str] = []
    for message in reversed(parse_queue(state["queue"])):
        if message.kind not in ("user_message", "system_alert", "user_interaction", "timed"):
            break
        asked.append(message.text)
    return AskMemoryUpdate(query="\n".join(reversed(asked)))
