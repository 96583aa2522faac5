"""Conversations of any length with a realistic vocabulary, and an embedder without a model.

Words follow Zipf's law: function words in every text, a large common vocabulary, and for each topic words of
its own. A conversation stays on a topic for some turns; some topics come back all the time, most are rare.
"""

import random
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from typing import Generic, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings

from langgraph_memoryos.records import Exchange

_FREQUENT = (
    "the i to and a of it in you that was is my for on have with but at so we this be they had not just me "
    "are he there she or like about when if what all then up out from her as would been do can really will"
)
FUNCTION_WORDS = tuple(_FREQUENT.split())
COMMON_WORDS = 8_000
TOPICS = 300
TOPIC_WORDS = 60
SECONDS_BETWEEN_TURNS = 90.0
START = 1_600_000_000.0
_STAY_ON_TOPIC = 0.8
_SHARES = (45, 15, 40)
"""Per cent of function, common and topic words in a text."""

Item = TypeVar("Item")


class SmallTalk:
    """An endless conversation; the same seed gives the same one.

    Args:
        seed: Chooses the exchanges, not the vocabulary, which is shared by all conversations.
    """

    def __init__(self, *, seed: int) -> None:
        self._random = random.Random(seed)
        self._function = _Zipf(FUNCTION_WORDS)
        words = _words(random.Random(0))
        self._common = _Zipf([next(words) for _ in range(COMMON_WORDS)])
        self._topics = [_Zipf([next(words) for _ in range(TOPIC_WORDS)]) for _ in range(TOPICS)]
        self._popularity = _Zipf(range(TOPICS), exponent=0.7)

    def exchanges(self, *, thread: str, turns: int, first: int) -> list[Exchange]:
        """Return a session; ``first`` is its first turn's number, which makes ids and times."""
        topic = self._popularity.draw(self._random)
        found = []
        for number in range(first, first + turns):
            if self._random.random() > _STAY_ON_TOPIC:
                topic = self._popularity.draw(self._random)
            found.append(Exchange(
                query=self._text(topic, self._random.randint(6, 25)),
                reply=self._text(topic, self._random.randint(12, 50)),
                said_at=START + number * SECONDS_BETWEEN_TURNS, thread_id=thread,
                source_ids=(f"turn-{number}",),
            ))
        return found

    def _text(self, topic: int, length: int) -> str:
        kinds = (self._function, self._common, self._topics[topic])
        sources = self._random.choices(kinds, _SHARES, k=length)
        text = " ".join(source.draw(self._random) for source in sources)
        return f"{text[0].upper()}{text[1:]}."


class _Zipf(Generic[Item]):
    """Draws items; the n-th is 1 / n ** exponent as likely as the first."""

    def __init__(self, items: Sequence[Item], *, exponent: float = 1.0) -> None:
        self._items = items
        self._cumulative = list(accumulate(1 / rank**exponent for rank in range(1, len(items) + 1)))

    def draw(self, source: random.Random) -> Item:
        return source.choices(self._items, cum_weights=self._cumulative)[0]


def _words(source: random.Random) -> Iterator[str]:
    """Yield different words that can be spoken."""
    seen = set(FUNCTION_WORDS)
    for number in count():
        syllables = 2 + number % 3
        word = "".join(source.choice("bcdfghklmnprstvz") + source.choice("aeiou") for _ in range(syllables))
        word += source.choice(("", "n", "r", "s", "t", "l"))
        if word not in seen:
            seen.add(word)
            yield word


class WordEmbeddings(Embeddings):
    """A text's vector is the mean of its words' random vectors; function words count a tenth.

    Texts on one topic are similar, others are not. The same word has the same vector in every process.
    """

    def __init__(self, *, dimensions: int = 384) -> None:
        self.model = f"words-{dimensions}"
        self._dimensions = dimensions
        self._known: dict[str, np.ndarray] = {}

    def embed_query(self, text: str) -> list[float]:
        """Embed one text."""
        rows = [self._word(word) for word in text.lower().replace(".", " ").replace(":", " ").split()]
        vector: list[float] = np.sum(rows, axis=0).tolist() if rows else [1.0] * self._dimensions
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed several texts."""
        return [self.embed_query(text) for text in texts]

    def _word(self, word: str) -> np.ndarray:
        if word not in self._known:
            source = np.random.default_rng(zlib.crc32(word.encode()))
            weight = 0.1 if word in _UNIMPORTANT else 1.0
            self._known[word] = weight * source.standard_normal(self._dimensions, dtype=np.float32)
        return self._known[word]


_UNIMPORTANT = frozenset(FUNCTION_WORDS)
