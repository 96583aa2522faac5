"""What a user plainly says about themselves, found by a few patterns in several languages.

The rules are meant to miss much and to invent nothing: they look only at the start of a sentence of the user,
never at questions or conditions, and a fact is the user's sentence word for word.
"""

# ruff: noqa: RUF001 - Chinese punctuation is meant

import re
from collections.abc import Iterator

from langgraph_memoryos.text import storable
from langgraph_memoryos.text_size import split_sentences

_MAX_SENTENCE_CHARACTERS = 200
_MAX_NAME_WORDS = 3
_TEXT_READ = 20_000

_OPENING = (
    r"^(?:(?:hi|hello|hey|well|yes|yeah|no|oh|actually|also|and|but|so|hola|bonjour|hallo"
    r"|ol[áa]|ciao|привет)\b[^\w.?!]*(?:there\b[^\w.?!]*)?|(?:你好|您好|嗨|大家好|其实|对了)[,，!！、 ]*)*"
)
_CHINESE_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于"
    "蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶"
    "黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤小阿張陳劉楊黃趙吳"
)


def _openings(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns that match only where a sentence begins, after a greeting at most."""
    return tuple(re.compile(_OPENING + pattern, re.IGNORECASE) for pattern in patterns)


_NAMES = _openings(
    r"my (?:full |first )?name(?: is|'s)\s+(?P<said>.+)",
    r"(?:please )?call me\s+(?P<said>.+)",
    r"(?:me llamo|mi nombre es|je m'appelle|mon nom est|ich heiße|ich heisse|mein name ist)\s+(?P<said>.+)",
    r"(?:(?:eu )?me chamo|(?:o )?meu nome é|mi chiamo|il mio nome è)\s+(?P<said>.+)",
    r"(?:меня зовут|мо[ёе] имя)\s+(?P<said>.+)",
    rf"我(?:的名字)?(?:叫|名叫|是叫)(?P<said>[{_CHINESE_SURNAMES}][一-鿿]{{1,3}}|[a-z][\w.' -]*)",
    r"我的名字(?:是|叫做?)(?P<said>[一-鿿·]{2,8}|[a-z][\w.' -]*)",
    r"(?:私の名前は|わたしの名前は)(?P<said>[^\s、。]{1,12}?)(?:です|といいます|と申します)",
)
_SAID_WORD = re.compile(r"[^\s,.;:!?()\"，。！？；]+")
_AFTER_CHINESE_NAME = re.compile(r"\s*(?:$|[,，。.!！;；、~～])")

_KIN = "wife|husband|partner|girlfriend|boyfriend|son|daughter|kids?|mom|mother|dad|father|sister|brother"
_CHINESE_KIN = "妻子|老婆|丈夫|老公|儿子|女儿|妈妈|爸爸|母亲|父亲|姐姐|妹妹|哥哥|弟弟"
_FACTS = _openings(
    r"i(?:'m| am) (?:a|an|allergic|from|vegan|vegetarian|married|single|divorced|pregnant|retired)\b",
    r"i (?:live|work|study|teach|own|love|hate|prefer|play|collect|speak|grew up|was born|(?:just )?moved)\b",
    r"i (?:got married|got engaged|graduated|(?:just )?adopted)\b",
    r"i(?:'ve| have) (?:a|an|two|three|four|lived|worked|moved|adopted|bought)\b",
    rf"my (?:{_KIN}|dog|cat|job|birthday|hobby|favou?rite)\b.*\b(?:is|are|was|has|have|works|lives)\b",
    r"我(?:是一|是个|是名|住在|来自|出生|最?喜欢|不喜欢|讨厌|爱吃|不吃|养了|有一|有两|有个|结婚|毕业)",
    r"我在.{1,12}(?:工作|上班|上学|读书)",
    r"我对.{1,12}过敏",
    rf"我(?:的)?(?:{_CHINESE_KIN}|狗|猫|生日|爱好|工作).{{0,6}}(?:是|在|叫|有|喜欢)",
    r"(?:(?:yo )?(?:vivo|trabajo|nací) |me (?:gusta|encanta) |soy (?:un|una|de|alérgic)\w*)",
    r"(?:j'habite|je vis|je travaille|j'adore|j'aime|je suis (?:un|une|allergique))\b",
    r"ich (?:wohne|lebe|arbeite|liebe|mag|hasse|bin (?:ein|eine|allergisch|aus))\b",
)
_UNCERTAIN = re.compile(
    r"[?？؟]|如果|假如|要是|是不是|吗|假装|也许|可能"
    r"|\b(?:if|would|could|should|might|maybe|imagine|suppose|pretend|wish)\b",
    re.IGNORECASE,
)


# Sentences that point at something said before are not understood on their own.
_POINTING = re.compile(
    r"\b(?:it|this|that|those|these|there|them|too|him|her|s?he|they)\b|这个|那个|这样|那样|它", re.IGNORECASE
)


def stated_name(text: str) -> str:
    """Return the name the user gives as their own, or an empty string."""
    for sentence in _plain_sentences(text):
        for pattern in _NAMES:
            found = pattern.search(sentence)
            if found and (name := _name(found["said"], sentence[found.end("said") :])):
                return name
    return ""


def stated_facts(text: str, *, limit: int = 3) -> tuple[str, ...]:
    """Return sentences in which the user states something lasting about themselves, word for word."""
    found = (
        sentence
        for sentence in _plain_sentences(text)
        if not (_UNCERTAIN.search(sentence) or _POINTING.search(sentence))
        and any(pattern.search(sentence) for pattern in _FACTS)
    )
    return tuple(dict.fromkeys(found))[:limit]


def _plain_sentences(text: str) -> Iterator[str]:
    plain = storable(text[:_TEXT_READ]).replace("\u2019", "'")
    for sentence in split_sentences(plain):
        if len(sentence) <= _MAX_SENTENCE_CHARACTERS:
            yield " ".join(sentence.split())


def _name(said: str, rest: str) -> str:
    """Return the leading words that look like a name: capitalised, or Chinese and followed by a pause."""
    if "\u3040" <= said[0] <= "\u9fff":
        return said if not rest or _AFTER_CHINESE_NAME.match(rest) or rest.startswith(("です", "と")) else ""
    name: list[str] = []
    end = 0
    for word in _SAID_WORD.finditer(said):
        if said[end : word.start()].strip() or not word.group()[0].isupper() or len(name) == _MAX_NAME_WORDS:
            break
        name.append(word.group())
        end = word.end()
    return " ".join(name)
