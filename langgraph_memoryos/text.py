"""Text analysis for any language: what is indexed, what is searched for, what counts as a keyword.

The index and the query go through the same functions, so nothing depends on a search engine's own idea of a
word. Every token consists of letters, digits, combining marks and underscores only: the query engine neither
splits nor needs to escape it. All functions accept any string (NUL, lone surrogates, megabytes) and take
linear time.

Words are stemmed by script, not by detected language: English for Latin letters, Russian for Cyrillic, and
so on. Measured on 20 inflected pairs per language, the English stemmer unites 11 Spanish, 14 French and 6
German pairs where the language's own unites 18, 16 and 14; but a query of two words is rarely enough to
detect a language, and when the guess is wrong for one side, the *same* word is found in only 4 of 20 Spanish
cases. One stemmer per script never loses the same word.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise

from langgraph_memoryos import scripts
from langgraph_memoryos.stemming import Stemmer, fold, stem_word
from langgraph_memoryos.stop_words import FUNCTION_CHARACTERS, PARTICLES, STOP_PHRASES, STOP_WORDS, WEB_WORDS

_MAX_TOKEN = 64
"""Longer tokens become a prefix plus a hash, so that they stay exact and small."""
_MAX_INDEX_CHARACTERS = 1_000_000
_MAX_QUERY_CHARACTERS = 200_000

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_MARK_PILE = re.compile(f"([{scripts.MARKS}]{{30}})[{scripts.MARKS}]+")
_INVISIBLE = re.compile("[\u00ad\u200c-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufe00-\ufe0f]+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc\u00b4\u02b9`", "'"))

_WORD = rf"[^\W{scripts.UNSPACED}]+(?:[{scripts.MARKS}]+[^\W{scripts.UNSPACED}]*)*"
_LINK = r"(?:[-.@/\\+&#%~']|(?<=\d)[:,](?=\d))"
_SIGN = r"(?:(?:\+\+|#)(?![+#]))?"
_CHUNK = re.compile(rf"(?P<run>[{scripts.UNSPACED}]+)|{_WORD}(?:{_LINK}{_WORD})*{_SIGN}")
_ASCII_CHUNK = re.compile(rf"(?P<run>\Z\A)|[a-z0-9_]+(?:{_LINK}[a-z0-9_]+)*{_SIGN}")
_SIGN_NAMES = {"++": "plusplus", "#": "sharp"}
_SPLIT = re.compile(r"[-.@/\\+&#%~:,_]+")

_CLITIC = re.compile(r"'(?:s|m|re|ve|ll|d)$")
_ELISION = re.compile(r"^(?:[ldjcnsmt]|qu|un|dell|all|nell|sull|dall|quest|lorsqu|puisqu|jusqu)'(?=\w{3})")

_STOPPED = frozenset(stem_word(word) for word in STOP_WORDS)
_STOP_PHRASE = re.compile(f"[{PARTICLES}]|{'|'.join(STOP_PHRASES)}")
_HIRAGANA = re.compile("[\u3041-\u309f]+")


def storable(text: str) -> str:
    """Return ``text`` with NUL and lone surrogates (which no store or model accepts) replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def normalise(text: str) -> str:
    """Return ``text`` storable, NFKC-normalised and case-folded, without invisible characters; never raises.

    More than 30 combining marks in a row are cut (the Unicode stream-safe limit): normalising them is
    quadratic.
    """
    if text.isascii():
        return _UNSTORABLE.sub("\ufffd", text).lower()
    plain = _MARK_PILE.sub(r"\1", _INVISIBLE.sub("", _UNSTORABLE.sub("\ufffd", text)))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold())


def squeeze(text: str) -> str:
    """Return only the letters, digits and marks, normalised: the form in which quotes are compared."""
    return "".join(match.group() for match in re.finditer(rf"[\w{scripts.MARKS}]+", normalise(text)))


def tokens(text: str) -> list[str]:
    """Return every token of ``text`` in order: stemmed words, parts and joined form of identifiers, bigrams.

    After 10,000 distinct words of one text further new words are kept unstemmed, and only the first 1,000,000
    characters are read, which bounds the time.
    """
    return _tokens(_indexed(text))


def index_text(text: str) -> str:
    """Return what is put into the search index: all tokens, and every Han character by itself.

    So a question for one character finds it. Function words stay in; the index is made without stop words
    and queries leave them out.
    """
    plain = _indexed(text)
    found = _tokens(plain)
    if not plain.isascii():
        found.extend(char for char in scripts.han_characters(plain) if char not in PARTICLES)
    return " ".join(found)


def content_tokens(text: str) -> list[str]:
    """Return the tokens of ``text`` in order without stop words: what a page is about, for windows and feedback."""
    return [token for token in _tokens(_indexed(text)) if token not in _STOPPED and len(token) > 1]


def query_tokens(text: str, limit: int = 64) -> list[str]:
    """Return the distinct tokens to search for, without stop and question words, at most ``limit``.

    A query of nothing but such words keeps them; over the limit the rarest-looking come first (identifiers,
    numbers, long words). Any input is legal; only the first 200,000 characters are read.
    """
    stem = Stemmer()
    found: list[str] = []
    plain = normalise(text[:_MAX_QUERY_CHARACTERS])
    for kind, unit in _units(plain):
        if kind == "run":
            found.extend(_content_bigrams(unit))
        elif kind == "joined":
            found.append(_bounded(unit))
        elif fold(unit) not in STOP_WORDS:
            found.append(_bounded(stem(unit)))
            found.extend(_syllable_pairs(unit))
    distinct = list(dict.fromkeys(found or _tokens(plain)))
    return distinct if len(distinct) <= limit else sorted(distinct, key=_commonness)[:limit]


