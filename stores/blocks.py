"""Working context: short text blocks that are always in the prompt and change only by compare-and-set.

A block's text is kept once; what an agent's settings say of it (description, limit, read-only, shared) is kept with the
agent, so that settings can change, and agents that share a block can differ.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redis import Redis

from langgraph_memoryos.errors import ErasedError, MemoryOSError, RecordNotFoundError
from langgraph_memoryos.ids import readable_id
from langgraph_memoryos.records import Record, Scope
from langgraph_memoryos.stores import erasures, scripts
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Keys, Namespace

SHARED_AGENT = "\x00shared"
"""Stands for the agent of blocks that several agents of one user share.

No real agent can have this id by accident.
"""

HISTORY_KEPT = 200
"""Former texts of a block that are kept."""

CHANGES_KEPT = 1000
"""Ids of a block's changes that are kept: a step that is retried after more changes than this makes its own again."""

_ATTEMPTS = 20
_FIRST = ("persona", "human")
_DECLARED = ("label", "description", "limit", "read_only", "shared")
_WRITTEN = ("label", "value", "version", "changed_at")


class BlockError(MemoryOSError, ValueError):
    """A block cannot be changed as asked.

    The message says why, what the limits are and what to do instead.
    """


@dataclass(frozen=True, kw_only=True)
class Block(Record):
    """One block of working context (MemGPT, section 2.1).

    Attributes:
        label: Its name.
        value: Its text.
        description: What belongs there.
        limit: Characters ``value`` may have.
        read_only: Whether the model's functions are kept from changing it.
        shared: Whether other agents of the user read and write the same block.
        version: Number of changes so far; grows by 1 with each.
        changed_at: Seconds since the epoch of the last change; 0 before the first.
    """

    label: str
    value: str = ""
    description: str = ""
    limit: int = 2000
    read_only: bool = False
    shared: bool = False
    version: int = 0
    changed_at: float = 0.0


@dataclass(frozen=True)
class _Stored:
    """A block, the bytes its text was read from (what a swap compares) and whose keys it is under."""

    block: Block
    raw: bytes
    home: Keys


