"""An OpenAI-compatible endpoint on the loopback interface: the scoreboard's embedder, and a chat model if there is one.

Other libraries bring their own OpenAI client and need only its address. That interface does not tell questions from
pages, which e5 embeds differently; the scoreboard knows what it is doing at the moment and sets ``side``.
"""

import base64
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

import numpy as np

from langgraph_memoryos.local_models import choose_chat_model
from langgraph_memoryos.local_server import local_server
from langgraph_memoryos.stores.embedder import Embedder

CHAT_CONTEXT_TOKENS = 8192
CHAT_REPLY_TOKENS = 160
CHAT_FREQUENCY_PENALTY = 0.6
CHAT_SECONDS = 600.0


class LoopbackModels:
    """The endpoint, serving while it is entered.

    Attributes:
        side: What is being embedded now.
        chat_calls: Requests for a chat completion so far.
        chat_tokens: Tokens of their prompts and replies.
        embedding_calls: Requests for embeddings so far.
    """

    def __init__(self, embedder: Embedder, *, chat: bool = False) -> None:
        self.side: Literal["query", "passage"] = "passage"
        self.chat_calls = self.chat_tokens = self.embedding_calls = 0
        self._embedder = embedder
        self._lock = threading.Lock()
        self._chat = _local_chat() if chat else None
        models = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = models.answer(self.path, order)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def base_url(self) -> str:
        """The address that OpenAI clients take."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        """Start serving."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, order: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and body for one request."""
        if path.endswith("/embeddings"):
            return 200, self._embedded(order)
        if path.endswith("/chat/completions"):
            with self._lock:
                self.chat_calls += 1
            return self._completed(order)
        return 404, {"error": {"message": f"no such path: {path}"}}

    def _embedded(self, order: dict[str, Any]) -> dict[str, Any]:
        texts = [order["input"]] if isinstance(order["input"], str) else order["input"]
        with self._lock:
            self.embedding_calls += 1
            vectors = self._vectors(texts)
        as_text = order.get("encoding_format") == "base64"
        rows = [
            base64.b64encode(row.astype("<f4").tobytes()).decode() if as_text else [float(value) for value in row]
            for row in vectors
        ]
        return {
            "object": "list", "model": order.get("model", ""), "usage": {"prompt_tokens": 0, "total_tokens": 0},
            "data": [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)],
        }

    def _vectors(self, texts: Sequence[str]) -> Sequence[np.ndarray]:
        if self.side == "query":
            return [self._embedder.embed_query(text) for text in texts]
        return list(self._embedder.embed_passages(texts))

    def _completed(self, order: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self._chat is None:
            return 503, {"error": {"message": "there is no chat model"}}
        address, key = self._chat
        longest = min(order.get("max_tokens") or CHAT_REPLY_TOKENS, CHAT_REPLY_TOKENS)
        order = order | {"max_tokens": longest, "frequency_penalty": CHAT_FREQUENCY_PENALTY, "stream": False}
        request = urllib.request.Request(
            f"{address}/v1/chat/completions", data=json.dumps(order).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=CHAT_SECONDS) as reply:
                answer = json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError as error:
            return 502, {"error": {"message": str(error)}}
        with self._lock:
            self.chat_tokens += answer.get("usage", {}).get("total_tokens", 0)
        return 200, answer


def _local_chat() -> tuple[str, str]:
    """Return address and key of the local chat model, started if need be."""
    weights = choose_chat_model({}).weights
    assert weights is not None
    server = local_server(weights=weights, context_tokens=CHAT_CONTEXT_TOKENS)
    return server.address, server.api_key
