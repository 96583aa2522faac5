"""The append-only file of an embedded server, which holds what was said until it is written anew."""

import contextlib
import time
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from langgraph_memoryos.stores.connection import RedisConnection

_PAUSE_SECONDS = 0.02


def rewrite_log(connection: RedisConnection, *, timeout_seconds: float = 30.0) -> None:
    """Have an embedded server write its append-only file anew, so that nothing erased stays on the disk.

    Waits for the end, but not longer than the time-out; the server then finishes alone. What becomes of the files of
    a Redis of one's own (snapshots, replicas, backups) is for its operator to say, so it is left alone.
    """
    if connection.source != "embedded":
        return
    deadline = time.monotonic() + timeout_seconds
    _wait(connection.client, deadline)  # a rewrite that has begun still takes over what was erased since
    with contextlib.suppress(ResponseError):  # another process was first, after what we erased
        connection.client.bgrewriteaof()
    _wait(connection.client, deadline)


def _wait(client: Redis, deadline: float) -> None:
    while time.monotonic() < deadline:
        told: Any = client.info("persistence")
        if not (told["aof_rewrite_in_progress"] or told["aof_rewrite_scheduled"]):
            return
        time.sleep(_PAUSE_SECONDS)
