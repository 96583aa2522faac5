"""Step ``load_known_persona``: what a digest may confirm or supersede."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.records import Collection, Fact, Scope
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.facts import FactStore
from langgraph_memoryos.stores.personas import PersonaStore
from langgraph_memoryos.text import tokens


class LoadKnownPersonaInput(TypedDict):
    """Segments that will be digested."""

    scope: ScopeState
    hot: list[dict[str, Any]]


class LoadKnownPersonaUpdate(TypedDict):
    """Persona and the facts that share most words with the pages."""

    known: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LoadKnownPersona:
    """Read the persona and the current facts nearest to the pages, so that a digest sees what it may contradict."""

    facts: FactStore
    personas: PersonaStore
    max_facts: int = 20

    def __call__(self, state: LoadKnownPersonaInput) -> LoadKnownPersonaUpdate:
        """Return what is known."""
        scope = Scope.from_json(state["scope"])
        pages = [page for item in state["hot"] for page in item["pages"]]
        words = {word for page in pages for word in tokens(f"{page['query']}\n{page['reply']}")}
        return LoadKnownPersonaUpdate(known={
            "persona": self.personas.get(scope).to_json(),
            "user_facts": self._nearest(scope, "user_knowledge", words),
            "agent_facts": self._nearest(scope, "agent_traits", words),
        })

    def _nearest(self, scope: Scope, collection: Collection, words: set[str]) -> list[dict[str, Any]]:
        def shared(fact: Fact) -> tuple[int, int]:
            return (-len(words & set(tokens(fact.text))), -fact.sequence)

        current: Sequence[Fact] = sorted(self.facts.current(scope, collection), key=shared)
        return [fact.to_json() for fact in current[: self.max_facts]]
