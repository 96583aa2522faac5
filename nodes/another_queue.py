"""Step ``another_queue``: a queue is done, or could not be done, and the next may come."""

from typing_extensions import TypedDict


class AnotherQueueInput(TypedDict, total=False):
    """How the queue ended."""

    failure: str
    failed_queues: int


class AnotherQueueUpdate(TypedDict):
    """How many failed so far."""

    failed_queues: int


def count_failure(state: AnotherQueueInput) -> AnotherQueueUpdate:
    """Count the queue if a thinking step failed on it."""
    return AnotherQueueUpdate(failed_queues=state.get("failed_queues", 0) + bool(state.get("failure")))
