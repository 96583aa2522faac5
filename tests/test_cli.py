"""The command line, on a real Redis with the bundled embedder; chat replies come from a scripted model."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import openai
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from langgraph_memoryos import MemoryOS
from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.cli import app, application
from langgraph_memoryos.cli import doctor as doctor_module
from langgraph_memoryos.cli.failures import plain_sentence
from langgraph_memoryos.cli.output import one_line, printable
from langgraph_memoryos.cli.questions import ask_weeks_later
from langgraph_memoryos.cli.recorded import RecordedClock
from langgraph_memoryos.cli.sessions import show_sessions
from langgraph_memoryos.cli.streaming import remembered_line
from langgraph_memoryos.conversations import load
from langgraph_memoryos.demo import chinese
from langgraph_memoryos.errors import MemoryOSError, ModelUnavailableError
from langgraph_memoryos.state import NO_USAGE
from tests.virtual_support import ToolModel, acts, call, say

pytest_plugins = ["tests.memory_fixtures"]
SAMPLES = Path(__file__).parent / "samples"
LOCOMO = SAMPLES / "locomo.json"
COMMANDS = (
    "ask", "chat", "consolidate", "demo", "doctor", "export", "forget", "inspect", "load", "migrate",
    "replay",
)  # fmt: skip
ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "LANGGRAPH_MEMORYOS_GGUF", "LANGGRAPH_MEMORYOS_USER", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(redis_url, redis_prefix):
    """Run a command on a namespace of its own and return its result; it must end as expected."""

    def invoke(*arguments, exit_code=0, stdin=None):
        place = ["--redis-url", redis_url, "--namespace", redis_prefix]
        result = CliRunner().invoke(app, [*map(str, arguments), *place], input=stdin)
        assert result.exit_code == exit_code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def run_json(run):
    def invoke(*arguments, **options):
        return json.loads(run(*arguments, "--json", **options).stdout)

    return invoke


@pytest.fixture
def replies(monkeypatch):
    """Let ``chat`` answer with the messages that a test puts into the returned list."""
    waiting: list[str] = []

    def build(**_options):
        return GenericFakeChatModel(messages=iter(AIMessage(text) for text in waiting))

    choice = SimpleNamespace(is_bundled=True, name="scripted", weights=None, build=build)
    for module in ("memory", "cli.ask", "cli.demo"):
        monkeypatch.setattr(f"langgraph_memoryos.{module}.choose_chat_model", lambda: choice)
    return waiting


@pytest.fixture
def tools(monkeypatch):
    """Let ``chat`` be answered by a model that calls functions as a test's script says."""
    model = ToolModel()
    choice = SimpleNamespace(is_bundled=True, name="scripted", weights=None, build=lambda **_: model)
    monkeypatch.setattr("langgraph_memoryos.memory.choose_chat_model", lambda: choice)
    return model


def exported(run, user):
    return [json.loads(line) for line in run("export", "--user", user).stdout.splitlines()]


def texts(entries):
    return [f"{entry['query']}\n{entry['reply']}" for entry in entries if entry["kind"] == "page"]


def unboxed(result):
    """Return the text of a usage error without the frame around it."""
    return re.sub(r"[\s│]+", " ", result.stderr)


# Help and errors


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [command, "--help"], terminal_width=200)
    assert result.exit_code == 0
    assert "--redis-url" in result.stdout
    assert "--namespace" in result.stdout


def test_all_commands_are_tested_for_help():
    assert sorted(application.COMMANDS) == sorted(COMMANDS)


def test_version():
    assert re.fullmatch(r"langgraph-memoryos \d\S*\n", CliRunner().invoke(app, ["--version"]).stdout)


def test_unreachable_redis_is_one_sentence_without_the_password():
    url = "redis://ann:hunter2@127.0.0.1:1/0"
    result = CliRunner().invoke(app, ["inspect", "--user", "a", "--redis-url", url])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: No usable Redis at redis://***@127.0.0.1:1/0")
    assert "hunter2" not in result.output
    assert "Traceback" not in result.output


