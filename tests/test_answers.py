"""Answers from memory: LoCoMo's marks on hand-computed cases, and runs on the English slice with a real Redis."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from benchmarks import answers
from benchmarks.answer_scores import answer_marks, answer_tokens
from benchmarks.locomo import Gold
from langgraph_memoryos.conversations import load
from langgraph_memoryos.dialogue import Conversation, Question
from langgraph_memoryos.local_models import GGUF_VARIABLE, stop_local_servers
from tests.scripted_model import ScriptedModel

ENGLISH = Path(__file__).parent.parent / "benchmarks" / "slices" / "english.jsonl"
SYSTEMS = ("ours", "bm25", "dense", "two_stage", "evidence", "nothing")


def f1(answer: str, gold: str, category: str = "4") -> float:
    return answer_marks(answer, gold, category=category).f1


def bleu1(answer: str, gold: str, category: str = "4") -> float | None:
    return answer_marks(answer, gold, category=category).bleu1


def test_text_is_normalised_as_in_the_official_scorer() -> None:
    assert answer_tokens("The Dogs, and a CAT's toy-box: 1,200!") == ["dog", "cat", "toybox", "1200"]
    assert answer_tokens("an the AND a ...") == []


@pytest.mark.parametrize("category", ["2", "4", "temporal"])
def test_f1_is_over_stems(category: str) -> None:
    assert f1("She paints sunsets", "painting a sunset", category) == pytest.approx(0.8)  # 2 of 3, 2 of 2
    assert f1("7 May 2023", "7 May, 2023", category) == 1
    assert f1("dog dog cat", "dog", category) == pytest.approx(0.5)  # a repeated word counts once
    assert f1("swimming", "painting", category) == 0


def test_category_1_is_the_mean_over_the_right_answers_of_the_best_given_one() -> None:
    # The beach is found, mountains with one word too many, the forest not at all.
    assert f1("the beach, high mountains", "beach, mountains, forest", "1") == pytest.approx((1 + 2 / 3 + 0) / 3)
    # One part with all the words is not several answers: each has precision 1/3, recall 1.
    assert f1("beach mountains forest", "beach, mountains, forest", "1") == pytest.approx(0.5)
    # Plain F1 knows no parts.
    assert f1("beach mountains forest", "beach, mountains, forest", "4") == 1


def test_category_3_has_its_reason_after_a_semicolon() -> None:
    assert f1("Likely no", "Likely no; she wants to be a counselor", "3") == 1
    assert bleu1("Likely no", "Likely no; she wants to be a counselor", "3") == 1
    assert f1("Likely no", "Likely no; she wants to be a counselor", "4") < 1


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        ("Not mentioned.", 1), ("There is NO INFORMATION AVAILABLE on that.", 1), ("It was not mentioned in the talk", 1),
        ("I do not know", 0), ("a red bicycle", 0), ("", 0),
    ],
)
def test_category_5_wants_a_refusal_in_the_scorers_words(answer: str, mark: float) -> None:
    assert f1(answer, "a red bicycle", "5") == mark
    assert bleu1(answer, "", "5") is None


@pytest.mark.parametrize("category", ["1", "2", "3", "4"])
@pytest.mark.parametrize(("answer", "gold"), [("", "Sweden"), ("the", "Sweden"), ("Sweden", "the"), (", ,", "a, b")])
def test_nothing_said_is_worth_nothing(answer: str, gold: str, category: str) -> None:
    assert (f1(answer, gold, category), bleu1(answer, gold, category)) == (0, 0)


def test_bleu_1_is_precision_with_a_penalty_for_brevity() -> None:
    assert bleu1("red bicycle with bell", "red bicycle") == pytest.approx(0.5)
    assert bleu1("red", "red bicycle") == pytest.approx(math.exp(-1))
    assert bleu1("red red red", "red bicycle") == pytest.approx(1 / 3)  # a repeated word counts once
    assert bleu1("beach, forest", "beach, forest", "1") == 1


def test_writing_without_spaces_is_compared_in_parts() -> None:
    # 她住在 杭州: four pairs of characters, of which 杭州 is the gold's only one.
    assert f1("她住在杭州。", "杭州") == pytest.approx(2 * (1 / 4 * 1) / (1 / 4 + 1))
    assert bleu1("她住在杭州。", "杭州") == pytest.approx(1 / 4)
    assert f1("杭州", "苏州") == 0
    assert f1("海滩\uff0c森林", "森林\u3001海滩", "1") == 1
    assert f1("2024年10月", "2024年10月") == 1


def test_the_sample_has_each_category_by_its_share_and_grows_with_the_seed_kept() -> None:
    golds = [
        Gold(Conversation(sample_id=name, user_name="", agent_name="", exchanges=(), questions=tuple(
            [Question(text=f"{name}{at}", answer="x", category="4") for at in range(16)]
            + [Question(text=f"{name}five{at}", answer="", category="5") for at in range(4)]
            + [Question(text="no right answer", answer="", category="4")]
        ))) for name in "ab"
    ]

    def chosen(count: int | None, seed: int = 3) -> set[str]:
        return {item.text for part in answers.sampled(golds, count=count, seed=seed) for item in part}

    assert sum("five" in text for text in chosen(10)) == 2
    assert len(chosen(10)) == 10
    assert chosen(10) < chosen(20) < chosen(None)
    assert len(chosen(None)) == 40
    assert chosen(10) == chosen(10)
    assert chosen(10) != chosen(10, seed=4)


def replies_in_order(conversations: list[Conversation], count: int) -> list[Any]:
    """The right answer for each question and system, in the order in which they are asked."""
    samples = answers.sampled([Gold(item) for item in conversations], count=count, seed=1)
    return [question.answer for part in samples for question in part for _ in SYSTEMS]


def row(report: dict[str, Any], system: str, categories: str = "all") -> dict[str, Any]:
    return next(row for row in report["rows"] if (row["system"], row["categories"]) == (system, categories))


def test_a_run_asks_every_system_counts_failures_and_goes_on_where_it_was(redis_url: str, tmp_path: Path) -> None:
    conversations = load(ENGLISH)
    said: list[str] = []

    def run(model: ScriptedModel) -> dict[str, Any]:
        answerer = answers.Answerer(model, name="scripted", path=tmp_path / "answers.jsonl")
        return answers.evaluate(
            conversations, answerer, systems=SYSTEMS, count=4, seed=1, cache=tmp_path / "embeddings.npz",
            redis_url=redis_url, say=said.append,
        )

    right = replies_in_order(conversations, 4)
    model = ScriptedModel(replies=[RuntimeError("overloaded"), *right[1:]])
    report = run(model)

    assert {item["system"] for item in report["rows"]} == set(SYSTEMS)
    assert (row(report, "ours")["f1"], row(report, "ours")["failed"]) == (0.75, 1)
    assert report["answers"][0]["reply"]["failure"] == "RuntimeError: overloaded"
    for system in SYSTEMS[1:]:
        found = row(report, system)
        assert (found["f1"], found["bleu1"], found["failed"]) == (1, 1, 0)
        assert (found["questions"], found["model_calls"], found["prompt_tokens"]) == (4, 4, 40)
    assert (report["seed"], report["prompt"]) == (1, answers.PROMPT)
    assert answers.PROMPT in answers.table(report)
    assert json.loads(json.dumps(report)) == report
    assert sum("overloaded" in line for line in said) == 1

    # All but `nothing` get a memory within the budget, under the same heading; the evidence is in its own.
    for prompt in model.asked:
        assert isinstance(prompt[-1], HumanMessage)
    texts = [prompt[0].text for prompt in model.asked if isinstance(prompt[0], SystemMessage)]
    assert len(texts) == 4 * (len(SYSTEMS) - 1)
    assert all(text.startswith("Memory of earlier conversations") for text in texts)

    with (tmp_path / "answers.jsonl").open("a") as lines:
        lines.write('{"key": "torn')
    again = ScriptedModel(replies=[right[0]])
    resumed = run(again)

    assert len(again.asked) == 1
    assert (row(resumed, "ours")["f1"], row(resumed, "ours")["kept"], row(resumed, "ours")["model_calls"]) == (1, 3, 1)
    assert row(resumed, "bm25")["model_calls"] == 0
    assert row(resumed, "bm25")["prompt_tokens"] == 40


def test_without_reported_usage_prompt_tokens_are_estimated() -> None:
    class Silent(ScriptedModel):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            result = super()._generate(*args, **kwargs)
            result.generations[0].message = AIMessage(result.generations[0].message.content)
            return result

    (reply,) = answers.Answerer(Silent(replies=[" yes "]), name="m").ask([[HumanMessage("x" * 40)]])

    assert (reply.text, reply.prompt_tokens, reply.kept) == ("yes", 10, False)


def test_the_command_line_names_unknown_systems(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr("sys.argv", ["answers", "--data", str(ENGLISH), "--systems", "ours,mem9"])

    with pytest.raises(SystemExit):
        answers.main()

    assert "no such system: mem9; there are ours" in capsys.readouterr().err


@pytest.mark.model
def test_the_bundled_model_answers(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_EMBEDDING_MODEL", GGUF_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    out = tmp_path / "out.json"
    monkeypatch.setattr("sys.argv", [
        "answers", "--data", str(ENGLISH), "--json", str(out), "--questions", "2", "--systems", "ours,nothing",
        "--set", "max_memory_tokens=150", "--redis-url", redis_url,
    ])

    try:
        answers.main()
    finally:
        stop_local_servers()

    report = json.loads(out.read_text())
    assert {item["failed"] for item in report["rows"]} == {0}
    assert row(report, "ours")["prompt_tokens"] > row(report, "nothing")["prompt_tokens"] > 0
    assert all(item["reply"]["text"] for item in report["answers"])
    assert "| nothing | all | 2 |" in capsys.readouterr().out
