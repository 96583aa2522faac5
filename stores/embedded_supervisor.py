"""The process that owns an embedded Redis: starts it, restarts it after a crash, stops it when all have left.

It is run by path (``python -I -S embedded_supervisor.py PLAN``) and imports the standard library only, so
that it starts in some 30 ms, weighs a few megabytes and outlives the environment that started it.

Four lock files in the data directory say who is alive; the kernel releases them at any death:

* ``start.lock``: exclusive, held by a client while it looks for or starts a server;
* ``clients.lock``: shared, held by every client as long as it needs the server;
* ``supervisor.lock``: exclusive, held by the supervisor;
* ``server.lock``: exclusive, held by the supervisor *and* inherited by the server, so that no second server
  can ever open the same append-only file.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal

START_LOCK = "start.lock"
CLIENTS_LOCK = "clients.lock"
SUPERVISOR_LOCK = "supervisor.lock"
SERVER_LOCK = "server.lock"
SERVER_LOG = "server.log"
PID_FILE = "server.pid"
APPENDED_FILES = "appendonlydir/*.incr.aof"

READY_REPLY = "ready"
BUSY_REPLY = "busy"
POLL_SECONDS = 0.2
SYNC_SECONDS = 1.0
FIRST_ANSWER_SECONDS = 30.0
STOP_SECONDS = 15.0
STEADY_SECONDS = 5.0
RESTARTS_IN_A_ROW = 3
LOG_BYTES = 1_000_000
PR_SET_PDEATHSIG = 1

Answer = Literal["ready", "loading", "silent"]


@dataclass(frozen=True, kw_only=True)
class ServerPlan:
    """What to run and where; travels to the supervisor as JSON.

    Attributes:
        data_dir: Directory of the append-only file, the locks and the log.
        socket_path: Unix socket the server listens on; its directory exists and is private.
        command: Program and arguments of the server.
        grace_seconds: How long the server outlives its last client.
    """

    data_dir: str
    socket_path: str
    command: list[str] = field(default_factory=list)
    grace_seconds: float = 5.0

    def to_json(self) -> str:
        """Return the plan as the one argument of this program."""
        return json.dumps(asdict(self))


class ServerFailedError(Exception):
    """The server cannot run; the message is one sentence for the user."""


def open_lock(path: Path) -> int:
    """Open a lock file (made private when new) and return its descriptor, which children do not inherit.

    Raises:
        OSError: The file cannot be made or opened.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock if that is possible at once; return whether it is held now.

    Raises:
        OSError: The file system has no locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int, *, seconds: float, shared: bool = False) -> bool:
    """Take the lock within ``seconds``; return whether it is held now."""
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor, shared=shared):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def unlock(descriptor: int) -> None:
    """Release the lock and keep the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def ask_server(socket_path: str, command: str, *, seconds: float = 2.0) -> str:
    """Send one command without arguments over the socket and return the first line of the reply, or ''."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(seconds)
        channel.connect(socket_path)
        channel.sendall(f"{command}\r\n".encode())
        return channel.recv(256).decode("utf-8", "replace").partition("\r\n")[0]
    return ""


def server_answer(socket_path: str) -> Answer:
    """Say whether the server answers PING, still loads its data, or is not there."""
    reply = ask_server(socket_path, "PING")
    if reply == "+PONG":
        return "ready"
    return "loading" if reply.startswith("-LOADING") else "silent"


def last_log_line(log: Path) -> str:
    """Return the last line of the server's log without its process id and time, or ''."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        if lines:
            return lines[-1].partition(" # ")[2] or lines[-1]
    return ""


def die_with_parent(parent: int) -> Callable[[], None] | None:
    """Return what a Linux child runs before exec so that the kernel kills it when its parent dies.

    SIGKILL, because SIGTERM waits for a running script; the append-only file holds every acknowledged write.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


