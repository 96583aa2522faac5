"""What the benchmarks of MemGPT's tasks share: a memory that leaves nothing behind, and a report."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.stores.throwaway import throwaway_memory


@contextmanager
def throwaway(**options: Any) -> Iterator[MemoryOS]:
    """Open an empty memory in the Redis of ``REDIS_URL``, else in an embedded one; it is removed afterwards.

    Args:
        options: Of ``MemoryOS.open_sync``.
    """
    with (
        throwaway_memory(os.environ.get("REDIS_URL")) as (url, namespace),
        MemoryOS.open_sync(url, namespace=namespace, analyst=DeterministicAnalyst(), **options) as memory,
    ):
        yield memory


def write_report(path: Path | None, report: dict[str, Any]) -> None:
    """Write the report, if a path is given."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
