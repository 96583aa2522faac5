"""What an analyst does: read pages and say what they are about, without touching memory.

An analyst *thinks* and never writes. Its three methods are generators: each yields the model requests it
needs (none, for the deterministic analyst), is sent the replies, and returns its result. Whoever drives it
(:mod:`langgraph_memoryos.analysts.structured`) decides whether the model is called with ``invoke`` or
``ainvoke``, so there is one body of logic for both.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from langgraph_memoryos.records import Chain, Fact, Page, Persona, Record, Segment, SegmentSummary


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One structured model call: the messages and the Pydantic model the reply must fit."""

    messages: tuple[BaseMessage, ...]
    reply_model: type[BaseModel]


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """What came back: ``parsed`` when the reply fitted, else ``None`` with ``error`` and the raw ``text``."""

    parsed: BaseModel | None
    text: str = ""
    error: str = ""


T = TypeVar("T")
Thinking = Generator[ModelRequest, ModelReply, T]
"""A generator that yields model requests, receives replies, and returns a ``T``."""


@dataclass(frozen=True, kw_only=True)
class PageAnalysis(Record):
    """What an analyst says of one page that leaves short-term memory.

    Attributes:
        page_id: The page.
        continues_previous: Whether it continues the page before it (same dialogue chain).
        chain_meta: Summary of *all* pages of its chain so far.
        keywords: Case-folded, Unicode-normalised keywords.
    """

    page_id: str
    continues_previous: bool
    chain_meta: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SegmentPages(Record):
    """A segment together with those of its pages an analyst should read, oldest first.

    ``segment.summary`` holds the summary of the pages read earlier, empty for a new segment.
    """

    segment: Segment
    pages: tuple[Page, ...]


@dataclass(frozen=True, kw_only=True)
class FactDraft(Record):
    """A fact that pages support, before it has an id.

    ``supersedes`` names current facts (ids that were shown to the analyst) which this one contradicts.
    """

    text: str
    source_page_ids: tuple[str, ...]
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraitDraft(Record):
    """A judgement on one of the 90 dimensions, with its reason and source pages."""

    dimension: str
    level: str
    reason: str
    source_page_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ProfileDraft(Record):
    """A stated profile attribute of the user, such as ``name`` or ``birth_year``."""

    name: str
    value: str
    source_page_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Digest(Record):
    """What a persona update learnt from hot segments; every list may be empty."""

    user_profile: tuple[ProfileDraft, ...] = ()
    user_traits: tuple[TraitDraft, ...] = ()
    user_facts: tuple[FactDraft, ...] = ()
    agent_facts: tuple[FactDraft, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DigestInput:
    """What a persona update reads.

    Attributes:
        segments: Hot segments, each with its undigested pages.
        persona: The current persona.
        user_facts: Current user facts that are near the pages (candidates to confirm or supersede).
        agent_facts: Likewise for agent traits.
    """

    segments: tuple[SegmentPages, ...]
    persona: Persona = field(default_factory=Persona)
    user_facts: tuple[Fact, ...] = ()
    agent_facts: tuple[Fact, ...] = ()


class Analyst(Protocol):
    """Reads pages and reports; see the module's docstring for the generator form.

    Raises (inside the generators):
        ModelOutputError: a reply did not fit, also after the error had been shown once.
    """

    def analyse_pages(
        self, *, previous: Page | None, chain: Chain | None, pages: Sequence[Page],
    ) -> Thinking[tuple[PageAnalysis, ...]]:
        """Judge continuity, keywords and chain meta of consecutive ``pages`` (oldest first) in one request.

        ``previous`` is the page right before the first one in the same thread (already evicted) and ``chain``
        its chain, or ``None``. Returns exactly one analysis per page, in order.
        """
        ...

    def summarise_segments(self, segments: Sequence[SegmentPages]) -> Thinking[tuple[SegmentSummary, ...]]:
        """Give each segment title, summary and keywords from its summary so far and its pages, in one go."""
        ...

    def digest_segments(self, given: DigestInput) -> Thinking[Digest]:
        """Draw profile, traits, user facts and agent facts from all hot segments in one request."""
        ...


def without_model(thinking: Thinking[T]) -> T:
    """Run an analyst that asks no model to its end.

    Raises:
        RuntimeError: if it asks one after all.
    """
    try:
        next(thinking)
    except StopIteration as done:
        result: Any = done.value
        return result  # type: ignore[no-any-return]
    raise RuntimeError("this analyst asked a model although none was promised")
