"""Step ``update_persona``: what was learnt becomes profile, traits and facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.records import Collection, Fact, ProfileField, Scope, Trait
from langgraph_memoryos.state import Remembered, ScopeState
from langgraph_memoryos.stores.facts import FactStore
from langgraph_memoryos.stores.personas import PersonaStore


class UpdatePersonaInput(TypedDict):
    """What was learnt, and from which pages."""

    scope: ScopeState
    hot: list[dict[str, Any]]
    digest: dict[str, Any]
    remembered: Remembered


class UpdatePersonaUpdate(TypedDict):
    """The report; the digest is used up."""

    digest: dict[str, Any]
    remembered: Remembered


@dataclass(frozen=True, kw_only=True)
class UpdatePersona:
    """Write facts, traits and profile with their source pages and the dialogue time of those pages.

    Running twice changes nothing: ids come from text and source, the same fact is confirmed, the same trait merged.
    """

    facts: FactStore
    personas: PersonaStore
    user_knowledge_capacity: int
    agent_traits_capacity: int

    def __call__(self, state: UpdatePersonaInput) -> UpdatePersonaUpdate:
        """Write and report."""
        scope = Scope.from_json(state["scope"])
        times = {page["page_id"]: float(page["said_at"]) for item in state["hot"] for page in item["pages"]}
        digest = state["digest"]
        stored = (
            *self._facts(scope, "user_knowledge", digest["user_facts"], times, self.user_knowledge_capacity),
            *self._facts(scope, "agent_traits", digest["agent_facts"], times, self.agent_traits_capacity),
        )
        for trait in sorted(digest["user_traits"], key=lambda draft: since(draft, times)):
            self.personas.set_trait(scope, Trait.from_json(trait | {"valid_from": since(trait, times)}))
        for entry in sorted(digest["user_profile"], key=lambda draft: since(draft, times)):
            field = ProfileField.from_json(entry | {"valid_from": since(entry, times)})
            self.personas.set_profile(scope, "user_profile", field)
        before = state["remembered"]
        count = before.get("facts", 0) + sum(bool(fact_id) for fact_id in stored)
        return UpdatePersonaUpdate(digest={}, remembered=Remembered(**before | {"facts": count}))

    def _facts(
        self, scope: Scope, collection: Collection, drafts: Sequence[Mapping[str, Any]], times: Mapping[str, float],
        capacity: int,
    ) -> tuple[str, ...]:
        facts = [
            Fact(
                fact_id="", collection=collection, text=draft["text"], source_page_ids=tuple(draft["source_page_ids"]),
                valid_from=since(draft, times), **scope.to_json(),
            )
            for draft in drafts
        ]
        return self.facts.add(
            scope, facts, capacity=capacity, supersedes=[tuple(draft["supersedes"]) for draft in drafts],
        )


def since(draft: Mapping[str, Any], times: Mapping[str, float]) -> float:
    """Return the dialogue time of the newest source page of a draft."""
    return max(times[page_id] for page_id in draft["source_page_ids"])
