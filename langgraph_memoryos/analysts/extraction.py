"""Summaries made only of sentences that were said: the honest fallback where no model summarises."""

from collections import Counter
from collections.abc import Iterable, Sequence

from langgraph_memoryos.records import Page
from langgraph_memoryos.text import keywords, query_tokens, storable
from langgraph_memoryos.text_size import clip, count_tokens, split_sentences

META_TOKENS = 60
SUMMARY_TOKENS = 160
MAX_KEYWORDS = 10
_TITLE_WORDS = 3
_SENTENCE_TOKENS = 60
_PAGE_CHARACTERS = 20_000
_SENTENCES_READ = 400


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


def title_from(words: Sequence[str]) -> str:
    """Return a title of the first few keywords."""
    return ", ".join(words[:_TITLE_WORDS])


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


def _weight(sentence: str, words: set[str], shared: Counter[str]) -> float:
    asks = 0.5 if sentence.rstrip("\"')\u201d\u300d").endswith(("?", "\uff1f", "\u061f")) else 1.0
    return asks * sum(shared[word] for word in words) / (len(words) + 3)
