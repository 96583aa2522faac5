"""The development server, started as ``make studio`` does, asked over HTTP for what LangGraph Studio asks."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from langgraph_memoryos.stores.embedded import DATA_DIR_VARIABLE

ROOT = Path(__file__).parent.parent
GRAPHS = {"chat", "recall", "remember", "consolidate", "virtual_context"}
RECALL_STEPS = {
    "resolve_turn", "retrieve_short_term", "retrieve_mid_term", "retrieve_long_term", "assemble_memory", "record_visits",
}
MAINTENANCE_STEPS = {
    "select_overflow", "analyse_pages", "assign_segments", "summarise_segments", "refresh_segments",
    "evict_cold_segments", "promote_hot_segments", "load_known_persona", "digest_segments", "update_persona",
    "cool_segments",
}
REMEMBER_STEPS = MAINTENANCE_STEPS | {"write_page"}
LOOP_STEPS = {
    "ingest_event", "build_context", "check_pressure", "select_evicted", "summarise_evicted", "replace_evicted",
    "call_model", "execute_functions", "finish_event",
}
TOLD = "My sister Ines lives in Lisbon."
START_SECONDS = 60.0
STOP_SECONDS = 20.0
FOREIGN_PREFIXES = ("OPENAI_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "REDIS_URL")


@dataclass(frozen=True)
class Studio:
    """A running development server."""

    client: SyncLangGraphClient
    process: "subprocess.Popen[bytes]"
    data_dir: Path
    log: Path

    def assistant(self, graph: str) -> str:
        return self.client.assistants.search(graph_id=graph)[0]["assistant_id"]


def environment(data_dir: Path) -> dict[str, str]:
    """No key, a Redis of its own, a queue of two pages so that one chat turn runs every step, and no internet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)}
    return kept | {
        "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true",
        DATA_DIR_VARIABLE: str(data_dir),
        "LANGGRAPH_MEMORYOS_SHORT_TERM_CAPACITY_PAGES": "2", "LANGGRAPH_MEMORYOS_EVICTION_BATCH_PAGES": "2",
        "LANGGRAPH_MEMORYOS_PROMOTION_HEAT": "0", "LANGGRAPH_MEMORYOS_MAX_STEPS": "2",
        # Whoever tries to leave this machine meets a closed port.
        "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost",
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_until_up(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with opener.open(f"{url}/ok", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    process.kill()
    pytest.fail(f"the development server did not start:\n{log.read_text()}")


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and command line of every process by id; a slim container has no ``ps``."""
    if Path("/proc/self/stat").exists():
        return {int(entry.name): found for entry in Path("/proc").glob("[0-9]*") if (found := proc_entry(entry))}
    rows = subprocess.run(
        ["ps", "-axww", "-o", "pid=,ppid=,command="], check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    split = (row.split(None, 2) for row in rows)
    return {int(row[0]): (int(row[1]), row[2]) for row in split if len(row) == 3}


def proc_entry(entry: Path) -> tuple[int, str] | None:
    try:
        state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return None if state == "Z" else (int(parent), command)


def belonging_to(studio: Studio) -> set[int]:
    """Return the ids of the server's children and of its Redis, which has a parent of its own."""
    found = processes()
    family = {studio.process.pid}
    while grown := {pid for pid, (parent, _) in found.items() if parent in family} - family:
        family |= grown
    return family | {pid for pid, (_, command) in found.items() if str(studio.data_dir) in command}


def stop(studio: Studio) -> set[int]:
    """Interrupt the server as Ctrl-C does; return the processes that outlive it."""
    family = belonging_to(studio)
    studio.process.send_signal(signal.SIGINT)
    studio.process.wait(STOP_SECONDS)
    deadline = time.monotonic() + STOP_SECONDS
    while (left := family & processes().keys()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    directory = tmp_path_factory.mktemp("studio")  # the server keeps its threads in the working directory
    shutil.copy(ROOT / "langgraph.json", directory)
    url = f"http://127.0.0.1:{free_port()}"
    log = directory / "log"
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    with log.open("wb") as output, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        process = subprocess.Popen(
            [*command, "--port", url.rsplit(":", 1)[1]], cwd=directory, env=environment(directory / "redis"),
            stdout=output, stderr=subprocess.STDOUT,
        )
        wait_until_up(url, process, log)
        with get_sync_client(url=url) as client:
            started = Studio(client, process, directory / "redis", log)
            yield started
        if process.poll() is None:
            stop(started)


def test_serves_every_graph_with_a_description(studio: Studio) -> None:
    found = studio.client.assistants.search(limit=20)

    assert {assistant["graph_id"] for assistant in found} == GRAPHS
    assert all(assistant["description"] for assistant in found)


@pytest.mark.parametrize(
    ("graph", "steps"),
    [
        ("recall", RECALL_STEPS),
        ("remember", REMEMBER_STEPS),
        ("consolidate", MAINTENANCE_STEPS | {"choose_queue"}),
        ("virtual_context", LOOP_STEPS),
        (
            "chat",
            {f"recall:{step}" for step in RECALL_STEPS} | {"generate_reply"} | {f"remember:{step}" for step in REMEMBER_STEPS},
        ),
    ],
)
def test_shows_every_stage(studio: Studio, graph: str, steps: set[str]) -> None:
    drawn = studio.client.assistants.get_graph(studio.assistant(graph), xray=1)

    assert steps <= {node["id"] for node in drawn["nodes"]}


@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_describes_input_output_state_and_context(studio: Studio, graph: str) -> None:
    schemas = studio.client.assistants.get_schemas(studio.assistant(graph))

    for kind in ("input_schema", "output_schema", "state_schema", "context_schema"):
        assert schemas[kind]["properties"], kind
    described = {**schemas["input_schema"]["properties"], **schemas["context_schema"]["properties"]}
    assert {name for name, field in described.items() if not field.get("description")} == set()
    assert schemas["context_schema"]["properties"]["user_id"]["default"] == "me"
    assert "required" not in schemas["context_schema"]


def test_names_the_subgraphs_of_chat(studio: Studio) -> None:
    found = studio.client.assistants.get_subgraphs(studio.assistant("chat"), recurse=True)

    assert set(found) == {"recall", "remember"}


def test_a_turn_streams_every_step_and_a_second_thread_recalls_it(studio: Studio) -> None:
    client = studio.client
    first, second, other = (client.threads.create()["thread_id"] for _ in range(3))
    earlier = [
        {
            "query": f"I planted {plant} in the garden.", "reply": "Nice.", "said_at": 1.7e9 + place,
            "thread_id": first, "source_ids": [f"earlier-{place}"],
        }
        for place, plant in enumerate(["tomatoes", "leeks"])
    ]
    client.runs.wait(first, "remember", input={"exchanges": earlier}, context={"user_id": "ana"})

    ran: set[str] = set()
    told: list[str] = []
    question = {"messages": [{"role": "user", "content": f"{TOLD} Reply with one word."}]}
    for part in client.runs.stream(
        first, "chat", input=question, context={"user_id": "ana"}, stream_mode=["updates", "messages-tuple"],
        stream_subgraphs=True,
    ):
        assert part.event != "error", part.data
        kind, _, namespace = part.event.partition("|")
        if kind == "updates":
            subgraph = namespace.split(":")[0]
            ran |= {f"{subgraph}:{step}".lstrip(":") for step in part.data}
        elif kind == "messages" and "generate_reply" not in ran:
            told.append(part.data[0]["content"])
    steps = {f"recall:{step}" for step in RECALL_STEPS} | {f"remember:{step}" for step in REMEMBER_STEPS}
    assert steps | {"recall", "generate_reply", "remember"} <= ran
    assert "".join(told).strip()
    report = client.threads.get_state(first)["values"]["remembered"]
    assert report["moved_pages"] == 2
    assert not report.get("failure")

    question = {"messages": [{"role": "user", "content": "Where does my sister live? Reply with one word."}]}
    answered = client.runs.wait(second, "chat", input=question, context={"user_id": "ana"})
    recalled = [page["query"] for page in answered["memory"]["mid_term"]]
    assert any(TOLD in query for query in recalled), recalled
    assert answered["messages"][-1]["type"] == "ai"

    unknown = client.runs.wait(other, "recall", input=question, context={"user_id": "bob"})["memory"]
    assert unknown["mid_term"] == unknown["short_term"] == []
    assert "Lisbon" not in str(unknown)


def test_without_a_context_the_default_user_is_meant(studio: Studio) -> None:
    client = studio.client
    exchange = {
        "query": "I own a teal kayak.", "reply": "Good.", "said_at": 1.7e9, "thread_id": "t", "source_ids": ["kayak"],
    }
    client.runs.wait(None, "remember", input={"exchanges": [exchange]})

    found = client.runs.wait(
        None, "recall", input={"messages": [{"role": "user", "content": "kayak"}]}, context={"user_id": "me"},
    )
    assert [page["query"] for page in found["memory"]["mid_term"]] == ["I own a teal kayak."]


def test_consolidate_empties_the_queues_of_its_user(studio: Studio) -> None:
    done = studio.client.runs.wait(None, "consolidate", input={"drain": True}, context={"user_id": "ana"})["remembered"]

    assert done["moved_pages"] == 2
    assert not done.get("failure")


def test_the_virtual_context_streams_its_loop_and_knows_the_user_in_the_next_run(studio: Studio) -> None:
    client = studio.client
    thread = client.threads.create()["thread_id"]
    question = {"messages": [{"role": "user", "content": "Hello, I keep a teal kayak."}]}
    ran: list[str] = []
    for part in client.runs.stream(
        thread, "virtual_context", input=question, context={"user_id": "zoe"}, stream_mode="updates",
    ):
        assert part.event != "error", part.data
        ran += part.data if part.event == "updates" else []
    assert ran[:4] == ["ingest_event", "build_context", "check_pressure", "call_model"]
    assert ran[-1] == "finish_event"
    values = client.threads.get_state(thread)["values"]
    assert values["virtual"]["reason"]
    assert values["virtual"]["usage"]["model_calls"] == ran.count("call_model")

    timer = {"event": {"kind": "timed", "text": "Nothing is due."}}
    ticked = client.runs.wait(thread, "virtual_context", input=timer, context={"user_id": "zoe"})
    assert ticked["virtual"]["kind"] == "timed"
    other = client.runs.wait(None, "virtual_context", input={"messages": []}, context={"user_id": "bob"})
    assert other["virtual"]["reason"] == "nothing"


def test_stops_without_leaving_a_process_and_never_blocked_its_loop(studio: Studio) -> None:
    assert stop(studio) == set()

    log = studio.log.read_text()
    assert "BlockingError" not in log
    assert "Traceback" not in log
