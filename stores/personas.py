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

    Newer is what was said later, not what arrives later: an entry from older dialogue goes to the history by itself.
    Setting compares and swaps: two processes that update one entry at once both end up in entry or history. It takes two
    round trips, three where older dialogue is told afterwards.
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
            old = json.loads(raw) if raw else None
            entry, past = _merge(old, new, value_name=value_name)
            if past and entry is old and self._is_known(scope, field, past, value_name=value_name):
                return
            history = json.dumps({"field": field} | past) if past else ""
            done = scripts.run(
                self._client, "put_persona", keys=[keys.persona, keys.persona_history, keys.erased],
                args=[field, raw or "", json.dumps(entry), history, keys.page(""), *new["source_page_ids"]],
            )
            if done:
                return
        raise MemoryOSError("A persona entry kept changing while it was updated: try again.")

    def _is_known(self, scope: Scope, field: str, past: dict[str, Any], *, value_name: str) -> bool:
        """Whether the history says already that the field had this value at that time."""
        return any(
            known[value_name] == past[value_name]
            and known["valid_from"] <= past["valid_from"] < known["valid_to"]
            for known in self.history(scope) if known["field"] == field
        )

    def history(self, scope: Scope) -> tuple[dict[str, Any], ...]:
        """Return replaced entries, oldest first, each with its ``field`` and the time it stopped being valid.

        One that was stored when what followed it was not known yet ends where that began. One round trip.
        """
        raw: Any = self._client.lrange(self._namespace.keys(scope).persona_history, 0, -1)
        entries = sorted((json.loads(item) for item in raw), key=lambda entry: float(entry["valid_from"]))
        following: dict[str, float] = {}
        for entry in reversed(entries):
            entry["valid_to"] = min(entry["valid_to"], following.get(entry["field"], entry["valid_to"]))
            following[entry["field"]] = entry["valid_from"]
        return tuple(entries)


def _merge(
    old: dict[str, Any] | None, new: dict[str, Any], *, value_name: str,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the entry to store and the one for the history (``None`` if the value stays).

    Two different entries are compared by when they were last said; of equal times the one that arrives later is newer.
    The older one was valid until the newer was first said, or, if that was before it, until it was said again.
    """
    if old is None:
        return new, None
    confirmed_at = old.get("confirmed_at", old["valid_from"])
    if old[value_name] == new[value_name]:
        return old | {
            "source_page_ids": _union(old["source_page_ids"], new["source_page_ids"]),
            "confirmed_at": max(confirmed_at, new["valid_from"]),
        }, None
    if new["valid_from"] < confirmed_at:
        is_before = new["valid_from"] < old["valid_from"]
        return old, new | {"valid_to": old["valid_from"] if is_before else confirmed_at}
    return new, old | {"valid_to": new["valid_from"]}


def _union(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*old, *new)))[-_MAX_SOURCES:]