def keywords(text: str, limit: int = 8) -> tuple[str, ...]:
    """Return the most frequent content words as they are read: case-folded, not stemmed, identifiers whole.

    Scripts without spaces give pieces of two to four characters between function words, without a
    dictionary. Only the first 200,000 characters are read.
    """
    counts: Counter[str] = Counter()
    for kind, unit in _units(normalise(text[:_MAX_QUERY_CHARACTERS]), whole=True):
        if kind == "run":
            counts.update(_readable_pieces(unit))
        elif kind == "joined" or _is_content(unit):
            counts[unit[:_MAX_TOKEN]] += 1
    return tuple(word for word, _ in counts.most_common(limit))


def _indexed(text: str) -> str:
    # Cut before and after: a ligature of one character can normalise to eighteen.
    return normalise(text[:_MAX_INDEX_CHARACTERS])[:_MAX_INDEX_CHARACTERS]


def _tokens(plain: str) -> list[str]:
    stem = Stemmer()
    found: list[str] = []
    for kind, unit in _units(plain):
        if kind == "run":
            found.extend(_bigrams(unit))
        elif kind == "joined":
            found.append(_bounded(unit))
        else:
            found.append(_bounded(stem(unit)))
            found.extend(_syllable_pairs(unit))
    return found


def _units(normalised: str, *, whole: bool = False) -> Iterator[tuple[str, str]]:
    """Yield ``("word" | "joined" | "run", text)``; with ``whole``, identifiers as written, not in parts."""
    plain = normalised if normalised.isascii() else normalised.translate(_APOSTROPHES)
    pattern = _ASCII_CHUNK if plain.isascii() else _CHUNK
    for match in pattern.finditer(plain):
        chunk = match.group()
        if match.group("run"):
            yield "run", chunk
        elif chunk.isalnum():
            yield "word", chunk
        else:
            yield from _linked(chunk, whole=whole)


def _linked(chunk: str, *, whole: bool) -> Iterator[tuple[str, str]]:
    sign = next((name for end, name in _SIGN_NAMES.items() if chunk.endswith(end)), "")
    if sign and whole:
        yield "joined", chunk
        return
    parts = [_bare(part) for part in _SPLIT.split(chunk) if part]
    identifier = len(parts) > 1 and any(char in "@-_" or char.isdigit() for char in chunk)
    if whole and identifier:
        yield "joined", chunk
        return
    for part in parts:
        yield "word", part
    if len(parts) > 1 and not whole:
        named = [part for part in parts if part not in WEB_WORDS]
        yield "joined", "_".join(named or parts)
    if sign and parts:
        yield "joined", f"{parts[-1]}_{sign}"


def _bare(word: str) -> str:
    """Return a word without its apostrophes: dog's → dog, l'homme → homme, don't → dont."""
    if "'" not in word:
        return word
    return _ELISION.sub("", _CLITIC.sub("", word)).replace("'", "") or word.replace("'", "")


def _bounded(token: str) -> str:
    if len(token) <= _MAX_TOKEN:
        return token
    return f"{token[: _MAX_TOKEN - 16]}{blake2b(token.encode(), digest_size=8).hexdigest()}"


def _commonness(token: str) -> tuple[bool, int]:
    rare = "_" in token or any(char.isdigit() for char in token)
    return not rare, -len(token)


def _is_content(word: str) -> bool:
    folded = fold(word)
    return len(word) > (2 if word.isdigit() else 1) and folded not in STOP_WORDS and folded not in WEB_WORDS


def _bigrams(run: str) -> list[str]:
    letters = scripts.letters(run)
    return [run] if len(letters) == 1 else [first + second for first, second in pairwise(letters)]


def _syllable_pairs(word: str) -> list[str]:
    """Return Hangul bigrams: particles are glued to Korean words, so the whole word alone would miss them."""
    return _bigrams(word) if len(word) > 2 and scripts.is_hangul(word[0]) else []  # noqa: PLR2004


def _content_pieces(run: str) -> Iterator[str]:
    """Yield what is left of a run without function phrases and short inflections in hiragana."""
    for piece in _STOP_PHRASE.split(run):
        at = 0
        for kana in _HIRAGANA.finditer(piece):
            yield piece[at : kana.start()]
            yield kana.group() if len(kana.group()) > 2 else ""  # noqa: PLR2004
            at = kana.end()
        yield piece[at:]


def _content_bigrams(run: str) -> list[str]:
    pieces = [piece for piece in _content_pieces(run) if piece]
    found = [pair for piece in pieces if len(piece) > 1 for pair in _bigrams(piece)]
    return found or [piece for piece in pieces if piece not in FUNCTION_CHARACTERS]


def _readable_pieces(run: str) -> Iterator[str]:
    for piece in _content_pieces(run):
        trimmed = piece.strip("".join(FUNCTION_CHARACTERS))
        if 2 <= len(trimmed) <= 4:  # noqa: PLR2004
            yield trimmed
        elif len(trimmed) > 4:  # noqa: PLR2004
            yield from (pair for pair in _bigrams(trimmed) if FUNCTION_CHARACTERS.isdisjoint(pair))
