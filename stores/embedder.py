"""Text in, unit vectors out: the one place where the stores meet an embedding model.

:class:`Embedder` wraps any LangChain ``Embeddings``. It makes every text safe to embed, checks and normalises
what comes back, embeds a query once however many searches of a turn ask for it, and knows how similar two
*unrelated* texts look to this model, so that one threshold means the same with every model.
"""

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langgraph_memoryos.errors import ModelOutputError

Vector = NDArray[np.float32]
DistanceMetric = Literal["COSINE", "L2", "IP"]

MAX_CHARACTERS = 2_000
"""Characters of a text that are embedded: in English about the 512 tokens that small encoders were trained
on, in any script at most some 8,000 tokens, which is the limit of the hosted embedding models."""

EMPTY_TEXT = "-"
"""What is embedded in place of a text with nothing but white space; hosted models refuse empty input."""

UNRELATED_TEXTS = (
    "The ferry to the island leaves every morning at half past six.",
    "Photosynthesis turns carbon dioxide and water into sugar.",
    "My grandmother kept bees behind the old barn.",
    "The central bank raised interest rates by a quarter point.",
    "Use a torque wrench to tighten the wheel nuts.",
    "Mozart wrote his first symphony at the age of eight.",
    "She failed her driving test because of parallel parking.",
    "Add two cloves of garlic and simmer the sauce slowly.",
    "The compiler rejects the program because a semicolon is missing.",
    "Penguins huddle together to survive the polar winter.",
    "Our flat has a leaking tap in the bathroom.",
    "The goalkeeper saved a penalty in the last minute.",
    "我昨天在图书馆借了三本历史书。",
    "地铁二号线今天因为检修停运。",
    "这种药应该饭后服用。",
    "他养了一只会说话的鹦鹉。",
    "El volcán entró en erupción durante la madrugada.",
    "Necesito renovar el pasaporte antes de agosto.",
    "Der Hund hat schon wieder meine Schuhe versteckt.",
    "La bibliothèque ferme plus tôt le mercredi.",
    "O preço do café subiu muito este ano.",
    "来週の会議は十時から始まります。",
    "Завтра обещают сильный снегопад на перевале.",
    "القطار المتجه إلى الشمال تأخر ساعة كاملة.",
)


@dataclass(frozen=True, kw_only=True)
class BackgroundSimilarity:
    """How similar unrelated texts look to one embedding model.

    Attributes:
        mean: Mean cosine of unrelated pairs; below 1.
        spread: Standard deviation of those cosines; not negative.
    """

    mean: float
    spread: float

    def __post_init__(self) -> None:
        """Refuse values that would make calibration divide by zero or give NaN."""
        if not -1.0 <= self.mean < 1.0:
            raise ValueError(f"The background mean must be a cosine below 1, not {self.mean}.")
        if not (math.isfinite(self.spread) and self.spread >= 0.0):
            raise ValueError(
                f"The background spread must be a finite number of at least 0, not {self.spread}."
            )

    def calibrate(self, cosine: float) -> float:
        """Return the cosine measured from the background; see :meth:`Embedder.calibrated_similarity`."""
        return max(-1.0, min(1.0, (cosine - self.mean) / (1.0 - self.mean)))


