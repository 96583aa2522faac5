"""A private Redis with search that lives and dies with the processes that use it.

:func:`lease_embedded_redis` gives the unix socket of a server for one data directory and keeps that server
alive until the lease is closed or its process ends. Several processes of one user share one server; distinct
data directories are distinct servers. How the locks work is told in
:mod:`langgraph_memoryos.stores.embedded_supervisor`.
"""

import contextlib
import hashlib
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import platformdirs

from langgraph_memoryos.errors import RedisUnavailableError
from langgraph_memoryos.stores import embedded_supervisor as supervision
from langgraph_memoryos.stores.embedded_program import ServerProgram, find_server_program, server_command

DATA_DIR_VARIABLE = "LANGGRAPH_MEMORYOS_DATA"
GRACE_SECONDS = 5.0
START_SECONDS = 120.0
SOCKET_PATH_BYTES = 100


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
        program: Server to start; default: :func:`~.embedded_program.find_server_program`.
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
    try:
        run_dir.mkdir(mode=0o700, exist_ok=True)
        found = run_dir.lstat()
    except OSError as error:
        raise RedisUnavailableError(f"No socket can be made in {run_dir} ({error.strerror}).") from error
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
        if answer == "silent" and time.monotonic() > deadline:
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
    if done.returncode:
        raise RedisUnavailableError(f"The embedded Redis did not start: {sys.executable} cannot run it.")
    report = done.stdout.decode("utf-8", "replace")
    if report not in {supervision.READY_REPLY, supervision.BUSY_REPLY, ""}:  # "": it was killed meanwhile
        raise RedisUnavailableError(report)


def _plan(directory: Path, socket_path: Path, program: ServerProgram, grace: float) -> supervision.ServerPlan:
    return supervision.ServerPlan(
        data_dir=str(directory),
        socket_path=str(socket_path),
        command=server_command(program, directory, socket_path, directory / supervision.PID_FILE),
        grace_seconds=grace,
    )
