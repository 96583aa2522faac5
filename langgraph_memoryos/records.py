"""The things a memory holds, as frozen dataclasses that turn into plain JSON and back.

A record carries no client, no vector and no behaviour beyond conversion, so it can travel in graph state, in a
stream and in an export. Times are seconds since the epoch (UTC, float); identifiers are text.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, SupportsFloat

Tier = Literal["short", "mid", "archived"]
"""Where a page is: in a thread's short-term queue, in a mid-term segment, or only in recall storage."""

Collection = Literal["user_knowledge", "agent_traits", "archival"]
"""Which bounded list a fact belongs to: the user knowledge base, the agent's traits, or MemGPT's archive."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base of all records: conversion to and from plain JSON objects."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dict of plain JSON values."""
        # dataclasses.asdict copies deeply, which took a third of an eviction's time.
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Build the record from ``to_json`` output; unknown keys are ignored, missing ones take defaults."""
        names = cls.__dataclass_fields__
        return cls(**{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
            if name in names
        })


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@dataclass(frozen=True, kw_only=True)
class Scope(Record):
    """Whose memory is meant: the readable ids of a user and of the agent that talks to them.

    Attributes:
        user_id: The user.
        agent_id: The agent.
        erasures: How often everything of the user had been forgotten when what is to be written began; once that has
            happened again, stores refuse it. ``None``: it begins with the write itself. No part of who is meant, so it
            is neither compared nor stored.
    """

    user_id: str
    agent_id: str
    erasures: int | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the two ids."""
        return {"user_id": self.user_id, "agent_id": self.agent_id}


@dataclass(frozen=True, kw_only=True)
class Exchange(Record):
    """One exchange as it comes from a conversation, before it is a page.

    Attributes:
        query: What the user said; may be empty when the agent speaks first.
        reply: What the agent said; empty when it was interrupted.
        said_at: Dialogue time in seconds since the epoch (UTC).
        thread_id: The conversation thread; imports use one thread per session.
        source_ids: Ids of the messages or turns the exchange was made of; they make ingestion idempotent.
        user_name: Display name of the speaker of ``query``, if known.
        agent_name: Display name of the speaker of ``reply``, if known.

    Raises:
        ValueError: if ``said_at`` is not a finite number.
    """

    query: str
    reply: str
    said_at: float
    thread_id: str
    source_ids: tuple[str, ...]
    user_name: str = ""
    agent_name: str = ""

    def __post_init__(self) -> None:
        """Refuse a time that no order could be made of."""
        if not isinstance(self.said_at, SupportsFloat) or not math.isfinite(self.said_at):
            raise ValueError(f"An exchange's said_at is a number of seconds since the epoch, not {self.said_at!r}.")


@dataclass(frozen=True, kw_only=True)
class JoinedExchange(Exchange):
    """An exchange in which the user said several messages before the agent said anything.

    Attributes:
        later: Of each message of the user but the first: its place in ``source_ids``, and where it begins in ``query``.
    """

    later: tuple[tuple[int, int], ...] = ()

    def since(self, number: int) -> Self:
        """Return the exchange without what comes before the user's message ``later[number]``."""
        place, start = self.later[number]
        return replace(
            self, query=self.query[start:], source_ids=self.source_ids[place:],
            later=tuple((other - place, at - start) for other, at in self.later[number + 1 :]),
        )


@dataclass(frozen=True, kw_only=True)
class Page(Exchange):
    """One exchange in memory: the unit that is written, moved between tiers and recalled (paper, section 3.1).

    Attributes:
        page_id: Deterministic id made of scope, thread and first source id.
        user_id: Readable id of the user.
        agent_id: Readable id of the agent.
        sequence: Order of arrival within the user, from 1; breaks ties of equal times.
        tier: ``short``, ``mid`` or ``archived``.
        segment_id: The one segment the page belongs to; empty while it is short-term.
        chain_id: The dialogue chain, named by its first page; empty until continuity was judged.
        keywords: Case-folded, Unicode-normalised keywords; empty until analysed.
    """

    page_id: str
    user_id: str
    agent_id: str
    sequence: int = 0
    tier: Tier = "short"
    segment_id: str = ""
    chain_id: str = ""
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chain(Record):
    """Consecutive pages that continue one another, and ``meta``, a summary of all of them."""

    chain_id: str
    meta: str = ""
    last_page_id: str = ""
    page_count: int = 0


