"""The pictures of the graphs in the README are those of the graphs."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings

pytest_plugins = ["tests.memory_fixtures"]

ROOT = Path(__file__).parent.parent


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


draw_graphs = load(ROOT / "docs" / "draw_graphs.py")
MARKED = "".join(f"<!-- graph:{name} -->\nOUTDATED\n<!-- /graph -->\n" for name in draw_graphs.BUILDERS)


@pytest.mark.parametrize(("place", "names"), draw_graphs.PLACES.items())
def test_the_documents_show_the_graphs_as_they_are(place: Path, names: tuple[str, ...]) -> None:
    text = place.read_text(encoding="utf-8")

    assert draw_graphs.with_pictures(text, names) == text, "run `python docs/draw_graphs.py`"


def test_every_graph_is_shown_once() -> None:
    shown = [name for names in draw_graphs.PLACES.values() for name in names]

    assert sorted(shown) == sorted(draw_graphs.BUILDERS)


@pytest.mark.parametrize("name", ["recall", "remember", "consolidate"])
def test_a_picture_is_that_of_the_opened_memory(memory: MemoryOS, name: str) -> None:
    assert draw_graphs.picture(memory.builder(name)) == draw_graphs.pictures()[name]


@pytest.mark.parametrize(("name", "mode"), [("virtual_context", "memgpt"), ("hybrid", "hybrid")])
def test_a_picture_of_the_loop_is_that_of_the_opened_memory(memory: MemoryOS, name: str, mode: Any) -> None:
    opened = VirtualContext(memory, model=draw_graphs.MODEL, settings=VirtualContextSettings(mode=mode))

    assert draw_graphs.picture(opened.builder()) == draw_graphs.pictures()[name]


def test_pictures_are_plain_mermaid_with_every_step() -> None:
    drawn = draw_graphs.with_pictures(MARKED)

    assert drawn.count("```mermaid\ngraph TD;") == len(draw_graphs.BUILDERS)
    assert "OUTDATED" not in drawn
    for step in (
        "retrieve_mid_term", "generate_reply", "write_page", "promote_hot_segments", "choose_queue", "execute_functions", "derive_summary",
    ):
        assert step in drawn
    assert draw_graphs.with_pictures(drawn) == drawn


@pytest.mark.parametrize("text", ["", MARKED.replace("<!-- graph:recall -->", ""), MARKED * 2])
def test_missing_or_doubled_markers_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"<!-- graph:\w+ -->"):
        draw_graphs.with_pictures(text)
