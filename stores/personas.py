"""Personas: static profiles of user and agent, and the user's traits on 90 dimensions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from redis import Redis

from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.records import Persona, ProfileField, Scope, Trait
from langgraph_memoryos.stores import scripts
from langgraph_memoryos.stores.keys import Namespace

Section = Literal["user_profile", "user_traits", "agent_profile"]
_ATTEMPTS = 20
_MAX_SOURCES = 20


def parse_persona(values: Mapping[bytes, bytes]) -> Persona:
    """Build a persona from its hash; entries are ordered by name."""
    sections: dict[str, list[Any]] = {"user_profile": [], "user_traits": [], "agent_profile": []}
    for name in sorted(values):
        section = name.decode().split("/", 1)[0]
        entry = json.loads(values[name])
        sections[section].append(Trait.from_json(entry) if section == "user_traits" else ProfileField.from_json(entry))
    return Persona(**{section: tuple(entries) for section, entries in sections.items()})


class PersonaStore:
    """One entry per profile field and trait dimension; a newer entry replaces an older one, which goes to a history.

    Setting compares and swaps: two processes that update one entry at once both end up in entry or history.
    """

    def __init__(self, client: Redis, *, namespace: Namespace) -> None:
        self._client = client
        self._namespace = namespace

    def get(self, scope: Scope) -> Persona:
        """Return the current persona, in one round trip."""
        values: Any = self._client.hgetall(self._namespace.keys(scope).persona)
        return parse_persona(values)

    def get_command(self, pipeline: Redis, scope: Scope) -> None:
        """Queue the read of :meth:`get` on a pipeline; parse its reply with :func:`parse_persona`."""
        pipeline.hgetall(self._namespace.keys(scope).persona)

    def set_trait(self, scope: Scope, trait: Trait) -> None:
        """Store a trait; the same level again adds its sources and reason, another level supersedes the old one."""
        self._set(scope, f"user_traits/{trait.dimension}", trait.to_json(), value_name="level")

    def set_profile(self, scope: Scope, section: Section, entry: ProfileField) -> None:
        """Store a profile field of the user or the agent; another value supersedes the old one."""
        if not entry.source_page_ids:
            # Pages make their agent known; what is given without a page must do so as well, or no export finds it.
            keys = self._namespace.keys(scope)
            self._client.hset(keys.agents, keys.agent, json.dumps(scope.agent_id))
        self._set(scope, f"{section}/{entry.name}", entry.to_json(), value_name="value")

    def _set(self, scope: Scope, field: str, new: dict[str, Any], *, value_name: str) -> None:
        keys = self._namespace.keys(scope)
        for _ in range(_ATTEMPTS):
            raw: Any = self._client.hget(keys.persona, field)
            entry, replaced = _merge(json.loads(raw) if raw else None, new, value_name=value_name)
            history = json.dumps({"field": field} | replaced) if replaced else ""
            done = scripts.run(
                self._client, "put_persona", keys=[keys.persona, keys.persona_history, keys.erased],
                args=[field, raw or "", json.dumps(entry), history, keys.page(""), *new["source_page_ids"]],
            )
            if done:
                return
        raise MemoryOSError("A persona entry kept changing while it was updated: try again.")

    def history(self, scope: Scope) -> tuple[dict[str, Any], ...]:
        """Return replaced entries, oldest first, each with its ``field`` and the time it stopped being valid."""
        raw: Any = self._client.lrange(self._namespace.keys(scope).persona_history, 0, -1)
        return tuple(json.loads(item) for item in raw)


def _merge(
    old: dict[str, Any] | None, new: dict[str, Any], *, value_name: str,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the entry to store and the replaced one (``None`` if the value stays)."""
    if old is None:
        return new, None
    if old[value_name] == new[value_name]:
        return old | {"source_page_ids": _union(old["source_page_ids"], new["source_page_ids"])}, None
    return new, old | {"valid_to": new["valid_from"]}


def _union(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*old, *new)))[-_MAX_SOURCES:]
