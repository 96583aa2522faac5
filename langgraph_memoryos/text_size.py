"""How much text there is, and where it may be cut: token estimates, clipping, sentences."""

import math
import re

from langgraph_memoryos import scripts

_WIDE = re.compile(f"[{scripts.WIDE}]+")
_OTHER_SCRIPT = re.compile("[\u0370-\u1dff\u2100-\uffff\U00010000-\U0010ffff]+")
_LATIN_CHARACTERS_PER_TOKEN = 4
_OTHER_CHARACTERS_PER_TOKEN = 2

_SENTENCE_END = re.compile(
    r"(?<![.!?])[.!?]++[\"')\]\u201d\u2019\u00bb]*+(?=\s)|[\u3002\uff01\uff1f\u2026\u061f\u06d4\u0964\u0965\u104b\u17d4]+"
    r"[\"')\]\u201d\u2019\u300d\u300f\uff09]*|\n+",
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|bzw|z\.b|sr|sra|[^\W\d_])\.$",
    re.IGNORECASE,
)


def count_tokens(text: str) -> int:
    """Estimate the tokens a language model spends on ``text``.

    A Chinese, Japanese or Korean character counts 1, other scripts (Cyrillic, Arabic, Thai, emoji) 1 per two
    characters, Latin letters, digits and spaces 1 per four. Never 0 for text that is not empty. It is an
    estimate: real tokenisers differ by about a quarter on prose, more on base64 or long numbers.
    """
    if text.isascii():
        return math.ceil(len(text) / _LATIN_CHARACTERS_PER_TOKEN)
    wide = sum(len(match) for match in _WIDE.findall(text))
    other = sum(len(match) for match in _OTHER_SCRIPT.findall(_WIDE.sub("", text)))
    latin = len(text) - wide - other
    return wide + math.ceil(other / _OTHER_CHARACTERS_PER_TOKEN + latin / _LATIN_CHARACTERS_PER_TOKEN)


def clip(text: str, max_tokens: int) -> str:
    """Return ``text`` with its middle left out (``[…]``) where it is longer than ``max_tokens``."""
    if len(text) <= max_tokens or count_tokens(text) <= max_tokens:
        return text
    characters = max(2, int(len(text) * max_tokens / count_tokens(text)) - 4)
    clipped = f"{text[: characters * 2 // 3]} […] {text[len(text) - characters // 3 :]}"
    # Dense parts at the ends can still be over; halving ends soon and never returns too much.
    return clipped if count_tokens(clipped) <= max_tokens or characters <= 2 else clip(clipped, max_tokens)  # noqa: PLR2004


def split_sentences(text: str) -> list[str]:
    """Return the sentences of ``text``, stripped, none empty: at end marks of any script and at line ends."""
    sentences: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        piece = text[start : match.end()]
        if match.group() == "." and _ABBREVIATION.search(piece[-8:]):
            continue
        sentences.append(piece.strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]