@dataclass(frozen=True, kw_only=True)
class Counters(Record):
    """What makes the heat of a segment.

    Attributes:
        segment_id: Deterministic id made of the first page's id.
        visits: ``n_visit``, how often a recall used one of its pages.
        interactions: ``l_interaction``, pages that joined since the last promotion: those no persona update has seen.
        last_visit_at: Seconds since the epoch of the last visit (creation counts as one).
    """

    segment_id: str
    visits: int = 0
    interactions: int = 0
    last_visit_at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Segment(Counters):
    """Pages of one topic in mid-term memory (paper, section 3.1.2).

    Attributes:
        title: A few words.
        summary: Made from the pages, refreshed whenever pages join.
        keywords: The most frequent keywords of its pages.
        page_count: Number of member pages.
        created_at: Dialogue time of its first page.
        updated_at: Dialogue time of its newest page.
        archived: True once evicted: out of mid-term search, still in recall storage.
        erasures: How often a page of it was erased; a text that was made before is not written after.
    """

    user_id: str
    agent_id: str
    title: str = ""
    summary: str = ""
    keywords: tuple[str, ...] = ()
    page_count: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    archived: bool = False
    erasures: int = 0


@dataclass(frozen=True, kw_only=True)
class SegmentSummary(Record):
    """Title, summary and keywords that a segment takes after pages joined."""

    segment_id: str
    title: str
    summary: str
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fact(Record):
    """One statement in long-term memory, with provenance and validity; superseded, never overwritten.

    Attributes:
        fact_id: Deterministic id made of scope, collection and normalised text.
        collection: ``user_knowledge``, ``agent_traits`` or ``archival``.
        text: The statement.
        source_page_ids: Pages it was drawn from; of many, the 20 that arrived last.
        source: Document that an archived text was loaded from, or empty.
        valid_from: Dialogue time of the first of those pages.
        valid_to: Dialogue time from which it no longer holds; ``None`` while it is current.
        superseded_by: Id of the fact that replaced it, or empty.
        confirmed_at: Dialogue time of the newest page that said the same again.
        sequence: Order of arrival within the collection.
    """

    fact_id: str
    collection: Collection
    text: str
    user_id: str
    agent_id: str
    source_page_ids: tuple[str, ...] = ()
    source: str = ""
    valid_from: float = 0.0
    valid_to: float | None = None
    superseded_by: str = ""
    confirmed_at: float = 0.0
    sequence: int = 0


@dataclass(frozen=True, kw_only=True)
class Trait(Record):
    """What dialogue suggests on one of the 90 dimensions of a user (paper, section 3.1.3; arXiv 2503.15463).

    Attributes:
        dimension: One of :data:`langgraph_memoryos.traits.DIMENSIONS`.
        level: ``high``, ``medium`` or ``low``, or a short value where the dimension is not a scale.
        reason: One sentence that says why, in the user's language.
        source_page_ids: Pages the judgement rests on.
        valid_from: Dialogue time of the first of those pages.
        valid_to: Dialogue time from which a newer judgement replaced it; ``None`` while current.
    """

    dimension: str
    level: str
    reason: str
    source_page_ids: tuple[str, ...] = ()
    valid_from: float = 0.0
    valid_to: float | None = None


@dataclass(frozen=True, kw_only=True)
class ProfileField(Record):
    """One stated attribute of a static profile, such as the user's name or the agent's role."""

    name: str
    value: str
    source_page_ids: tuple[str, ...] = ()
    valid_from: float = 0.0
    valid_to: float | None = None


@dataclass(frozen=True, kw_only=True)
class Persona(Record):
    """Everything long-term memory always puts into a prompt (profiles and traits, not the searched facts)."""

    user_profile: tuple[ProfileField, ...] = ()
    user_traits: tuple[Trait, ...] = ()
    agent_profile: tuple[ProfileField, ...] = ()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Build the persona and its entries."""
        return cls(
            user_profile=tuple(ProfileField.from_json(item) for item in values.get("user_profile", ())),
            user_traits=tuple(Trait.from_json(item) for item in values.get("user_traits", ())),
            agent_profile=tuple(ProfileField.from_json(item) for item in values.get("agent_profile", ())),
        )


@dataclass(frozen=True, kw_only=True)
class ScoredPage(Record):
    """A recalled page and why it was chosen.

    Attributes:
        page: The page.
        relevance: What the pages are ranked by; higher is more relevant, comparable within one recall.
        parts: The named addends of ``relevance``.
    """

    page: Page
    relevance: float
    parts: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Build the scored page and its page."""
        return cls(
            page=Page.from_json(values["page"]), relevance=values["relevance"], parts=dict(values.get("parts", {})),
        )
