"""Where a connection leads, what it refuses, and that it never tells a password."""

import contextlib
import subprocess
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import redis

from langgraph_memoryos.errors import RedisUnavailableError, SearchUnavailableError
from langgraph_memoryos.stores import connection as connections
from langgraph_memoryos.stores.connection import RedisConnection, describe_server, open_redis, redact_url
from langgraph_memoryos.stores.embedded_program import find_server_program
from langgraph_memoryos.stores.server_facts import search_version

PASSWORD = "pä/ss@wo#rd?1"  # every character that ends a part of a URL


@pytest.fixture
def plain_server(tmp_path: Path) -> Iterator[Path]:
    """The socket of a server without modules that asks for a password."""
    socket = tmp_path / "r.sock"
    command = [find_server_program().executable, "--port", "0", "--unixsocket", socket, "--save", ""]
    command += ["--requirepass", PASSWORD, "--dir", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        while not socket.exists():
            assert server.poll() is None
            time.sleep(0.01)
        yield socket
        server.kill()


@contextlib.contextmanager
def restricted_user(connection: RedisConnection, name: str, *rules: str) -> Iterator[str]:
    """A user with everything but what ``rules`` take away; gives the URL to connect as that user."""
    client = connection.client
    client.execute_command("ACL", "SETUSER", name, "on", f">{PASSWORD}", "~*", "&*", "+@all", *rules)
    scheme, _, place = connection.address.rpartition("://")
    secret = quote(PASSWORD, safe="")
    try:
        yield f"{scheme or 'unix'}://{name}:{secret}@{place.rpartition('@')[2]}"
    finally:
        client.execute_command("ACL", "DELUSER", name)


def test_given_url(redis_url: str, redis_prefix: str) -> None:
    with open_redis(redis_url) as connection:
        connection.client.set(f"{redis_prefix}:k", b"\xff\x00")
        assert connection.client.get(f"{redis_prefix}:k") == b"\xff\x00"
        assert connection.source == "url"
        assert connection.data_dir is None


def test_url_of_the_environment(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    with open_redis() as connection:
        assert connection.source == "url"


def test_given_data_directory_beats_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://localhost:1")
    with open_redis(data_dir=tmp_path) as connection:
        assert connection.source == "embedded"
        assert connection.data_dir == tmp_path
    with pytest.raises(ValueError, match="not both"):
        open_redis("redis://localhost:1", data_dir=tmp_path)


def test_without_anything_given_the_embedded_server_starts(
    session_data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with open_redis() as connection:
        assert connection.data_dir == session_data_dir


def test_closing_twice(redis_url: str) -> None:
    connection = open_redis(redis_url)
    connection.close()
    connection.close()


def test_options_of_the_url_cannot_break_the_client(redis_url: str, redis_prefix: str) -> None:
    with open_redis(f"{redis_url}?protocol=3&decode_responses=True&socket_timeout=7") as connection:
        connection.client.hset(f"{redis_prefix}:h", "vector", b"\xff")
        assert connection.client.hgetall(f"{redis_prefix}:h") == {b"vector": b"\xff"}
        settings = connection.client.connection_pool.connection_kwargs
        assert (settings["protocol"], settings["socket_timeout"]) == (2, 7.0)


def test_more_threads_than_connections_wait(redis_url: str, redis_prefix: str) -> None:
    with open_redis(redis_url, max_connections=2) as connection:
        threads = [
            threading.Thread(
                target=connection.client.blpop, args=(f"{redis_prefix}:none",), kwargs={"timeout": 0.05}
            )
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert connection.client.ping()


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:1/0",
        f"redis://user:{quote(PASSWORD, safe='')}@localhost:1",
        f"redis://:{PASSWORD}@localhost:1",
        f"rediss://:{quote(PASSWORD, safe='')}@localhost:1?ssl_password={PASSWORD}",
        f"unix://user:{quote(PASSWORD, safe='')}@/nowhere/r.sock",
        f"redis://localhost:1?password={quote(PASSWORD, safe='')}",
        f"redis://:{quote(PASSWORD, safe='')}@localhost:notaport",
        f"http://:{PASSWORD}@localhost:1",
        f"user:{PASSWORD}@localhost:1",
        PASSWORD,
    ],
)
def test_failure_is_one_sentence_without_the_password(url: str) -> None:
    with pytest.raises(RedisUnavailableError) as failure:
        open_redis(url)
    told = "".join(traceback.format_exception(failure.value, chain=True)).partition("Error: ")[2]
    for part in (PASSWORD, quote(PASSWORD, safe=""), "wo#rd", "wo%23rd", "rd?1", "ss@wo", "user:"):
        assert part not in told
    assert failure.value.__cause__ is None
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("rediss://u:p@h:1/2?ssl_password=x&timeout=3", "rediss://***@h:1/2?ssl_password=***&timeout=3"),
        ("redis://:a/b@c#d?e@h", "redis://***@h"),
        ("unix:///run/r.sock?db=1&PASSWORD=x", "unix:///run/r.sock?db=1&PASSWORD=***"),
        ("u:a://b@h", "***"),
        ("", "***"),
    ],
)
def test_redacted_url(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_wrong_password(plain_server: Path) -> None:
    with pytest.raises(RedisUnavailableError, match="No usable Redis at unix://") as failure:
        open_redis(f"unix://:nope@{plain_server}")
    assert "nope" not in str(failure.value)


def test_server_without_search_says_what_to_install(plain_server: Path) -> None:
    with pytest.raises(
        SearchUnavailableError, match=r"has no search module; use Redis 8 .*\[embedded\]"
    ) as failure:
        open_redis(f"unix://:{quote(PASSWORD, safe='')}@{plain_server}")
    assert PASSWORD not in str(failure.value)


def test_search_that_is_too_old(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "search_version", lambda _client: 20815)
    with pytest.raises(SearchUnavailableError, match=r"has search 2\.8\.15, older than 2\.10\.0"):
        open_redis(redis_url)


def test_user_who_may_not_ask_about_the_server(redis_connection: RedisConnection, redis_prefix: str) -> None:
    denied = ("-module", "-client|setinfo", "-keys", "-flushall", "-info", "-config", "-FT._LIST")
    with (
        restricted_user(redis_connection, redis_prefix, *denied) as url,
        open_redis(url) as connection,
    ):
        connection.client.set(f"{redis_prefix}:k", "v")
        with pytest.raises(redis.exceptions.NoPermissionError):
            connection.client.flushall()
        described = describe_server(connection)
        assert described["search"] == describe_server(redis_connection)["search"]  # HELLO cannot be denied
        assert described["persistence"] == described["data_dir"] == "unknown"
        assert PASSWORD not in repr(connection) + repr(connection.client) + repr(
            connection.client.connection_pool
        )


def test_module_list_denied_still_finds_the_version(
    redis_connection: RedisConnection, redis_prefix: str
) -> None:
    with restricted_user(redis_connection, redis_prefix, "-module") as url, open_redis(url) as connection:
        assert search_version(connection.client) == search_version(redis_connection.client)


def test_description_of_an_embedded_server(tmp_path: Path) -> None:
    with open_redis(data_dir=tmp_path) as connection:
        described = describe_server(connection)
    assert described["source"] == "embedded"
    assert described["data_dir"] == str(tmp_path)
    assert described["server"].split()[0] in {"valkey", "redis"}
    assert described["search"] == "2.10.5"
    assert described["search_on_timeout"] == "fail"
    assert described["search_garbage"] == "1"
    assert described["persistence"] == "append-only file"
