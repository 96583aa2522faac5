"""Property: whatever happens to a queue, no result is orphaned, the window holds, and recall has everything in order."""

import itertools
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.function_tools import schema_text
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.text_size import count_tokens
from langgraph_memoryos.virtual_queue import parse_queue
from tests.memory_support import Clock, OpenMemory
from tests.virtual_support import acts, agent, call

pytest_plugins = ["tests.memory_fixtures"]

WORDS = st.sampled_from(["hi", "tell me more about the harbour " * 8, "lorem ipsum " * 90, "你好世界" * 90, '"\n' * 300, "word " * 3000])
CRASHES = st.sampled_from([None, None, None, 0, 1, 2, 3, 4, 5])


class Crash(BaseException):
    """Stands for the death of the process; nothing catches it."""


class MortalClock(Clock):
    """Ends the process of whoever asks for the time once too often: inside any step, between any two of its writes."""

    left: int | None = None

    def __call__(self) -> float:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Crash
        return self.now


class QueueMachine(RuleBasedStateMachine):
    """Messages, calls, alerts, timers and crashes in any order, on one thread with a checkpointer."""

    memory: MemoryOS
    clock: MortalClock
    mode: str

    def __init__(self) -> None:
        super().__init__()
        self.clock.left = None
        self.user = uuid.uuid4().hex
        self.agent, self.model = agent(
            self.memory, checkpointer=InMemorySaver(), context_window_tokens=3000, summary="A summary.", mode=self.mode,
        )
        self.schemas = count_tokens(schema_text(self.agent.settings.functions, native=True))
        self.config: Any = {"configurable": {"user_id": self.user, "thread_id": "t"}}
        self.said: list[str] = []
        self.sent: list[str] = []
        self.numbers = itertools.count()
        self.checked = 0

    def _reply(self, calls: int, text: str) -> Any:
        def reply(_: Any) -> AIMessage:
            searches = [call("archival_memory_search", query=f"q{at}") for at in range(calls)]
            return acts(*searches, call("send_message", message=f"reply {next(self.numbers)} {text}"))

        return reply

    def _run(self, given: Any, crash: int | None = None, *, again: bool = False) -> None:
        self.clock.left = crash
        try:
            self.agent.graph.invoke(given, self.config)
        except Crash:
            if again:
                # As if the lease had run out.
                event_id = (given.get("event") or {}).get("id") or given["messages"][0].id
                leases = self.memory.parts.pages.sibling(LeaseStore)
                leases.release(self.agent.scope(self.user), "t", event_id, finished=False)
            self.agent.graph.invoke(given if again else None, self.config)
        self.clock.left = None
        report = self.agent.graph.get_state(self.config).values["virtual"]
        assert report["sent"] or report["reason"] == "nothing"
        self.sent += report["sent"]

    @rule(text=WORDS, answer=WORDS, calls=st.integers(0, 4), crash=CRASHES, again=st.booleans())
    def message(self, text: str, answer: str, calls: int, crash: int | None, *, again: bool) -> None:
        self.model.otherwise = self._reply(calls, answer)
        name = f"m{next(self.numbers)}"
        self.said.append(f"{name} {text}")
        self._run({"messages": [HumanMessage(f"{name} {text}", id=name)]}, crash, again=again)

    @rule(kind=st.sampled_from(["system_alert", "user_interaction", "timed"]), calls=st.integers(0, 2), crash=CRASHES,
          again=st.booleans())
    def event(self, kind: str, calls: int, crash: int | None, *, again: bool) -> None:
        self.model.otherwise = self._reply(calls, "to an event")
        self._run({"event": {"kind": kind, "text": "something happened", "id": f"e{next(self.numbers)}"}}, crash, again=again)

    @rule()
    def replay(self) -> None:
        """The same message again changes nothing."""
        state = self.agent.graph.get_state(self.config).values
        last = next((message for message in reversed(state.get("messages", [])) if message.type == "human"), None)
        if last is not None and last.id == state["handled"]:
            self._run({"messages": [last]})

    @invariant()
    def every_prompt_is_whole_and_within_the_window(self) -> None:
        for asked in self.model.asked[self.checked :]:
            assert prompt_tokens(asked) + self.schemas <= self.agent.settings.context_window_tokens
            waiting: set[str] = set()
            for message in asked:
                if message.type == "tool":
                    assert message.tool_call_id in waiting  # type: ignore[attr-defined]
                    waiting.discard(message.tool_call_id)  # type: ignore[attr-defined]
                else:
                    assert not waiting
                    waiting = {each["id"] for each in getattr(message, "tool_calls", [])}
        self.checked = len(self.model.asked)

    @invariant()
    def a_summary_is_first_and_the_newest_messages_stay(self) -> None:
        queue = parse_queue(self.agent.graph.get_state(self.config).values.get("queue", []))
        kinds = [message.kind for message in queue]
        assert "summary" not in kinds[1:]
        assert "summary" not in kinds or len(kinds) > self.agent.settings.keep_last_messages

    @invariant()
    def recall_has_everything_in_order(self) -> None:
        log = self.agent.messages(self.user, "t")
        assert [entry["text"] for entry in log if entry["kind"] == "user_message"] == self.said
        sent = [
            each["arguments"]["message"]
            for entry in log if entry["kind"] == "assistant" for each in entry["calls"] if each["name"] == "send_message"
        ]
        assert sent == self.sent


def prompt_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return the tokens of everything in a prompt."""
    calls = [each for message in messages for each in getattr(message, "tool_calls", [])]
    texts = [str(message.content) for message in messages] + [json.dumps(each["args"], ensure_ascii=False) for each in calls]
    return sum(count_tokens(text) for text in texts)


@pytest.mark.timeout(230)
@pytest.mark.parametrize("mode", ["memgpt", "hybrid"])
def test_the_queue_holds_whatever_happens(open_memory: OpenMemory, mode: str):
    clock = MortalClock()
    machine = type("Machine", (QueueMachine,), {"memory": open_memory(clock=clock), "clock": clock, "mode": mode})
    run_state_machine_as_test(machine, settings=settings(
        max_examples=15, stateful_step_count=16, deadline=None, suppress_health_check=list(HealthCheck),
        # Shrinking what runs a graph takes longer than the test may.
        phases=[Phase.explicit, Phase.generate]))
