"""``doctor``: is everything there, and what to do if not."""

import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Literal

import typer

from langgraph_memoryos.cli.failures import plain_sentence
from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, with_memory_options
from langgraph_memoryos.cli.output import console, print_json, printable
from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.local_models import choose_chat_model, default_embeddings
from langgraph_memoryos.stores.connection import RedisConnection, ServerDescription, describe_server
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Namespace
from langgraph_memoryos.stores.schema import METRIC, failed_documents, read_origin
from langgraph_memoryos.stores.server_facts import UNKNOWN

_PACKAGES = (
    "langgraph-memoryos",
    "langgraph",
    "langgraph-checkpoint-redis",
    "langchain-core",
    "langchain-openai",
    "redis",
    "redisvl",
)
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_MISSING = -1


@dataclass(frozen=True, kw_only=True)
class Check:
    """One finding and, unless it is ok, what to do about it."""

    name: str
    found: str
    status: Literal["ok", "warn", "fail"] = "ok"
    advice: str = ""


@with_memory_options
def doctor(options: MemoryOptions, *, as_json: AsJson = False) -> None:
    """Check Python, packages, Redis, indexes and models; exit code 1 if memory cannot work."""
    checks = [*_software(), *_redis(options), _chat_model()]
    worst = max((check.status for check in checks), key=list(_STYLES).index)
    if as_json:
        print_json({"status": worst, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            console.print(f"{check.status:<4}", style=_STYLES[check.status], end="  ")
            console.print(printable(f"{check.name:<18} {check.found}"), soft_wrap=True)
            if check.advice:
                console.print(f"      {printable(check.advice)}", soft_wrap=True)
    if worst == "fail":
        raise typer.Exit(1)


def _software() -> Iterator[Check]:
    yield Check(name="python", found=f"{platform.python_version()} on {sys.platform} {platform.machine()}")
    yield Check(name="packages", found=", ".join(f"{name} {version(name)}" for name in _PACKAGES))


def _redis(options: MemoryOptions) -> Iterator[Check]:
    try:
        with options.connect() as connection:
            yield from _server(connection)
            yield from _memory(connection, Namespace(name=options.namespace))
    except Exception as error:
        sentence = plain_sentence(error)
        if sentence is None:
            raise
        yield Check(name="redis", found="not usable", status="fail", advice=sentence)


def _server(connection: RedisConnection) -> Iterator[Check]:
    server = describe_server(connection)
    yield Check(name="redis", found=f"{server['server']}, {server['source']} at {server['address']}")
    yield from _search(server)
    volatile = server["persistence"] == "none"
    yield Check(
        name="persistence",
        found=f"{server['persistence']} in {server['data_dir']}",
        status="warn" if volatile else "ok",
        advice="Memory is lost when this server stops: set `appendonly yes`." if volatile else "",
    )


def _search(server: ServerDescription) -> Iterator[Check]:
    yield Check(name="search", found=f"query engine {server['search']}")
    if server["search_on_timeout"] not in {"fail", UNKNOWN}:
        yield Check(
            name="search time-outs",
            found="a search that runs out of time returns part of its results",
            status="warn",
            advice=(
                "Under load a recall may then miss pages without notice. Have such a search fail instead: "
                "`redis-cli FT.CONFIG SET ON_TIMEOUT FAIL`, or on Redis 8 `CONFIG SET search-on-timeout fail`."
            ),
        )
    if server["search_garbage"] not in {"0", "1", UNKNOWN}:
        yield Check(
            name="search garbage",
            found=f"up to {server['search_garbage']} changed or erased documents still count in word searches",
            status="warn",
            advice=(
                "Query engines before November 2025 then rank common words first after you erase or edit something "
                "(RediSearch pull request 7223). Have them collected: `redis-cli FT.CONFIG SET "
                "FORK_GC_CLEAN_THRESHOLD 1`, or on Redis 8 `CONFIG SET search-fork-gc-clean-threshold 1`."
            ),
        )


def _memory(connection: RedisConnection, namespace: Namespace) -> Iterator[Check]:
    embedder = _embedder_at_hand()
    if isinstance(embedder, Check):
        yield embedder
    else:
        yield Check(name="embedder at hand", found=f"{embedder.name} ({embedder.dimensions} dimensions)")
        yield _recorded(connection, namespace, embedder)
    yield _indexes(connection, namespace)


def _embedder_at_hand() -> Embedder | Check:
    """Return the embedder that commands would use, tried out, or what is wrong with it."""
    try:
        embedder = Embedder(default_embeddings())
        assert embedder.dimensions
    except Exception as error:
        sentence = plain_sentence(error)
        if sentence is None:
            raise
        return Check(name="embedder at hand", found="none", status="fail", advice=sentence)
    return embedder


def _recorded(connection: RedisConnection, namespace: Namespace, embedder: Embedder) -> Check:
    origin = read_origin(connection.client, namespace=namespace)
    if origin is None:
        return Check(name="embedder recorded", found=f"none yet: namespace {namespace.name} is new")
    same = (origin.embedder, origin.dimensions, origin.metric) == (embedder.name, embedder.dimensions, METRIC)
    return Check(
        name="embedder recorded",
        found=f"{origin.embedder} ({origin.dimensions} dimensions, {origin.metric})",
        status="ok" if same else "fail",
        advice="" if same else "Run `langgraph-memoryos migrate`, or use the recorded embedder.",
    )


def _indexes(connection: RedisConnection, namespace: Namespace) -> Check:
    failed = failed_documents(connection.client, namespace=namespace)
    if all(count == _MISSING for count in failed.values()):
        return Check(name="indexes", found="none yet: they are made when a memory is opened")
    faults = {kind: count for kind, count in failed.items() if count}
    told = (
        f"{kind} is missing" if count == _MISSING else f"{kind} lacks {count} documents"
        for kind, count in faults.items()
    )
    return Check(
        name="indexes",
        found=", ".join(told) or f"{', '.join(failed)}: every document is indexed",
        status="warn" if faults else "ok",
        advice="Run `inspect` to make missing ones, `migrate` to mend documents." if faults else "",
    )


def _chat_model() -> Check:
    try:
        choice = choose_chat_model()
    except MemoryOSError as error:
        return Check(name="chat model", found="none", status="warn", advice=str(error))
    if choice.is_bundled:
        return Check(
            name="chat model",
            status="warn",
            found=f"{choice.name}, bundled: replies only; pages are judged by rules",
            advice="Set OPENAI_API_KEY (and OPENAI_BASE_URL, OPENAI_MODEL) for a capable model.",
        )
    return Check(
        name="chat model", found=f"{choice.name}, {'local' if choice.weights else 'by OPENAI_API_KEY'}"
    )
