"""The embedded Redis: one server however many start it, gone when nobody is left, nothing lost when killed."""

import contextlib
import importlib.util
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from langgraph_memoryos.errors import RedisUnavailableError, SearchUnavailableError
from langgraph_memoryos.stores import embedded, embedded_program
from langgraph_memoryos.stores import embedded_supervisor as supervision
from langgraph_memoryos.stores.connection import open_redis
from langgraph_memoryos.stores.embedded import EmbeddedLease, lease_embedded_redis
from langgraph_memoryos.stores.embedded_program import find_server_program

GRACE_SECONDS = 0.5
FORKING_CLIENTS = r"""
import os, sys
from pathlib import Path
import redis
from langgraph_memoryos.stores.embedded import lease_embedded_redis
for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0:
        break
lease = lease_embedded_redis(Path(sys.argv[1]), grace_seconds=float(sys.argv[3]))
client = redis.Redis(unix_socket_path=str(lease.socket_path))
os.write(1, (client.info("server")["run_id"] + "\n").encode())
sys.stdin.read()
"""


@contextlib.contextmanager
def client_processes(data_dir: Path, count: int) -> Iterator[subprocess.Popen[str]]:
    """Run ``count`` processes, forked from one, that each take a lease and hold it until their input closes."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKING_CLIENTS, str(data_dir), str(count), str(GRACE_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def lease(data_dir: Path) -> EmbeddedLease:
    return lease_embedded_redis(data_dir, grace_seconds=GRACE_SECONDS)


@contextlib.contextmanager
def client_of(held: EmbeddedLease) -> Iterator[redis.Redis]:
    with contextlib.closing(redis.Redis(unix_socket_path=str(held.socket_path), protocol=2)) as client:
        yield client


def server_pid(data_dir: Path) -> int:
    """Return the process id, 0 while there is none."""
    file = data_dir / supervision.PID_FILE
    return int(file.read_text() or 0) if file.exists() else 0


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Say whether the process runs; one that waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        return (
            not Path("/proc").exists() or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][1] != "Z"
        )
    except (ProcessLookupError, FileNotFoundError):
        return False


def becomes_true(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def starts(data_dir: Path) -> int:
    return (data_dir / supervision.SERVER_LOG).read_text().count("Ready to accept connections")


def test_ten_processes_that_start_together_get_one_server(tmp_path: Path) -> None:
    with client_processes(tmp_path, 10) as clients:
        run_ids = {clients.stdout.readline() for _ in range(10)}
    assert len(run_ids) == 1
    assert starts(tmp_path) == 1


def test_server_leaves_after_the_grace_when_its_clients_were_killed(tmp_path: Path) -> None:
    with client_processes(tmp_path, 3) as clients:
        for _ in range(3):
            clients.stdout.readline()
        pid = server_pid(tmp_path)
        time.sleep(3 * GRACE_SECONDS)
        assert is_alive(pid)
        os.killpg(clients.pid, signal.SIGKILL)
        assert becomes_true(lambda: not is_alive(pid))


def test_server_stays_for_the_client_that_is_left(tmp_path: Path) -> None:
    first, second = lease(tmp_path), lease(tmp_path)
    pid = server_pid(tmp_path)
    first.close()
    first.close()
    time.sleep(3 * GRACE_SECONDS)
    assert is_alive(pid)
    second.close()
    assert becomes_true(lambda: not is_alive(pid))
    assert not second.socket_path.exists()


def test_client_that_comes_within_the_grace_finds_the_same_server(tmp_path: Path) -> None:
    with lease(tmp_path):
        pid = server_pid(tmp_path)
    with lease(tmp_path):
        time.sleep(3 * GRACE_SECONDS)
        assert server_pid(tmp_path) == pid


def test_leases_in_quick_succession_always_get_a_server_that_answers(tmp_path: Path) -> None:
    for pause in (0.0, 0.4, 0.5, 0.6, 0.7, 0.8):
        with lease_embedded_redis(tmp_path, grace_seconds=0.3) as held, client_of(held) as client:
            client.incr("n")
        time.sleep(pause)
    with lease(tmp_path) as held, client_of(held) as client:
        assert client.get("n") == b"6"


def test_child_that_inherited_the_lease_keeps_the_server(tmp_path: Path) -> None:
    held = lease(tmp_path)
    pid = server_pid(tmp_path)
    reading, writing = os.pipe()
    with subprocess.Popen(["cat"], stdin=reading, pass_fds=(held._descriptor,)) as child:
        os.close(reading)
        held.close()
        time.sleep(3 * GRACE_SECONDS)
        assert is_alive(pid)
        os.close(writing)
        child.wait(10)
    assert becomes_true(lambda: not is_alive(pid))


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the orphan is stopped by the next client, tested below"
)
def test_supervisor_killed(tmp_path: Path) -> None:
    with lease(tmp_path) as held, client_of(held) as client:
        for _ in range(200):
            written = client.incr("n")
        pid = server_pid(tmp_path)
        os.kill(parent_of(pid), signal.SIGKILL)
        assert becomes_true(lambda: not is_alive(pid))
        with lease(tmp_path):
            assert int(client.get("n")) == written


def test_server_left_by_a_dead_supervisor_is_replaced(tmp_path: Path) -> None:
    plan = embedded._plan(
        tmp_path, embedded._prepare_socket_path(tmp_path), find_server_program(), GRACE_SECONDS
    )
    lock = supervision.open_lock(tmp_path / supervision.SERVER_LOCK)
    assert supervision.try_lock(lock)
    with subprocess.Popen(plan.command, stdout=subprocess.DEVNULL, pass_fds=(lock,)) as orphan:
        os.close(lock)
        assert becomes_true(lambda: supervision.server_answer(plan.socket_path) == "ready")
        with contextlib.closing(redis.Redis(unix_socket_path=plan.socket_path)) as client:
            client.set("k", "v")
        with lease(tmp_path) as held, client_of(held) as client:
            assert orphan.wait(10) == 0
            assert server_pid(tmp_path) != orphan.pid
            assert client.get("k") == b"v"


def test_killed_server_comes_back_with_every_acknowledged_write(tmp_path: Path) -> None:
    with open_redis(data_dir=tmp_path) as connection:
        for _ in range(500):
            written = connection.client.incr("n")
        pid = server_pid(tmp_path)
        os.kill(pid, signal.SIGKILL)
        assert becomes_true(lambda: not is_alive(pid))
        assert int(connection.client.get("n")) == written
        assert connection.client.config_get("appendfsync") == {"appendfsync": "no"}  # see the supervisor
        assert server_pid(tmp_path) != pid


def test_server_that_dies_at_once_again_and_again_is_given_up(tmp_path: Path) -> None:
    with lease(tmp_path):
        killed = {0}
        for _ in range(1 + supervision.RESTARTS_IN_A_ROW):
            assert becomes_true(lambda: server_pid(tmp_path) not in killed)
            killed.add(pid := server_pid(tmp_path))
            os.kill(pid, signal.SIGKILL)
        assert becomes_true(lambda: not embedded._is_supervised(tmp_path))


def test_terminated_supervisor_stops_its_server(tmp_path: Path) -> None:
    with lease(tmp_path):
        pid = server_pid(tmp_path)
        os.kill(parent_of(pid), signal.SIGTERM)
        assert becomes_true(lambda: not is_alive(pid))


def test_data_directories_are_separate_servers(tmp_path: Path) -> None:
    with lease(tmp_path / "a") as a, lease(tmp_path / "b ü") as b, client_of(a) as in_a, client_of(b) as in_b:
        in_a.set("k", "a")
        assert in_b.get("k") is None
        assert a.socket_path != b.socket_path


def test_server_is_out_of_reach_of_ctrl_c_and_of_other_users(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o755)
    with lease(tmp_path / "d") as held:
        assert os.getsid(server_pid(tmp_path / "d")) != os.getsid(0)
        assert stat.S_IMODE(held.socket_path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "d" / "appendonlydir").stat().st_mode) == 0o700
        with client_of(held) as client:
            assert client.config_get("port") == {"port": "0"}


def test_long_path_of_the_data_directory(tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 20)
    with lease(deep) as held, client_of(held) as client:
        assert client.ping()
        assert len(os.fsencode(held.socket_path)) < embedded.SOCKET_PATH_BYTES
        pid = server_pid(deep)
    assert becomes_true(lambda: not is_alive(pid))
    held.socket_path.parent.rmdir()


def test_stale_socket_and_pid_file_do_no_harm(tmp_path: Path) -> None:
    embedded._prepare_socket_path(tmp_path).touch()
    (tmp_path / supervision.PID_FILE).write_text("1\n")
    with lease(tmp_path) as held, client_of(held) as client:
        assert client.ping()


def test_socket_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RedisUnavailableError, match="not a directory of the current user"):
        lease(tmp_path)


def test_data_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RedisUnavailableError, match=r"cannot be used .*LANGGRAPH_MEMORYOS_DATA"):
        lease(tmp_path / "file" / "data")


def test_server_that_cannot_start_tells_the_reason_and_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_text("no module")
    program = replace(find_server_program(), search_module=broken)
    with pytest.raises(RedisUnavailableError, match=r"did not start: .*broken\.so"):
        lease_embedded_redis(tmp_path / "d", program=program)
    assert becomes_true(lambda: not embedded._is_supervised(tmp_path / "d"))
    with lease(tmp_path / "d") as held, client_of(held) as client:
        assert client.ping()


def test_interpreter_that_cannot_run_the_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RedisUnavailableError, match="/bin/false cannot run it"):
        lease(tmp_path)


def test_module_that_lost_its_execute_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "rejson.so"
    module.write_bytes(find_server_program().json_module.read_bytes())
    module.chmod(0o600)
    assert embedded_program.executable_copy(module, tmp_path) == module
    assert os.access(module, os.X_OK)
    monkeypatch.setattr(embedded_program, "_make_executable", lambda _path: False)
    (tmp_path / "copies").mkdir()
    copy = embedded_program.executable_copy(module, tmp_path / "copies")
    assert copy != module
    assert os.access(copy, os.X_OK)


def test_nothing_installed_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    find_server_program.cache_clear()
    try:
        with pytest.raises(SearchUnavailableError, match=r"langgraph-memoryos\[embedded\].*REDIS_URL"):
            lease(tmp_path / "d")
    finally:
        find_server_program.cache_clear()


def test_redis_stack_on_the_path_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bin/redis-stack-server", "bin/redis-server", "lib/redisearch.so", "lib/rejson.so"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert find_server_program.__wrapped__().executable == tmp_path / "bin" / "redis-server"
