"""Embeddings for benchmarks: hashed words without a model, and any embedder with a cache on disk."""

import hashlib
import math
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings


class HashedWords(Embeddings):
    """Words hashed into a vector: no model and no meaning, for benchmarks that measure something else."""

    model = "hashed-words-64"

    def embed_query(self, text: str) -> list[float]:
        """Embed one text."""
        vector = [0.0] * 64
        for word, count in Counter(text.lower().split()).items():
            code = zlib.crc32(word.encode("utf-8", "replace"))
            vector[code % 64] += math.sqrt(count) * (1 if code & 0x10000 else -1)
        return vector if any(vector) else [1.0] * 64

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed several texts."""
        return [self.embed_query(text) for text in texts]


class CachedEmbeddings(Embeddings):
    """Another embedder, each text embedded once; :meth:`save` keeps the vectors in ``path`` (npz)."""

    def __init__(self, embeddings: Embeddings, path: Path | None, *, name: str) -> None:
        self._embeddings = embeddings
        self._path = path
        self.model = name
        self._known: dict[str, np.ndarray] = {}
        if path is not None and path.exists():
            with np.load(path) as kept:
                self._known = dict(zip(kept["names"].tolist(), kept["vectors"], strict=True))

    def save(self) -> None:
        """Write the cache."""
        if self._path is not None and self._known:
            names = list(self._known)
            np.savez(
                self._path, names=np.array(names), vectors=np.stack([self._known[name] for name in names])
            )

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        name = cache_name("query", text)
        if name not in self._known:
            self._known[name] = np.asarray(self._embeddings.embed_query(text), dtype=np.float32)
        return [float(value) for value in self._known[name]]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages; only those that are new ask the embedder."""
        missing = [text for text in dict.fromkeys(texts) if cache_name("passage", text) not in self._known]
        if missing:
            for text, vector in zip(missing, self._embeddings.embed_documents(missing), strict=True):
                self._known[cache_name("passage", text)] = np.asarray(vector, dtype=np.float32)
        return [[float(value) for value in self._known[cache_name("passage", text)]] for text in texts]


def cache_name(side: str, text: str) -> str:
    """Return the name of a text in the cache."""
    return hashlib.sha256(f"{side}\0{text}".encode("utf-8", "replace")).hexdigest()
