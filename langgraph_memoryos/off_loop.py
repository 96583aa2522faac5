"""Blocking iterators for event loops: read in another thread, a batch at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from typing import TypeVar

ItemT = TypeVar("ItemT")


async def read_off_loop(start: Callable[[], Iterable[ItemT]], *, batch: int) -> AsyncIterator[ItemT]:
    """Yield what a blocking iterable yields, in its order.

    Args:
        start: Returns the iterable; it is called in a thread as well, when the first item is asked for.
        batch: Items read at a time: as many are held in memory, and one change of threads is paid for all of them.
    """
    items = iter(await asyncio.to_thread(start))
    while read := await asyncio.to_thread(lambda: list(islice(items, batch))):
        for item in read:
            yield item
