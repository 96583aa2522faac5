"""The README's example runs as it stands, on the embedded Redis and the bundled models."""

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.model
def test_the_example_remembers_from_one_thread_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    (source,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in source.splitlines() if line.strip()]) <= 18
    names: dict[str, Any] = {}
    exec(compile(source, "README.md", "exec"), names)
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
