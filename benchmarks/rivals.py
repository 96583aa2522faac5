"""Plain ways to find pages, to be compared with: the newest, BM25, dense vectors, and both fused by rank."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from langgraph_memoryos.records import Exchange
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.pages import dialogue_text
from langgraph_memoryos.text import content_tokens, query_tokens

RRF_CONSTANT = 60

Vector = NDArray[np.float64]


class Bm25:
    """Okapi BM25 over stemmed words without stop words, in numpy (k1 1.2, b 0.75, as in Lucene)."""

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        counts = [Counter(content_tokens(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=float)
        norm = k1 * (1 - b + b * lengths / max(lengths.mean(), 1e-9))
        self._size = len(texts)
        self._weights: dict[str, tuple[list[int], list[float]]] = {}
        frequency = Counter(word for count in counts for word in count)
        self._idf = {
            word: float(np.log(1 + (len(texts) - known + 0.5) / (known + 0.5)))
            for word, known in frequency.items()
        }
        for page, count in enumerate(counts):
            for word, times in count.items():
                pages, weights = self._weights.setdefault(word, ([], []))
                pages.append(page)
                weights.append(self._idf[word] * times * (k1 + 1) / (times + norm[page]))

    def idf(self, word: str) -> float:
        """Return the inverse document frequency of a word; 0 if no text has it."""
        return self._idf.get(word, 0.0)

    def scores(self, question: str) -> Vector:
        """Return each text's score, shape ``(n,)``."""
        found = np.zeros(self._size)
        for word in query_tokens(question):
            pages, weights = self._weights.get(word, ([], []))
            found[pages] += weights
        return found


class Rivals:
    """All rivals over the pages of one conversation; each ranks every page, best first."""

    def __init__(self, exchanges: Sequence[Exchange], embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors = np.stack(embedder.embed_passages([dialogue_text(item) for item in exchanges]))
        self.bm25 = Bm25([f"{item.query}\n{item.reply}" for item in exchanges])
        self._size = len(exchanges)

    def rankings(self, question: str) -> dict[str, list[int]]:
        """Return the ranking of page numbers by name of the rival."""
        bm25 = ranked(self.bm25.scores(question))
        dense = ranked(self.cosines(question))
        places = [np.argsort(ranking) for ranking in (bm25, dense)]
        fused = np.sum([1 / (RRF_CONSTANT + 1 + place) for place in places], axis=0)
        return {
            "last_n": list(range(self._size))[::-1], "bm25": bm25, "dense": dense, "rrf": ranked(fused),
        }

    def cosines(self, question: str) -> Vector:
        """Return the similarity of each page with the question, shape ``(n,)``."""
        return np.asarray(self._vectors @ self._embedder.embed_query(question), dtype=float)


def ranked(scores: Vector) -> list[int]:
    """Return the numbers by falling score; of equals the newer comes first."""
    return sorted(range(len(scores)), key=lambda number: (-scores[number], -number))
