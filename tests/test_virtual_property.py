# ruff: noqa: N818
"""Property: whatever happens to a queue, no result is orphaned, the window holds, and recall has everything in order."""

import itertools
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.virtual_queue import parse_queue
from tests.virtual_support import acts, agent, call

pytest_plugins = ["tests.memory_fixtures"]

WORDS = st.sampled_from(["hi", "tell me more about the harbour " * 4, "lorem ipsum " * 60, "你好世界" * 60, "word " * 2500])


class Crash(Exception):
    """Stands for the death of the process."""


class QueueMachine(RuleBasedStateMachine):
    """Messages, calls, alerts, timers and crashes in any order, on one thread with a checkpointer."""

    memory: MemoryOS

    def __init__(self) -> None:
        super().__init__()
        self.user = uuid.uuid4().hex
        self.agent, self.model = agent(
            self.memory, otherwise=None, checkpointer=InMemorySaver(), context_window_tokens=3000, summary=self._summary,
            keep_last_messages=3,
        )
        self.config: Any = {"configurable": {"user_id": self.user, "thread_id": "t"}}
        self.said: list[str] = []
        self.sent: list[str] = []
        self.numbers = itertools.count()
        self.crash_at = ""

    def _summary(self, _: Any) -> str:
        if self.crash_at == "summary":
            self.crash_at = ""
            raise Crash
        return "A summary."

    def _reply(self, calls: int, text: str) -> Any:
        number = next(self.numbers)

        def reply(_: Any) -> AIMessage:
            if self.crash_at == "model":
                self.crash_at = ""
                raise Crash
            self.sent.append(f"reply {number} {text}")
            searches = [call("archival_memory_search", query=f"q{at}") for at in range(calls)]
            return acts(*searches, call("send_message", message=f"reply {number} {text}"))

        return reply

    def _run(self, given: Any) -> None:
        try:
            self.agent.graph.invoke(given, self.config)
        except Crash:
            self.agent.graph.invoke(None, self.config)

    @rule(text=WORDS, answer=WORDS, calls=st.integers(0, 4), crash=st.sampled_from(["", "", "model", "summary"]))
    def message(self, text: str, answer: str, calls: int, crash: str) -> None:
        self.crash_at = crash
        self.model.otherwise = self._reply(calls, answer)
        name = f"m{next(self.numbers)}"
        self.said.append(f"{name} {text}")
        self._run({"messages": [HumanMessage(f"{name} {text}", id=name)]})

    @rule(kind=st.sampled_from(["system_alert", "user_interaction", "timed"]), calls=st.integers(0, 2))
    def event(self, kind: str, calls: int) -> None:
        self.model.otherwise = self._reply(calls, "to an event")
        self._run({"event": {"kind": kind, "text": "something happened", "id": f"e{next(self.numbers)}"}})

    @rule()
    def replay(self) -> None:
        """The same message again changes nothing."""
        state = self.agent.graph.get_state(self.config).values
        if state.get("messages"):
            last = next((m for m in reversed(state["messages"]) if m.type == "human"), None)
            if last is not None and last.id == state["handled"]:
                self._run({"messages": [last]})

    @invariant()
    def no_result_is_orphaned(self) -> None:
        for asked in self.model.asked[-3:]:
            waiting: set[str] = set()
            for message in asked:
                if message.type == "tool":
                    assert message.tool_call_id in waiting
                    waiting.discard(message.tool_call_id)
                else:
                    assert not waiting
                    waiting = {each["id"] for each in getattr(message, "tool_calls", [])}

    @invariant()
    def the_queue_is_within_its_window(self) -> None:
        state = self.agent.graph.get_state(self.config).values
        if state.get("queue"):
            assert state["pressure"]["tokens"] < 2 * self.agent.settings.context_window_tokens
            kinds = [message.kind for message in parse_queue(state["queue"])]
            assert "summary" not in kinds[1:]
        limit = self.agent.settings.context_window_tokens * 4 + 200
        for asked in self.model.asked[-2:]:
            ascii_only = sum(len(str(message.content)) for message in asked if str(message.content).isascii())
            assert ascii_only <= limit

    @invariant()
    def recall_has_everything_in_order(self) -> None:
        log = self.agent.messages(self.user, "t")
        assert [entry["text"] for entry in log if entry["kind"] == "user_message"] == self.said
        sent = [
            each["arguments"]["message"]
            for entry in log if entry["kind"] == "assistant" for each in entry["calls"] if each["name"] == "send_message"
        ]
        assert sent == self.sent


@pytest.mark.timeout(230)
def test_the_queue_holds_whatever_happens(memory: MemoryOS):
    machine = type("Machine", (QueueMachine,), {"memory": memory})
    run_state_machine_as_test(machine, settings=settings(
        max_examples=6, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)))
