"""Which threads are busy, and until when an agent wants to be left alone by timed events."""

import math

from redis import Redis

from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores import erasures, scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Namespace


class LeaseStore:
    """Leases with an expiry: the crash of a process frees its thread after ``seconds``."""

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder | None = None) -> None:
        del embedder  # nothing is searched here
        self._client = client
        self._namespace = namespace

    def take(self, scope: Scope, thread_id: str, owner: str, *, seconds: float) -> bool:
        """Take the lease if the thread is free or is this owner's already, and tell whether it is held now.

        The time of a lease that is the owner's begins anew.
        """
        key = self._namespace.keys(scope).lease(thread_id)
        if self._client.set(key, owner, nx=True, px=_milliseconds(seconds)):
            return True
        if self.holder(scope, thread_id) != owner:
            return False
        self._client.pexpire(key, _milliseconds(seconds))
        return True

    def seize(self, scope: Scope, thread_id: str, owner: str, *, seconds: float) -> None:
        """Take the lease whoever has it: people come before timers."""
        self._client.set(self._namespace.keys(scope).lease(thread_id), owner, px=_milliseconds(seconds))

    def release(self, scope: Scope, thread_id: str, owner: str, *, finished: bool = True) -> None:
        """Free the thread, unless somebody else has the lease by now.

        An event that is not ``finished`` is taken up again when it is delivered again.
        """
        keys = self._namespace.keys(scope)
        scripts.run(
            self._client, "release_lease",
            keys=[keys.lease(thread_id), keys.open_events(thread_id)], args=[owner, int(finished)],
        )

    def holder(self, scope: Scope, thread_id: str) -> str:
        """Return who keeps the thread busy, or an empty text."""
        raw = self._client.get(self._namespace.keys(scope).lease(thread_id))
        return raw.decode() if isinstance(raw, bytes) else ""

    def pause(self, scope: Scope, *, until: float, now: float) -> None:
        """Let the agent ignore timed events until a time (seconds since the epoch)."""
        keys = self._namespace.keys(scope)
        if until <= now:
            self._client.unlink(keys.pause)
        else:
            command = ["SET", keys.pause, repr(until), "PX", str(_milliseconds(until - now))]
            erasures.write(self._client, keys, scope, command)

    def paused_until(self, scope: Scope) -> float:
        """Return until when timed events are ignored; 0 if they are not."""
        raw = self._client.get(self._namespace.keys(scope).pause)
        return float(raw) if isinstance(raw, bytes) else 0.0


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))
