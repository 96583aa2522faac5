"""The README's examples run as they stand, on the embedded Redis and the bundled models."""

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(README.parent)


def example(importing: str, *, most_lines: int) -> str:
    """Return the only example that imports a name."""
    sources = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (source,) = (source for source in sources if re.search(rf"^from .* import .*\b{importing}\b", source, re.MULTILINE))
    assert len([line for line in source.splitlines() if line.strip()]) <= most_lines
    return source


def run(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(source, "README.md", "exec"), names)
    return names


@pytest.mark.model
def test_the_example_remembers_from_one_thread_to_the_next() -> None:
    names = run(example("StateGraph", most_lines=18))
    with names["memory"]:
        later = names["graph"].invoke(
            {"messages": [("user", "Which food must I avoid?")]},
            {"configurable": {"thread_id": "mara-2", "user_id": "mara"}},
        )
        assert "I am allergic to peanuts." in later["memory"]["text"]
        other = names["graph"].invoke(
            {"messages": [("user", "Which food must I avoid?")]},
            {"configurable": {"thread_id": "bob-1", "user_id": "bob"}},
        )
        assert other["memory"]["text"] == ""


@pytest.mark.model
def test_the_example_of_the_virtual_context_answers_and_finds(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(example("VirtualContext", most_lines=15))
    told = capsys.readouterr().out
    assert 1 <= names["turn"]["steps"] <= 8
    assert "I moved to Oslo with my dog Bello." in told
    assert "source='README.md'" in told
    assert re.search(r"Showing 5 of \d+ results.*[Ee]mbedded Redis", told, re.DOTALL)


def test_every_example_is_run() -> None:
    assert README.read_text(encoding="utf-8").count("```python") == 2
