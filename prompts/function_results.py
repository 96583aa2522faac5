"""What a function returns to the model: envelopes, and pages of hits within a token budget."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol

from langgraph_memoryos.prompts.quoting import quoted_line, spoken_at
from langgraph_memoryos.text_size import clip

INTERRUPTED = (
    "Interrupted before there was a result: it may or may not have been carried out. Look whether it was before you "
    "call it again."
)

_LEAST_ITEM_TOKENS = 24


class _Results(Protocol):
    @property
    def items(self) -> tuple[Any, ...]: ...
    @property
    def total(self) -> int: ...
    @property
    def page(self) -> int: ...
    @property
    def last_page(self) -> int: ...


def stamp(moment: float, zone: tzinfo = UTC) -> str:
    """Return a time with its zone, such as ``2026-03-01 18:04:10 CET+0100``."""
    try:
        return datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d %H:%M:%S %Z%z")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def envelope(message: str, *, failed: bool, moment: float, zone: tzinfo, function: str = "") -> str:
    """Return what a call gave, as the model reads it: status, message, time with zone.

    Args:
        message: What the function returned.
        failed: Whether it failed.
        moment: When, in seconds since the epoch.
        zone: The user's time zone.
        function: Its name, for models that cannot be given tool messages.
    """
    kind = {"type": f"result of {function}"} if function else {}
    status = "Failed" if failed else "OK"
    told = {**kind, "status": status, "message": message, "time": stamp(moment, zone)}
    return json.dumps(told, ensure_ascii=False)


def header(found: _Results) -> str:
    """Return the line above the hits: how many are shown, how many there are, which page of which."""
    if not found.total:
        return "No results."
    return (
        f"Showing {len(found.items)} of {found.total} results "
        f"(page {found.page}, last page {found.last_page}):"
    )


def conversation_page(found: _Results, *, zone: tzinfo, max_tokens: int) -> str:
    """Return exchanges, one JSON line each."""
    share = max(_LEAST_ITEM_TOKENS, max_tokens // max(1, len(found.items)) // 2)
    return _listed(
        found,
        [
            quoted_line(
                {
                    "time": spoken_at(page.said_at, zone),
                    **({page.user_name or "user": page.query} if page.query else {}),
                    **({page.agent_name or "assistant": page.reply} if page.reply else {}),
                },
                share,
            )
            for page in found.items
        ],
    )


def archival_page(found: _Results, *, zone: tzinfo, max_tokens: int) -> str:
    """Return items of the archive, one JSON line each."""
    share = max(_LEAST_ITEM_TOKENS, max_tokens // max(1, len(found.items)))
    return _listed(
        found,
        [
            quoted_line(
                {
                    "item": item.number,
                    "time": spoken_at(item.added_at, zone),
                    "text": clip(item.text, share),
                    **({"source": item.source} if item.source else {}),
                }
            )
            for item in found.items
        ],
    )


def _listed(found: _Results, lines: Sequence[str]) -> str:
    return "\n".join((header(found), *lines))
