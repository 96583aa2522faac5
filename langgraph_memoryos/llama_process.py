"""The child process of :mod:`langgraph_memoryos.local_server`; run as a script, never imported.

Reads one JSON line from standard input, starts llama.cpp's OpenAI-compatible server on 127.0.0.1 and answers
with one JSON line, ``{"address": ...}`` or ``{"error": ...}``. It ends when standard input is closed, that
is, when no process holds the other end any more, however it ended.
"""

import json
import os
import signal
import sys
from typing import Any

_PROMPT_CACHE_MIB = 64  # the default is 8 GB


def main() -> None:
    """Serve until standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the application, which then stops us
    answer, server = _started(json.loads(sys.stdin.readline()))
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    if server is not None:
        sys.stdin.read()
    os._exit(0)  # joining the server's threads would wait for a reply that nobody reads


def _started(order: dict[str, Any]) -> tuple[dict[str, str], Any]:
    try:
        import xllamacpp  # noqa: PLC0415 - a missing system library is reported, not raised

        server = xllamacpp.Server(_parameters(xllamacpp, order))
    except (ImportError, OSError, RuntimeError) as error:
        return {"error": str(error)}, None
    return {"address": server.listening_address}, server


def _parameters(xllamacpp: Any, order: dict[str, Any]) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = order["weights"]
    parameters.model_alias = {order["name"]}  # replies would name the path of the weights
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # any free port
    parameters.api_keys = [order["api_key"]]
    parameters.n_ctx = order["context_tokens"]
    parameters.n_parallel = 1
    parameters.use_jinja = True  # the chat template inside the weights
    parameters.cache_ram_mib = _PROMPT_CACHE_MIB
    parameters.cors_origins = ""
    parameters.endpoint_slots = False
    parameters.offline = True
    parameters.ui = False
    parameters.verbosity = 0
    return parameters


if __name__ == "__main__":
    main()
