"""The loop with a real, small, local model: 40 turns in a window of 2,048 tokens, and a few in an event loop."""

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.local_models import local_chat_model
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.search import SearchRequest
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings

pytest_plugins = ["tests.memory_fixtures"]

SETTINGS = VirtualContextSettings(
    context_window_tokens=2048, calls="structured", functions=("send_message", "conversation_search"), max_steps=2,
    max_summary_tokens=120, summaries="deterministic",
)
TALK = "I walked along the river for two hours and counted herons, barges, joggers and one very patient angler."


@pytest.mark.model
@pytest.mark.timeout(600)
def test_forty_turns_in_a_small_window(memory: MemoryOS):
    model = local_chat_model(max_tokens=24, context_tokens=4096)
    agent = VirtualContext(memory, model=model, settings=SETTINGS, checkpointer=InMemorySaver())
    flushes = answered = 0
    for at in range(40):
        text = "My locker code is 7319-heron." if at == 0 else f"Day {at}. {TALK}"
        config = {"configurable": {"user_id": "u", "thread_id": "t"}}
        report = agent.graph.invoke({"messages": [HumanMessage(text, id=f"m{at}")]}, config)["virtual"]
        flushes += report["flushes"]
        answered += bool(report["sent"])
        assert report["reason"] in ("done", "step_cap", "repeated_failure")
    assert flushes >= 3
    assert answered >= 30
    queue = agent.graph.get_state(config).values["queue"]
    assert "7319" not in str(queue[1:])
    tool = {each.name: each for each in agent.tools(user_id="u")}["conversation_search"]
    assert "7319-heron" in tool.invoke({"query": "locker code"})
    found = agent.search.conversation(agent.scope("u"), SearchRequest(query="locker code"))
    assert found.items[0].query == "My locker code is 7319-heron."
    assert len([entry for entry in agent.messages("u", "t") if entry["kind"] == "user_message"]) == 40


@pytest.mark.model
@pytest.mark.timeout(600)
async def test_turns_in_an_event_loop_await_the_model(memory: MemoryOS):
    agent = VirtualContext(memory, settings=SETTINGS)
    with blockbuster_ctx() as watcher:
        watcher.functions["threading.Lock.acquire"].deactivate()
        reports = [await agent.asend(text, user_id="u") for text in ("My locker code is 7319-heron.", TALK)]
        assert [entry["text"] for entry in await agent.amessages("u") if entry["kind"] == "user_message"][1] == TALK
    assert all(report["reason"] in ("done", "step_cap", "repeated_failure") for report in reports)
    assert any(report["sent"] for report in reports)
    assert all(report["usage"]["input_tokens"] for report in reports)
