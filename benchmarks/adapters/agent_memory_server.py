"""Redis's agent-memory-server: its own API application, called in process, over a Redis with search.

Pages are created as long-term memories, as they are: topics, entities, discrete memories and the merging of near
duplicates all ask a chat model, and are off. Variants are the server's search modes: ``default`` (semantic),
``keyword``, and ``hybrid``.
"""

import asyncio
import os
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from benchmarks.adapters.protocol import Adapter, CannotRunError, Item, Page, QuestionFailedError, page_text, serve

PAGES_A_REQUEST = 50


class AgentMemoryServer(Adapter):
    """``POST /v1/long-term-memory/`` writes, ``POST /v1/long-term-memory/search`` reads."""

    def __init__(self, order: dict[str, Any]) -> None:
        os.environ |= {
            "REDIS_URL": order["redis_url"], "OPENAI_API_BASE": order["base_url"], "OPENAI_API_KEY": "none",
            "EMBEDDING_MODEL": "openai/our-embedder", "REDISVL_VECTOR_DIMENSIONS": str(order["dimensions"]),
            "USE_DOCKET": "false", "ENABLE_TOPIC_EXTRACTION": "false", "ENABLE_NER": "false",
            "ENABLE_DISCRETE_MEMORY_EXTRACTION": "false", "LOG_LEVEL": "WARNING", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        import httpx
        from agent_memory_server.main import app

        self.version = version("agent-memory-server")
        self._mode = "semantic" if order["variant"] == "default" else order["variant"]
        self.settings = f"one memory a page, deduplicate=False, every extraction off, {self._mode} search, HNSW"
        self._top = order["top"]
        self._loop = asyncio.new_event_loop()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app, raise_app_exceptions=False), base_url="http://server", timeout=120.0)

    def add(self, user: str, pages: list[Page]) -> int:
        """Create the memories and wait for the server's background tasks."""
        memories = [{
            "id": f"{user}|{page['id']}", "text": page_text(page), "user_id": user,
            "event_date": datetime.fromtimestamp(page["said_at"], UTC).isoformat(),
            "created_at": datetime.fromtimestamp(page["said_at"], UTC).isoformat(),
        } for page in pages]
        for start in range(0, len(memories), PAGES_A_REQUEST):
            self._loop.run_until_complete(self._created(memories[start : start + PAGES_A_REQUEST]))
        return 0

    async def _created(self, memories: list[dict[str, Any]]) -> None:
        answer = await self._client.post("/v1/long-term-memory/", json={"memories": memories, "deduplicate": False})
        if answer.is_error:
            raise CannotRunError(_told(answer))
        while running := [task for task in asyncio.all_tasks() if _is_of_the_server(task)]:
            await asyncio.wait(running)

    def search(self, user: str, text: str) -> list[Item]:
        """Search among the user's memories."""
        order = {"text": text, "user_id": {"eq": user}, "limit": self._top, "search_mode": self._mode}
        answer = self._loop.run_until_complete(self._client.post("/v1/long-term-memory/search", json=order))
        if answer.is_error:
            raise QuestionFailedError(_told(answer))
        return [{"pages": [item["id"].rpartition("|")[2]], "text": ""} for item in answer.json()["memories"]]


def _told(answer: Any) -> str:
    return f"It answered {answer.status_code}: {answer.text[:200]}"


def _is_of_the_server(task: "asyncio.Task[Any]") -> bool:
    """Whether the server itself started this task; its libraries have others, which never end."""
    return "HybridBackgroundTasks" in getattr(task.get_coro(), "__qualname__", "")


if __name__ == "__main__":
    serve(AgentMemoryServer)
