"""What graphs are made of: the collaborators that steps are bound to when a graph is built."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel

from langgraph_memoryos.analysts.protocol import Analyst
from langgraph_memoryos.records import ProfileField
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores.facts import FactStore
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.stores.personas import PersonaStore
from langgraph_memoryos.stores.recall import RecallStore
from langgraph_memoryos.stores.segments import SegmentStore


def _new_turn_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, kw_only=True)
class MemoryParts:
    """Stores, settings, analyst, models and clock of one memory.

    Attributes:
        pages: Recall storage and short-term queues.
        segments: Mid-term memory.
        facts: User knowledge base, agent traits, archive.
        personas: Profiles and traits.
        recall: One turn's reading of all tiers.
        settings: Numbers.
        analyst: Judges pages; never writes.
        memory_model: Answers the analyst's requests; ``None`` if it makes none.
        default_agent: Agent id of runs that name none.
        agent_profile: What the developer says the agent is; in every prompt.
        system: The agent's instructions in ``chat``.
        clock: Seconds since the epoch.
        new_turn_id: A different text at each call.
    """

    pages: PageStore
    segments: SegmentStore
    facts: FactStore
    personas: PersonaStore
    recall: RecallStore
    settings: MemorySettings
    analyst: Analyst
    memory_model: BaseChatModel | None = None
    default_agent: str = "assistant"
    agent_profile: tuple[ProfileField, ...] = ()
    system: str = ""
    clock: Callable[[], float] = time.time
    new_turn_id: Callable[[], str] = _new_turn_id

    @property
    def namespace(self) -> str:
        """Prefix of all keys of this memory."""
        return self.pages.namespace.name
