"""The shape of the code: state keys that exist, stages that can be seen, files that are in the wheel."""

import importlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import StateGraph
from typing_extensions import get_type_hints, is_typeddict

from langgraph_memoryos.graphs.hybrid import build_hybrid_recall_graph
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from tests.memory_support import OpenMemory, PlayedModel

pytest_plugins = ["tests.memory_fixtures"]

ROOT = Path(__file__).parent.parent
GRAPHS = ("recall", "remember", "chat", "consolidate", "memgpt", "hybrid", "hybrid recall")
RECALL_STEPS = {
    "resolve_turn", "retrieve_short_term", "retrieve_mid_term", "retrieve_long_term", "assemble_memory", "record_visits",
}
MAINTENANCE_STEPS = {
    "select_overflow", "analyse_pages", "assign_segments", "summarise_segments", "refresh_segments",
    "evict_cold_segments", "promote_hot_segments", "load_known_persona", "digest_segments", "update_persona",
    "cool_segments",
}
HYBRID_RECALL_STEPS = {*RECALL_STEPS - {"resolve_turn"}, "ask_memory", "exclude_queued_pages"}
LOOP_STEPS = {
    "ingest_event", "build_context", "check_pressure", "select_evicted", "replace_evicted", "call_model",
    "execute_functions", "finish_event",
}
STEPS = {
    "recall": RECALL_STEPS,
    "remember": {"write_page", *MAINTENANCE_STEPS},
    "chat": {"generate_reply", "write_page", *RECALL_STEPS, *MAINTENANCE_STEPS},
    "consolidate": {"choose_queue", "another_queue", *MAINTENANCE_STEPS},
    "memgpt": {*LOOP_STEPS, "summarise_evicted"},
    "hybrid": {
        *LOOP_STEPS, *HYBRID_RECALL_STEPS, "choose_filed_pages", "derive_summary",
        *MAINTENANCE_STEPS - {"select_overflow", "summarise_segments"},
    },
    "hybrid recall": HYBRID_RECALL_STEPS,
}
WITHOUT_A_FILE = {"recall", "remember", "another_queue", "recall_memory"}
SHIPPED = {".py", ".lua", ".jsonl", ".typed"}


@pytest.fixture
def chatting(open_memory: OpenMemory) -> MemoryOS:
    return open_memory(model=PlayedModel())


def built(memory: MemoryOS, name: str) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder of a graph."""
    if name == "hybrid recall":
        return build_hybrid_recall_graph(memory.parts, max_memory_tokens=1000)
    if name in ("memgpt", "hybrid"):
        return VirtualContext(memory, settings=VirtualContextSettings(mode=name)).builder()
    return memory.builder(name)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_key_a_step_reads_or_writes_is_a_channel(chatting: MemoryOS, name: str) -> None:
    """LangGraph drops undeclared keys silently."""
    builder = built(chatting, name)
    declared = set(get_type_hints(builder.state_schema))
    seen = set()
    for step in set(builder.nodes) - WITHOUT_A_FILE:
        module = importlib.import_module(f"langgraph_memoryos.nodes.{step}")
        schemas = [each for each in vars(module).values() if is_typeddict(each) and each.__module__ == module.__name__]
        assert any(schema.__name__.endswith("Update") for schema in schemas), step
        for schema in schemas:
            assert set(get_type_hints(schema)) <= declared, f"{step}: {schema.__name__}"
        inputs = [each for each in vars(module).values() if is_typeddict(each) and each.__name__.endswith("Input")]
        assert builder.nodes[step].input_schema in {*inputs, *(base for base in (builder.input_schema,))}, step
        seen.add(step)
    assert seen == set(builder.nodes) - WITHOUT_A_FILE


@pytest.mark.parametrize("name", GRAPHS)
def test_every_question_sees_the_whole_state(chatting: MemoryOS, name: str) -> None:
    """A route without a schema sees only what its step reads or writes."""
    builder = built(chatting, name)
    for step, routes in builder.branches.items():
        for route in routes.values():
            assert route.input_schema is builder.state_schema, step


@pytest.mark.parametrize("name", GRAPHS)
def test_every_stage_can_be_seen(chatting: MemoryOS, name: str) -> None:
    drawn = built(chatting, name).compile().get_graph(xray=1).nodes
    assert {node.split(":")[-1] for node in drawn} - {"__start__", "__end__"} == STEPS[name]


def test_deferred_maintenance_shows_no_maintenance(open_memory: OpenMemory) -> None:
    memory = open_memory(settings=MemorySettings(maintenance="deferred"))
    assert set(memory.remember.get_graph().nodes) == {"__start__", "write_page", "__end__"}


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "hybrid recall"])
def test_schemas_have_forms(chatting: MemoryOS, name: str) -> None:
    graph = built(chatting, name).compile()
    for schema in (graph.get_input_jsonschema(), graph.get_output_jsonschema(), graph.get_context_jsonschema()):
        assert schema["properties"]
        assert [name for name, field in schema["properties"].items() if not field.get("description")] == []
    assert "user_id" in graph.get_context_jsonschema()["properties"]
    assert graph.get_input_jsonschema()["properties"]["user_id"]["description"]


@pytest.mark.parametrize("top", ["graphs", "nodes", "stores", "prompts"])
def test_the_four_folders_are_imported_by_their_full_names_only(top: str) -> None:
    link = ROOT / "langgraph_memoryos" / top
    assert link.resolve() == ROOT / top
    module = importlib.import_module(f"langgraph_memoryos.{top}")
    assert module.__name__ == f"langgraph_memoryos.{top}"
    bare = [
        path for path in ROOT.glob(f"{top}/*.py")
        if any(line.startswith((f"from {other}", f"import {other}")) for line in path.read_text().splitlines()
               for other in ("graphs", "nodes", "stores", "prompts", "."))
    ]
    assert bare == []


def test_the_wheel_holds_every_file_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "README.md").write_text("# Read me\n")
    for folder in ("langgraph_memoryos", "graphs", "nodes", "prompts", "stores"):
        shutil.copytree(ROOT / folder, source / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, source],
        check=True, capture_output=True, timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == set(shipped_files())


def shipped_files() -> Any:
    for folder in ("langgraph_memoryos", "graphs", "nodes", "prompts", "stores"):
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT)
            linked = len(inside.parts) > 2 and (ROOT / Path(*inside.parts[:2])).is_symlink()
            if path.is_file() and path.suffix in SHIPPED and not linked:
                yield inside.as_posix() if folder == "langgraph_memoryos" else f"langgraph_memoryos/{inside.as_posix()}"
