"""Conversation opener (MemGPT, section 3.1.2): does a greeting after a login use what is known of the user?

Run with ``python -m benchmarks.opener --policy scripted|model --json OUT``. Working context on against off;
the score is the highest similarity of the greeting to a known fact (SIM-1), above the embedder's background.
"""

import argparse
import json
import uuid
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from benchmarks.running import throwaway, write_report
from langgraph_memoryos.local_models import default_embeddings
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import BlockSpec, VirtualContextSettings

PERSONAS = (
    ("Learns to surf in Portugal", "Has a cat called Miso"),
    ("Trains for a marathon in May", "Works as a nurse on night shifts"),
    ("Builds a wooden boat", "Is allergic to peanuts"),
    ("Studies Georgian folk songs", "Moved to Bergen last year"),
)


class ScriptedOpener(BaseChatModel):
    """Greets with the last line of the block ``human``, as a plain baseline without a language model."""

    @property
    def _llm_type(self) -> str:
        return "scripted-opener"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Take any tools."""
        return self.bind(tools=tools, **kwargs)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        lines = str(messages[0].content).split("# Block human")[-1].splitlines()
        known = [line.strip() for line in lines[1:] if line.startswith("    ")]
        text = (
            f"Welcome back! How is it going: {known[-1].lower()}?" if known else "Welcome back! How are you?"
        )
        call = {"name": "send_message", "args": {"message": text}, "id": None, "type": "tool_call"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


def greet(
    memory: MemoryOS, facts: tuple[str, ...], *, model: BaseChatModel | None, working_context: bool
) -> str:
    """Return the greeting after a login."""
    human = BlockSpec(label="human", value="\n".join(facts) if working_context else "")
    agent = VirtualContext(
        memory, model=model, settings=VirtualContextSettings(blocks=(BlockSpec(label="persona"), human))
    )
    user = f"opener-{uuid.uuid4().hex}"
    sent = agent.interaction("The user logged in. Greet them.", user_id=user)["sent"]
    memory.forget(user)
    return " ".join(sent)


def run(memory: MemoryOS, embedder: Embedder, *, model: BaseChatModel | None) -> list[dict[str, Any]]:
    """Return the mean score with working context and without."""
    rows = []
    for on in (True, False):
        scores = []
        for facts in PERSONAS:
            greeting = greet(memory, facts, model=model, working_context=on)
            vectors = embedder.embed_passages([greeting, *facts])
            scores.append(
                max(embedder.calibrated_similarity(float(cosine)) for cosine in vectors[1:] @ vectors[0])
            )
        rows.append({"working_context": on, "openers": len(scores), "sim_1": sum(scores) / len(scores)})
    return rows


def main() -> None:
    """Run the benchmark and print its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", choices=("scripted", "model"), default="scripted")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    embeddings = default_embeddings()
    with throwaway(embeddings=embeddings) as memory:
        model = ScriptedOpener() if given.policy == "scripted" else None
        rows = run(memory, Embedder(embeddings), model=model)
    print(json.dumps(rows, indent=2))
    write_report(given.json, {"policy": given.policy, "rows": rows})


if __name__ == "__main__":
    main()
