"""Which characters belong to which kind of writing, as ranges for regular expressions."""

import re
import unicodedata

_HAN = "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_SOUTH_EAST_ASIAN = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d"
    "\uaa60-\uaa76\uaa7a-\uaa7f\u1780-\u17b3\u17b6-\u17d3\u17d7\u17dc\u17dd"
)
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"

UNSPACED = _HAN + _KANA + _SOUTH_EAST_ASIAN
"""Scripts written without spaces: Han, Kana, Thai, Lao, Khmer, Myanmar."""

WIDE = _HAN + _KANA + _HANGUL + "\u3000-\u3003\u3008-\u3020\uff00-\uff60"
"""Characters for which a language model usually spends a token each."""

_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_IS_HANGUL = re.compile(f"[{_HANGUL}]")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def _marks() -> str:
    """Return the combining marks of the scripts with spaces as ranges (word patterns do not match them)."""
    last_planes = ((0x300, 0xFE30), (0x10A00, 0x11FFF), (0x1E000, 0x1E950))
    ranges: list[list[int]] = []
    for code in (code for first, end in last_planes for code in range(first, end)):
        if unicodedata.category(chr(code))[0] != "M" or _IS_UNSPACED.match(chr(code)):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


MARKS = _marks()
"""Combining marks, such as the vowel signs of Devanagari: part of a word, though not letters."""


_SOUTH_EAST_ASIAN_SIGNS = "".join(
    chr(code)
    for code in range(0xE01, 0x17DE)
    if unicodedata.category(chr(code))[0] == "M" and _IS_UNSPACED.match(chr(code))
)
_LETTER_WITH_SIGNS = re.compile(
    f"[{_SOUTH_EAST_ASIAN_SIGNS}]*[^{_SOUTH_EAST_ASIAN_SIGNS}]?[{_SOUTH_EAST_ASIAN_SIGNS}]*"
)


def han_characters(text: str) -> list[str]:
    """Return every Chinese character of ``text``, in order."""
    return _HAN_CHARACTER.findall(text)


def letters(run: str) -> list[str] | str:
    """Return the written letters of an unspaced run, together with their vowel signs and tone marks."""
    if not "\u0e01" <= run[0] <= "\u17dd":
        return run
    return [match for match in _LETTER_WITH_SIGNS.findall(run) if match]


def is_hangul(char: str) -> bool:
    """Tell whether the first character is a Korean syllable or letter."""
    return _IS_HANGUL.match(char) is not None
