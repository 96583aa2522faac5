"""What is forgotten is gone from the files of the embedded server, too."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.cli import app
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Fact
from langgraph_memoryos.stores.append_only import rewrite_log
from tests.memory_support import HashEmbeddings, PlayedModel, exchange, exported, owner, tell

pytest_plugins = ["tests.memory_fixtures"]
CANARY = "canary-4711-zebra"
NAME = "Quintessa-canary"


def files_with(directory: Path, text: str) -> list[Path]:
    """Return the files that hold a text; files vanish while a server works."""
    found = []
    for path in directory.rglob("*"):
        try:
            found += [path] if path.is_file() and text.encode() in path.read_bytes() else []
        except FileNotFoundError:
            continue
    return found


def gone(directory: Path, text: str) -> bool:
    """Whether no file holds a text; the server removes replaced files in the background."""
    deadline = time.monotonic() + 10
    while files_with(directory, text) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not files_with(directory, text)


@pytest.mark.parametrize("what", ["user", "thread", "page"])
def test_forgotten_text_is_in_no_file(tmp_path: Path, what: str) -> None:
    with MemoryOS.open_sync(
        data_dir=tmp_path, embeddings=HashEmbeddings(), analyst=DeterministicAnalyst(),
    ) as memory:
        tell(memory, "ann", exchange(f"My code is {CANARY}.", user_name=NAME, agent_name=f"Agent {NAME}"))
        tell(memory, "ann", "I keep bees-canary.", thread="other")
        assert files_with(tmp_path, CANARY)
        assert files_with(tmp_path, NAME)
        (page, _) = exported(memory, "ann")
        one = {"user": {}, "thread": {"thread_id": page["thread_id"]}, "page": {"page_id": page["page_id"]}}[what]
        memory.forget("ann", **one)
        assert gone(tmp_path, CANARY)
        assert gone(tmp_path, NAME)
        assert [page["query"] for page in exported(memory, "ann")] == ([] if what == "user" else ["I keep bees-canary."])


def test_forget_on_the_command_line_clears_checkpoints_from_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    choice = SimpleNamespace(is_bundled=True, build=PlayedModel)
    monkeypatch.setattr("langgraph_memoryos.memory.choose_chat_model", lambda: choice)
    place = ["--user", "ann", "--data-dir", str(tmp_path)]
    assert CliRunner().invoke(app, ["chat", *place], input=f"My code is {CANARY}.\n").exit_code == 0
    assert files_with(tmp_path, CANARY)
    rewrites = []
    monkeypatch.setattr(
        "langgraph_memoryos.memory.rewrite_log", lambda connection: rewrites.append(1) or rewrite_log(connection))
    assert CliRunner().invoke(app, ["forget", *place, "--yes"]).exit_code == 0
    assert gone(tmp_path, CANARY)
    assert rewrites == [1]


def test_several_facts_are_forgotten_with_one_rewrite(memory: MemoryOS, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [Fact(fact_id="", collection="user_knowledge", text=f"owns boat {n}", user_id="ann", agent_id="assistant")
             for n in range(3)]
    known = memory.parts.facts.add(owner(), facts, capacity=9)
    rewrites: list[object] = []
    monkeypatch.setattr("langgraph_memoryos.memory.rewrite_log", rewrites.append)
    assert memory.forget("ann", fact_id=known).facts == 3
    assert rewrites == [memory.connection]


def test_a_redis_of_ones_own_is_left_alone(memory: MemoryOS) -> None:
    def rewrites() -> object:
        return memory.connection.client.info("commandstats").get("cmdstat_bgrewriteaof")

    before = rewrites()
    rewrite_log(memory.connection)
    assert rewrites() == before
