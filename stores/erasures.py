"""What began before its user was forgotten writes nothing after.

``forget`` first raises the user's counter ``erasures``. A scope may carry what the counter was when something began, and
the scripts that bring something new into memory refuse when it has moved on. What is derived from pages needs no
counter: it goes, or is refused, with its pages.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from redis import Redis

from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.keys import Keys


def begun(scope: Scope, counter: Any) -> Scope:
    """Return the scope of what begins now, with the counter as Redis gives it, or the same if it says when it began."""
    return replace(scope, erasures=int(counter or 0)) if scope.erasures is None else scope


def counted(client: Redis, keys: Keys, scope: Scope) -> Scope:
    """Return the same as :func:`begun`, in a round trip; in none if the scope says when it began."""
    return scope if scope.erasures is not None else begun(scope, client.get(keys.erasures))


def expected(scope: Scope) -> str:
    """Return what a script compares the counter with; an empty text fits any."""
    return "" if scope.erasures is None else str(scope.erasures)


def write(client: Redis, keys: Keys, scope: Scope, *commands: Sequence[str]) -> bool:
    """Carry out commands of text, each with its key in second place, and tell whether the user is still the same."""
    return bool(
        scripts.run(
            client,
            "unless_erased",
            keys=[keys.erasures, *(command[1] for command in commands)],
            args=[expected(scope), *map(json.dumps, commands)],
        )
    )
