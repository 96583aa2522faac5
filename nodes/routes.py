"""Routes: questions that decide which step comes next."""

from collections.abc import Callable

from langgraph_memoryos.state import ConsolidateState, MaintenanceState, RememberState

_MAX_EVICTION_ROUNDS = 2
_MAX_FAILED_QUEUES = 3


def short_term_is_full(capacity: int) -> Callable[[RememberState], bool]:
    """Return the question whether the thread's queue holds more pages than ``capacity``."""

    def route(state: RememberState) -> bool:
        return state["remembered"].get("queue_length", 0) > capacity

    return route


def thinking_failed(state: MaintenanceState) -> bool:
    """Whether the step before could not think; then the run ends and memory stays as it is."""
    return bool(state.get("failure"))


def has_hot_segments(state: MaintenanceState) -> bool:
    """Whether any segment is to be digested."""
    return bool(state.get("hot"))


def still_over_capacity(state: MaintenanceState) -> bool:
    """Whether segments were due for eviction and have been digested since, so that they can leave now."""
    return bool(state.get("due")) and state.get("eviction_rounds", 0) < _MAX_EVICTION_ROUNDS


def has_queue(state: ConsolidateState) -> bool:
    """Whether there was a short-term queue to empty, so that another may come; not after three that failed."""
    return bool(state.get("queue")) and state.get("failed_queues", 0) < _MAX_FAILED_QUEUES
