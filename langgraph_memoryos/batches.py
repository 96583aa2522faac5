"""A sequence in parts, as ``itertools.batched`` gives them from Python 3.12 on."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield slices of ``items``, each of ``size`` but the last one, which may be shorter."""
    return (items[start : start + size] for start in range(0, len(items), size))
