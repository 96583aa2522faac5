"""How much of a thread's short-term queue goes into a prompt."""

from collections.abc import Sequence

from langgraph_memoryos.records import Page
from langgraph_memoryos.text_size import clip, count_tokens


def newest_that_fit(pages: Sequence[Page], max_tokens: int) -> tuple[Page, ...]:
    """Return the newest of ``pages`` (oldest first) whose texts have at most ``max_tokens`` tokens, oldest first.

    The newest comes in any case, clipped in the middle if it is too long by itself. What does not fit is left to the
    search.
    """
    kept: list[Page] = []
    left = max_tokens
    for page in reversed(pages):
        left -= count_tokens(page.query + page.reply) + 1
        if left < 0:
            break
        kept.append(page)
    return tuple(kept[::-1]) or tuple(_clipped(page, max_tokens - 2) for page in pages[-1:])


def _clipped(page: Page, max_tokens: int) -> Page:
    half = max(1, max_tokens // 2)
    return Page.from_json(page.to_json() | {"query": clip(page.query, half), "reply": clip(page.reply, half)})
