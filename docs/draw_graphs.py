# ruff: noqa: INP001 - a script
"""Draws the graphs between ``<!-- graph:NAME -->`` and ``<!-- /graph -->`` of README.md and docs; needs no Redis.

python docs/draw_graphs.py [--check]
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import StateGraph
from redis import Redis

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.graphs import (
    MemoryParts,
    build_chat_graph,
    build_consolidate_graph,
    build_recall_graph,
    build_remember_graph,
    build_virtual_context_graph,
)
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.facts import FactStore
from langgraph_memoryos.stores.keys import Namespace
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.stores.personas import PersonaStore
from langgraph_memoryos.stores.recall import RecallStore
from langgraph_memoryos.stores.segments import SegmentStore
from langgraph_memoryos.virtual_settings import VirtualContextSettings

ROOT = Path(__file__).parent.parent
MODEL = FakeListChatModel(responses=[""])
BUILDERS: dict[str, Callable[[MemoryParts], StateGraph[Any, Any, Any, Any]]] = {
    "chat": lambda parts: build_chat_graph(parts, model=MODEL),
    "recall": build_recall_graph,
    "remember": build_remember_graph,
    "consolidate": build_consolidate_graph,
    "virtual_context": lambda parts: build_virtual_context_graph(parts, model=MODEL),
    "hybrid": lambda parts: build_virtual_context_graph(
        parts, model=MODEL, settings=VirtualContextSettings(mode="hybrid"),
    ),
}
PLACES = {
    ROOT / "README.md": ("chat", "recall", "remember", "consolidate", "virtual_context"),
    ROOT / "docs" / "memgpt.md": ("hybrid",),
}
# GitHub shows the front matter as text, so what LangGraph puts there is left out.
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def pictures() -> dict[str, str]:
    """Return the Mermaid text of each graph by name."""
    parts = unconnected_parts()
    return {name: picture(build(parts)) for name, build in BUILDERS.items()}


def picture(builder: StateGraph[Any, Any, Any, Any]) -> str:
    """Return the Mermaid text of one graph, its subgraphs closed."""
    return _FRONT_MATTER.sub("", builder.compile().get_graph().draw_mermaid()).strip()


def unconnected_parts() -> MemoryParts:
    """Return parts that are good for drawing only: nothing in them connects before it is used."""
    client, settings = Redis(), MemorySettings()
    place: dict[str, Any] = {
        "namespace": Namespace(), "embedder": Embedder(DeterministicFakeEmbedding(size=8)),
    }
    return MemoryParts(
        pages=PageStore(client, **place), segments=SegmentStore(client, **place),
        facts=FactStore(client, **place), personas=PersonaStore(client, namespace=Namespace()),
        recall=RecallStore(client, settings=settings, **place), settings=settings,
        analyst=DeterministicAnalyst(),
    )


def with_pictures(text: str, names: Iterable[str] = tuple(BUILDERS)) -> str:
    """Return the text with the pictures of the named graphs drawn anew.

    Raises:
        ValueError: the markers of a graph are missing, or there are two of them.
    """
    drawings = pictures()
    for name in names:
        place = re.compile(rf"(<!-- graph:{name} -->\n).*?(<!-- /graph -->)", re.DOTALL)
        block = f"```mermaid\n{drawings[name]}\n```\n"
        text, found = place.subn(lambda match, block=block: f"{match[1]}{block}{match[2]}", text)
        if found != 1:
            raise ValueError(
                f"Expected <!-- graph:{name} --> and, below it, <!-- /graph --> once, but found {found}."
            )
    return text


def main() -> int:
    """Rewrite the files, or with ``--check`` say whether that would change any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the pictures are old")
    check = parser.parse_args().check
    changed = False
    for place, names in PLACES.items():
        before = place.read_text(encoding="utf-8") if place.exists() else ""
        try:
            after = with_pictures(before, names)
        except ValueError as error:
            sys.exit(f"{place.name}: {error}")
        changed = changed or after != before
        if not check:
            place.write_text(after, encoding="utf-8")
    return int(check and changed)


if __name__ == "__main__":
    sys.exit(main())
