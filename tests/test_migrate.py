"""Another embedder for an existing memory: complete, resumable, and never half done behind anybody's back."""

import hashlib
import json

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from langgraph_memoryos import MemoryOS
from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.errors import EmbedderMismatchError, SchemaMismatchError
from langgraph_memoryos.records import Exchange, Fact
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Namespace
from langgraph_memoryos.stores.migrate import Migration
from langgraph_memoryos.stores.schema import METRIC, failed_documents, read_origin

PAGES = 40
USERS = ("ann", "bea")


class HashedWords(Embeddings):
    """Counts of hashed words; ``fails_after`` texts it raises, as a server does that is out of quota."""

    def __init__(self, dimensions, fails_after=None):
        self.model = f"hashed-{dimensions}"
        self.dimensions = dimensions
        self.left = fails_after
        self.embedded = 0

    def embed_documents(self, texts):
        if self.left is not None:
            self.left -= len(texts)
            if self.left < 0:
                raise ConnectionError("out of quota")
        self.embedded += len(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        return self._vector(text)

    def _vector(self, text):
        counts = [0.01] * self.dimensions
        for word in text.lower().split():
            counts[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dimensions] += 1.0
        return counts


@pytest.fixture
def open_memory(redis_url, redis_prefix):
    def opened(embeddings):
        return MemoryOS.open_sync(
            redis_url, namespace=redis_prefix, embeddings=embeddings, analyst=DeterministicAnalyst()
        )

    return opened


@pytest.fixture
def migration(redis_connection, redis_prefix):
    def of(embeddings):
        embedder = Embedder(embeddings)
        assert embedder.background_mean < 1  # measured before the texts are counted
        if embeddings.left is not None:
            embeddings.left += embeddings.embedded
        embeddings.embedded = 0
        return Migration(redis_connection.client, namespace=Namespace(name=redis_prefix), embedder=embedder)

    return of


@pytest.fixture
def old(open_memory):
    """Two users with pages in both tiers, segments and a fact, embedded in 32 dimensions."""
    with open_memory(HashedWords(32)) as memory:
        for user in USERS:
            exchanges = [exchange(user, number) for number in range(PAGES)]
            assert len(list(memory.ingest(exchanges, user_id=user))) == PAGES
            scope = memory._scope(user, None)
            fact = Fact(fact_id="", collection="user_knowledge", text=f"{user} keeps bees", **scope.to_json())
            memory.parts.facts.add(scope, [fact], capacity=10)
        yield memory


def exchange(user, number):
    return Exchange(
        query=f"{user} says word{number}", reply="Noted.", said_at=float(number), thread_id="t",
        source_ids=(str(number),),
    )  # fmt: skip


def assert_whole(memory, redis_connection, redis_prefix):
    """Everything is indexed, found by its own words, and each vector has the length of the memory's embedder."""
    namespace = Namespace(name=redis_prefix)
    assert set(failed_documents(redis_connection.client, namespace=namespace).values()) == {0}
    origin = read_origin(redis_connection.client, namespace=namespace)
    for kind in ("page", "fact", "segment"):
        names = list(redis_connection.client.scan_iter(match=f"{namespace.prefix(kind)}*", count=1000))
        assert names
        for name in names:
            assert len(redis_connection.client.hget(name, "vector")) == 4 * origin.dimensions
    assert not list(redis_connection.client.scan_iter(match=f"{namespace.prefix('next')}*", count=1000))
    for user in USERS:
        assert sum(entry["kind"] == "page" for entry in memory.export(user)) == PAGES
        for number in (0, PAGES - 1):
            found = memory.search(f"{user} says word{number}", user_id=user)
            assert found[0].page.query == f"{user} says word{number}"


def test_migrate_then_back(old, migration, open_memory, redis_connection, redis_prefix):
    texts = len(USERS) * (PAGES + 1)
    told = []
    new = migration(HashedWords(48))
    assert new.count() == texts
    report = new.run(progress=told.append)
    assert (report.was_needed, report.embedded, sum(told)) == (True, texts, texts)
    assert report.segments > 0
    with pytest.raises(EmbedderMismatchError, match="hashed-48"):
        open_memory(HashedWords(32))
    with open_memory(HashedWords(48)) as memory:
        assert_whole(memory, redis_connection, redis_prefix)
    assert migration(HashedWords(48)).run().was_needed is False
    assert migration(HashedWords(32)).run().embedded == texts
    with open_memory(HashedWords(32)) as memory:
        assert_whole(memory, redis_connection, redis_prefix)


def test_segments_are_what_the_new_embedder_would_have_made_of_them(old, migration, redis_connection, redis_prefix):
    client, namespace = redis_connection.client, Namespace(name=redis_prefix)
    migration(HashedWords(4)).run()
    checked = 0
    for name in client.scan_iter(match=f"{namespace.prefix('segment')}*", count=1000):
        rest = name.decode().removeprefix(namespace.prefix("segment"))
        user = rest.split(":")[0]
        pages = client.zrange(f"{namespace.prefix('members')}{rest}", 0, -1)
        raw = [client.hget(f"{namespace.prefix('page')}{user}:{page.decode()}", "vector") for page in pages]
        mean = np.mean([np.frombuffer(vector, dtype=np.float32) for vector in raw[-64:]], axis=0)
        vector, cohesion = client.hmget(name, ["vector", "cohesion"])
        assert np.allclose(np.frombuffer(vector, dtype=np.float32) * float(cohesion), mean, atol=1e-6)
        checked += len(pages) > 1
    assert checked


def test_an_embedder_that_fails_costs_nothing_and_is_resumed(
    old, migration, open_memory, redis_connection, redis_prefix
):
    with pytest.raises(ConnectionError):
        migration(HashedWords(48, fails_after=40)).run()
    with open_memory(HashedWords(32)) as memory:
        assert memory.search("ann says word3", user_id="ann")[0].page.query == "ann says word3"
    rest = HashedWords(48)
    report = migration(rest).run()
    assert report.embedded == len(USERS) * (PAGES + 1) - 32
    with open_memory(HashedWords(48)) as memory:
        assert_whole(memory, redis_connection, redis_prefix)


@pytest.mark.parametrize("stage", ["_drop_indexes", "_switch_batch", "_renew_segments"])
def test_stopped_during_the_switch_nobody_can_open_it_until_it_is_finished(  # noqa: PLR0917 - fixtures
    stage, old, migration, open_memory, redis_connection, redis_prefix, monkeypatch
):
    real = getattr(Migration, stage)
    calls = []

    def stopped(self, *arguments):
        calls.append(stage)
        if stage == "_switch_batch" and len(calls) == 1:
            return real(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Migration, stage, stopped)
    with pytest.raises(KeyboardInterrupt):
        migration(HashedWords(48)).run()
    for dimensions in (32, 48):
        with pytest.raises(EmbedderMismatchError, match="unfinished migration"):
            open_memory(HashedWords(dimensions))
    monkeypatch.undo()
    assert migration(HashedWords(48)).run().embedded == 0
    with open_memory(HashedWords(48)) as memory:
        assert_whole(memory, redis_connection, redis_prefix)


def test_what_is_written_or_erased_meanwhile_is_followed(
    old, migration, open_memory, redis_connection, redis_prefix
):
    def meanwhile(_done):
        if not happened:
            happened.append(True)
            old.forget("ann", page_id=next(old.export("ann"))["page_id"])
            old.forget("bea")
            list(old.ingest([exchange("ann", PAGES)], user_id="ann"))

    happened = []
    migration(HashedWords(48)).run(progress=meanwhile)
    with open_memory(HashedWords(48)) as memory:
        pages = [entry["query"] for entry in memory.export("ann") if entry["kind"] == "page"]
        assert len(pages) == PAGES
        assert "ann says word0" not in pages
        found = memory.search(f"ann says word{PAGES}", user_id="ann")
        assert found[0].page.query == f"ann says word{PAGES}"
        assert list(memory.export("bea")) == []
    namespace = Namespace(name=redis_prefix)
    assert set(failed_documents(redis_connection.client, namespace=namespace).values()) == {0}
    left = redis_connection.client.scan_iter(match=namespace.user_pattern("bea"), count=1000)
    assert [name.split(b":")[1] for name in sorted(left)] == [b"erased", b"erasures"]


def test_a_new_namespace_and_another_schema(migration, redis_connection, redis_prefix):
    assert migration(HashedWords(48)).run().was_needed is False
    origin = {"schema_version": 0, "embedder": "e", "dimensions": 3, "metric": METRIC}
    origin |= {"background_mean": 0.0, "background_spread": 0.0}
    redis_connection.client.hset(Namespace(name=redis_prefix).meta, "origin", json.dumps(origin))
    with pytest.raises(SchemaMismatchError):
        migration(HashedWords(48)).run()
