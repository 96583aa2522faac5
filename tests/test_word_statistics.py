"""Word statistics: a common word weighs little, and a restart changes neither order nor scores.

Engines before November 2025 give a word that counts in more documents than there are, since changed and erased ones
count until they are collected, an inverse frequency that wraps around (RediSearch pull request 7223).
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.embedded import EmbeddedLease, lease_embedded_redis
from langgraph_memoryos.stores.embedded_supervisor import PID_FILE
from langgraph_memoryos.stores.query import owner_filter, text_hits, text_search
from langgraph_memoryos.stores.search import SearchRequest, SearchStore
from tests.conftest import SERVER_VARIABLE, server_program
from tests.memory_support import START, HashEmbeddings, exchange, tell

pytestmark = pytest.mark.redis

SCOPE = Scope(user_id="ann", agent_id="assistant")
RARE = "The veterinarian in Bergen looks at the left ear of my dog on Friday"
CHUNKS = [f"Every chunk of the manual names the dog, and only this one has part{n}x." for n in range(24)]


def start(data_dir: Path) -> EmbeddedLease:
    program = server_program(os.environ.get(SERVER_VARIABLE, "embedded"))
    return lease_embedded_redis(data_dir, program=program, grace_seconds=0.1)


def open_on(lease: EmbeddedLease) -> MemoryOS:
    return MemoryOS.open_sync(
        f"unix://{lease.socket_path}", embeddings=HashEmbeddings(), analyst=DeterministicAnalyst())


def wait_until_stopped(data_dir: Path) -> None:
    until = time.monotonic() + 20
    while (data_dir / PID_FILE).exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def weight(memory: MemoryOS, index: str, word: str) -> float:
    """Return the best BM25 score of a word by itself."""
    store = memory.parts.pages
    command = text_search(
        store.namespace.index(index), owner_filter(store.namespace.keys(SCOPE)), [word], count=1, fields=())
    return text_hits(memory.connection.client.execute_command(*command))[0].relevance


def answers(memory: MemoryOS) -> dict[str, Any]:
    """Return orders and scores of every search that counts words."""
    search = memory.parts.pages.sibling(SearchStore)
    request = SearchRequest(query="dog part7x", semantic_hits=0)
    return {
        "recalled": [
            (found.page.query, round(found.parts["window"], 6))
            for found in memory.search("dog veterinarian", user_id="ann")
        ],
        "conversation": [page.query for page in search.conversation(
            SCOPE, SearchRequest(query="dog veterinarian", semantic_hits=0)).items],
        "archive": [item.text for item in search.archive(SCOPE, request).items],
        "weights": [
            round(weight(memory, index, word), 6)
            for index, word in (("window", "dog"), ("window", "veterinarian"), ("archive", "dog"), ("archive", "part7x"))
        ],
    }


def fill(memory: MemoryOS) -> None:
    tricks = [exchange(f"My dog learnt trick number {n}", f"Trick {n}!", thread_id=f"day {n // 5}") for n in range(30)]
    tell(memory, "ann", *tricks[:12], exchange(RARE, "Good luck.", thread_id="day 2"), *tricks[12:])
    memory.parts.pages.sibling(ArchivalStore).insert(SCOPE, CHUNKS, now=START)


def test_common_word_weighs_little_and_a_restart_changes_nothing(tmp_path: Path):
    with start(tmp_path) as lease:
        # Redis Search does not scan an empty database for documents, and most are not empty.
        with open_on(lease) as memory:
            memory.connection.client.set("someone-elses", "key")
            fill(memory)
            before = answers(memory)
        assert (tmp_path / PID_FILE).exists()
    wait_until_stopped(tmp_path)
    with start(tmp_path) as lease, open_on(lease) as memory:
        assert answers(memory) == before
    assert before["recalled"][0][0] == before["conversation"][0] == RARE
    assert before["archive"][0] == CHUNKS[7]
    common_said, rare_said, common_kept, rare_kept = before["weights"]
    assert max(common_said, common_kept) < 0.1
    assert min(rare_said, rare_kept) > 1


def test_what_is_missing_is_indexed_when_a_memory_is_opened(tmp_path: Path):
    with start(tmp_path) as lease:
        with open_on(lease) as memory:
            fill(memory)
            before = answers(memory)
            for index in memory.connection.client.execute_command("FT._LIST"):
                memory.connection.client.execute_command("FT.DROPINDEX", index)
        with open_on(lease) as memory:
            assert answers(memory) == before


def test_erased_pages_stop_counting(tmp_path: Path):
    with start(tmp_path) as lease, open_on(lease) as memory:
        fill(memory)
        memory.forget("ann", thread_id="day 0")
        until = time.monotonic() + 30
        while weight(memory, "window", "dog") > 0.1:
            assert time.monotonic() < until
            time.sleep(0.2)
