"""The protocol between the scoreboard and other memory libraries, with the plainest adapter; no library is needed."""

import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import locomo
from benchmarks.adapters.host import Item, RivalFailedError, has_the_side, open_rivals, packed
from benchmarks.adapters.loopback import LoopbackModels
from benchmarks.adapters.setup import NAMES, interpreter, python_of, requirements
from benchmarks.embedding_cache import HashedWords
from langgraph_memoryos.conversations import load
from langgraph_memoryos.dialogue import Conversation, Question
from langgraph_memoryos.records import Exchange
from langgraph_memoryos.stores.embedder import Embedder

SLICE = Path(__file__).parent.parent / "benchmarks" / "slices" / "english.jsonl"


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(HashedWords())


@pytest.fixture(scope="module")
def gold() -> locomo.Gold:
    return locomo.Gold(load(SLICE)[0])


def test_a_rival_in_another_process_is_marked_like_every_system(embedder: Embedder, gold: locomo.Gold) -> None:
    board = locomo.Board()
    questions = locomo.asked(gold)[:3]
    last_n = list(range(len(gold.exchanges)))[::-1]

    with open_rivals(["newest"], embedder) as rivals:
        assert rivals.fill(gold, board).keys() == {"newest"}
        for question in questions:
            rivals.ask(gold, board, question, locomo.TOKEN_BUDGETS)
            board.ranking("expected", gold, question, last_n)
            for budget in locomo.TOKEN_BUDGETS:
                kept = gold.packed(last_n, budget)
                board.injected("expected", gold, question, kept, budget=budget, tokens=sum(
                    gold.entry_costs[number] for number in kept))
        told = rivals.report()["newest"]

    def without_name(name: str) -> list[dict[str, Any]]:
        return [row | {"system": ""} for row in board.rows() if row["system"] == name]

    assert without_name("newest") == without_name("expected")
    assert told["ran"]
    assert told["settings"] == "newest first"
    assert told["query_ms"] >= 0
    assert told["chat_calls_per_page"] == told["embedding_calls_per_query"] == 0


def test_a_rival_that_cannot_run_is_told_in_one_sentence(embedder: Embedder, gold: locomo.Gold) -> None:
    board = locomo.Board()

    with open_rivals(["newest:refuses", "absent"], embedder) as rivals:
        rivals.fill(gold, board)
        rivals.ask(gold, board, locomo.asked(gold)[0], locomo.TOKEN_BUDGETS)

        assert rivals.report() == {
            "newest_refuses": {"ran": False, "reason": "It does not want to."},
            "absent": {
                "ran": False,
                "reason": "It is not installed: run `python -m benchmarks.adapters.setup absent`.",
            },
        }
    assert board.rows() == []


def test_marks_of_a_rival_that_breaks_on_the_way_are_dropped(embedder: Embedder, gold: locomo.Gold) -> None:
    board = locomo.Board()
    first, second = locomo.asked(gold)[:2]

    with open_rivals(["newest"], embedder) as rivals:
        rivals.fill(gold, board)
        rivals.ask(gold, board, first, locomo.TOKEN_BUDGETS)
        assert board.rows()
        rivals._running["newest"]._process.kill()
        rivals.ask(gold, board, second, locomo.TOKEN_BUDGETS)

        assert board.rows() == []
        assert rivals.report()["newest"]["reason"].startswith("It ended by itself")


def test_a_crash_is_told_by_its_last_words(embedder: Embedder) -> None:
    with open_rivals(["newest"], embedder) as rivals, pytest.raises(RivalFailedError, match="KeyError: 'nobody'"):
        rivals._running["newest"].ask({"op": "query", "user": "nobody", "text": "?"})


def test_a_failed_question_counts_as_nothing_found(embedder: Embedder, gold: locomo.Gold) -> None:
    board = locomo.Board()
    question = replace(locomo.asked(gold)[0], text="")

    with open_rivals(["newest"], embedder) as rivals:
        rivals.fill(gold, board)
        rivals.ask(gold, board, question, locomo.TOKEN_BUDGETS)
        told = rivals.report()["newest"]

    assert {row["recall"] for row in board.rows()} == {0.0}
    assert (told["failed_queries"], told["first_failure"]) == (1, "There is no question.")


def test_items_of_a_rival_are_packed_into_the_budget(gold: locomo.Gold) -> None:
    costs = gold.entry_costs

    whole = [Item([1]), Item([1]), Item([2])]

    assert packed(gold, whole, 10_000) == (whole, costs[1] + costs[2])
    assert packed(gold, [Item([3], "word " * 5_000), Item([4], "short")], 200)[0] == [Item([4], "short")]


def test_one_side_of_a_page_counts_if_it_is_the_one_with_the_evidence() -> None:
    exchange = Exchange(query="a", reply="b", said_at=0.0, thread_id="t", source_ids=("1", "2"))
    gold = locomo.Gold(Conversation(sample_id="s", user_name="", agent_name="", exchanges=(exchange,)))
    question = Question(text="?", answer="", evidence=("2",))

    assert has_the_side(gold, question, Item([0]), 0)
    assert has_the_side(gold, question, Item([0], "b", "assistant"), 0)
    assert not has_the_side(gold, question, Item([0], "a", "user"), 0)


def test_the_endpoint_embeds_questions_and_pages_apart(embedder: Embedder) -> None:
    class Sides(HashedWords):
        def embed_query(self, text: str) -> list[float]:
            return [1.0, 0.0]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[0.0, 1.0] for _ in texts]

    with LoopbackModels(Embedder(Sides())) as models:
        assert _embedded(models, ["a", "b"]) == [[0.0, 1.0], [0.0, 1.0]]
        models.side = "query"
        assert _embedded(models, "a") == [[1.0, 0.0]]
        assert models.embedding_calls == 2
        assert models.answer("/v1/chat/completions", {})[0] == 503
        assert models.answer("/v1/models", {})[0] == 404
        assert models.chat_calls == 1


def _embedded(models: LoopbackModels, texts: Any) -> list[list[float]]:
    request = urllib.request.Request(
        f"{models.base_url}/embeddings", data=json.dumps({"input": texts}).encode(),
    )
    with urllib.request.urlopen(request) as reply:
        return [item["embedding"] for item in json.loads(reply.read())["data"]]


def test_every_library_has_an_adapter_and_pins_everything() -> None:
    adapters = Path(locomo.__file__).parent / "adapters"
    for name in NAMES:
        assert (adapters / f"{name}.py").exists()
        assert python_of(name).parts[-3:] == (name, "bin", "python")
        first, *pins = requirements(name).read_text().splitlines()
        assert first.startswith("# Python 3.")
        assert pins
        assert all("==" in pin for pin in pins)


def test_a_missing_python_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "requirements-old.txt").write_text("# Python 2.1\n")
    monkeypatch.setattr("benchmarks.adapters.setup.HERE", tmp_path)

    with pytest.raises(FileNotFoundError, match=r"old wants Python 2\.1"):
        interpreter("old")
