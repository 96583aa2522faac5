"""Nested key-value lookups (MemGPT, section 3.2.2): follow a chain of UUIDs through the archive.

Run with ``python -m benchmarks.nested_kv --data DIR --policy scripted --json OUT``. ``DIR`` holds the pairs
(``kv-retrieval-*.jsonl``) and one file of orderings per number of lookups (``*_<N>_levels.jsonl``).
"""

import argparse
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.embedding_cache import HashedWords
from benchmarks.running import throwaway, write_report
from langgraph_memoryos.local_models import choose_chat_model
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.tools import memory_tools
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings

PAGE_SIZE = 10
_PAIR = re.compile(r"Key: ([0-9a-f-]{36}), Value: ([0-9a-f-]{36})")
_LAST_PAGE = re.compile(r"last page (\d+)")
TASK = (
    "The archive holds key-value pairs of UUIDs. A value may itself be a key: then look that up in turn. "
    "DO NOT STOP SEARCHING UNTIL YOU VERIFY THAT THE VALUE IS NOT A KEY. Send only the last value."
)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """One question: the pairs as they are for it, the key that is asked for, and the right answer."""

    changed: dict[int, str]
    key: str
    gold: str


def read_pairs(data: Path) -> list[tuple[str, str]]:
    """Return the pairs of the first record."""
    path = min(data.glob("kv-retrieval-*.jsonl"))
    with path.open(encoding="utf-8") as lines:
        return [(key, value) for key, value in json.loads(next(lines))["ordered_kv_records"]]


def read_orderings(data: Path) -> dict[int, list[list[int]]]:
    """Return the rows of indices by number of lookups."""
    found = {}
    for path in data.glob("*_levels.jsonl"):
        lookups = int(re.findall(r"(\d+)_levels", path.name)[0])
        lines = path.read_text(encoding="utf-8").splitlines()
        found[lookups] = [json.loads(line) for line in lines if line.strip()]
    return dict(sorted(found.items()))


def chain(pairs: Sequence[tuple[str, str]], row: Sequence[int]) -> Chain:
    """Return the question of one row: each value becomes the key of the next pair; the last stays."""
    changed = {here: pairs[there][0] for here, there in pairwise(row)}
    return Chain(changed=changed, key=pairs[row[0]][0], gold=pairs[row[-1]][1])


def item_text(key: str, value: str) -> str:
    """Return a pair as one item of the archive."""
    return f"Key: {key}, Value: {value}"


class PairArchive:
    """The pairs as items of the archive; for a question some values change, and change back after it."""

    def __init__(self, archival: ArchivalStore, scope: Scope, pairs: Sequence[tuple[str, str]]) -> None:
        self._archival = archival
        self._scope = scope
        self._pairs = pairs
        self._items = list(archival.insert(scope, [item_text(*pair) for pair in pairs], now=time.time()))

    def set(self, values: dict[int, str]) -> None:
        """Give the pairs with these numbers other values."""
        texts = [item_text(self._pairs[at][0], value) for at, value in values.items()]
        new = self._archival.insert(self._scope, texts, now=time.time())
        for at, item in zip(values, new, strict=True):
            self._archival.retire(self._scope, self._items[at], now=time.time(), successor=item)
            self._items[at] = item

    def reset(self, values: dict[int, str]) -> None:
        """Give them their own values back."""
        self.set({at: self._pairs[at][1] for at in values})


Search = Callable[[str, int], str]


def follow(search: Search, key: str, *, most: int = 50) -> str:
    """The scripted policy: look a key up, page by page, then its value, until a value is no key."""
    for _ in range(most):
        value = _look_up(search, key)
        if value is None:
            break
        key = value
    return key


def _look_up(search: Search, key: str) -> str | None:
    page, last = 0, 0
    while page <= last:
        shown = search(key, page)
        for found, value in _PAIR.findall(shown):
            if found == key:
                return str(value)
        last = int((_LAST_PAGE.findall(shown) or ["0"])[0])
        page += 1
    return None


def _answers(policy: str, memory: MemoryOS, user: str) -> Callable[[str], str]:
    settings = VirtualContextSettings(
        page_size=PAGE_SIZE, functions=("send_message", "archival_memory_search")
    )
    if policy == "scripted":
        tool = memory_tools(memory.parts, user_id=user, names=["archival_memory_search"], settings=settings)[
            0
        ]
        return lambda key: follow(lambda query, page: str(tool.invoke({"query": query, "page": page})), key)
    agent = VirtualContext(memory, settings=settings)

    def ask(key: str) -> str:
        sent = agent.send(
            f"{TASK}\nWhat is the value of the key {key}?", user_id=user, thread_id=uuid.uuid4().hex
        )["sent"]
        return " ".join(sent)

    return ask


def run(memory: MemoryOS, data: Path, *, policy: str, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield one row per number of lookups."""
    pairs = read_pairs(data)
    user = f"nested-kv-{uuid.uuid4().hex}"
    scope = Scope(user_id=user, agent_id=memory.parts.default_agent)
    archive = PairArchive(memory.parts.pages.sibling(ArchivalStore), scope, pairs)
    answer = _answers(policy, memory, user)
    try:
        for lookups, rows in read_orderings(data).items():
            right = 0
            for row in rows[:most]:
                question = chain(pairs, row)
                archive.set(question.changed)
                right += question.gold in answer(question.key)
                archive.reset(question.changed)
            asked = len(rows[:most])
            yield {"lookups": lookups, "questions": asked, "accuracy": right / asked}
    finally:
        memory.forget(user)


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--policy", choices=("scripted", "model"), default="scripted")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--questions", type=int, help="at most this many per number of lookups")
    given = parser.parse_args()
    name = "" if given.policy == "scripted" else choose_chat_model().name
    rows = []
    with throwaway(embeddings=HashedWords()) as memory:
        for row in run(memory, given.data, policy=given.policy, most=given.questions):
            rows.append(row)
            print(f"{row['lookups']} lookups: {row['accuracy']:.0%} of {row['questions']}", flush=True)
    write_report(given.json, {"policy": given.policy, "model": name, "rows": rows})


if __name__ == "__main__":
    main()