class Embedder:
    """Unit vectors from any LangChain ``Embeddings``; safe to share between threads.

    Nothing is called at construction: the dimension is learnt from the first vector, the background
    similarity is measured when it is first asked for. Errors of the wrapped model (network, quota) pass
    through unchanged, because retrying belongs to the graph.

    Args:
        embeddings: The model. ``embed_query`` serves searches, ``embed_documents`` everything stored.
        name: Name recorded beside the vectors, so that another model is noticed. Derived from the class and
            its ``model`` or ``model_name`` when not given.
        background: Background similarity recorded earlier for this model; measured when not given.
        max_characters: Longer texts are cut to this many characters.
        cached_queries: How many query vectors are remembered.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        name: str | None = None,
        background: BackgroundSimilarity | None = None,
        max_characters: int = MAX_CHARACTERS,
        cached_queries: int = 256,
    ) -> None:
        if not isinstance(embeddings, Embeddings):
            raise TypeError(f"Expected a langchain_core Embeddings object, not {type(embeddings).__name__}.")
        if name is not None and not name.strip():
            raise ValueError("The embedder's name must not be empty.")
        if max_characters < 1 or cached_queries < 1:
            raise ValueError("max_characters and cached_queries must be at least 1.")
        self.name = name or _derived_name(embeddings)
        self.max_characters = max_characters
        self._embeddings = embeddings
        self._cached_queries = cached_queries
        self._background = background
        self._dimensions: int | None = None
        self._calls = 0
        self._texts = 0
        self._start_in_this_process()

    def __repr__(self) -> str:
        """Show the name only: the wrapped object may hold an API key."""
        return f"Embedder(name={self.name!r})"

    @property
    def dimensions(self) -> int:
        """Length of every vector; asks the model for one vector if none has been seen yet."""
        if self._dimensions is None:
            self.embed_query("dimensions")
        assert self._dimensions is not None
        return self._dimensions

    @property
    def calls(self) -> int:
        """Calls made to the wrapped model so far (for benchmarks)."""
        return self._calls

    @property
    def texts(self) -> int:
        """Texts sent to the wrapped model so far (for benchmarks)."""
        return self._texts

    @property
    def background(self) -> BackgroundSimilarity:
        """Background similarity of this model; measured once, in one batch of 24 short sentences."""
        if self._background is None:
            self._guard_against_fork()
            with self._background_lock:
                if self._background is None:
                    self._background = self.measure_background()
        return self._background

    @background.setter
    def background(self, recorded: BackgroundSimilarity) -> None:
        """Take over a value measured earlier, so that thresholds do not move between processes."""
        self._background = recorded

    @property
    def background_mean(self) -> float:
        """Mean cosine of unrelated texts."""
        return self.background.mean

    @property
    def background_spread(self) -> float:
        """Standard deviation of the cosines of unrelated texts."""
        return self.background.spread

    def embed_query(self, text: str) -> Vector:
        """Embed a search text; the same text is sent to the model once, also when threads ask together.

        Returns:
            Read-only unit vector, shape ``(dimensions,)``.

        Raises:
            ModelOutputError: The model returned a vector of the wrong shape or with a non-finite number.
        """
        self._guard_against_fork()
        text = self._embeddable(text)
        future, is_ours = self._claim(text)
        if is_ours:
            self._fulfil(future, text)
        return future.result()

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Embed texts that will be stored, in one call to the model.

        Returns:
            Unit vectors in the order of ``texts``, shape ``(len(texts), dimensions)``.

        Raises:
            ModelOutputError: The model returned a matrix of the wrong shape or with a non-finite number.
        """
        if isinstance(texts, str):
            raise TypeError("embed_passages takes a sequence of texts, not one string.")
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        self._guard_against_fork()
        embeddable = [self._embeddable(text) for text in texts]
        self._count(len(embeddable))
        return self._unit_rows(self._embeddings.embed_documents(embeddable), rows=len(embeddable))

    def calibrated_similarity(self, cosine: float) -> float:
        """Return ``(cosine - background_mean) / (1 - background_mean)``, clipped to [-1, 1].

        Two unrelated texts score about 0.75 with multilingual-e5 and about 0.1 with MiniLM, so a fixed
        threshold on raw cosines (such as 0.6, MemoryOS section 3.2) puts every page into one segment with the
        former. Calibrated, unrelated texts score about 0 and identical ones 1 with every model. The paper's
        thresholds apply to this value.
        """
        return self.background.calibrate(cosine)

    def calibrated_similarities(self, cosines: Vector) -> Vector:
        """Return :meth:`calibrated_similarity` of each of ``cosines``."""
        apart: Vector = np.clip((cosines - self.background.mean) / (1.0 - self.background.mean), -1.0, 1.0)
        return apart

    def measure_background(self, texts: Sequence[str] = UNRELATED_TEXTS) -> BackgroundSimilarity:
        """Measure how similar unrelated texts look, over all pairs, without taking the result over.

        The bundled sentences suit most models. Where all memories are in one language for which the model
        sees little difference (Chinese with multilingual-e5), measure on unrelated texts in that language and
        give the result as ``background``.

        Args:
            texts: At least three texts that have nothing to do with each other.
        """
        if len(texts) < 3:  # noqa: PLR2004 - fewer have no spread
            raise ValueError("The background needs at least three unrelated texts.")
        vectors = self.embed_passages(texts)
        cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), k=1)]
        # A model that cannot tell any two texts apart would make the mean 1 and the calibration undefined.
        return BackgroundSimilarity(mean=min(float(cosines.mean()), 0.99), spread=float(cosines.std()))

    def _start_in_this_process(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._background_lock = threading.Lock()
        self._queries: OrderedDict[str, Future[Vector]] = OrderedDict()

    def _guard_against_fork(self) -> None:
        """Drop locks and unfinished calls inherited by a forked child: no thread is left to finish them."""
        if self._pid != os.getpid():
            self._start_in_this_process()

    def _embeddable(self, text: str) -> str:
        return _without_broken_characters(text.lstrip()[: self.max_characters]).strip() or EMPTY_TEXT

    def _claim(self, text: str) -> tuple["Future[Vector]", bool]:
        """Return the future of this query, and whether the caller is the one who must fulfil it."""
        with self._lock:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known, False
            future: Future[Vector] = Future()
            self._queries[text] = future
            if len(self._queries) > self._cached_queries:
                self._queries.popitem(last=False)
            return future, True

    def _fulfil(self, future: "Future[Vector]", text: str) -> None:
        """Call the model for the waiting threads; a failure is told to them and then forgotten."""
        try:
            self._count(1)
            vector = self._unit_rows([self._embeddings.embed_query(text)], rows=1)[0]
            vector.setflags(write=False)
        except BaseException as error:  # noqa: BLE001 - told to every waiting thread, raised again by result()
            with self._lock:
                if self._queries.get(text) is future:
                    del self._queries[text]
            future.set_exception(error)
        else:
            future.set_result(vector)

    def _count(self, texts: int) -> None:
        with self._lock:
            self._calls += 1
            self._texts += texts

    def _unit_rows(self, raw: object, *, rows: int) -> Vector:
        matrix = self._checked(raw, rows=rows)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        # A zero vector gives "-nan" distances in Redis. Signs that alternate are far from any real text.
        signs = np.where(np.arange(matrix.shape[1]) % 2, -1.0, 1.0)
        matrix = np.where(norms > 0.0, matrix, signs)
        norms = np.where(norms > 0.0, norms, math.sqrt(matrix.shape[1]))
        return np.ascontiguousarray(matrix / norms, dtype=np.float32)

    def _checked(self, raw: object, *, rows: int) -> NDArray[np.float64]:
        try:
            matrix = np.asarray(raw, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelOutputError(
                f"The embedder {self.name} returned something that is not a matrix of numbers."
            ) from None
        columns = self._dimensions or (matrix.shape[1] if matrix.ndim == 2 else 0)  # noqa: PLR2004
        if columns < 1 or matrix.shape != (rows, columns):
            expected = f"({rows}, {self._dimensions or 'dimensions'})"
            raise ModelOutputError(
                f"The embedder {self.name} returned shape {matrix.shape} instead of {expected}."
            )
        if not np.isfinite(matrix).all():
            raise ModelOutputError(f"The embedder {self.name} returned a vector with NaN or infinity in it.")
        self._dimensions = columns
        return matrix


def similarity_from_distance(distance: float, metric: DistanceMetric) -> float:
    """Turn a distance of the search module between *unit* vectors into a similarity in [0, 1].

    For unit vectors the three metrics hold the same information: ``COSINE`` and ``IP`` are ``1 - cosine`` and
    ``L2`` is the *squared* Euclidean distance ``2 - 2 * cosine``. So all give the cosine, with opposed texts
    (negative cosine) counted as 0. Rounding makes distances slightly negative; they count as 0.

    Raises:
        ValueError: The metric is unknown or the distance is not a finite number.
    """
    if not math.isfinite(distance):
        raise ValueError("A distance must be a finite number; a zero vector must have been stored.")
    if metric not in ("COSINE", "IP", "L2"):
        raise ValueError(f"Unknown distance metric {metric!r}: use COSINE, L2 or IP.")
    cosine = 1.0 - (distance / 2.0 if metric == "L2" else distance)
    return min(max(cosine, 0.0), 1.0)


def _derived_name(embeddings: Embeddings) -> str:
    candidates = (getattr(embeddings, attribute, None) for attribute in ("model", "model_name", "model_id"))
    model = next((found for found in candidates if isinstance(found, str) and found), None)
    kind = type(embeddings).__name__
    return f"{kind}:{model}" if model else kind


def _without_broken_characters(text: str) -> str:
    """Join surrogate pairs, replace lone ones by U+FFFD, and NUL (where C embedders stop) by a space."""
    repaired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return repaired.replace("\0", " ")
