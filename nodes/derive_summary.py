"""Step ``derive_summary``: recursive summary and segment texts from one analysis (hybrid mode)."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.analysts.deterministic import extract_segment
from langgraph_memoryos.analysts.protocol import PageAnalysis, SegmentPages
from langgraph_memoryos.records import Page, Segment, SegmentSummary
from langgraph_memoryos.state import Remembered, added_usage
from langgraph_memoryos.text_size import clip
from langgraph_memoryos.virtual_digest import digest, joined_summary
from langgraph_memoryos.virtual_queue import parse_queue
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Turn

_SEGMENT_SUMMARY_TOKENS = 160


class DeriveSummaryInput(TypedDict):
    """What leaves, the summary so far, and what the analyst said of the pages."""

    evicted: list[dict[str, Any]]
    summary: str
    analyses: list[dict[str, Any]]
    touched: list[dict[str, Any]]
    remembered: Remembered
    turn: Turn


class DeriveSummaryUpdate(TypedDict):
    """New summary of the queue, new texts of the touched segments."""

    summary: str
    summaries: list[dict[str, Any]]
    turn: Turn


@dataclass(frozen=True, kw_only=True)
class DeriveSummary:
    """Use the chain summaries of the analysis twice, so that an eviction costs one model call.

    Without an analysis (it failed, or nothing that left was dialogue), the summary is the digest that quotes.
    """

    settings: VirtualContextSettings

    def __call__(self, state: DeriveSummaryInput) -> DeriveSummaryUpdate:
        """Return the texts."""
        analyses = [PageAnalysis.from_json(analysis) for analysis in state["analyses"]]
        metas = chain_summaries(analyses)
        room = self.settings.summary_tokens
        summary = (
            joined_summary(state["summary"], "\n".join(metas), max_tokens=room)
            if metas
            else digest(state["summary"], parse_queue(state["evicted"]), max_tokens=room)
        )
        told = {analysis.page_id: analysis.chain_meta for analysis in analyses}
        used = state["remembered"].get("usage")
        turn = state["turn"]
        return DeriveSummaryUpdate(
            summary=summary,
            summaries=[_segment_text(item, told).to_json() for item in state["touched"]],
            turn=Turn(**turn | {"usage": added_usage(turn["usage"], used) if used else turn["usage"]}),
        )


def chain_summaries(analyses: Sequence[PageAnalysis]) -> list[str]:
    """Return one text per dialogue chain: that of its last page, which tells of the whole chain."""
    metas: list[str] = []
    for analysis in analyses:
        if analysis.continues_previous and metas:
            metas[-1] = analysis.chain_meta
        else:
            metas.append(analysis.chain_meta)
    return [meta for meta in metas if meta.strip()]


def _segment_text(item: dict[str, Any], told: dict[str, str]) -> SegmentSummary:
    pages = tuple(Page.from_json(page) for page in item["pages"])
    segment = Segment.from_json(item["segment"])
    text = extract_segment(SegmentPages(segment=segment, pages=pages))
    metas = list(dict.fromkeys(told[page.page_id] for page in pages if told.get(page.page_id)))
    if not metas:
        return text
    summary = " ".join(part for part in (segment.summary, *metas) if part)
    return dataclasses.replace(text, summary=clip(summary, _SEGMENT_SUMMARY_TOKENS))
