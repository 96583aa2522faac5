"""The plainest adapter: the newest pages first. It keeps the protocol tested and shows what an adapter looks like."""

import platform
from typing import Any

from benchmarks.adapters.protocol import Adapter, CannotRunError, Item, Page, QuestionFailedError, serve


class Newest(Adapter):
    """The newest pages first, whatever is asked."""

    settings = "newest first"

    def __init__(self, top: int) -> None:
        self.version = platform.python_version()
        self._top = top
        self._pages: dict[str, list[str]] = {}

    def add(self, user: str, pages: list[Page]) -> int:
        """Keep the ids."""
        self._pages[user] = [page["id"] for page in pages]
        return 0

    def search(self, user: str, text: str) -> list[Item]:
        """Return the newest; an empty question fails."""
        if not text:
            raise QuestionFailedError("There is no question.")
        return [{"pages": [name], "text": ""} for name in self._pages[user][::-1][: self._top]]


def opened(order: dict[str, Any]) -> Newest:
    """Open it; the variant ``refuses`` shows how a library says that it cannot run."""
    if order["variant"] == "refuses":
        raise CannotRunError("It does not want to.")
    return Newest(order["top"])


if __name__ == "__main__":
    serve(opened)
