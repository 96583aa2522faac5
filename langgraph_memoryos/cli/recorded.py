"""A conversation that took place earlier, replayed turn by turn through an agent with memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph

from langgraph_memoryos.cli.streaming import Graph
from langgraph_memoryos.dialogue import Conversation
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Exchange
from langgraph_memoryos.state import MemoryContext, MemoryState, Messages


@dataclass
class RecordedClock:
    """Tells the time of the turn that is being replayed, in seconds since the epoch."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return that time."""
        return self.now


def recorded_graph(memory: MemoryOS, conversation: Conversation) -> Graph:
    """Return a small agent with memory, whose agent says what it said back then."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MemoryState, context_schema=MemoryContext)
    graph.add_node("recall", memory.recall)
    graph.add_node("agent", _recorded_agent(conversation.exchanges))
    graph.add_node("remember", memory.remember)
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "agent")
    graph.add_edge("agent", "remember")
    graph.add_edge("remember", END)
    return graph.compile(name="recorded")


def user_message(exchange: Exchange) -> HumanMessage:
    """Return the user's side of an exchange, under the id that evidence refers to."""
    return HumanMessage(exchange.query, id=exchange.source_ids[0], name=exchange.user_name or None)


def _recorded_agent(exchanges: Iterable[Exchange]) -> Any:
    replies = {exchange.source_ids[0]: exchange for exchange in exchanges}

    def agent(state: MemoryState) -> dict[str, Messages]:
        asked = str(state["messages"][-1].id)
        said = replies[asked]
        return {"messages": [AIMessage(said.reply, id=f"{asked}-reply", name=said.agent_name or None)]}

    return agent
