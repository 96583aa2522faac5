"""A llama.cpp server for the local chat model: one per weights file, started when first needed.

The server runs in a child process. Inside the application's own process a forked child would hang at exit,
waiting for server threads it does not have, and a crash of the engine would take the application with it.
"""

import atexit
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from langgraph_memoryos.errors import ModelUnavailableError

_SCRIPT = Path(__file__).with_name("llama_process.py")
_START_SECONDS = 300.0  # large weights on a slow disk
_STOP_SECONDS = 2.0  # a forked child may hold the pipe open; then the server is killed


@dataclass(frozen=True, kw_only=True)
class LocalServer:
    """A running server.

    Attributes:
        address: ``http://127.0.0.1:PORT``.
        api_key: Random, known to this process only.
        process: The child that serves; it ends when its standard input is closed.
    """

    address: str
    api_key: str
    process: "subprocess.Popen[str]"

    def __repr__(self) -> str:
        """Show the address only, never the key."""
        return f"LocalServer(address={self.address!r})"

    def answers(self) -> bool:
        """Whether the port accepts connections; also meaningful in a forked child of the starter."""
        place = urlsplit(self.address)
        try:
            socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=2.0).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """End the server and wait until it is gone."""
        _close_pipes(self.process)
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class _Servers:
    """The servers that this process started or inherited, by weights file and context size."""

    def __init__(self) -> None:
        self._running: dict[tuple[Path, int], LocalServer] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        atexit.register(self.stop_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._keep_using_after_fork)

    def serving(self, weights: Path, context_tokens: int) -> LocalServer:
        """Return the server of these weights, started now if there is none that answers."""
        with self._lock:
            server = self._running.get((weights, context_tokens))
            if server is None or not server.answers():
                server = _start(weights, context_tokens)
                self._running[weights, context_tokens] = server
            return server

    def stop_all(self) -> None:
        """Stop what this process started; a forked child leaves its parent's servers alone."""
        if self._pid == os.getpid():
            while self._running:
                self._running.popitem()[1].stop()

    def _keep_using_after_fork(self) -> None:
        self._lock = threading.Lock()
        for server in self._running.values():
            server.process.returncode = 0  # not our child: never wait for it, never warn about it


_SERVERS = _Servers()


def local_server(*, weights: Path, context_tokens: int) -> LocalServer:
    """Return a server for these weights on a free port of 127.0.0.1, started at the first call.

    Args:
        weights: A GGUF file.
        context_tokens: Prompt and reply together never exceed this many tokens.

    Raises:
        ModelUnavailableError: The weights are no GGUF file, the engine is not installed or it did not start.
    """
    return _SERVERS.serving(_checked_weights(weights), context_tokens)


def stop_local_servers() -> None:
    """Stop every server this process started, for example at the end of a test."""
    _SERVERS.stop_all()


def _checked_weights(weights: Path) -> Path:
    try:
        with weights.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
    except OSError:
        raise ModelUnavailableError(f"The weights file {weights} cannot be read.") from None
    if not is_gguf:
        raise ModelUnavailableError(f"The file {weights} is not in the GGUF format.")
    return weights.resolve()


def _start(weights: Path, context_tokens: int) -> LocalServer:
    api_key = secrets.token_urlsafe(24)
    process = _spawned()
    order = {
        "weights": str(weights), "name": weights.stem, "context_tokens": context_tokens, "api_key": api_key,
    }
    answer = _answer(process, order)
    if "address" not in answer:
        _close_pipes(process)
        process.wait()
        raise ModelUnavailableError(_what_went_wrong(answer.get("error", ""), process.returncode))
    return LocalServer(address=answer["address"], api_key=api_key, process=process)


def _spawned() -> "subprocess.Popen[str]":
    # Spinning OpenMP threads make a busy machine several times slower; see local_embeddings.
    environment = (
        os.environ if "GOMP_SPINCOUNT" in os.environ else {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ
    )
    return subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-P", str(_SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        encoding="utf-8",
    )


def _answer(process: "subprocess.Popen[str]", order: dict[str, Any]) -> dict[str, str]:
    """Send the order (the key goes through the pipe, not the command line) and read the one-line answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    alarm = threading.Timer(_START_SECONDS, process.kill)
    alarm.start()
    try:
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except BrokenPipeError:
        line = ""
    finally:
        alarm.cancel()
    answer: dict[str, str] = json.loads(line) if line.startswith("{") else {}
    return answer


def _what_went_wrong(error: str, exit_code: int | None) -> str:
    if "libgomp" in error:
        return (
            "The local chat model needs the system library libgomp: install it (`apt-get install libgomp1`)."
        )
    if "xllamacpp" in error and "No module" in error:
        return 'The local chat model needs xllamacpp: run `pip install "langgraph-memoryos[local]"`.'
    return f"The local chat model did not start: {error or f'its process ended with code {exit_code}'}"


def _close_pipes(process: "subprocess.Popen[str]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