class BlockStore:
    """Blocks of an agent for one user.

    A change that another process overtook is computed anew, never lost. A change takes three round trips, four with a
    ``change_id``. Each block keeps what it was before its newest 200 changes and the ids of its newest 1,000.
    """

    def __init__(self, client: Redis, *, namespace: Namespace, embedder: Embedder | None = None) -> None:
        del embedder  # blocks are never searched
        self._client = client
        self._namespace = namespace

    def ensure(self, scope: Scope, blocks: Sequence[Block], *, declare: bool = False) -> bool:
        """Create the blocks that do not exist yet; those that do keep their text.

        Args:
            scope: Whose.
            blocks: What they are, and what those that are new say.
            declare: Whether description, limit, read-only and shared hold for the blocks that exist too.

        Returns:
            Whether they are there: not when the user was erased since the scope's ``erasures`` were counted.
        """
        keys = self._namespace.keys(scope)
        commands = [["HSET", keys.agents, keys.agent, json.dumps(scope.agent_id)]]
        for block in blocks:
            readable_id(block.label, what="block label")
            home = self._home(scope, shared=block.shared)
            declaration = "HSET" if declare else "HSETNX"
            commands.append([declaration, keys.blocks, _tag(block.label), _part(block, _DECLARED)])
            commands.append(["HSETNX", home.block(block.label), "json", _part(block, _WRITTEN)])
        return erasures.write(self._client, keys, scope, *commands)

    def all(self, scope: Scope) -> tuple[Block, ...]:
        """Return the agent's blocks: persona, human, then the others by label. Two round trips."""
        raw: Any = self._client.hvals(self._namespace.keys(scope).blocks)
        known = sorted((json.loads(entry) for entry in raw), key=lambda entry: _place(entry["label"]))
        pipeline = self._client.pipeline(transaction=False)
        for entry in known:
            pipeline.hget(self._home(scope, shared=entry["shared"]).block(entry["label"]), "json")
        rows = zip(known, pipeline.execute(), strict=True)
        return tuple(Block.from_json(json.loads(value) | entry) for entry, value in rows if value)

    def get(self, scope: Scope, label: str) -> Block:
        """Return one block.

        Raises:
            RecordNotFoundError: the agent has no block of this label.
        """
        return self._read(scope, label).block

    def append(self, scope: Scope, label: str, content: str, *, now: float, change_id: str = "") -> Block:
        """Add a line.

        Args:
            scope: Whose block.
            label: Which one.
            content: The line.
            now: Seconds since the epoch.
            change_id: Makes the change happen once, however often it is tried.

        Raises:
            BlockError: unknown or read-only block, blank line, or over its limit; the block is unchanged.
            ErasedError: the user was erased since the scope's ``erasures`` were counted.
        """

        def longer(value: str) -> str:
            return f"{value}\n{content}" if value else content

        if not content.strip():
            raise BlockError("The line to add is empty: the block is unchanged.")
        return self._change(scope, label, longer, now=now, change_id=change_id)

    def replace(
        self, scope: Scope, label: str, old: str, new: str, *, now: float, change_id: str = ""
    ) -> Block:
        """Replace the first occurrence of the exact text ``old``; an empty ``new`` deletes it.

        Raises:
            BlockError: as :meth:`append`, or ``old`` is empty or not in the block; the block is unchanged.
            ErasedError: as :meth:`append`.
        """

        def changed(value: str) -> str:
            return _replaced(value, old, new, label=label)

        return self._change(scope, label, changed, now=now, change_id=change_id)

    def set(
        self,
        scope: Scope,
        label: str,
        value: str,
        *,
        now: float,
        expected_version: int | None = None,
        developer: bool = True,
    ) -> Block:
        """Set the whole text, as the developer (read-only blocks too) or as an agent.

        Raises:
            BlockError: over the limit and no shorter than before, or the block's version is not
                ``expected_version`` when it is swapped.
        """
        return self._change(
            scope, label, lambda _: value, now=now, developer=developer, version=expected_version
        )

    def history(self, scope: Scope, label: str) -> tuple[Block, ...]:
        """Return the block as it was before each of its newest 200 changes, oldest first."""
        entry = self._entry(scope, label)
        raw: Any = self._client.lrange(self._home(scope, shared=entry["shared"]).block_history(label), 0, -1)
        return tuple(Block.from_json(json.loads(item) | entry) for item in raw)

    def _change(
        self,
        scope: Scope,
        label: str,
        change: Callable[[str], str],
        *,
        now: float,
        change_id: str = "",
        developer: bool = False,
        version: int | None = None,
    ) -> Block:
        for _ in range(_ATTEMPTS):
            try:
                stored = self._read(scope, label)
            except RecordNotFoundError as error:
                raise BlockError(str(error)) from error
            block = stored.block
            if version is not None and block.version != version:
                raise BlockError(f"Block {label!r} has changed since version {version}: read it again.")
            if change_id and self._client.zscore(stored.home.block_changes(label), change_id) is not None:
                return block
            if block.read_only and not developer:
                raise BlockError(f"Block {label!r} is read-only and was not changed.")
            value = change(block.value)
            _require_room(block, value)
            new = replace(block, value=value, version=block.version + 1, changed_at=now)
            if self._put(scope, stored, new, change_id):
                return new
        raise BlockError(f"Block {label!r} kept changing while it was updated and is unchanged: try again.")

    def _put(self, scope: Scope, old: "_Stored", new: Block, change_id: str) -> bool:
        keys = [
            old.home.block(new.label), old.home.block_history(new.label), old.home.block_changes(new.label),
            old.home.erasures,
        ]  # fmt: skip
        args = [
            old.raw, _part(new, _WRITTEN), change_id, new.version, HISTORY_KEPT, CHANGES_KEPT,
            erasures.expected(scope),
        ]  # fmt: skip
        changed = scripts.run(self._client, "put_block", keys=keys, args=args)
        if changed is None:
            raise ErasedError
        return bool(changed)

    def _entry(self, scope: Scope, label: str) -> dict[str, Any]:
        raw: Any = self._client.hget(self._namespace.keys(scope).blocks, _tag(label))
        if raw is None:
            known = ", ".join(block.label for block in self.all(scope)) or "none"
            raise RecordNotFoundError(f"There is no block {label!r}; the blocks are: {known}.")
        return dict(json.loads(raw))

    def _read(self, scope: Scope, label: str) -> "_Stored":
        entry = self._entry(scope, label)
        home = self._home(scope, shared=entry["shared"])
        raw: Any = self._client.hget(home.block(label), "json")
        if raw is None:
            raise RecordNotFoundError(f"The block {label!r} was erased.")
        return _Stored(Block.from_json(json.loads(raw) | entry), raw, home)

    def _home(self, scope: Scope, *, shared: bool) -> Keys:
        return self._namespace.keys(Scope(user_id=scope.user_id, agent_id=SHARED_AGENT) if shared else scope)


def _part(block: Block, names: Sequence[str]) -> str:
    return json.dumps({name: getattr(block, name) for name in names})


def _tag(label: str) -> str:
    return json.dumps(label)


def _place(label: str) -> tuple[int, str]:
    return (_FIRST.index(label) if label in _FIRST else len(_FIRST), label)


def _require_room(block: Block, value: str) -> None:
    # Over a limit that was lowered, a block may still get shorter.
    if len(value) > block.limit and len(value) >= len(block.value):
        raise BlockError(
            f"Block {block.label!r} holds at most {block.limit} characters and this would make {len(value)}. "
            "It is unchanged: shorten it with core_memory_replace first, or keep the text "
            "with archival_memory_insert.",
        )


def _replaced(value: str, old: str, new: str, *, label: str) -> str:
    if not old:
        raise BlockError(
            "The text to replace is empty: give the exact text, or use core_memory_append. No change."
        )
    if old not in value:
        raise BlockError(
            f"Block {label!r} does not contain that exact text and is unchanged.{_hint(value, old)}"
        )
    if new:
        return value.replace(old, new, 1)
    before, _, after = value.partition(old)
    *above, start = before.split("\n")
    end, *below = after.split("\n")
    # A line that is left blank goes too.
    return "\n".join((*above, *([start + end] if (start + end).strip() else []), *below))


def _hint(value: str, old: str) -> str:
    """Return the line that is nearest to what was looked for, by shared character pairs."""
    wanted = _pairs(old)
    lines = [line for line in value.split("\n") if line.strip()]
    if not lines:
        return " It is empty."
    nearest = max(lines, key=lambda line: len(wanted & _pairs(line)) / max(1, len(wanted | _pairs(line))))
    return f" The nearest line is: {nearest}"


def _pairs(text: str) -> set[str]:
    folded = text.casefold()
    return {folded[at : at + 2] for at in range(len(folded) - 1)} or {folded}
