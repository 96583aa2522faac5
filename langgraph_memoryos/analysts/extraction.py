"""Summaries made only of sentences that were said: the honest fallback where no model summarises."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from langgraph_memoryos.records import Page
from langgraph_memoryos.text import content_tokens, keywords, query_tokens, storable
from langgraph_memoryos.text_size import clip, count_tokens, split_sentences

META_TOKENS = 60
SUMMARY_TOKENS = 160
MAX_KEYWORDS = 10
_TITLE_TOKENS = 16
_TITLE_WORDS = 3
_TITLE_DAMPING = 8  # more than for a sentence: a title of two words tells less than one of six
_TELLING_WORDS = 2
_SENTENCE_TOKENS = 60
_PAGE_CHARACTERS = 20_000
_SENTENCES_READ = 400

# A comma inside a number is none; brackets and quotation marks of any script, dashes between spaces or long ones.
_CLAUSE_MARK = re.compile(
    '[,;:](?=\\s)|[\u3001\uff0c\uff1b\uff1a\u060c\u061b()\\[\\]"\u201c-\u201f\u00ab\u00bb\u3008-\u3011\uff08\uff09]'
    "|\\s[-\u2013]\\s|\u2014+"
)
_MARKS = " .,;:!?\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965"


def page_text(page: Page) -> str:
    """Return both sides of a page, the user's first."""
    return "\n".join(side for side in (page.query, page.reply) if side.strip())


def page_keywords(page: Page) -> tuple[str, ...]:
    """Return the keywords of a page: those it has, else those of its text."""
    return page.keywords or keywords(page_text(page), MAX_KEYWORDS)


def frequent_keywords(before: Iterable[str], pages: Sequence[Page]) -> tuple[str, ...]:
    """Return the most frequent keywords of a segment: those it had, and those of the pages that joined."""
    counts = Counter(before)
    for page in pages:
        counts.update(page_keywords(page))
    return tuple(word for word, _ in counts.most_common(MAX_KEYWORDS))


def title_from(summary: str, pages: Sequence[Page], words: Sequence[str]) -> str:
    """Return as title the clause, of the summary so far or what the user said, that shares most with all that was said.

    A clause is what stands between punctuation marks, so that also a script without spaces is never cut inside a word.
    Where none is short enough and tells anything, the title is a few keywords.
    """
    own = _clauses([summary, *(page.query for page in pages)])
    shared = Counter(word for clause in _clauses(page.reply for page in pages) for word in set(content_tokens(clause)))
    contents = {clause: set(content_tokens(clause)) for clause in own}
    for content in contents.values():
        shared.update(content)
    weights = {
        clause: _weight(clause, content, shared, damping=_TITLE_DAMPING) for clause, content in contents.items()
        if count_tokens(clause) <= _TITLE_TOKENS and _tells(content)
    }
    return max(weights, key=weights.__getitem__).strip(_MARKS) if weights else ", ".join(words[:_TITLE_WORDS])


def extend_summary(summary: str, pages: Sequence[Page], *, max_tokens: int) -> str:
    """Return the weightiest sentences of a summary so far and of ``pages``, in order, within ``max_tokens``.

    A sentence weighs as much as the content words it shares with the rest, per word; the user's own words
    weigh more than the reply's, and statements more than questions.
    """
    told = [(sentence, 1.5) for sentence in _sentences(summary)]
    for page in pages:
        told += [(sentence, 1.5) for sentence in _sentences(page.query)]
        told += [(sentence, 1.0) for sentence in _sentences(page.reply)]
    distinct = list(dict(reversed(told)).items())[::-1][-_SENTENCES_READ:]
    kept = _weightiest(distinct, max_tokens)
    return " ".join(sentence for sentence, _ in distinct if sentence in kept)


def _clauses(texts: Iterable[str]) -> list[str]:
    sentences = (each for text in texts for each in split_sentences(storable(text)[:_PAGE_CHARACTERS]))
    clauses = [" ".join(clause.split()) for sentence in sentences for clause in _CLAUSE_MARK.split(sentence)]
    return list(dict.fromkeys(clauses))[-_SENTENCES_READ:]


def _tells(content: Iterable[str]) -> bool:
    """Whether there are words enough besides numbers, those written out in Chinese included."""
    return sum(not any(map(str.isnumeric, word)) for word in content) >= _TELLING_WORDS


def _sentences(text: str) -> list[str]:
    return [
        clip(" ".join(each.split()), _SENTENCE_TOKENS)
        for each in split_sentences(storable(text)[:_PAGE_CHARACTERS])
    ]


def _weightiest(sentences: Sequence[tuple[str, float]], max_tokens: int) -> set[str]:
    words = [set(query_tokens(sentence)) for sentence, _ in sentences]
    shared = Counter(word for each in words for word in each)
    weights = [
        (side * _weight(sentence, each, shared), at)
        for at, ((sentence, side), each) in enumerate(zip(sentences, words, strict=True))
    ]
    kept: set[str] = set()
    left = max_tokens
    for _, at in sorted(weights, key=lambda item: (-item[0], item[1])):
        sentence = sentences[at][0]
        if (cost := count_tokens(sentence) + 1) <= left:
            kept.add(sentence)
            left -= cost
    return kept


def _weight(sentence: str, words: set[str], shared: Counter[str], *, damping: int = 3) -> float:
    asks = 0.5 if sentence.rstrip("\"')\u201d\u300d").endswith(("?", "\uff1f", "\u061f")) else 1.0
    return asks * sum(shared[word] for word in words) / (len(words) + damping)
