"""Signals that say whether anything is known about a question, for telling that it was never said.

The library has no such signal of its own; these are computed here, from what a recall returns, and reported as they
are. ``speaker_support`` asks whether the person the question names said the words, rather than the other one: it was
calibrated on LoCoMo, where most unanswerable questions swap the speakers, and has nothing to go by where no
speaker is named.
"""

import math
from collections.abc import Sequence

from benchmarks.rivals import Bm25
from langgraph_memoryos.records import Exchange
from langgraph_memoryos.text import content_tokens, query_tokens

PAGES_LOOKED_AT = 3
_INTERCEPT, _SAID_BY_THE_ONE, _MORE_THAN_BY_THE_OTHER = 0.66, 1.14, 3.12


def coverage(question: str, texts: Sequence[str], bm25: Bm25, *, without: Sequence[str] = ()) -> float:
    """Return the highest share of the question's words, weighted by rarity, that one of the texts has."""
    left_out = {word for name in without for word in content_tokens(name)}
    words = [word for word in query_tokens(question) if word not in left_out]
    total = sum(bm25.idf(word) for word in words)
    if not total:
        return 0.0
    shares = []
    for text in texts:
        known = set(content_tokens(text))
        shares.append(sum(bm25.idf(word) for word in words if word in known) / total)
    return max(shares, default=0.0)


def speaker_support(question: str, pages: Sequence[Exchange], bm25: Bm25) -> float:
    """Return the calibrated probability that the question can be answered from the best pages."""
    best = pages[:PAGES_LOOKED_AT]
    if not best:
        return 0.0
    names = (best[0].user_name, best[0].agent_name)
    sides = ([page.query for page in best], [page.reply for page in best])
    user, agent = (coverage(question, side, bm25, without=names) for side in sides)
    asked = [bool(name) and name.split()[0].lower() in question.lower() for name in names]
    if asked == [True, False]:
        said, other = user, agent
    elif asked == [False, True]:
        said, other = agent, user
    else:
        said = other = max(user, agent)
    return 1 / (1 + math.exp(-(_INTERCEPT + _SAID_BY_THE_ONE * said + _MORE_THAN_BY_THE_OTHER * (said - other))))
