"""Round trips to Redis, counted where bytes leave the process, whatever thread sends them.

One send (a command, a script or a whole pipeline) is one round trip. What redis-py sends for itself, the
handshake of a new connection and health checks, is not counted: it happens once per connection or half
minute, not per turn.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from redis import Redis


@dataclass
class RoundTrip:
    """One send and the replies to it.

    Attributes:
        payload: The packed commands.
        replies: How many replies were read.
        received: Bytes of the strings in them.
        seconds: From the send to the last reply, parsing included.
    """

    payload: tuple[bytes, ...]
    replies: int = 0
    received: int = 0
    seconds: float = 0.0


class RoundTripCounter:
    """Counts the round trips of a client, from all threads."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._made: list[RoundTrip] = []
        pool = client.connection_pool
        pool.disconnect()
        pool.connection_class = _counting(pool.connection_class, self._add)
        pool.reset()

    def _add(self, trip: RoundTrip) -> None:
        with self._lock:
            self._made.append(trip)

    @contextmanager
    def counting(self) -> Iterator[list[RoundTrip]]:
        """Give a list that holds the round trips made inside the block, once the block is left."""
        found: list[RoundTrip] = []
        with self._lock:
            start = len(self._made)
        yield found
        with self._lock:
            found.extend(self._made[start:])
            self._made.clear()

    def replay(self, trips: Sequence[RoundTrip]) -> float:
        """Send the same bytes again on one connection, read as many replies; return the seconds it took."""
        pool = self._client.connection_pool
        connection: Any = pool.get_connection()
        try:
            started = time.perf_counter()
            for trip in trips:
                connection.send_packed_command(trip.payload, check_health=False)
                for _ in range(trip.replies):
                    connection.read_response()
            return time.perf_counter() - started
        finally:
            pool.release(connection)


    def repeat(self, trips: Sequence[RoundTrip]) -> float:
        """Give the same commands to redis-py again, a pipeline where it was one; return the seconds it took.

        Unlike :meth:`replay` this contains what redis-py itself does for a command, and nothing of ours.
        """
        batches = [unpacked(b"".join(trip.payload)) for trip in trips]
        started = time.perf_counter()
        for batch in batches:
            if len(batch) == 1:
                self._client.execute_command(*batch[0])  # type: ignore[no-untyped-call]
                continue
            pipeline = self._client.pipeline(transaction=False)
            for command in batch:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            pipeline.execute()
        return time.perf_counter() - started


def _size(reply: Any) -> int:
    if isinstance(reply, list):
        return sum(map(_size, reply))
    return len(reply) if isinstance(reply, bytes) else 0


def unpacked(payload: bytes) -> list[list[bytes]]:
    """Return the commands of a packed payload (RESP arrays of bulk strings)."""
    commands: list[list[bytes]] = []
    at = 0
    while at < len(payload):
        count, at = _number(payload, at)
        command = []
        for _ in range(count):
            length, at = _number(payload, at)
            command.append(payload[at : at + length])
            at += length + 2
        commands.append(command)
    return commands


def _number(payload: bytes, at: int) -> tuple[int, int]:
    end = payload.index(b"\r\n", at)
    return int(payload[at + 1 : end]), end + 2


def _counting(base: Any, add: Any) -> Any:
    """Return a connection class that reports every round trip it makes."""

    class CountingConnection(base):  # type: ignore[misc]
        """A connection of the original kind, with eyes on what it sends and reads."""

        _trip: RoundTrip | None = None
        _started = 0.0
        _connecting = False

        def connect_check_health(self, *args: Any, **options: Any) -> None:
            """Connect; the handshake is not counted."""
            self._connecting = True
            try:
                super().connect_check_health(*args, **options)
            finally:
                self._connecting = False

        def send_packed_command(
            self, command: Iterable[bytes] | bytes, check_health: bool = True,  # noqa: FBT001, FBT002 - redis-py's
        ) -> None:
            """Send; ``check_health`` is false for what redis-py sends for itself."""
            if self._connecting or not check_health:
                self._trip = None
                super().send_packed_command(command, check_health=check_health)
                return
            payload = (command,) if isinstance(command, bytes) else tuple(command)
            started = time.perf_counter()
            super().send_packed_command(payload, check_health=True)
            self._started, self._trip = started, RoundTrip(payload)
            add(self._trip)

        def read_response(self, *args: Any, **options: Any) -> Any:
            """Read one reply."""
            reply = None
            try:
                reply = super().read_response(*args, **options)
            finally:
                if self._trip is not None:
                    self._trip.replies += 1
                    self._trip.seconds = time.perf_counter() - self._started
                    self._trip.received += _size(reply)
            return reply

    return CountingConnection
