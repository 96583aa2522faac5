"""A memory's place for the length of a demonstration: nothing of it is left afterwards."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from redis import Redis

from langgraph_memoryos.stores.connection import open_redis
from langgraph_memoryos.stores.keys import Namespace
from langgraph_memoryos.stores.schema import KINDS

_STOP_SECONDS = 20.0


@contextmanager
def throwaway_memory(redis_url: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield a Redis URL and the name of a new namespace; both are free of data before and after.

    Args:
        redis_url: Use this Redis; by default an embedded one is started in a temporary directory, and is
            stopped and removed with it.

    Raises:
        RedisUnavailableError: no Redis answers or can be started.
    """
    namespace = Namespace(name=f"throwaway-{uuid.uuid4().hex[:12]}")
    with ExitStack() as resources:
        url = redis_url or f"unix://{resources.enter_context(_embedded())}"
        if redis_url:
            resources.callback(_drop, redis_url, namespace)
        yield url, namespace.name


@contextmanager
def _embedded() -> Iterator[Path]:
    """Yield the socket of a server in a temporary directory, which stops at once when it is left alone."""
    from langgraph_memoryos.stores.embedded import lease_embedded_redis  # noqa: PLC0415 - needs POSIX locks

    directory = Path(tempfile.mkdtemp(prefix="langgraph-memoryos-"))
    run_dir = directory
    try:
        with lease_embedded_redis(directory, grace_seconds=0) as lease:
            run_dir = lease.socket_path.parent
            yield lease.socket_path
        _wait_for_stop(directory)
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)


def _wait_for_stop(directory: Path) -> None:
    """Wait until the supervisor is gone: nothing may write into a directory that is being removed."""
    from langgraph_memoryos.stores import embedded_supervisor as supervision  # noqa: PLC0415 - as above

    descriptor = supervision.open_lock(directory / supervision.SUPERVISOR_LOCK)
    supervision.wait_for_lock(descriptor, seconds=_STOP_SECONDS, shared=True)
    os.close(descriptor)


def _drop(redis_url: str, namespace: Namespace) -> None:
    """Delete the namespace's indexes and keys."""
    with open_redis(redis_url) as connection:
        client: Redis = connection.client
        present: Any = client.execute_command("FT._LIST")
        for name in {namespace.index(kind) for kind in KINDS} & {raw.decode() for raw in present}:
            client.execute_command("FT.DROPINDEX", name)
        for key in list(client.scan_iter(match=f"{namespace.name}:*", count=1000)):
            client.unlink(key)