class Supervisor:
    """Runs one server for one data directory until nobody needs it.

    Args:
        plan: What to run and where.
    """

    def __init__(self, plan: ServerPlan) -> None:
        self._plan = plan
        self._directory = Path(plan.data_dir)
        self._log = self._directory / SERVER_LOG
        self._clients_lock = open_lock(self._directory / CLIENTS_LOCK)
        self._server_lock = open_lock(self._directory / SERVER_LOCK)
        self._server: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._synced_at = 0.0
        self._short_lives = 0
        self._stop_asked = False

    def run(self, report: Callable[[str], None]) -> None:
        """Start the server, report how that went, and stay until nobody needs it.

        Args:
            report: Told ``READY_REPLY``, or ``BUSY_REPLY`` when another supervisor works on this directory
                already, or one sentence about what failed.
        """
        supervisor_lock = open_lock(self._directory / SUPERVISOR_LOCK)
        if not try_lock(supervisor_lock):
            report(BUSY_REPLY)
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            self._start_first(report)
            self._watch()
        finally:
            self._stop()

    def _start_first(self, report: Callable[[str], None]) -> None:
        try:
            self._evict_orphan()
            self._rotate_log()
            self._spawn()
            self._wait_until_ready()
        except (ServerFailedError, OSError) as error:
            report(f"The embedded Redis did not start: {error}")
            raise SystemExit(1) from error
        report(READY_REPLY)

    def _evict_orphan(self) -> None:
        """Stop a server that a killed supervisor left behind (only where the kernel does not do it)."""
        if wait_for_lock(self._server_lock, seconds=2.0):
            return
        ask_server(self._plan.socket_path, "SHUTDOWN NOSAVE", seconds=STOP_SECONDS)
        if not wait_for_lock(self._server_lock, seconds=STOP_SECONDS):
            msg = f"a server that does not answer still uses {self._directory} (see {PID_FILE})."
            raise ServerFailedError(msg)

    def _rotate_log(self) -> None:
        if self._log.exists() and self._log.stat().st_size > LOG_BYTES:
            self._log.replace(self._log.with_suffix(".log.1"))

    def _spawn(self) -> None:
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(  # noqa: S603 - the client chose the program, no shell
                self._plan.command,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(self._server_lock,),
                preexec_fn=die_with_parent(os.getpid()),  # noqa: PLW1509 - one thread only
            )
        self._started_at = time.monotonic()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + FIRST_ANSWER_SECONDS
        while (answer := server_answer(self._plan.socket_path)) != "ready":
            if self._server is None or self._server.poll() is not None:
                raise ServerFailedError(last_log_line(self._log) or "it ended without a word.")
            if answer == "loading":
                deadline = time.monotonic() + FIRST_ANSWER_SECONDS
            if self._stop_asked or time.monotonic() > deadline:
                raise ServerFailedError(f"it did not answer within {FIRST_ANSWER_SECONDS:g} seconds.")
            time.sleep(0.01)

    def _watch(self) -> None:
        """Return when asked to stop, when the server cannot be kept alive, or when nobody holds a lease."""
        idle_since: float | None = None
        while not self._stop_asked and self._keep_alive():
            if not try_lock(self._clients_lock):
                idle_since = None
            elif idle_since is None or time.monotonic() - idle_since < self._plan.grace_seconds:
                unlock(self._clients_lock)
                idle_since = idle_since or time.monotonic()
            else:
                return  # the lock stays taken: a client that comes now waits until the server is down
            self._sync_appended()
            time.sleep(POLL_SECONDS)

    def _sync_appended(self) -> None:
        """Bring what the server appended to the disk, every second, so that a power cut costs no more.

        Not the server's work: with ``appendfsync everysec`` it holds writes back while a sync runs and
        answers all the same, so that ``kill -9`` in that moment loses acknowledged writes (measured); with
        ``no`` it always writes before it answers.
        """
        if time.monotonic() - self._synced_at < SYNC_SECONDS:
            return
        for file in self._directory.glob(APPENDED_FILES):
            with contextlib.suppress(OSError):  # rewritten and removed meanwhile
                descriptor = os.open(file, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        self._synced_at = time.monotonic()

    def _keep_alive(self) -> bool:
        """Restart a server that died; give up when it dies again and again at once."""
        if self._server is not None and self._server.poll() is None:
            return True
        lived = time.monotonic() - self._started_at
        self._short_lives = self._short_lives + 1 if lived < STEADY_SECONDS else 1
        if self._short_lives > RESTARTS_IN_A_ROW:
            return False
        self._spawn()
        return True

    def _stop(self) -> None:
        if self._server is None or self._server.poll() is not None:
            return
        self._server.terminate()
        try:
            self._server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_asked = True


def detach() -> Callable[[str], None]:
    """Leave the parent, so that no client has to reap us, and return the one-shot report to it.

    The parent reads standard output until it closes; the report closes it.
    """
    if os.fork():
        os._exit(0)
    channel = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)

    def report(message: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(channel, message.encode())
        os.close(channel)

    return report


def main() -> None:
    """Run the plan given as the first argument."""
    plan = ServerPlan(**json.loads(sys.argv[1]))
    os.umask(0o077)
    os.chdir("/")
    Supervisor(plan).run(detach())


if __name__ == "__main__":
    main()
