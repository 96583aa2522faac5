"""What of a model's reply may be believed: quotes that were said, texts that say something."""

import re
from typing import Literal

from langgraph_memoryos.records import Page
from langgraph_memoryos.text import keywords, normalise, query_tokens, squeeze, storable

Side = Literal["query", "reply"]
"""Whose words prove a statement: the user's (``query``) or the agent's (``reply``)."""

_MIN_QUOTE_CHARACTERS = 4
_MIN_DENSE_QUOTE_CHARACTERS = 2
_MAX_KEYWORDS = 8

_PLACEHOLDERS = frozenset(
    {
        "",
        "na",
        "nan",
        "nil",
        "none",
        "null",
        "nothing",
        "unknown",
        "unspecified",
        "undefined",
        "unclear",
        "empty",
        "tbd",
        "string",
        "text",
        "value",
        "reason",
        "summary",
        "title",
        "evidence",
        "notspecified",
        "notmentioned",
        "notprovided",
        "notavailable",
        "notapplicable",
        "notstated",
        "notknown",
        "nofacts",
        "nofact",
        "noinformation",
        "noevidence",
        "nothingtostore",
        "true",
        "false",
        "无",
        "没有",
        "未知",
        "未提及",
        "不详",
        "不明",
        "暂无",
        "无信息",
        "なし",
        "不明です",
        "ninguno",
        "desconocido",
        "aucun",
        "aucune",
        "inconnu",
        "keine",
        "unbekannt",
        "nenhum",
        "nessuno",
        "sconosciuto",
        "нет",
        "неизвестно",
        "없음",
    }
)
_NOTHING_SAID = re.compile(
    r"^(?:error\b|traceback|exception\b"
    r"|(?:there (?:is|are) )?no (?:(?:user |new )?facts?|information|evidence)\b"
    r"|(?:the )?user (?:did|does|has)(?: not|n't) (?:mention|say|state|provide|specify|share)"
    r"|not (?:specified|mentioned|provided|available|stated)"
    r"|没有(?:提及|提到|相关)|未(?:提及|提到|说明)|用户(?:没有|未)(?:提及|提到|说明))",
)


def meaningful(text: str, *, max_characters: int) -> str:
    """Return a text of a model on one line and bounded, or an empty string when it says nothing."""
    plain = " ".join(storable(text[: 4 * max_characters]).split())
    said_nothing = squeeze(plain) in _PLACEHOLDERS or _NOTHING_SAID.match(normalise(plain))
    return "" if said_nothing else plain[:max_characters].rstrip()


def is_quoted(evidence: str, page: Page, side: Side) -> bool:
    """Tell whether ``evidence`` was said on that side of the page, ignoring case, spaces and punctuation."""
    quote = squeeze(evidence)
    enough = _MIN_QUOTE_CHARACTERS if quote.isascii() else _MIN_DENSE_QUOTE_CHARACTERS
    said = page.query if side == "query" else page.reply
    return len(quote) >= enough and quote in squeeze(said)


def is_about(statement: str, said: str) -> bool:
    """Tell whether a statement shares a content word with what was said.

    Weak models copy a true quote next to an invented fact, or the instructions instead of a summary. A
    statement in another script than what was said cannot be compared and passes.
    """
    if statement.isascii() != said.isascii():
        return True
    return not set(query_tokens(statement, limit=256)).isdisjoint(query_tokens(said, limit=4096))


def told(text: str, said: str, *, max_characters: int) -> str:
    """Return a model's text if it says something about what was said, else an empty string."""
    plain = meaningful(text, max_characters=max_characters)
    return plain if plain and is_about(plain, said) else ""


def single_words(words: list[str]) -> tuple[str, ...]:
    """Return a model's keywords as those of queries are made: case-folded single words, each once."""
    said = (word for word in words if meaningful(word, max_characters=60))
    return tuple(dict.fromkeys(word for each in said for word in keywords(each[:60])))[:_MAX_KEYWORDS]
