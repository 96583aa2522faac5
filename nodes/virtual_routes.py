"""Routes of the virtual context: questions that decide which step comes next."""

from collections.abc import Mapping
from typing import Any, Literal


def has_event(state: Mapping[str, Any]) -> bool:
    """Whether anything happened that the model should see."""
    return bool(state["turn"]["again"])


def what_next(state: Mapping[str, Any]) -> Literal["full", "run", "rest"]:
    """Rest when nothing asks for another step; else flush a full queue first, then run."""
    if not state["turn"]["again"]:
        return "rest"
    return "full" if state["pressure"]["flush"] else "run"


def has_filed_pages(state: Mapping[str, Any]) -> bool:
    """Whether evicted messages are pages that can join segments."""
    return bool(state.get("overflow"))


def has_flushed(state: Mapping[str, Any]) -> bool:
    """Whether the event evicted anything, so that segments may have grown."""
    return bool(state["turn"]["flushes"])
