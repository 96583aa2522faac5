"""An analyst that asks no model: rules over words and times, the same answer every time, in any language."""

from collections.abc import Sequence

from langgraph_memoryos.analysts import extraction
from langgraph_memoryos.analysts.protocol import (
    Digest,
    DigestInput,
    FactDraft,
    PageAnalysis,
    ProfileDraft,
    SegmentPages,
    Thinking,
)
from langgraph_memoryos.analysts.statements import stated_facts, stated_name
from langgraph_memoryos.records import Chain, Page, SegmentSummary
from langgraph_memoryos.text import keywords, query_tokens
from langgraph_memoryos.traits import UserProfileName

_NAME: UserProfileName = "name"
_TELLING_WORDS = 2


class DeterministicAnalyst:
    """Extracts instead of writing: nothing it returns was not said.

    Args:
        chain_gap_seconds: A page later than this after the one before it starts a new dialogue chain, > 0.
        min_shared_words: Content words a page must share with the page before it to continue its chain, >= 1;
            a message with fewer than two content words (such as "yes, please") continues without.
    """

    def __init__(self, *, chain_gap_seconds: float = 3600.0, min_shared_words: int = 1) -> None:
        if chain_gap_seconds <= 0 or min_shared_words < 1:
            raise ValueError("chain_gap_seconds must be above 0 and min_shared_words at least 1.")
        self._chain_gap_seconds = chain_gap_seconds
        self._min_shared_words = min_shared_words

    def analyse_pages(
        self,
        *,
        previous: Page | None,
        chain: Chain | None,
        pages: Sequence[Page],
    ) -> Thinking[tuple[PageAnalysis, ...]]:
        """Judge continuity by time and shared words; a chain's meta is its weightiest sentences."""
        yield from ()
        analyses: list[PageAnalysis] = []
        before, meta = previous, chain.meta if chain else ""
        for page in pages:
            continues = before is not None and self._continues(before, page)
            told = meta if continues else ""
            meta = extraction.extend_summary(told, [page], max_tokens=extraction.META_TOKENS)
            words = extraction.page_keywords(page)
            analyses.append(
                PageAnalysis(
                    page_id=page.page_id, continues_previous=continues, chain_meta=meta, keywords=words
                )
            )
            before = page
        return tuple(analyses)

    def summarise_segments(self, segments: Sequence[SegmentPages]) -> Thinking[tuple[SegmentSummary, ...]]:
        """Extend each summary by the weightiest sentences of its new pages."""
        yield from ()
        return tuple(extract_segment(each) for each in segments)

    def digest_segments(self, given: DigestInput) -> Thinking[Digest]:
        """Keep only what the user plainly states: their name, and first-person statements word for word."""
        yield from ()
        pages = digest_pages(given)
        names = {stated_name(page.query): page for page in pages}
        names.pop("", None)
        facts: dict[str, tuple[str, ...]] = {}
        for page in pages:
            for text in stated_facts(page.query):
                facts[text] = (*facts.get(text, ()), page.page_id)
        profile = [
            ProfileDraft(name=_NAME, value=name, source_page_ids=(page.page_id,))
            for name, page in names.items()
        ]
        return Digest(
            user_profile=tuple(profile[-1:]),
            user_facts=tuple(FactDraft(text=text, source_page_ids=ids) for text, ids in facts.items()),
        )

    def _continues(self, before: Page, page: Page) -> bool:
        if abs(page.said_at - before.said_at) > self._chain_gap_seconds:
            return False
        if len(keywords(page.query, _TELLING_WORDS)) < _TELLING_WORDS:
            return True
        shared = set(query_tokens(page.query)) & set(query_tokens(extraction.page_text(before), limit=256))
        return len(shared) >= self._min_shared_words


def extract_segment(given: SegmentPages) -> SegmentSummary:
    """Return title, summary and keywords of one segment without a model."""
    words = extraction.frequent_keywords(given.segment.keywords, given.pages)
    return SegmentSummary(
        segment_id=given.segment.segment_id,
        title=extraction.title_from(given.segment.summary, given.pages, words),
        summary=extraction.extend_summary(
            given.segment.summary, given.pages, max_tokens=extraction.SUMMARY_TOKENS
        ),
        keywords=words,
    )


def digest_pages(given: DigestInput) -> tuple[Page, ...]:
    """Return the pages of all segments, each once, in dialogue order."""
    pages = {page.page_id: page for segment in given.segments for page in segment.pages}
    return tuple(sorted(pages.values(), key=lambda page: (page.said_at, page.sequence, page.page_id)))
