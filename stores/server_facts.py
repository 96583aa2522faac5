"""What a Redis server tells about itself, as far as it lets us ask."""

from typing import Any, TypedDict, cast

import redis

UNKNOWN = "unknown"


class ServerFacts(TypedDict):
    """Facts about a server; ``unknown`` where it does not tell.

    Attributes:
        server: Name and version, as ``redis 7.4.1``.
        search: Version of the query engine, as ``2.10.5``.
        search_on_timeout: What a slow search does; anything but ``fail`` loses results silently.
        search_garbage: Number of changed or deleted documents from which the engine stops counting their words.
        persistence: ``append-only file``, ``snapshots`` or ``none``.
        data_dir: Directory where it keeps its data.
    """

    server: str
    search: str
    search_on_timeout: str
    search_garbage: str
    persistence: str
    data_dir: str


def read_server_facts(client: redis.Redis) -> ServerFacts:
    """Ask the server; a command that an ACL denies gives ``unknown``."""
    hello, info = _hello(client), _info(client)
    return ServerFacts(
        server=_server_name(hello, info),
        search=readable_version(search_version(client)),
        search_on_timeout=_setting(client, "FT.CONFIG", "GET", "ON_TIMEOUT"),
        search_garbage=_setting(client, "FT.CONFIG", "GET", "FORK_GC_CLEAN_THRESHOLD"),
        persistence=_persistence(client, info),
        data_dir=_setting(client, "CONFIG", "GET", "dir"),
    )


def search_version(client: redis.Redis) -> int | None:
    """Return the search module's version (2.10.5 is 21005), or None if there is none or nobody may ask.

    ``HELLO`` lists the modules too and is rarely denied, unlike ``MODULE LIST``.
    """
    modules = _hello(client).get("modules") or _permitted(client, "MODULE", "LIST") or []
    for module in map(_pairs, modules):
        if str(module.get("name")).lower() in {"search", "searchlight"}:
            return int(module["ver"])
    return None


def readable_version(version: int | None) -> str:
    """Write 21005 as 2.10.5."""
    if version is None:
        return UNKNOWN
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def _permitted(client: redis.Redis, *command: str) -> Any:
    """Run a command that an ACL or an older server may refuse; then None."""
    try:
        return client.execute_command(*command)
    except redis.ResponseError:
        return None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _pairs(reply: Any) -> dict[str, Any]:
    """Return a RESP2 reply of alternating names and values as a dict; a dict stays one."""
    items = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=False)
    return {_text(name): _text(value) if isinstance(value, bytes) else value for name, value in items}


def _hello(client: redis.Redis) -> dict[str, Any]:
    return _pairs(_permitted(client, "HELLO") or [])


def _info(client: redis.Redis) -> dict[str, Any]:
    reply = _permitted(client, "INFO")
    return cast("dict[str, Any]", reply) if isinstance(reply, dict) else {}


def _setting(client: redis.Redis, *command: str) -> str:
    """Return the value in the reply of a ``GET`` of one setting, whatever its shape."""
    reply = _permitted(client, *command)
    while isinstance(reply, list) and len(reply) == 1:
        reply = reply[0]
    values = list(_pairs(reply).values()) if reply else []
    return _text(values[0]) if values else UNKNOWN


def _server_name(hello: dict[str, Any], info: dict[str, Any]) -> str:
    for name in ("valkey", "redis"):
        if f"{name}_version" in info:
            return f"{name} {info[f'{name}_version']}"
    return f"{hello.get('server', 'redis')} {hello.get('version', UNKNOWN)}"


def _persistence(client: redis.Redis, info: dict[str, Any]) -> str:
    if "aof_enabled" not in info:
        return UNKNOWN
    if int(info["aof_enabled"]):
        return "append-only file"
    snapshots = _setting(client, "CONFIG", "GET", "save")
    return {"": "none", UNKNOWN: UNKNOWN}.get(snapshots, "snapshots")
