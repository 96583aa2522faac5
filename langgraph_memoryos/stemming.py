"""Stemming by script, safe between threads and bounded in time."""

import re
import threading
import unicodedata
from functools import lru_cache

import snowballstemmer

_ALGORITHMS = (
    (re.compile("[a-z]"), "english"),
    (re.compile("[\u0430-\u045f]"), "russian"),
    (re.compile("[\u03ac-\u03ce]"), "greek"),
    (re.compile("[\u0621-\u064a]"), "arabic"),
    (re.compile("[\u0904-\u0939]"), "hindi"),
    (re.compile("[\u0b85-\u0bb9]"), "tamil"),
    (re.compile("[\u0561-\u0587]"), "armenian"),
)
_MAX_STEMMED_CHARACTERS = 40
_MAX_DISTINCT_WORDS = 10_000

# Snowball's stemmers keep the word in the object while they work, so each thread has its own.
_stemmers = threading.local()


@lru_cache(maxsize=65_536)
def fold(word: str) -> str:
    """Return a case-folded word without Latin accents and Russian ё, which people leave out."""
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFD", word)
    if not "a" <= apart[:1] <= "z":
        return word.replace("\u0451", "\u0435")
    return unicodedata.normalize("NFC", "".join(char for char in apart if not unicodedata.combining(char)))


@lru_cache(maxsize=65_536)
def stem_word(word: str) -> str:
    """Return the stem of a case-folded word; words with digits and very long ones stay as they are."""
    folded = fold(word)
    if len(folded) > _MAX_STEMMED_CHARACTERS or any(char.isdigit() or char == "_" for char in folded):
        return folded
    for first_letter, algorithm in _ALGORITHMS:
        if first_letter.match(folded):
            return _stemmer(algorithm).stemWord(folded) or folded
    return folded


class Stemmer:
    """Stems the words of one text; after 10,000 distinct ones it only folds, so that time stays bounded."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def __call__(self, word: str) -> str:
        """Return the stem of a case-folded word."""
        stem = self._seen.get(word)
        if stem is None:
            stem = stem_word(word) if len(self._seen) < _MAX_DISTINCT_WORDS else fold(word)
            self._seen[word] = stem
        return stem


def _stemmer(algorithm: str) -> snowballstemmer.stemmer:
    if not hasattr(_stemmers, algorithm):
        setattr(_stemmers, algorithm, snowballstemmer.stemmer(algorithm))
    return getattr(_stemmers, algorithm)
