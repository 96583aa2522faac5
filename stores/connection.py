"""One synchronous, thread-safe Redis client, from a URL, from ``REDIS_URL``, or over an embedded server.

Everything in this library works on :attr:`RedisConnection.client`; asynchronous callers use it in
threads. No message, repr or description made here contains a password.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import unquote

import redis
import redis.asyncio
from redis.backoff import ExponentialWithJitterBackoff
from redis.connection import BlockingConnectionPool, UnixDomainSocketConnection, parse_url
from redis.credentials import UsernamePasswordCredentialProvider
from redis.retry import Retry

from langgraph_memoryos.errors import RedisUnavailableError, SearchUnavailableError
from langgraph_memoryos.stores.server_facts import (
    ServerFacts,
    read_server_facts,
    readable_version,
    search_version,
)

URL_VARIABLE = "REDIS_URL"
OLDEST_SEARCH_VERSION = 21000
"""RediSearch 2.10.0, as in Redis Stack 7.4; Redis 8 has 8.0 and newer."""

HIDDEN = "***"
RETRIES = 8
HOW_TO_GET_SEARCH = (
    "use Redis 8 or Redis Stack 7.4, or unset REDIS_URL and install the embedded one "
    'with `pip install "langgraph-memoryos[embedded]"`'
)

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<credentials>.*@)?(?P<place>.*)", re.IGNORECASE | re.DOTALL
)
_SECRET_OPTION = re.compile(r"([?&][^=&]*(?:pass|pwd|secret|token|credential)[^=&]*=)[^&]*", re.IGNORECASE)
# Options that mean the same to a client for asyncio.
_SHARED_OPTIONS = (
    "path", "host", "port", "db", "credential_provider", "protocol", "decode_responses", "socket_timeout",
    "socket_connect_timeout", "health_check_interval", "ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile",
    "ssl_check_hostname", "ssl_ca_data", "ssl_ca_path", "ssl_password",
)
_DEFAULTS: dict[str, Any] = {
    "timeout": 20,  # seconds a thread waits for a free connection
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "health_check_interval": 30,
}


class ServerDescription(ServerFacts):
    """What :func:`describe_server` finds out: the facts the server tells, and where it is.

    Attributes:
        source: ``url`` or ``embedded``.
        address: URL without its password, or the path of the socket.
    """

    source: str
    address: str


@dataclass(frozen=True, kw_only=True)
class RedisConnection:
    """A client, where it leads, and what has to be given up with it.

    Use it as a context manager, or call :meth:`close`. An embedded server stops some seconds after the last
    connection to it is closed, in whatever process; the death of a process closes its connections.

    Attributes:
        client: The client: thread-safe, RESP2, replies as bytes. A command whose connection was lost is sent
            again, so what must not happen twice has to be an idempotent command or script. One that
            timed out is not sent again.
        source: ``url`` or ``embedded``.
        address: URL without its password, or the path of the embedded server's socket.
        data_dir: Directory of the embedded server's data; None for a URL.
    """

    client: redis.Redis = field(repr=False)
    source: Literal["url", "embedded"]
    address: str
    data_dir: Path | None = None
    _resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False, compare=False)
    _async_pools: "list[redis.asyncio.BlockingConnectionPool]" = field(
        default_factory=list, repr=False, compare=False
    )

    def async_client(self) -> "redis.asyncio.Redis":
        """Return a client for asyncio to the same server, for checkpointers; it belongs to the running loop."""
        pool = self.client.connection_pool
        kinds = {
            UnixDomainSocketConnection: redis.asyncio.UnixDomainSocketConnection,
            redis.SSLConnection: redis.asyncio.SSLConnection,
        }
        matching = (twin for one, twin in kinds.items() if issubclass(pool.connection_class, one))
        kind = next(matching, redis.asyncio.Connection)
        options = {name: pool.connection_kwargs[name] for name in _SHARED_OPTIONS if name in pool.connection_kwargs}
        twin = redis.asyncio.BlockingConnectionPool(
            connection_class=kind, max_connections=pool.max_connections, **options
        )
        self._async_pools.append(twin)
        return redis.asyncio.Redis(connection_pool=twin)

    async def close_async_clients(self) -> None:
        """Close the connections of all clients for asyncio; call it in the loop that used them."""
        while self._async_pools:
            await self._async_pools.pop().disconnect()

    def close(self) -> None:
        """Close every connection of the pool and give up the embedded server; a second call does nothing."""
        self._resources.close()

    def __enter__(self) -> Self:
        """Return the connection itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connection."""
        self.close()


def open_redis(
    url: str | None = None, *, data_dir: Path | None = None, max_connections: int = 64
) -> RedisConnection:
    """Open a Redis with search: the given URL, the given data directory, ``REDIS_URL``, or embedded.

    The first of the four that is there counts, so an argument beats the environment.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://`` URL; its query may set timeouts and TLS options.
        data_dir: Directory of an embedded server's data.
        max_connections: Most connections at a time; a thread that finds all of them busy waits.

    Returns:
        The open connection; the server has answered and has search.

    Raises:
        RedisUnavailableError: No server answers, it refuses us, or the embedded one cannot start.
        SearchUnavailableError: The server has no search module or one that is too old.
        ValueError: Both ``url`` and ``data_dir`` are given.
    """
    if url and data_dir:
        raise ValueError("Give either a Redis URL or the data directory of an embedded Redis, not both.")
    chosen = url or (None if data_dir else os.environ.get(URL_VARIABLE))
    return _open_url(chosen, max_connections) if chosen else _open_embedded(data_dir, max_connections)


def redact_url(url: str) -> str:
    """Return the URL without user, password and secret options, also when it is not well-formed.

    A password may contain ``/ @ # ?`` unescaped, so everything before the last ``@`` goes; a text without a
    scheme may be a password that landed in the wrong variable, so all of it goes.
    """
    parts = _URL.fullmatch(_SECRET_OPTION.sub(rf"\1{HIDDEN}", url))
    if parts is None:
        return HIDDEN
    credentials = f"{HIDDEN}@" if parts["credentials"] else ""
    return f"{parts['scheme']}{credentials}{parts['place']}"


def describe_server(connection: RedisConnection) -> ServerDescription:
    """Describe the server for a person; what the server refuses to tell is ``unknown``."""
    facts = read_server_facts(connection.client)
    if connection.data_dir:
        facts["data_dir"] = str(connection.data_dir)
    return ServerDescription(source=connection.source, address=connection.address, **facts)


def _open_url(url: str, max_connections: int) -> RedisConnection:
    address = redact_url(url)
    try:
        options = parse_url(url)
    except ValueError:
        raise RedisUnavailableError(
            f"{address} is not a Redis URL; write redis://, rediss:// or unix://, special characters escaped."
        ) from None  # the original message may quote a part of the password
    resources = contextlib.ExitStack()
    client = _connect(dict(options), address, max_connections, resources, probe_retry=_retry(1))
    return RedisConnection(client=client, source="url", address=address, _resources=resources)


def _open_embedded(data_dir: Path | None, max_connections: int) -> RedisConnection:
    if os.name != "posix":
        raise RedisUnavailableError(
            f"No embedded Redis runs on this platform; run Redis 8 and set {URL_VARIABLE}."
        )
    from langgraph_memoryos.stores.embedded import lease_embedded_redis  # noqa: PLC0415 - needs POSIX locks

    resources = contextlib.ExitStack()
    lease = resources.enter_context(lease_embedded_redis(data_dir))
    address = str(lease.socket_path)
    options = {"connection_class": UnixDomainSocketConnection, "path": address}
    client = _connect(options, address, max_connections, resources, probe_retry=_retry(RETRIES))
    return RedisConnection(
        client=client, source="embedded", address=address, data_dir=lease.data_dir, _resources=resources
    )


def _connect(
    options: dict[str, Any],
    address: str,
    max_connections: int,
    resources: contextlib.ExitStack,
    *,
    probe_retry: Retry,
) -> redis.Redis:
    """Return a checked client whose closing is left to ``resources``; on failure all of these are closed."""
    with contextlib.ExitStack() as on_failure:
        on_failure.push(resources)
        secrets = [str(options[name]) for name in ("password", "ssl_password") if options.get(name)]
        with _told_plainly(address, secrets):
            settings = _DEFAULTS | _credentials(options) | {"max_connections": max_connections}
            _check(_client({**settings, "max_connections": 1}, probe_retry), address)
            client = _client(settings, _retry(RETRIES))
        resources.callback(client.connection_pool.disconnect)
        on_failure.pop_all()
    return client


def _client(settings: dict[str, Any], retry: Retry) -> redis.Redis:
    forced = {"protocol": 2, "decode_responses": False, "retry": retry}
    pool = BlockingConnectionPool(**{**settings, **forced})
    return redis.Redis(connection_pool=pool)


def _retry(times: int) -> Retry:
    """Retry lost connections, also those to a server that still loads its data; 8 times are some 4 s."""
    return Retry(
        ExponentialWithJitterBackoff(cap=1, base=0.05), times, supported_errors=(redis.ConnectionError,)
    )


def _credentials(options: dict[str, Any]) -> dict[str, Any]:
    """Move user and password where the repr of a client does not show them, in any version of redis-py."""
    rest = {name: value for name, value in options.items() if name not in {"username", "password"}}
    if options.get("password") or options.get("username"):
        rest["credential_provider"] = UsernamePasswordCredentialProvider(
            options.get("username"), options.get("password")
        )
    return rest


def _check(probe: redis.Redis, address: str) -> None:
    """Fail fast where the server is missing or unfit; the probe is closed."""
    with contextlib.closing(probe):
        try:
            probe.ping()
            _require_search(probe, address)
        finally:
            probe.connection_pool.disconnect()


def _require_search(client: redis.Redis, address: str) -> None:
    try:
        client.execute_command("FT._LIST")
    except redis.exceptions.NoPermissionError:
        pass  # denied, hence known: an ACL refuses only commands that exist
    except redis.ResponseError as error:
        if "unknown command" not in str(error).lower():
            raise
        raise SearchUnavailableError(
            f"The Redis at {address} has no search module; {HOW_TO_GET_SEARCH}."
        ) from None
    version = search_version(client)
    if version is not None and version < OLDEST_SEARCH_VERSION:
        raise SearchUnavailableError(
            f"The Redis at {address} has search {readable_version(version)}, older than "
            f"{readable_version(OLDEST_SEARCH_VERSION)}; {HOW_TO_GET_SEARCH}."
        )


@contextlib.contextmanager
def _told_plainly(address: str, secrets: list[str]) -> Iterator[None]:
    """Turn what redis-py raises into one sentence without the password."""
    try:
        yield
    except (redis.RedisError, OSError, TypeError, ValueError) as error:
        if isinstance(error, RedisUnavailableError):
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        for secret in secrets:
            for form in (secret, unquote(secret)):
                reason = reason.replace(form, HIDDEN)
        raise RedisUnavailableError(f"No usable Redis at {address}: {reason}.") from None
