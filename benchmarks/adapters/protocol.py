"""How the scoreboard talks to another memory library: one JSON object a line, in order, one answer to each.

The adapter is a script that runs in the library's own environment, so this module needs nothing but Python 3.10 and
imports nothing of ours. What goes in and out:

| in | out |
|---|---|
| ``{"op": "open"}`` and the fields below | ``{"version", "settings"}`` |
| ``{"op": "pages", "user", "pages": [page]}`` | ``{"seconds", "lost"}`` |
| ``{"op": "query", "user", "text"}`` | ``{"seconds", "failure", "items": [item]}``, best first |

``open`` tells the ``variant``, an empty ``directory``, how many pages to find (``top``), the ``dimensions`` of vectors,
``base_url``, whether there is a ``chat`` model, and for those that need one a ``redis_url``.

A page is ``{"id", "date", "said_at", "turns": [{"role", "speaker", "text"}]}``: ``date`` as ``2023-05-08 13:56``,
``said_at`` in seconds since the epoch, ``role`` ``user`` or ``assistant``; ``lost`` is how many of them the library
failed to store. An item is ``{"pages": [id], "text", "role"}``: ``text`` is empty when the library gives back whole
pages word for word, otherwise it is what it gives back, and ``pages`` what that was made of; ``role`` is there when it
is only what one side said. Any answer
may be ``{"reason"}`` instead: one sentence on why it cannot be done; the adapter is not asked again. A ``failure`` is
what the library said when it could not answer this one question, and else empty.

``base_url`` is an OpenAI-compatible endpoint on the loopback interface with the scoreboard's embedder and, if there is
one, the chat model. It knows by itself whether pages or a question are being embedded.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Page = dict[str, Any]
Item = dict[str, Any]


class CannotRunError(Exception):
    """The library cannot do what is asked here; the message is one sentence that says why."""


class QuestionFailedError(Exception):
    """The library failed on one question, which counts as nothing found; the message is what it said."""


class Adapter:
    """One library, opened; a subclass wraps its calls.

    Attributes:
        version: Of the library, as installed.
        settings: How it was run, in one sentence, for the report.
    """

    version = ""
    settings = ""

    def add(self, user: str, pages: list[Page]) -> int:
        """Store a user's pages, oldest first; return how many failed. The others are findable when it returns."""
        raise NotImplementedError

    def search(self, user: str, text: str) -> list[Item]:
        """Return what the library finds for a question, best first.

        Raises:
            QuestionFailedError: The library could not answer it.
        """
        raise NotImplementedError


def page_text(page: Page) -> str:
    """Return a page as text: each turn under its speaker's name."""
    return "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in page["turns"])


def serve(opened: Callable[[dict[str, Any]], Adapter]) -> None:
    """Answer the scoreboard until it closes standard input.

    Args:
        opened: Takes the first message and returns the adapter.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print; only answers may reach the scoreboard
    adapter: Adapter | None = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["op"] == "open":
                adapter = opened(order)
                answer: dict[str, Any] = {"version": adapter.version, "settings": adapter.settings}
            else:
                assert adapter is not None
                answer = _answered(adapter, order)
        except CannotRunError as error:
            answer = {"reason": str(error)}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    os._exit(0)  # libraries leave threads behind that wait for ever


def _answered(adapter: Adapter, order: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    if order["op"] == "pages":
        lost = adapter.add(order["user"], order["pages"])
        return {"seconds": time.perf_counter() - started, "lost": lost}
    failure, items = "", []
    try:
        items = adapter.search(order["user"], order["text"])
    except QuestionFailedError as error:
        failure = str(error)
    return {"seconds": time.perf_counter() - started, "failure": failure, "items": items}
