"""The names of the two speakers in a question."""

import re
from dataclasses import dataclass
from functools import cached_property

from langgraph_memoryos import scripts
from langgraph_memoryos.text import content_tokens

_MAX_NAMES = 64
_GLUED = re.compile(f"[{scripts.UNSPACED}{scripts.WIDE}]")


@dataclass(frozen=True)
class SpeakerNames:
    """The display names that the speakers of one memory have had; at most 64 are looked for.

    All pages of a user have the same two speakers, so their names tell nothing about a page and only pull a question
    towards pages in which they stand often. Measured on the LoCoMo development split (categories 1 to 4): recall at ten
    pages was 82.8 % with the names in the text that is embedded, 84.2 % without (windows as they were then).

    What an application calls its agents (``travel_agent``, ``assistant``) is made of ordinary words and no name: a
    display name counts if it has a capital letter, or letters that have no case, and no digit or underscore.
    """

    names: frozenset[str]

    def left_out_of(self, text: str) -> str:
        """Return ``text`` without the names and without the single words of them.

        A Latin or Cyrillic name is found as it is written, as a whole word, with ``'s`` behind it or not; in a text
        without any capital also in small letters. Where words are not separated (Chinese) or particles are glued to them
        (Korean), it is found anywhere. The text is unchanged if nothing with a meaning would be left of it.
        """
        if self._pattern is None:
            return text
        pattern = self._pattern if text != text.lower() else self._small_pattern
        left = pattern.sub(" ", text)
        return left if content_tokens(left) else text

    @cached_property
    def _words(self) -> list[str]:
        names = sorted(name.strip() for name in self.names if name.strip() and not _is_identifier(name))
        words = {word for name in names[:_MAX_NAMES] for word in (name, *re.findall(r"[^\W_]{2,}", name))}
        return sorted(words, key=lambda word: (-len(word), word))

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(_as_pattern, self._words))) if self._words else None

    @cached_property
    def _small_pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(_as_pattern(word.lower()) for word in self._words))


def _is_identifier(name: str) -> bool:
    cased = name.lower() != name.upper()
    return (cased and name == name.lower()) or re.search(r"[_\d]", name) is not None


def _as_pattern(word: str) -> str:
    before = "" if _GLUED.match(word[0]) else r"(?<![^\W_])"
    after = "" if _GLUED.match(word[-1]) else r"(?:['\u2019]s)?(?![^\W_])"
    return f"{before}{re.escape(word)}{after}"
