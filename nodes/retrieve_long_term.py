"""Step ``retrieve_long_term``: stage 3 of a recall."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos.state import RetrieveInput
from langgraph_memoryos.stores.recall import RecallRequest, RecallStore


class RetrieveLongTermUpdate(TypedDict):
    """Persona and nearest facts."""

    long_term: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RetrieveLongTerm:
    """Read all profiles and traits, and the facts nearest to the query (paper, section 3.3, long-term retrieval)."""

    store: RecallStore

    def __call__(self, state: RetrieveInput) -> RetrieveLongTermUpdate:
        """Return persona and facts."""
        found = self.store.long_term(RecallRequest.of(state["scope"], state["query"]))
        return RetrieveLongTermUpdate(long_term={
            "persona": found.persona.to_json(),
            "user_facts": [fact.to_json() for fact in found.user_facts],
            "agent_traits": [fact.to_json() for fact in found.agent_traits],
        })