def test_two_places_at_once_are_refused():
    arguments = ["inspect", "--user", "a", "--redis-url", "redis://h", "--data-dir", "/tmp/d"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "not both" in result.stderr


@pytest.mark.parametrize("command", ["ask", "inspect", "export", "forget", "consolidate"])
def test_a_missing_or_empty_user_is_an_error(command):
    arguments = [command, *(["?"] if command == "ask" else [])]
    assert CliRunner().invoke(app, arguments).exit_code == 2
    empty = CliRunner().invoke(app, [*arguments, "--user", ""])
    assert empty.exit_code == 2
    assert "must not be empty" in unboxed(empty)


def test_a_bad_namespace_and_a_bad_setting_are_sentences(redis_url, monkeypatch):
    bad = CliRunner().invoke(app, ["inspect", "-u", "a", "--redis-url", redis_url, "--namespace", "a:b"])
    assert bad.exit_code == 1
    assert bad.stderr.startswith("Error: A namespace is")
    monkeypatch.setenv("LANGGRAPH_MEMORYOS_TOP_PAGES", "many")
    bad = CliRunner().invoke(app, ["inspect", "-u", "a", "--redis-url", redis_url])
    assert bad.exit_code == 1
    assert bad.stderr.startswith("Error: setting top_pages: ")


def test_model_errors_do_not_quote_the_server():
    response = SimpleNamespace(status_code=401, headers={}, request=None)
    refused = openai.AuthenticationError(
        "Incorrect API key provided: sk-secret", response=response, body=None
    )
    assert "sk-secret" not in plain_sentence(refused)
    assert "401" in plain_sentence(refused)
    assert plain_sentence(MemoryOSError("Do this.")) == "Do this."
    assert plain_sentence(ZeroDivisionError()) is None


# Printing


def test_user_text_cannot_command_the_terminal():
    assert printable(f"a{ESCAPE}[2Jb\x07\x9bc\n\td\ud800") == "a\ufffd[2Jb\ufffd\ufffdc\n\td\ufffd"
    assert one_line("a\n b  c") == "a b c"
    assert one_line("x" * 200, width=10) == "x" * 9 + "…"


def test_remembered_line():
    assert remembered_line({"usage": NO_USAGE}) == "remembered: nothing new"
    report = {"page_id": "p", "moved_pages": 2, "facts": 1, "usage": NO_USAGE | {"model_calls": 3}}
    assert remembered_line(report) == "remembered: 1 page, 2 pages moved to mid-term, 1 fact, 3 model calls"


# Replay and export


def test_the_help_of_replay_shows_a_line_and_says_what_undated_ones_get():
    told = CliRunner().invoke(app, ["replay", "--help"], terminal_width=200).stdout
    assert '{"user": "I moved to Aarhus.", "assistant": "How is it?",' in told
    assert "the time of the replay" in " ".join(told.split())


def test_replay_counts_what_had_no_date(run, run_json, tmp_path):
    recording = tmp_path / "talk.jsonl"
    lines = [{"user": f"I planted tree {number}.", "assistant": "Good."} for number in range(3)]
    lines[1]["at"] = "2026-05-01T18:00:00Z"
    recording.write_text("\n".join(map(json.dumps, lines)))
    assert "undated      2 of 3 exchanges" in run("replay", recording, "-u", "a", "--no-model").stdout
    assert run_json("replay", recording, "-u", "a", "--no-model")["undated"] == 2
    dated = run("replay", LOCOMO, "--sample", "tiny-2", "--no-model")
    assert "undated" not in dated.stdout


def test_an_unknown_user_is_told_as_such(run, run_json):
    sentence = "Nothing is known about user nobody.\n"
    for arguments in (["inspect"], ["export"], ["ask", "Where?", "--no-model"]):
        result = run(*arguments, "-u", "nobody")
        assert (result.stdout, result.stderr) == ("", sentence), arguments
    for arguments in (["inspect"], ["ask", "Where?", "--no-model"]):
        result = run(*arguments, "-u", "nobody", "--json")
        assert json.loads(result.stdout)["user_id" if arguments == ["inspect"] else "user"] == "nobody"
        assert result.stderr == sentence


def test_a_user_with_a_profile_alone_is_known(run, redis_url, redis_prefix):
    with MemoryOS.open_sync(redis_url, namespace=redis_prefix, analyst=DeterministicAnalyst()) as memory:
        memory.set_profile("ada", {"name": "Ada"})
    shown = run("inspect", "-u", "ada")
    assert "name = Ada" in shown.stdout
    assert shown.stderr == run("ask", "Who?", "-u", "ada", "--no-model").stderr == ""


def test_replay_keeps_every_turn_and_is_idempotent(run, run_json):
    first = run_json("replay", LOCOMO, "--sample", "tiny-1", "--user", "ada", "--no-model")
    assert (first["user"], first["sample"], first["turns"]) == ("ada", "tiny-1", 5)
    assert (first["pages_new"], first["pages_same"], first["model_calls"]) == (5, 0, 0)
    assert first["model_calls_per_turn"] == 1.0
    assert first["moved_pages"] == 4
    assert first["segments"] >= 1
    again = run_json("replay", LOCOMO, "--sample", "tiny-1", "--user", "ada", "--no-model")
    assert (again["pages_new"], again["pages_same"], again["moved_pages"]) == (0, 5, 0)

    entries = exported(run, "ada")
    said = "\n".join(texts(entries))
    for turn in json.loads(LOCOMO.read_text())[0]["conversation"]["session_1"]:
        assert turn["text"] in said
    assert "a photo of a sapling" in said
    assert {"page", "segment"} <= {entry["kind"] for entry in entries}
    assert [entry["sequence"] for entry in entries if entry["kind"] == "page"] == [1, 2, 3, 4, 5]


def test_replay_leaves_the_queue_of_a_live_thread_alone(run, run_json, tmp_path):
    live = tmp_path / "live.jsonl"
    live.write_text(json.dumps({"user": "Hello.", "assistant": "Hi.", "thread": "live", "id": "1"}))
    run("replay", live, "--user", "ada", "--no-model")
    assert run_json("replay", LOCOMO, "--sample", "tiny-1", "--user", "ada", "--no-model")["moved_pages"] == 4
    assert run_json("inspect", "-u", "ada")["short_term"] == {"live": 1, "session_10": 1}


def test_replay_takes_the_sample_as_user_and_says_which_samples_there_are(run, run_json):
    assert run_json("replay", LOCOMO, "--sample", "tiny-2", "--no-model")["user"] == "tiny-2"
    several = run("replay", LOCOMO, "--no-model", exit_code=1)
    assert several.stderr.strip().endswith("choose one with --sample (tiny-1, tiny-2).")
    unknown = run("replay", LOCOMO, "--sample", "tiny-9", exit_code=1)
    assert "no sample is called 'tiny-9'" in unknown.stderr
    assert "Error: " in run("replay", SAMPLES / "missing.json", exit_code=1).stderr


def test_replay_tells_a_person_what_happened(run):
    result = run("replay", LOCOMO, "--sample", "tiny-2", "--no-model")
    assert "tiny-2: 1 exchanges of user tiny-2" in result.stdout
    assert ESCAPE not in result.output


def test_export_to_a_file(run, tmp_path):
    run("replay", LOCOMO, "--sample", "tiny-2", "--no-model")
    target = tmp_path / "ada.jsonl"
    result = run("export", "--user", "tiny-2", "--output", target)
    assert result.stdout == ""
    assert "Anyone here?" in target.read_text(encoding="utf-8")
    failed = run("export", "--user", "tiny-2", "--output", tmp_path / "no" / "x", exit_code=1)
    assert "cannot be written" in failed.stderr


# Nobody sees what another user said

LOOK_ALIKES = (
    "alice2",
    "alice-smith",
    "Alice",
    "alice.b",
    "alice,bob",
    "alice|bob",
    "{alice}",
    "*",
    "a",
    "用户",
)


def test_ask_never_shows_another_users_text(run, run_json, tmp_path):
    recording = tmp_path / "secret.jsonl"
    recording.write_text(json.dumps({"user": "My locker code is 4711-zebra.", "assistant": "Noted."}))
    run("replay", recording, "--user", "alice", "--no-model")
    recording.write_text(json.dumps({"user": "I keep bees.", "assistant": "Lovely."}))
    run("replay", recording, "--user", "alice2", "--no-model")

    question = "What is the locker code 4711-zebra?"
    own = run_json("ask", question, "--user", "alice", "--no-model")
    assert own["answer"] is None
    assert "4711-zebra" in own["evidence"][0]["query"]
    assert own["memory"]["mid_term"]
    for other in LOOK_ALIKES:
        found = run("ask", question, "--user", other, "--no-model", "--json").stdout
        assert "4711-zebra." not in found, other
        assert all(page["user_id"] == other for page in json.loads(found)["evidence"]), other
    elsewhere = run("ask", question, "--user", "alice", "--agent", "other", "--no-model")
    assert "Nothing is remembered" in elsewhere.stdout
    assert elsewhere.stderr == ""


def test_ask_shows_evidence_with_its_parts(run):
    run("replay", LOCOMO, "--sample", "tiny-1", "--no-model")
    result = run("ask", "What did Ada plant?", "--user", "tiny-1", "--no-model", "--explain")
    assert re.search(r"2023-05-08 13:56  thread session_1  relevance \d\.\d\d = semantic ", result.stdout)
    assert "I planted a quince tree." in result.stdout
    assert "semantic" in result.stdout
    assert result.stderr == ""
    assert ESCAPE not in result.stdout
    plain = run("ask", "What did Ada plant?", "--user", "tiny-1", "--no-model").stdout
    assert re.search(r"relevance \d\.\d\d\n", plain)
    assert "semantic" not in plain


@pytest.mark.parametrize("question", ["", " ", "?!", "is it a", "@user:{*}", "word " * 2000])
def test_ask_survives_any_question(run_json, question):
    assert run_json("ask", question, "--user", "nobody", "--no-model")["evidence"] == []


def test_ask_has_a_model_answer_and_remembers_nothing(run, run_json, replies):
    run("replay", LOCOMO, "--sample", "tiny-1", "--no-model")
    before = exported(run, "tiny-1")
    replies.append("A quince tree.")
    assert run_json("ask", "What did Ada plant?", "-u", "tiny-1", "--model")["answer"] == "A quince tree."
    aloud = run("ask", "What did Ada plant?", "-u", "tiny-1", "--model")
    assert aloud.stdout.endswith("A quince tree.\n")
    hint = run("ask", "What did Ada plant?", "-u", "tiny-1")
    assert "Evidence only" in hint.stderr
    assert texts(exported(run, "tiny-1")) == texts(before)


# Inspect, consolidate, forget


def test_inspect_and_consolidate(run, run_json):
    run("replay", LOCOMO, "--sample", "tiny-1", "--no-model")
    tiers = run_json("inspect", "-u", "tiny-1")
    assert tiers["short_term"] == {"session_10": 1}
    report = run_json("consolidate", "-u", "tiny-1", "--drain", "--no-model")
    assert report["moved_pages"] == 1
    tiers = run_json("inspect", "-u", "tiny-1")
    assert tiers["short_term"] == {}
    assert all(segment["heat"] > 0 for segment in tiers["mid_term"])
    shown = run("inspect", "-u", "tiny-1").stdout
    assert "tiny-1 with assistant: 5 pages" in shown
    assert "heat" in shown
    assert run("consolidate", "-u", "tiny-1").stdout == "remembered: nothing new\n"


def test_forget_asks_first(run):
    run("replay", LOCOMO, "--sample", "tiny-1", "--no-model")
    refused = run("forget", "-u", "tiny-1", stdin="n\n", exit_code=1)
    assert "Destroy everything of user tiny-1?" in refused.stderr
    assert len(texts(exported(run, "tiny-1"))) == 5
    run("forget", "-u", "tiny-1", stdin="y\n")
    assert exported(run, "tiny-1") == []


def test_forget_a_page_a_thread_and_what_is_not_there(run, run_json):
    run("replay", LOCOMO, "--sample", "tiny-1", "--no-model")
    first, second = ("--page", exported(run, "tiny-1")[0]["page_id"]), ("--page", exported(run, "tiny-1")[1]["page_id"])
    assert run_json("forget", "-u", "tiny-1", *first, *second, "--yes")["pages"] == 2
    assert run_json("forget", "-u", "tiny-1", "--thread", "session_2", "--yes")["pages"] == 2
    assert "quince tree" not in json.dumps(exported(run, "tiny-1"))
    missing = run("forget", "-u", "tiny-1", "--fact", "none", "--yes", exit_code=1)
    assert missing.stderr.startswith("Error: This user has no fact 'none'")
    both = run("forget", "-u", "tiny-1", "--page", "a", "--fact", "b", "--yes", exit_code=2)
    assert "name pages, facts or one thread" in unboxed(both)


# Chat


def test_chat_streams_remembers_and_leaves_no_canary_behind(run, replies, redis_connection):
    replies += ["Hello Zoe.", "You love figs-canary."]
    result = run("chat", "-u", "zoe", "--steps", stdin="I am Zoe and love figs-canary.\n\nWhat do I love?\n")
    assert "Hello Zoe.\n" in result.stdout
    assert "  recall: assemble_memory\n" in result.stdout
    assert result.stdout.count("remembered: 1 page") == 2
    assert ESCAPE not in result.output
    assert len(texts(exported(run, "zoe"))) == 2
    assert keys_with(redis_connection, b"figs-canary")
    run("forget", "-u", "zoe", "--yes")
    assert keys_with(redis_connection, b"figs-canary") == []


def keys_with(connection, text):
    client = connection.client
    return [name for name in client.scan_iter(count=1000) if text in (client.dump(name) or b"")]


def test_chat_users_with_one_thread_name_share_nothing(run, replies):
    replies += ["First."]
    run("chat", "-u", "ann", "--thread", "t", stdin="I hid the plum-canary.\n")
    replies[:] = ["Second."]
    result = run("chat", "-u", "ann2", "--thread", "t", stdin="What was hidden?\n")
    assert "plum-canary" not in result.output
    assert "plum-canary" not in json.dumps(exported(run, "ann2"))


def test_chat_without_a_model_says_what_to_do(run, monkeypatch):
    def none():
        raise ModelUnavailableError("There is no chat model: set OPENAI_API_KEY.")

    monkeypatch.setattr("langgraph_memoryos.memory.choose_chat_model", none)
    result = run("chat", "-u", "ann", stdin="Hi\n", exit_code=1)
    assert result.stderr.strip() == "Error: There is no chat model: set OPENAI_API_KEY."


# MemGPT: load, and chat in the other modes


def test_load_reads_files_and_folders_once_and_memgpt_finds_them(run, run_json, tools, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "deep" / "harbour.md").write_text(
        "# Harbour\n\n" + "\n".join(f"Ferry {number} leaves at 7:42." for number in range(120))
    )
    (tmp_path / "notes" / "code.txt").write_text("The locker code is 4711-zebra.")
    (tmp_path / "notes" / "photo.png").write_bytes(b"no text")
    (tmp_path / "notes" / "binary.txt").write_bytes(b"\xff\x00\xfe")
    told = run("load", "notes", "--user", "ann").stdout
    assert "2/3 notes/code.txt: 1 chunks, 1 new, 0 retired\n" in told
    assert "1/3 notes/binary.txt: " in told
    assert ESCAPE not in told
    again = run_json("load", tmp_path / "notes", "--user", "ann")
    assert [(file["source"], file["added"], bool(file["problem"])) for file in again["files"]] == [
        (f"{tmp_path}/notes/{name}", 0, name == "binary.txt") for name in ("binary.txt", "code.txt", "deep/harbour.md")
    ]  # fmt: skip
    assert again["items"] == sum(file["chunks"] for file in again["files"]) > 3
    found = run_json("ask", "Which locker code?", "--user", "ann", "--no-model")["archive"]
    assert found[0]["text"] == "The locker code is 4711-zebra."
    shown = run("ask", "Which locker code?", "--user", "ann", "--no-model").stdout
    assert re.search(r"archive, item \d+  from .*code.txt\n  The locker code is 4711-zebra.\n", shown)
    one = run_json("load", tmp_path / "notes" / "code.txt", "--user", "bob")
    assert (one["user"], one["items"]) == ("bob", 1)

    tools.script = [acts(call("archival_memory_search", request_heartbeat=True, query="locker code")), say("4711-zebra")]
    asked = run("chat", "--mode", "memgpt", "-u", "ann", "--steps", stdin="What is the locker code?\n")
    assert "execute_functions: archival_memory_search OK: Showing" in asked.stdout
    assert "The locker code is 4711-zebra." in str(tools.asked[1])
    assert "\n4711-zebra\n" in asked.stdout


def test_load_retires_what_a_document_has_no_more_and_removes_it_if_told(run, run_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = tmp_path / "notes" / "code.txt"
    code.parent.mkdir()
    code.write_text("The locker code is 4711-zebra.")
    run("load", "notes", "--user", "ann")
    code.write_text("The locker code is 1234-heron.")
    assert "1/1 notes/code.txt: 1 chunks, 1 new, 1 retired\n" in run("load", "notes/code.txt", "--user", "ann").stdout
    assert run_json("inspect", "--user", "ann")["archive"] == {"items": 1, "documents": {"notes/code.txt": 1}}
    code.unlink()
    removed = run_json("load", code, "--user", "ann", "--remove")
    assert removed["files"] == [{"source": "notes/code.txt", "chunks": 0, "added": 0, "retired": 1, "problem": ""}]
    assert removed["items"] == 0
    assert "Nothing in the archive" in run("load", "notes", "--user", "ann", "--remove", exit_code=1).stderr
    assert sum(entry["kind"] == "fact" for entry in exported(run, "ann")) == 2


def test_load_says_what_it_cannot_load(run, tmp_path):
    assert "no file or folder" in run("load", tmp_path / "none", "-u", "ann", exit_code=1).stderr
    assert "holds no text" in run("load", tmp_path, "-u", "ann", exit_code=1).stderr
    (tmp_path / "x.txt").write_bytes(b"\xff\xfe\x00\xd8")
    refused = run("load", tmp_path / "x.txt", "-u", "ann", "--json", exit_code=1)
    assert refused.stderr.startswith("Error: Nothing was loaded: ")
    assert json.loads(refused.stdout)["files"][0]["problem"]


def test_memgpt_shows_thoughts_calls_failures_pressure_and_evictions(run, tools, monkeypatch, redis_connection):
    monkeypatch.setenv("LANGGRAPH_MEMORYOS_CONTEXT_WINDOW_TOKENS", "2600")
    tools.script = [
        acts(
            call("core_memory_append", request_heartbeat=True, block="human", content="Likes figs-canary"),
            thought="I note that.",
        ),
        acts(call("core_memory_append", block="nowhere", content="x")),
        say("Noted."),
    ]
    long = "The keeper of the lighthouse told another story about the harbour. " * 20
    talk = ["I like figs-canary.", *(f"{at}: {long}" for at in range(4))]
    told = run("chat", "--mode", "memgpt", "-u", "zoe", "--steps", stdin="\n".join(talk) + "\n").stdout
    steps = [line.strip() for line in told.splitlines()]
    assert "call_model: thought I note that." in steps
    assert any(step.startswith("call_model: calls core_memory_append(") for step in steps)
    assert any(step.startswith("execute_functions: core_memory_append OK: Added") for step in steps)
    assert any(step.startswith("execute_functions: core_memory_append failed: ") for step in steps)
    assert any(step.startswith("check_pressure: memory pressure, the model is warned at ") for step in steps)
    assert any(re.match(r"select_evicted: \d+ messages leave the queue", step) for step in steps)
    assert any(re.match(r"replace_evicted: flush, \d+ messages stay in view, summary: ", step) for step in steps)
    assert "Noted." in steps
    assert sum(bool(re.fullmatch(r"\d+ steps?(, \d flush(es)?)?, \d+ model calls?", step)) for step in steps) == len(talk)
    assert ESCAPE not in told

    quiet = run("chat", "--mode", "memgpt", "-u", "zoe", stdin="And now?\n").stdout
    assert quiet.splitlines() == ["ok", "1 step, 1 model call"]
    assert "Likes figs-canary" in str(tools.asked[-1][0].content)
    run("forget", "-u", "zoe", "--yes")
    assert keys_with(redis_connection, b"figs-canary") == []


def test_hybrid_recalls_and_the_model_calls(run, tools):
    run("replay", LOCOMO, "--sample", "tiny-1", "--user", "ada", "--no-model")
    tools.script = [say("A quince tree.")]
    told = run("chat", "--mode", "hybrid", "-u", "ada", "--steps", stdin="What did I plant?\n").stdout
    assert re.search(r"recall_memory: [1-9]\d* pages", told)
    assert "\nA quince tree.\n" in told
    assert told.endswith("\n1 step, 1 model call\n")
    assert "I planted a quince tree." in str(tools.asked[0][0].content)
    assert any("A quince tree." in text for text in texts(exported(run, "ada")))


@pytest.mark.parametrize("mode", ["memoryos", "memgpt", "hybrid"])
def test_a_failing_model_is_one_sentence_and_the_message_is_kept(run, tools, mode):
    tools.script = [openai.APIConnectionError(request=None)]
    tools.summary = openai.APIConnectionError(request=None)  # also what is asked without functions
    failed = run("chat", "--mode", mode, "-u", "ann", stdin="My code is 4711.\n", exit_code=1)
    assert failed.stderr.splitlines()[1:] == [
        "Error: The model cannot be used (APIConnectionError): check OPENAI_BASE_URL and OPENAI_API_KEY."
    ]
    tools.script, tools.summary = [], "Hello again."
    assert run("chat", "--mode", mode, "-u", "ann", stdin="Still there?\n").exit_code == 0
    if mode != "memoryos":
        assert "My code is 4711." in str(tools.asked[-1])


def test_an_unknown_mode_and_a_bad_window_are_sentences(run, tools, monkeypatch):
    assert "'both' is not one of" in unboxed(run("chat", "--mode", "both", "-u", "a", exit_code=2))
    monkeypatch.setenv("LANGGRAPH_MEMORYOS_CONTEXT_WINDOW_TOKENS", "64")
    refused = run("chat", "--mode", "memgpt", "-u", "a", stdin="Hi\n", exit_code=1)
    assert refused.stderr.startswith("Error: setting context_window_tokens: ")


@pytest.mark.model
def test_memgpt_with_the_bundled_model(run):
    told = run("chat", "--mode", "memgpt", "-u", "ann", "--steps", stdin="Hello, I am Ann.\n").stdout
    assert "call_model: calls " in told
    assert "finish_event" in told


# Doctor and migrate


def test_doctor(run, run_json):
    fresh = run_json("doctor")
    assert {check["name"] for check in fresh["checks"]} >= {
        "python", "packages", "redis", "search", "persistence", "embedder at hand", "embedder recorded",
        "indexes", "chat model",
    }  # fmt: skip
    assert all(check["advice"] for check in fresh["checks"] if check["status"] != "ok")
    run("replay", LOCOMO, "--sample", "tiny-2", "--no-model")
    assert "every document is indexed" in run("doctor").stdout


def test_doctor_says_what_to_do_about_searches_that_lose_results_or_count_garbage():
    def found(on_timeout, garbage):
        server = {"search": "2.10.5", "search_on_timeout": on_timeout, "search_garbage": garbage}
        return [(check.status, check.advice) for check in doctor_module._search(server)]

    (_, losing) = found("return", "1")[1]
    assert "FT.CONFIG SET ON_TIMEOUT FAIL" in losing
    (_, counting) = found("fail", "100")[1]
    assert "FT.CONFIG SET FORK_GC_CLEAN_THRESHOLD 1" in counting
    assert [status for status, _ in found("return", "100")] == ["ok", "warn", "warn"]
    assert found("fail", "1") == found("unknown", "unknown") == [("ok", "")]


def test_doctor_goes_on_without_redis():
    result = CliRunner().invoke(app, ["doctor", "--redis-url", "redis://:hunter2@127.0.0.1:1", "--json"])
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["status"] == "fail"
    assert [check["name"] for check in report["checks"] if check["status"] == "fail"] == ["redis"]
    assert "hunter2" not in result.output


class TinyEmbeddings(Embeddings):
    """Three numbers per text, the same for the same text."""

    def embed_documents(self, texts):
        return [[1.0 + len(text), float(ord(text[0])), float(ord(text[-1]))] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def test_migrate_makes_a_memory_of_another_embedder_usable(run, run_json, redis_url, redis_prefix):
    with MemoryOS.open_sync(
        redis_url, namespace=redis_prefix, embeddings=TinyEmbeddings(), analyst=DeterministicAnalyst()
    ) as memory:
        turn = {"query": "I planted a quince tree.", "reply": "Nice.", "said_at": 1.0, "thread_id": "t"}
        state = {"exchanges": [turn | {"source_ids": ["1"]}], "user_id": "ada"}
        memory.remember.invoke(state)
        memory.consolidate.invoke({"drain": True}, context={"user_id": "ada"})
    refused = run("inspect", "-u", "ada", exit_code=1)
    assert "TinyEmbeddings (3 dimensions" in refused.stderr
    assert "langgraph-memoryos migrate" in refused.stderr
    found = {check["name"]: check for check in run_json("doctor", exit_code=1)["checks"]}
    assert found["embedder recorded"]["status"] == "fail"

    report = run_json("migrate")
    assert report["was_needed"] is True
    assert (report["embedded"], report["segments"]) == (1, 1)
    assert report["dimensions"] > 3
    evidence = run_json("ask", "Which tree did I plant?", "-u", "ada", "--no-model")["evidence"]
    assert evidence[0]["query"] == "I planted a quince tree."
    assert run("migrate").stdout.startswith("Nothing to do")


# The installed program, in processes of its own


def program(*arguments, **options):
    environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"} | {
        "PYTHONWARNINGS": "default"
    }
    return subprocess.run(  # noqa: PLW1510 - the exit code is looked at
        [sys.executable, "-m", "langgraph_memoryos", *arguments],
        capture_output=True, env=environment, timeout=200, **options,
    )  # fmt: skip


def test_the_demo_tells_a_line_per_session_and_leaves_nothing_behind(tmp_path, monkeypatch):
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(tmp_path))
    result = program("demo")
    assert result.returncode == 0, result.stderr.decode()
    told = result.stdout.decode()
    assert "write_page" not in told
    assert len(re.findall(r"^session_\d+ +2025-\d\d-\d\d \d\d:\d\d  \d+ turns, ", told, re.MULTILINE)) == 13
    assert re.search(r"All evidence was recalled for (\d+) of 12 questions", told)
    assert re.search(r"All evidence was recalled for [4-7] of 7 questions", told)
    assert told.count("\nmissed ") <= told.count("not recalled:")
    assert told.count("need a chat model: set OPENAI_API_KEY") == 2
    assert "Left out: the small bundled model" in told
    assert len(told.splitlines()) < 120
    assert ESCAPE not in told
    assert list(tmp_path.iterdir()) == []


def test_the_verbose_demo_names_every_step(open_memory, capsys):
    (conversation,) = load(LOCOMO, "tiny-1")
    clock = RecordedClock()
    show_sessions(open_memory(clock=clock), conversation, clock, verbose=True)
    told = capsys.readouterr().out
    for step in ("recall: assemble_memory", "agent: agent", "remember: write_page"):
        assert told.count(f"    {step}\n") == len(conversation.exchanges), step
    assert "    consolidate: promote_hot_segments\n" in told


def test_questions_whose_evidence_is_not_recalled_are_missed(open_memory, capsys):
    memory, bundled = open_memory(), chinese()
    ask_weeks_later(memory, bundled, user="nobody", thread_id="t")
    told = capsys.readouterr().out
    assert told.count("missed ") == len(bundled.questions)
    assert told.count("not recalled: 2025-") == sum(len(question.evidence) for question in bundled.questions)
    assert "found " not in told
    assert "for 0 of 7 questions" in told


def test_an_error_in_a_real_process_is_one_line(tmp_path):
    missing = program("replay", str(tmp_path / "nothing.json"), "--data-dir", str(tmp_path))
    assert missing.returncode == 1
    assert missing.stdout == b""
    assert missing.stderr.decode().startswith("Error: ")
    assert missing.stderr.count(b"\n") == 1
