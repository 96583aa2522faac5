"""The MemoryOS authors' code (``memoryos-pro``): ``Memoryos.add_memory`` and its retriever, default capacities.

It asks a chat model for every page that leaves short-term memory and for every question, so it cannot run without one.
Its embedder, all-MiniLM-L6-v2 by sentence-transformers, is a download; in its place stands the scoreboard's, behind the
same class. Its raw pages are cut to seven by default, so deeper rows cannot rise. The newest pages are in short-term
memory, which is always part of its prompt; here they come after what was retrieved, newest first.
"""

import sys
import traceback
from importlib.metadata import version
from types import ModuleType
from typing import Any

from benchmarks.adapters.protocol import Adapter, CannotRunError, Item, Page, serve


class MemoryosReference(Adapter):
    """One ``Memoryos`` object a user; a page is told by its two texts, which the code keeps word for word."""

    def __init__(self, order: dict[str, Any]) -> None:
        if not order["chat"]:
            raise CannotRunError("It asks a chat model about every page and every question, and none was given.")
        sys.modules["sentence_transformers"] = _embedder_module(order["base_url"])
        from memoryos import Memoryos

        self.version = version("memoryos-pro")
        self.settings = "default capacities, chat and embeddings by the scoreboard's models"
        self._opened = lambda user: Memoryos(
            user_id=user, openai_api_key="none", openai_base_url=order["base_url"], data_storage_path=order["directory"],
        )
        self._memories: dict[str, Any] = {}
        self._page_of: dict[tuple[str, str, str], str] = {}

    def add(self, user: str, pages: list[Page]) -> int:
        """Add the pages one after another."""
        memory = self._memories[user] = self._opened(user)
        lost = 0
        for page in pages:
            query, reply = (_said(page, role) for role in ("user", "assistant"))
            self._page_of[user, query, reply] = page["id"]
            try:
                memory.add_memory(user_input=query, agent_response=reply, timestamp=f"{page['date']}:00")
            except Exception:  # noqa: BLE001 - a reply in a shape it did not expect; the page it was moving is lost
                traceback.print_exc()
                lost += 1
        return lost

    def search(self, user: str, text: str) -> list[Item]:
        """Retrieve as ``get_response`` does, without its reply."""
        memory = self._memories[user]
        found = memory.retriever.retrieve_context(user_query=text, user_id=user)["retrieved_pages"]
        recent = memory.short_term_memory.get_all()[::-1]
        names = [self._page_of[user, page["user_input"], page["agent_response"]] for page in [*found, *recent]]
        return [{"pages": [name], "text": ""} for name in dict.fromkeys(names)]


def _said(page: Page, role: str) -> str:
    return "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in page["turns"] if turn["role"] == role)


def _embedder_module(base_url: str) -> ModuleType:
    """Return a module that stands for sentence-transformers and asks the scoreboard's endpoint."""
    import numpy as np
    from openai import OpenAI

    client = OpenAI(base_url=base_url, api_key="none")

    class SentenceTransformer:
        def __init__(self, name: str) -> None:
            pass

        def encode(self, texts: list[str], **_options: Any) -> Any:
            found = client.embeddings.create(model="our-embedder", input=texts, encoding_format="float").data
            return np.array([item.embedding for item in found], dtype=np.float32)

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer
    return module


if __name__ == "__main__":
    serve(MemoryosReference)
