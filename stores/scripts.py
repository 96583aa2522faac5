"""Lua scripts: read-modify-write in one atomic step on the server, one file per script."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redis import Redis


@cache
def _source(name: str) -> str:
    return files("langgraph_memoryos.stores").joinpath(f"{name}.lua").read_text(encoding="utf-8")


def run(client: Redis, name: str, *, keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
    """Run script ``name`` on a client or queue it on a pipeline.

    The text is sent each time (about one kilobyte; the server caches the compiled form by its hash): a digest would
    cost a second round trip in pipelines and fail after a server restart.
    """
    return client.eval(_source(name), len(keys), *keys, *args)
