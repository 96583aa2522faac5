"""Step ``digest_segments``: what hot segments say about user and agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.analysts.protocol import Analyst, DigestInput, SegmentPages, Thinking
from langgraph_memoryos.records import Fact, Page, Persona, Segment
from langgraph_memoryos.state import Remembered


class DigestSegmentsInput(TypedDict):
    """Hot segments with their undigested pages, and what is known already."""

    hot: list[dict[str, Any]]
    known: dict[str, Any]
    remembered: Remembered


class DigestSegmentsUpdate(TypedDict):
    """Drafts of profile, traits and facts, or why there are none."""

    digest: dict[str, Any]
    failure: str
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class DigestSegments:
    """Ask the analyst once about all hot segments (paper, section 3.2.2)."""

    analyst: Analyst

    def __call__(self, state: Mapping[str, Any]) -> Thinking[dict[str, Any]]:
        """Return the generator that ends in the update."""
        known = state["known"]
        digest = yield from self.analyst.digest_segments(DigestInput(
            segments=tuple(
                SegmentPages(
                    segment=Segment.from_json(item["segment"]),
                    pages=tuple(Page.from_json(page) for page in item["pages"]),
                )
                for item in state["hot"]
            ),
            persona=Persona.from_json(known["persona"]),
            user_facts=tuple(Fact.from_json(fact) for fact in known["user_facts"]),
            agent_facts=tuple(Fact.from_json(fact) for fact in known["agent_facts"]),
        ))
        return {"digest": digest.to_json()}
