"""MemGPT's loop together with MemoryOS: no page twice in a prompt, one model call per eviction, one log."""

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Scope
from tests.memory_support import PlayedModel, exchange, tell
from tests.virtual_support import agent, system

pytest_plugins = ["tests.memory_fixtures"]

SCOPE = Scope(user_id="u", agent_id="assistant")
CONFIG: Any = {"configurable": {"user_id": "u", "thread_id": "t"}}
TAIL = " and the lighthouse keeper told me about the harbour, the boats and the nets" * 6


def talk(one: Any, turns: int) -> list[dict[str, Any]]:
    return [
        one.graph.invoke({"messages": [HumanMessage(f"Message {at}:{TAIL}", id=f"m{at}")]}, CONFIG)["virtual"]
        for at in range(turns)
    ]


def test_memory_is_recalled_before_the_model_is_asked(memory: MemoryOS):
    tell(memory, "u", exchange("My dog is called Bello", thread_id="long ago"))
    one, model = agent(memory, mode="hybrid")
    one.send("What is my dog called?", user_id="u")
    assert "Bello" in system(model.asked[0])


def test_no_page_is_twice_in_a_prompt(memory: MemoryOS):
    one, model = agent(memory, mode="hybrid", checkpointer=InMemorySaver())
    reports = talk(one, 40)
    assert sum(report["flushes"] for report in reports) >= 2
    recalled = 0
    for asked in model.asked:
        prompt = "\n".join(str(message.content) for message in asked if not str(message.content).startswith('{"type": "summary'))
        for at in range(40):
            assert prompt.count(f"Message {at}:") <= 1, f"message {at} is twice in a prompt"
            recalled += system(asked).count(f"Message {at}:")
    assert recalled > 0


def test_one_eviction_makes_one_model_call(open_memory: Any):
    judge = PlayedModel()
    memory = open_memory(memory_model=judge)
    one, model = agent(memory, mode="hybrid", checkpointer=InMemorySaver())
    flushes = sum(report["flushes"] for report in talk(one, 40))
    assert flushes >= 2
    assert [name for name in judge.calls if name != "PersonaReading"] == ["PageReadings"] * flushes
    assert not model.summarised
    queue = one.graph.get_state(CONFIG).values["queue"]
    assert queue[0]["kind"] == "summary"
    assert "They spoke of" in queue[0]["text"]


def test_evicted_pages_join_segments_and_stay_one_log(memory: MemoryOS):
    one, _ = agent(memory, mode="hybrid", checkpointer=InMemorySaver())
    talk(one, 30)
    queued = {entry["page_id"] for entry in one.graph.get_state(CONFIG).values["queue"] if entry["page_id"]}
    pages = list(memory.parts.pages.iterate("u"))
    assert len(pages) == 30
    assert {page.page_id for page in pages if page.tier == "short"} == queued
    assert all(page.segment_id for page in pages if page.tier == "mid")
    assert memory.parts.segments.active(SCOPE)
    assert all(segment.summary for segment in memory.parts.segments.active(SCOPE))
    assert all(set(page.reply.split()) == {"ok"} for page in pages)


def test_a_failed_analysis_moves_nothing_and_loses_no_turn(open_memory: Any):
    memory = open_memory(memory_model=PlayedModel(judge=lambda *_: RuntimeError("down")))
    one, _ = agent(memory, mode="hybrid", checkpointer=InMemorySaver())
    reports = talk(one, 25)
    assert sum(report["flushes"] for report in reports) >= 1
    assert all(set(report["sent"]) == {"ok"} for report in reports)
    pages = list(memory.parts.pages.iterate("u"))
    assert {page.tier for page in pages} == {"short"}
    assert "user: Message" in one.graph.get_state(CONFIG).values["queue"][0]["text"]


def test_pages_outside_the_queue_are_told(memory: MemoryOS):
    tell(memory, "u", exchange("My sister is called Zora", thread_id="t"))
    one, model = agent(memory, mode="hybrid", checkpointer=InMemorySaver())
    one.send("hello", user_id="u", thread_id="t")
    assert "Zora" in system(model.asked[0])


def test_what_was_recalled_counts_for_its_event_only(memory: MemoryOS):
    saver = InMemorySaver()
    tell(memory, "u", exchange("My dog is called Bello", thread_id="long ago"))
    hybrid, first = agent(memory, mode="hybrid", checkpointer=saver)
    alone, second = agent(memory, mode="memgpt", checkpointer=saver)
    hybrid.send("What is my dog called?", user_id="u")
    alone.send("hello", user_id="u")
    assert "Bello" in system(first.asked[0])
    assert "Bello" not in system(second.asked[0])
    hybrid.send("And my dog?", user_id="u")
    memory.forget("u")
    alone.send("hello again", user_id="u")
    assert "Bello" not in str(second.asked[-1])
