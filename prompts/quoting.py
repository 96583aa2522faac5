"""How text that came from people enters a prompt: as JSON strings on one line each, so it can forge nothing.

A JSON string cannot end its line, so what a user wrote can never become a heading, another page or an
instruction of ours, whatever it contains.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from langgraph_memoryos.records import Page
from langgraph_memoryos.text import storable
from langgraph_memoryos.text_size import clip

# JSON leaves these as they are, and some readers take them for line ends.
_LINE_ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")


def quote(text: str, max_tokens: int | None = None) -> str:
    """Return ``text`` as one JSON string on one line, its middle left out beyond ``max_tokens``."""
    plain = storable(text if max_tokens is None else clip(text, max_tokens))
    return _LINE_ENDS.sub(lambda match: f"\\u{ord(match.group()):04x}", json.dumps(plain, ensure_ascii=False))


def quoted_line(fields: Mapping[str, Any], max_tokens: int | None = None) -> str:
    """Return ``fields`` as one JSON object on one line; every text is clipped to ``max_tokens``."""
    pairs = (
        f"{json.dumps(name)}: {quote(value, max_tokens) if isinstance(value, str) else json.dumps(value)}"
        for name, value in fields.items()
    )
    return f"{{{', '.join(pairs)}}}"


def spoken_at(seconds: float, time_zone: tzinfo = UTC) -> str:
    """Return a dialogue time as readers understand it, with the weekday: ``2023-05-08 13:56 Mon``."""
    try:
        return datetime.fromtimestamp(seconds, time_zone).strftime("%Y-%m-%d %H:%M %a")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def page_line(number: int, page: Page, *, max_tokens: int, time_zone: tzinfo = UTC) -> str:
    """Return one page as a JSON line that names it by ``number``; its id is never shown to a model."""
    speakers = {"user_name": page.user_name, "assistant_name": page.agent_name}
    return quoted_line(
        {
            "page": number,
            "time": spoken_at(page.said_at, time_zone),
            **{role: name for role, name in speakers.items() if name},
            "user": page.query,
            "assistant": page.reply,
        },
        max_tokens,
    )
