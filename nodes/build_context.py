"""Step ``build_context``: working context as it is now, and what there is to search."""

from dataclasses import dataclass

from typing_extensions import TypedDict

from langgraph_memoryos.prompts.virtual_context import working_context
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.blocks import Block, BlockStore
from langgraph_memoryos.stores.search import SearchStore
from langgraph_memoryos.virtual_log import erased, page_id_of, scope_of
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import Turn


class BuildContextInput(TypedDict):
    """Whose."""

    scope: ScopeState
    turn: Turn


class BuildContextUpdate(TypedDict, total=False):
    """The text; the turn where the user was erased."""

    context: str
    turn: Turn


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """Read blocks and counts; new blocks are created, and what the settings say of blocks holds (MemGPT, section 2.1)."""

    blocks: BlockStore
    archival: ArchivalStore
    search: SearchStore
    initial: tuple[Block, ...]
    settings: VirtualContextSettings

    def __call__(self, state: BuildContextInput) -> BuildContextUpdate:
        """Return working context as text."""
        scope, _ = scope_of(state)
        if not self.blocks.ensure(scope, self.initial, declare=True):
            return BuildContextUpdate(context="", turn=erased(state["turn"]))
        return BuildContextUpdate(
            context=working_context(
                self.blocks.all(scope),
                # Without the one that is being answered, as in the model's own search: constant during an event.
                exchanges=self.search.count_conversation(scope, without=page_id_of(scope, state["turn"])),
                archived=self.archival.count(scope),
                zone=self.settings.zone,
            )
        )
