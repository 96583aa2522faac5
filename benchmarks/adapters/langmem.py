"""LangMem: its two memory tools over LangGraph's in-memory store, as its documentation shows them.

Which memories to keep is decided by the agent's model, which calls the first tool; without a model every page is kept
as it is, through the same tool. The store embeds what its default ``fields`` name: the whole value, as JSON.
"""

from importlib.metadata import version
from typing import Any

from benchmarks.adapters.protocol import Adapter, Item, Page, page_text, serve


class LangMem(Adapter):
    """``create_manage_memory_tool`` writes, ``create_search_memory_tool`` reads."""

    def __init__(self, order: dict[str, Any]) -> None:
        from langchain_openai import OpenAIEmbeddings
        from langgraph.store.memory import InMemoryStore
        from langmem import create_manage_memory_tool, create_search_memory_tool

        self.version = version("langmem")
        self.settings = "InMemoryStore, default index fields, one memory a page, written and searched by LangMem's tools"
        self._top = order["top"]
        self._page_of: dict[str, str] = {}
        embeddings = OpenAIEmbeddings(
            model="our-embedder", base_url=order["base_url"], api_key="none", check_embedding_ctx_length=False,
        )
        store = InMemoryStore(index={"dims": order["dimensions"], "embed": embeddings})
        namespace = ("memories", "{langgraph_user_id}")
        self._manage = create_manage_memory_tool(namespace, store=store)
        self._search = create_search_memory_tool(namespace, store=store, response_format="content_and_artifact")

    def add(self, user: str, pages: list[Page]) -> int:
        """Create one memory a page."""
        for page in pages:
            said = self._manage.invoke({"content": page_text(page), "action": "create"}, config=_config(user))
            self._page_of[said.rpartition(" ")[2]] = page["id"]
        return 0

    def search(self, user: str, text: str) -> list[Item]:
        """Search as an agent would."""
        call = {"type": "tool_call", "id": "1", "name": self._search.name, "args": {"query": text, "limit": self._top}}
        found = self._search.invoke(call, config=_config(user)).artifact
        return [{"pages": [self._page_of[item.key]], "text": ""} for item in found]


def _config(user: str) -> dict[str, Any]:
    return {"configurable": {"langgraph_user_id": user}}


if __name__ == "__main__":
    serve(LangMem)
