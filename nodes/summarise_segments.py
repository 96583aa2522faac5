"""Step ``summarise_segments``: new titles, summaries and keywords for segments that pages joined."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.analysts.protocol import Analyst, SegmentPages, Thinking
from langgraph_memoryos.records import Page, Segment
from langgraph_memoryos.state import Remembered


class SummariseSegmentsInput(TypedDict):
    """Touched segments with their newest pages."""

    touched: list[dict[str, Any]]
    remembered: Remembered


class SummariseSegmentsUpdate(TypedDict):
    """One summary per touched segment, or why there is none."""

    summaries: list[dict[str, Any]]
    failure: str
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class SummariseSegments:
    """Ask the analyst once about all touched segments."""

    analyst: Analyst

    def __call__(self, state: Mapping[str, Any]) -> Thinking[dict[str, Any]]:
        """Return the generator that ends in the update."""
        given = [
            SegmentPages(
                segment=Segment.from_json(item["segment"]),
                pages=tuple(Page.from_json(page) for page in item["pages"]),
            )
            for item in state["touched"]
        ]
        summaries = (yield from self.analyst.summarise_segments(given)) if given else ()
        return {"summaries": [summary.to_json() for summary in summaries]}
