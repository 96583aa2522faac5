"""Step ``assemble_memory``: what was retrieved becomes what an agent gets, inside the token budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.prompts import memory_section as prompt
from langgraph_memoryos.records import Chain, Fact, Persona, ProfileField, ScoredPage
from langgraph_memoryos.state import RecalledMemory
from langgraph_memoryos.text_size import clip, count_tokens

_PERSONA_SHARE = 0.3
_FACTS_SHARE = 0.25


class AssembleMemoryInput(TypedDict):
    """What the three stages found."""

    short_term: list[dict[str, Any]]
    mid_term: dict[str, Any]
    long_term: dict[str, Any]


class AssembleMemoryUpdate(TypedDict):
    """What the agent gets."""

    memory: RecalledMemory


class Budget:
    """Estimated tokens that are left; an entry is taken whole or not at all."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def fits(self, entry: str) -> bool:
        """Take the entry's tokens if they are left, and say whether they were."""
        cost = count_tokens(entry) + 1
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def part(self, share: float) -> "Budget":
        """Return a budget of a share of what is left."""
        return Budget(int(self.left * share))


@dataclass(frozen=True, kw_only=True)
class AssembleMemory:
    """Choose persona, facts and pages by relevance until the budget is used; pages oldest first, none twice."""

    max_memory_tokens: int
    chain_metas: bool
    agent_profile: tuple[ProfileField, ...] = ()

    def __call__(self, state: AssembleMemoryInput) -> AssembleMemoryUpdate:
        """Return the memory."""
        recalled = [ScoredPage.from_json(page) for page in state["mid_term"].get("pages", [])]
        chains = state["mid_term"].get("chains", []) if self.chain_metas else []
        metas = prompt.chain_metas([Chain.from_json(chain) for chain in chains])
        long_term = state["long_term"]
        persona = self._with_agent_profile(Persona.from_json(long_term["persona"]))
        facts = [Fact.from_json(fact) for fact in long_term["user_facts"]]
        traits = [Fact.from_json(fact) for fact in long_term["agent_traits"]]

        budget = Budget(self.max_memory_tokens - count_tokens(prompt.section(user=["-"], agent=["-"], pages=["-"])))
        user, agent = self._persona_entries(persona, budget)
        kept_facts, kept_traits = self._facts(facts, traits, budget)
        kept_pages = self._pages(recalled, state["short_term"], metas, budget)
        text = prompt.section(
            user=user + [prompt.fact_entry(fact) for fact in kept_facts],
            agent=agent + [prompt.fact_entry(fact) for fact in kept_traits],
            pages=[entry for _, entry in kept_pages],
        )
        return AssembleMemoryUpdate(memory=RecalledMemory(
            text=text, tokens=count_tokens(text),
            short_term=state["short_term"],
            mid_term=[
                scored.page.to_json() | {"relevance": scored.relevance, "parts": scored.parts}
                for scored, _ in kept_pages
            ],
            user_facts=[fact.to_json() for fact in kept_facts],
            agent_traits=[fact.to_json() for fact in kept_traits],
            persona=persona.to_json(),
        ))

    def _with_agent_profile(self, persona: Persona) -> Persona:
        stored = {entry.name for entry in persona.agent_profile}
        given = tuple(entry for entry in self.agent_profile if entry.name not in stored)
        return Persona(
            user_profile=persona.user_profile, user_traits=persona.user_traits,
            agent_profile=given + persona.agent_profile,
        )

    def _persona_entries(self, persona: Persona, budget: Budget) -> tuple[list[str], list[str]]:
        part = budget.part(_PERSONA_SHARE)
        before = part.left
        agent = [entry for entry in prompt.agent_entries(persona) if part.fits(entry)]
        user = [entry for entry in prompt.user_entries(persona) if part.fits(entry)]
        budget.left -= before - part.left
        return user, agent

    def _facts(self, facts: list[Fact], traits: list[Fact], budget: Budget) -> tuple[list[Fact], list[Fact]]:
        part = budget.part(_FACTS_SHARE)
        before = part.left
        kept = [fact for fact in facts if part.fits(prompt.fact_entry(fact))]
        kept_traits = [fact for fact in traits if part.fits(prompt.fact_entry(fact))]
        budget.left -= before - part.left
        return kept, kept_traits

    def _pages(
        self, recalled: Sequence[ScoredPage], short_term: Sequence[dict[str, Any]], metas: dict[str, str], budget: Budget,
    ) -> list[tuple[ScoredPage, str]]:
        shown = {(page["query"], page["reply"]) for page in short_term}
        told: set[str] = set()
        kept: list[tuple[ScoredPage, str]] = []
        for scored in recalled:
            page = scored.page
            if (page.query, page.reply) in shown:
                continue
            # A chain's meta is told once, with the first of its pages.
            meta = "" if page.chain_id in told else metas.get(page.chain_id, "")
            entry = prompt.page_entry(page, meta=meta)
            if not kept and count_tokens(entry) + 1 > budget.left:
                entry = clip(prompt.page_entry(page), max(1, budget.left - 2))
            if budget.fits(entry):
                kept.append((scored, entry))
                shown.add((page.query, page.reply))
                told.add(page.chain_id)
        return sorted(kept, key=lambda item: (item[0].page.said_at, item[0].page.sequence))
