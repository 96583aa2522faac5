"""An analyst that asks a chat model and believes only what the pages prove.

Each method makes one request. A reply that does not fit is shown its error and asked for once more; then
:class:`~langgraph_memoryos.errors.ModelOutputError` ends the step and memory stays as it was. What a model
leaves blank is taken from the pages themselves, so that a weak model costs quality, never truth.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from langgraph_memoryos.analysts import extraction
from langgraph_memoryos.analysts.deterministic import digest_pages, extract_segment
from langgraph_memoryos.analysts.digesting import believed_digest, fact_labels
from langgraph_memoryos.analysts.evidence import single_words, told
from langgraph_memoryos.analysts.protocol import (
    Digest,
    DigestInput,
    ModelRequest,
    PageAnalysis,
    SegmentPages,
    Thinking,
)
from langgraph_memoryos.errors import ModelOutputError
from langgraph_memoryos.prompts import analyse_pages, digest_segments, summarise_segments
from langgraph_memoryos.records import Chain, Page, SegmentSummary
from langgraph_memoryos.text_size import clip

ReplyT = TypeVar("ReplyT", bound=BaseModel)

_MAX_META_CHARACTERS = 500
_MAX_TITLE_CHARACTERS = 80
_MAX_SUMMARY_CHARACTERS = 1200
_MIN_TEXT_TOKENS = 40
_SHOWN_REPLY_TOKENS = 500


class ModelAnalyst:
    """Analyses with a chat model, one request per method.

    Args:
        prompt_tokens: Estimated tokens the pages of one request may take, > 0; longer pages have their middle
            left out, so that the prompt fits the model's context whatever was said. time_zone: The users'
            zone, in which dialogue times are shown and relative dates are resolved.
    """

    def __init__(self, *, prompt_tokens: int = 6000, time_zone: tzinfo = UTC) -> None:
        if prompt_tokens <= 0:
            raise ValueError("prompt_tokens must be above 0.")
        self._prompt_tokens = prompt_tokens
        self._time_zone = time_zone

    def analyse_pages(
        self,
        *,
        previous: Page | None,
        chain: Chain | None,
        pages: Sequence[Page],
    ) -> Thinking[tuple[PageAnalysis, ...]]:
        """Judge continuity, keywords and chain meta of all pages in one request."""
        if not pages:
            return ()
        messages = analyse_pages.build_messages(
            analyse_pages.AnalysePagesInput(
                pages=pages,
                previous=previous,
                chain_summary=chain.meta if chain else "",
                max_text_tokens=self._share(2 * len(pages) + 2),
                time_zone=self._time_zone,
            )
        )
        wanted = range(1, len(pages) + 1)
        reply = yield from _ask(
            messages,
            analyse_pages.PageReadings,
            lambda given: _missing("page", wanted, [each.page for each in given.pages]),
        )
        readings = {each.page: each for each in reversed(reply.pages)}
        return _analyses(pages, [readings[number] for number in wanted], previous, chain)

    def summarise_segments(self, segments: Sequence[SegmentPages]) -> Thinking[tuple[SegmentSummary, ...]]:
        """Give title, summary and keywords of all segments in one request."""
        if not segments:
            return ()
        texts = [
            summarise_segments.SegmentText(
                title=each.segment.title,
                summary=each.segment.summary,
                pages=each.pages,
            )
            for each in segments
        ]
        messages = summarise_segments.build_messages(
            summarise_segments.SummariseSegmentsInput(
                segments=texts,
                max_text_tokens=self._share(sum(2 * len(each.pages) + 1 for each in segments)),
                time_zone=self._time_zone,
            )
        )
        wanted = range(1, len(segments) + 1)
        reply = yield from _ask(
            messages,
            summarise_segments.SegmentReadings,
            lambda given: _missing("segment", wanted, [each.segment for each in given.segments]),
        )
        readings = {each.segment: each for each in reversed(reply.segments)}
        return tuple(_summary(given, readings[number]) for number, given in enumerate(segments, start=1))

    def digest_segments(self, given: DigestInput) -> Thinking[Digest]:
        """Draw the persona update from all segments in one request; keep only what the pages prove."""
        pages = digest_pages(given)
        if not pages:
            return Digest()
        labels = fact_labels(given)
        messages = digest_segments.build_messages(
            digest_segments.DigestSegmentsInput(
                pages=pages,
                persona=given.persona,
                known_facts={label: fact.text for label, fact in labels.items()},
                max_text_tokens=self._share(2 * len(pages)),
                time_zone=self._time_zone,
            )
        )
        reply = yield from _ask(messages, digest_segments.PersonaReading, lambda _: "")
        return believed_digest(reply, pages, labels)

    def _share(self, texts: int) -> int:
        return max(_MIN_TEXT_TOKENS, self._prompt_tokens // max(1, texts))


def _ask(
    messages: tuple[BaseMessage, ...],
    reply_model: type[ReplyT],
    problem_with: Callable[[ReplyT], str],
) -> Thinking[ReplyT]:
    """Ask, and once more with the error shown.

    Raises:
        ModelOutputError: The second reply did not fit either.
    """
    asked = messages
    for _ in range(2):
        reply = yield ModelRequest(messages=asked, reply_model=reply_model)
        parsed = reply.parsed if isinstance(reply.parsed, reply_model) else None
        problem = reply.error or "It does not fit the schema."
        if parsed is not None:
            problem = problem_with(parsed)
            if not problem:
                return parsed
        asked = (
            *messages,
            AIMessage(clip(reply.text, _SHOWN_REPLY_TOKENS) or "(empty)"),
            HumanMessage(
                f"That reply cannot be used: {problem}\nReturn the whole JSON object again, corrected."
            ),
        )
    raise ModelOutputError(
        f"The model's {reply_model.__name__} did not fit its schema twice; memory is unchanged."
    )


def _missing(what: str, wanted: range, given: Sequence[int]) -> str:
    """Return what is wrong with the numbers of a reply; numbers that were never shown are ignored."""
    missing = [str(number) for number in wanted if number not in given]
    return f"no entry for {what} {', '.join(missing[:20])}." if missing else ""


def _analyses(
    pages: Sequence[Page],
    readings: Sequence[analyse_pages.PageReading],
    previous: Page | None,
    chain: Chain | None,
) -> tuple[PageAnalysis, ...]:
    analyses: list[PageAnalysis] = []
    before, meta = previous is not None, chain.meta if chain else ""
    for page, reading in zip(pages, readings, strict=True):
        continues = before and reading.continues_previous
        so_far = meta if continues else ""
        said = f"{so_far}\n{extraction.page_text(page)}"
        meta = told(reading.chain_summary, said, max_characters=_MAX_META_CHARACTERS)
        meta = meta or extraction.extend_summary(so_far, [page], max_tokens=extraction.META_TOKENS)
        words = single_words(reading.keywords) or extraction.page_keywords(page)
        analyses.append(
            PageAnalysis(page_id=page.page_id, continues_previous=continues, chain_meta=meta, keywords=words)
        )
        before = True
    return tuple(analyses)


def _summary(given: SegmentPages, reading: summarise_segments.SegmentReading) -> SegmentSummary:
    extracted = extract_segment(given)
    pages = (extraction.page_text(page) for page in given.pages)
    said = "\n".join((given.segment.title, given.segment.summary, *pages))
    summary = told(reading.summary, said, max_characters=_MAX_SUMMARY_CHARACTERS) or extracted.summary
    return SegmentSummary(
        segment_id=given.segment.segment_id,
        title=told(reading.title, f"{said}\n{summary}", max_characters=_MAX_TITLE_CHARACTERS)
        or extracted.title,
        summary=summary,
        keywords=single_words(reading.keywords) or extracted.keywords,
    )
