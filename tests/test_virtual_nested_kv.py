"""Nested key-value lookups: the scripted policy through the real tools and the real Redis."""

import json
import random
import uuid
from pathlib import Path

from benchmarks import nested_kv
from langgraph_memoryos.memory import MemoryOS

pytest_plugins = ["tests.memory_fixtures"]


def write_data(directory: Path, *, seed: int = 11) -> None:
    """Write pairs and orderings in the shape of the original data."""
    rng = random.Random(seed)
    pairs = [[str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(2)] for _ in range(140)]
    (directory / "kv-retrieval-140_keys.jsonl").write_text(json.dumps({"ordered_kv_records": pairs}) + "\n")
    for lookups in range(1, 7):
        rows = [json.dumps(rng.sample(range(140), lookups)) for _ in range(100)]
        (directory / f"orderings_{lookups}_levels.jsonl").write_text("\n".join(rows) + "\n")


def test_the_scripted_policy_is_always_right(memory: MemoryOS, tmp_path: Path):
    write_data(tmp_path)
    rows = list(nested_kv.run(memory, tmp_path, policy="scripted"))
    assert rows == [{"lookups": lookups, "questions": 100, "accuracy": 1.0} for lookups in range(1, 7)]


def test_a_chain_overwrites_values_by_the_next_key():
    pairs = [("a", "1"), ("b", "2"), ("c", "3")]
    assert nested_kv.chain(pairs, [0, 2, 1]) == nested_kv.Chain(changed={0: "c", 2: "b"}, key="a", gold="2")


def test_the_policy_reads_further_pages_until_the_key_is_found():
    key, value = (str(uuid.UUID(int=number)) for number in (1, 2))
    shown: list[tuple[str, int]] = []

    def search(query: str, page: int) -> str:
        shown.append((query, page))
        if query == value:
            return "No results."
        hit = nested_kv.item_text(key, value) if page == 2 else nested_kv.item_text(value[::-1], key)
        return f"Showing 1 of 3 results (page {page}, last page 2):\n{hit}"

    assert nested_kv.follow(search, key) == value
    assert shown == [(key, 0), (key, 1), (key, 2), (value, 0)]
