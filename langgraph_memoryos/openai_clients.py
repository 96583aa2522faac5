"""Clients of OpenAI-compatible servers; apart, since importing OpenAI's package takes as long as all the rest."""

from typing import Any

import openai
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from langgraph_memoryos.local_server import LocalServer


def chat_client(**options: Any) -> ChatOpenAI:
    """Return a chat model by ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``."""
    return ChatOpenAI(**options)


def local_chat_client(server: LocalServer, **options: Any) -> ChatOpenAI:
    """Return a chat model behind a server on this machine.

    Proxies of the environment are not asked. Every request has its own connection: a kept one would be shared
    by forked children, and tied to the event loop that made it.
    """
    connection = {
        "base_url": f"{server.address}/v1",
        "api_key": server.api_key,
        "default_headers": {"Connection": "close"},
        "http_client": openai.DefaultHttpxClient(trust_env=False),
        "http_async_client": openai.DefaultAsyncHttpxClient(trust_env=False),
    }
    return ChatOpenAI(**{**connection, **options})


def embeddings_client(model: str) -> OpenAIEmbeddings:
    """Return embeddings by ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``."""
    # The length check would count tokens with tiktoken, which downloads, and would send token ids, which
    # other servers do not understand. The store's embedder keeps texts below the limit.
    return OpenAIEmbeddings(model=model, check_embedding_ctx_length=False)
