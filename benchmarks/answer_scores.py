"""Marks of an answer against the right one: LoCoMo's token F1 by category, and BLEU-1 on the same tokens.

The rules are those of LoCoMo's own scorer (snap-research/locomo, ``task_eval/evaluation.py``). Two things differ: the
stems are Snowball's ``porter`` where it has NLTK's (of 1,020 questions of LoCoMo's development split, answered with the
start of their evidence, 6 get another F1, the mean moves by 0.02 points), and words in a script without spaces become the
library's tokens, since a whole Chinese sentence would be one word. BLEU-1 is not part of that scorer.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import snowballstemmer

from langgraph_memoryos.scripts import UNSPACED
from langgraph_memoryos.text import tokens

MULTI_ANSWER, OPEN_DOMAIN, UNANSWERABLE = "1", "3", "5"

_PORTER = snowballstemmer.stemmer("porter")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LEFT_OUT = re.compile(r"\b(?:a|an|the|and)\b")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_PARTS = re.compile("[,\uff0c\u3001]")
_REFUSALS = ("no information available", "not mentioned")


@dataclass(frozen=True, kw_only=True)
class AnswerMarks:
    """How good one answer is.

    Attributes:
        f1: From 0 to 1. For category 5: 1 if the answer says that nothing was said about it, else 0.
        bleu1: From 0 to 1; None for category 5, which has no right answer to compare with.
    """

    f1: float
    bleu1: float | None


def answer_marks(answer: str, gold: str, *, category: str) -> AnswerMarks:
    """Mark an answer by the rule of its category; categories other than LoCoMo's get plain F1.

    Category 1 lists several answers: the mean over them of the best F1 that a part of the answer has. Category 3 has
    the answer before ``;`` and the reason after it. An empty answer gets 0.
    """
    if category == UNANSWERABLE:
        return AnswerMarks(f1=float(refuses(answer)), bleu1=None)
    if category == OPEN_DOMAIN:
        gold = gold.partition(";")[0]
    f1 = multi_answer_f1(answer, gold) if category == MULTI_ANSWER else token_f1(answer, gold)
    return AnswerMarks(f1=f1, bleu1=bleu1(answer, gold))


def answer_tokens(text: str) -> list[str]:
    """Return the stems of a text in lower case, without ASCII punctuation, articles and ``and``."""
    words = _LEFT_OUT.sub(" ", text.lower().translate(_PUNCTUATION)).split()
    return [
        token for word in words
        for token in (tokens(word) if _UNSPACED.search(word) else [_PORTER.stemWord(word)])
    ]


def token_f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over tokens, repeated ones counted."""
    said, right = answer_tokens(answer), answer_tokens(gold)
    common = _common(said, right)
    return 2 * common / (len(said) + len(right)) if common else 0.0


def multi_answer_f1(answer: str, gold: str) -> float:
    """Return the mean over the right answers of the best F1 among the given ones; both are parted at commas."""
    said, right = _PARTS.split(answer), _PARTS.split(gold)
    return sum(max(token_f1(one, wanted) for one in said) for wanted in right) / len(right)


def bleu1(answer: str, gold: str) -> float:
    """Return the share of the answer's tokens that are right, times BLEU's penalty for being shorter than the gold."""
    said, right = answer_tokens(answer), answer_tokens(gold)
    if not said:
        return 0.0
    brevity = min(1.0, math.exp(1 - len(right) / len(said)))
    return brevity * _common(said, right) / len(said)


def refuses(answer: str) -> bool:
    """Whether the answer says, in the scorer's words, that the conversation does not tell."""
    return any(words in answer.lower() for words in _REFUSALS)


def _common(said: Sequence[str], right: Sequence[str]) -> int:
    return (Counter(said) & Counter(right)).total()
