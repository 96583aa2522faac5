"""Every number that shapes a memory, validated at construction; presets ``default`` and ``paper``."""

import os
from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from langgraph_memoryos.heat import HeatWeights

ENVIRONMENT_PREFIX = "LANGGRAPH_MEMORYOS_"


class MemorySettings(BaseModel):
    """How much each tier holds, when pages move, and what a recall returns.

    The constructor gives the default preset; :meth:`paper` gives the constants of arXiv 2506.06326. The two differ
    in how many pages leave the short-term queue at once (model calls per turn) and in how pages are found.

    Settings that decide what a recall finds say what was measured. The others do not change what the default search finds
    on LoCoMo, since it looks at every page that is not archived; they are the paper's where it names a number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    short_term_capacity_pages: int = Field(
        default=12, ge=1, le=1000,
        description="Pages a thread's short-term queue holds before the oldest move to mid-term memory.",
    )
    eviction_batch_pages: int = Field(
        default=6, ge=1, le=100,
        description=(
            "Pages that leave the queue together once it is over capacity. Maintenance costs at most three model "
            "calls per batch, so calls per turn, reply included, are at most 1 + 3 / batch: 1.5 at 6."
        ),
    )
    segment_capacity: int = Field(
        default=200, ge=1, le=5000, description="Mid-term segments per user and agent; over it the coldest goes.",
    )
    user_knowledge_capacity: int = Field(
        default=100, ge=1, le=10_000, description="Current facts in the user knowledge base (first in, first out).",
    )
    agent_traits_capacity: int = Field(
        default=100, ge=1, le=10_000, description="Current facts about the agent for one user (first in, first out).",
    )
    segment_threshold: float = Field(
        default=0.6, ge=-1.0, le=2.0,
        description=(
            "theta: a page joins the best segment with an F-score above it, else opens one. F-score is the cosine "
            "above the embedder's background similarity plus the Jaccard overlap of keywords, in [-1, 2]."
        ),
    )
    promotion_heat: float = Field(
        default=5.0, ge=0.0, description="tau: segments hotter than this update the persona.",
    )
    heat_visits_weight: FiniteFloat = Field(default=1.0, ge=0.0, description="alpha: heat per recall that used it.")
    heat_interactions_weight: FiniteFloat = Field(
        default=1.0, ge=0.0, description="beta: heat per page that joined since the last promotion.",
    )
    heat_recency_weight: FiniteFloat = Field(default=1.0, ge=0.0, description="gamma: heat of one visited just now.")
    recency_time_constant_seconds: FiniteFloat = Field(
        default=1e7, gt=0.0, description="mu: seconds after the last visit at which recency has fallen to 1/e.",
    )
    retrieval: Literal["fused", "two_stage"] = Field(
        default="fused",
        description=(
            "fused: word and vector scores of all pages, lifted by their neighbours; two_stage: the paper's "
            "top segments first, then pages inside them. LoCoMo development split, recall at ten pages: 84 % and 65 %."
        ),
    )
    top_segments: int = Field(default=5, ge=1, le=200, description="m, segments the two-stage search looks into.")
    top_pages: int = Field(
        default=20, ge=1, le=200,
        description=(
            "k, mid-term pages a recall returns at most; the token budget usually ends earlier. On the LoCoMo "
            "development split recall is 84.0 % at 10 pages and 89.0 % at 20. The paper's preset has 10."
        ),
    )
    candidate_pages: int = Field(
        default=60, ge=10, le=1000,
        description=(
            "Pages that each search brings before they are ranked; fewer are faster. On the LoCoMo development split "
            "recall at ten pages is 83.9 % with 40, 84.0 % with 60 and 83.9 % with 100."
        ),
    )
    top_facts: int = Field(default=10, ge=0, le=200, description="User facts a recall returns at most.")
    top_agent_traits: int = Field(default=10, ge=0, le=200, description="Agent facts a recall returns at most.")
    max_memory_tokens: int = Field(
        default=2000, ge=100,
        description=(
            "Estimated tokens of recalled mid- and long-term memory in a prompt, at most. On LoCoMo (development split) "
            "500 hold 75 % of the evidence, 1,000 83 % and 2,000 89 %; BM25 gets 75 % into 2,000."
        ),
    )
    max_short_term_tokens: int = Field(
        default=4000, ge=100,
        description="Estimated tokens of the short-term queue in a prompt, at most; the newest pages are kept.",
    )
    chain_meta_in_prompt: bool = Field(
        default=False,
        description="Also tell the summary of a recalled page's dialogue chain, where the chain has several pages.",
    )
    after_promotion: Literal["cool", "archive"] = Field(
        default="cool", description="What becomes of a promoted segment: it cools, or leaves mid-term search.",
    )
    digest_pages: int = Field(
        default=40, ge=1, le=500, description="Pages one persona update reads at most; the rest wait for the next.",
    )
    refresh_pages: int = Field(
        default=8, ge=1, le=100, description="Newest pages of a segment read when its summary is refreshed.",
    )
    maintenance: Literal["inline", "deferred"] = Field(
        default="inline",
        description="inline: after the reply, in the same run; deferred: only the page is written, `consolidate` later.",
    )

    @model_validator(mode="after")
    def _batch_fits_queue(self) -> Self:
        if self.eviction_batch_pages > self.short_term_capacity_pages:
            raise ValueError("eviction_batch_pages must not exceed short_term_capacity_pages")
        return self

    @property
    def heat_weights(self) -> HeatWeights:
        """The weights of the heat formula."""
        return HeatWeights(
            visits=self.heat_visits_weight,
            interactions=self.heat_interactions_weight,
            recency=self.heat_recency_weight,
            recency_time_constant_seconds=self.recency_time_constant_seconds,
        )

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the constants of the paper (section 4.1): queue 7, pages leave one by one, two-stage search."""
        constants: dict[str, Any] = {
            "short_term_capacity_pages": 7, "eviction_batch_pages": 1, "retrieval": "two_stage",
            "top_pages": 10,
            "max_memory_tokens": 8000,
            "chain_meta_in_prompt": True,
        }
        return cls(**(constants | changes))

    @classmethod
    def from_env(cls, **changes: Any) -> Self:
        """Read ``LANGGRAPH_MEMORYOS_<FIELD>`` variables; explicit ``changes`` beat them."""
        return cls(**(environment_values(cls.model_fields) | changes))


def environment_values(names: Iterable[str]) -> dict[str, Any]:
    """Return the fields that ``LANGGRAPH_MEMORYOS_<FIELD>`` variables set, as they stand there."""
    named = {name: ENVIRONMENT_PREFIX + name.upper() for name in names}
    return {name: os.environ[variable] for name, variable in named.items() if variable in os.environ}
