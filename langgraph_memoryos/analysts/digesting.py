"""From a model's persona reading to drafts: only what is proven by the cited page, under real ids."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from langgraph_memoryos.analysts.evidence import Side, is_about, is_quoted, meaningful
from langgraph_memoryos.analysts.protocol import Digest, DigestInput, FactDraft, ProfileDraft, TraitDraft
from langgraph_memoryos.prompts.digest_segments import (
    FactReading,
    PersonaReading,
    ProfileReading,
    TraitReading,
)
from langgraph_memoryos.records import Fact, Page
from langgraph_memoryos.text import squeeze
from langgraph_memoryos.traits import DIMENSIONS, USER_PROFILE_NAMES

_MAX_FACT_CHARACTERS = 300
_MAX_VALUE_CHARACTERS = 120
_MAX_LEVEL_CHARACTERS = 60
_MAX_ENTRIES = 40
_MAX_SUPERSEDED = 3

DraftT = TypeVar("DraftT", ProfileDraft, TraitDraft)

Labels = Mapping[str, Fact]
"""Current facts by the label the model saw: ``U1`` for user facts, ``A1`` for agent facts."""


def fact_labels(given: DigestInput) -> dict[str, Fact]:
    """Return the labels under which the current facts are shown."""
    user = {f"U{number}": fact for number, fact in enumerate(given.user_facts, start=1)}
    agent = {f"A{number}": fact for number, fact in enumerate(given.agent_facts, start=1)}
    return user | agent


def believed_digest(reading: PersonaReading, pages: Sequence[Page], labels: Labels) -> Digest:
    """Return the drafts whose evidence was said on the cited page by the right speaker, each once."""
    return Digest(
        user_profile=_newest(
            draft for each in reading.user_profile[:_MAX_ENTRIES] for draft in _profile(each, pages)
        ),
        user_traits=_newest(
            draft for each in reading.user_traits[:_MAX_ENTRIES] for draft in _trait(each, pages)
        ),
        user_facts=_facts(reading.user_facts, pages, labels, side="query", prefix="U"),
        agent_facts=_facts(reading.agent_facts, pages, labels, side="reply", prefix="A"),
    )


def _newest(drafts: Iterable[tuple[str, int, DraftT]]) -> tuple[DraftT, ...]:
    """Return one draft per name, that of the newest page, in order of the names' first mention."""
    kept: dict[str, tuple[int, DraftT]] = {}
    for name, page, draft in drafts:
        if name not in kept or page >= kept[name][0]:
            kept[name] = (page, draft)
    return tuple(draft for _, draft in kept.values())


def _page(number: int, evidence: str, pages: Sequence[Page], side: Side) -> Page | None:
    """Return the cited page if it was shown and the quote was said on that side of it."""
    if not 1 <= number <= len(pages):
        return None
    page = pages[number - 1]
    return page if is_quoted(evidence, page, side) else None


def _profile(reading: ProfileReading, pages: Sequence[Page]) -> Iterator[tuple[str, int, ProfileDraft]]:
    page = _page(reading.page, reading.evidence, pages, "query")
    value = meaningful(reading.value, max_characters=_MAX_VALUE_CHARACTERS)
    if page is None or not value or reading.name not in USER_PROFILE_NAMES:
        return
    # A name is only ever what was said; other fields may be inferred (a birth year from an age).
    if reading.name == "name" and squeeze(value) not in squeeze(reading.evidence):
        return
    yield (
        reading.name,
        reading.page,
        ProfileDraft(name=reading.name, value=value, source_page_ids=(page.page_id,)),
    )


def _trait(reading: TraitReading, pages: Sequence[Page]) -> Iterator[tuple[str, int, TraitDraft]]:
    page = _page(reading.page, reading.evidence, pages, "query")
    level = meaningful(reading.level, max_characters=_MAX_LEVEL_CHARACTERS)
    reason = meaningful(reading.reason, max_characters=_MAX_FACT_CHARACTERS)
    if page is None or not level or not reason or reading.dimension not in DIMENSIONS:
        return
    yield (
        reading.dimension,
        reading.page,
        TraitDraft(
            dimension=reading.dimension,
            level=level,
            reason=reason,
            source_page_ids=(page.page_id,),
        ),
    )


def _facts(
    readings: Sequence[FactReading],
    pages: Sequence[Page],
    labels: Labels,
    *,
    side: Side,
    prefix: str,
) -> tuple[FactDraft, ...]:
    drafts: dict[str, FactDraft] = {}
    for reading in readings[:_MAX_ENTRIES]:
        page = _page(reading.page, reading.evidence, pages, side)
        text = meaningful(reading.text, max_characters=_MAX_FACT_CHARACTERS)
        if page is None or not text or not is_about(text, page.query if side == "query" else page.reply):
            continue
        key = squeeze(text)
        before = drafts.get(key, FactDraft(text=text, source_page_ids=()))
        drafts[key] = FactDraft(
            text=before.text,
            source_page_ids=_union(before.source_page_ids, (page.page_id,)),
            supersedes=_union(before.supersedes, _superseded(reading, key, labels, prefix)),
        )
    return tuple(drafts.values())


def _superseded(reading: FactReading, key: str, labels: Labels, prefix: str) -> tuple[str, ...]:
    """Return ids of contradicted facts: shown ones of the same list, never the fact itself, only a few."""
    named = (label.strip() for label in reading.supersedes if label.strip().startswith(prefix))
    facts = (labels[label] for label in named if label in labels)
    return tuple(dict.fromkeys(fact.fact_id for fact in facts if squeeze(fact.text) != key))[:_MAX_SUPERSEDED]


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
