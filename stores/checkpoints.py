"""Checkpoints of our own ``chat`` sessions: named so that a user's can be found and erased.

A checkpoint holds what was said and what was recalled, so erasing a user's memory has to reach it.
LangGraph's Redis checkpointer writes the thread id into the name of every key, and our thread ids begin with
a hash of the user.
"""

from typing import Any

from redis import Redis

from langgraph_memoryos.ids import digest


def checkpoint_thread(*, namespace: str, user_id: str, agent_id: str, thread_id: str) -> str:
    """Return the checkpointer's thread id of one user's thread with one agent; no two users share one."""
    return _owner(namespace, user_id) + digest("thread", agent_id, thread_id)


def erase_checkpoints(client: Redis, *, namespace: str, user_id: str) -> int:
    """Destroy all checkpoints of a user's ``chat`` sessions, over all agents and threads, by SCAN.

    Returns:
        The number of keys that were deleted.
    """
    names: Any = list(client.scan_iter(match=f"*{_owner(namespace, user_id)}*", count=1000))
    for name in names:
        client.unlink(name)
    return len(names)


def _owner(namespace: str, user_id: str) -> str:
    return digest("chat checkpoints", namespace, user_id)
