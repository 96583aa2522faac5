"""Step ``resolve_turn``: who is talking, in which thread, and what they ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from langgraph_memoryos.dialogue import message_text
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.state import RecallInput, ScopeState


class ResolveTurnUpdate(TypedDict):
    """Scope and query of the turn."""

    scope: ScopeState
    query: str


@dataclass(frozen=True, kw_only=True)
class ResolveTurn:
    """Resolve identity (context, configurable, state) and take the trailing user messages as the query.

    Raises:
        IdentityError: if no user id is given.
    """

    default_agent: str
    new_turn_id: Callable[[], str]

    def __call__(self, state: RecallInput, config: RunnableConfig) -> ResolveTurnUpdate:
        """Return scope and query."""
        scope, thread_id = resolve_scope(
            state=state, context=get_runtime().context, configurable=config.get("configurable", {}),
            default_agent=self.default_agent,
        )
        return ResolveTurnUpdate(
            scope=ScopeState(
                user_id=scope.user_id, agent_id=scope.agent_id, thread_id=thread_id, turn_id=self.new_turn_id(),
            ),
            query=_query(convert_to_messages(state.get("messages") or [])),
        )


def _query(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the human messages since the last reply, or of the newest ones before it."""
    asked: list[str] = []
    for message in reversed(messages):
        if message.type == "human":
            asked.append(message_text(message))
        elif asked:
            break
    return "\n".join(reversed(asked))
