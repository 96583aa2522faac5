"""Documents that change, move, go and come back: what the archive has of them, whoever dies or loads at once."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from hypothesis import example, given
from hypothesis import strategies as st
from redis.client import Pipeline

from langgraph_memoryos.archive_documents import DocumentError, LoadReport
from langgraph_memoryos.functions import split_text
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivedDocument, OvertakenError
from langgraph_memoryos.stores.search import SearchRequest
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from tests.memory_support import START as NOW
from tests.virtual_support import agent

pytest_plugins = ["tests.memory_fixtures"]

SCOPE = Scope(user_id="u", agent_id="assistant")


@pytest.fixture
def one(memory: MemoryOS) -> VirtualContext:
    """A virtual context whose archive has a chunk for each of :func:`write`'s words."""
    return agent(memory, chunk_characters=100, chunk_overlap_characters=0)[0]


def chunk(word: str) -> str:
    return f"{word} " + "." * 80


def write(path: Path, words: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(map(chunk, words.split())))
    return path


def load(one: VirtualContext, path: Path) -> LoadReport:
    *_, last = one.load_documents(path, user_id="u")
    assert last.finished
    return last


def counts(report: LoadReport) -> tuple[int, int, int]:
    return report.chunks, report.added, report.retired


def archived(one: VirtualContext) -> str:
    """Return the words of the current chunks, after checking that a search finds the same, and that somebody has each."""
    texts = sorted(item.text for item in one.archival.iterate(SCOPE))
    assert sorted(item.text for item in one.search.archive(SCOPE, SearchRequest(query="", page_size=100)).items) == texts
    held = {name.rpartition(b":")[2].decode() for name in everything(one._memory) if b":holders:" in name}
    assert held == {item.item_id for item in one.archival.iterate(SCOPE)}
    return " ".join(text.split()[0] for text in texts)


def shown(one: VirtualContext) -> dict[str, str]:
    return {item.text.split()[0]: item.source for item in one.archival.iterate(SCOPE)}


def number(one: VirtualContext, word: str) -> int:
    return next(item.number for item in one.archival.iterate(SCOPE) if item.text.startswith(word))


def everything(memory: MemoryOS) -> dict[bytes, Any]:
    client = memory.connection.client
    return {name: client.dump(name) for name in client.scan_iter(memory.parts.pages.namespace.user_pattern("u"))}


def test_a_changed_document_takes_the_place_of_its_former_version(one: VirtualContext, memory: MemoryOS, tmp_path: Path):
    file = write(tmp_path / "a.txt", "apple bread cheese")
    assert counts(load(one, file)) == (3, 3, 0)
    bread = number(one, "bread")
    write(file, "apple cheese dates eggs")
    assert counts(load(one, file)) == (4, 2, 1)
    assert archived(one) == "apple cheese dates eggs"
    assert "bread" not in str(one.search.archive(SCOPE, SearchRequest(query="bread")).items)
    assert not one.archival.by_number(SCOPE, bread).current
    facts = {entry["text"].split()[0]: entry for entry in memory.export("u") if entry["kind"] == "fact"}
    assert (facts["bread"]["valid_to"], facts["apple"]["valid_to"]) == (NOW, None)
    assert memory.inspect("u")["archive"] == {"items": 4, "documents": {str(file): 4}}
    write(file, "apple bread")
    assert counts(load(one, file)) == (2, 1, 3)
    assert archived(one) == "apple bread"


def test_an_unchanged_document_changes_and_embeds_nothing(
    one: VirtualContext, memory: MemoryOS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = write(tmp_path / "a.txt", "apple bread apple")
    load(one, file)
    before = everything(memory)
    monkeypatch.setattr(one.archival, "_embedder", None)
    assert counts(load(one, file)) == (3, 0, 0)
    assert everything(memory) == before


def test_a_chunk_survives_as_long_as_somebody_has_it(one: VirtualContext, tmp_path: Path):
    a, b = write(tmp_path / "a.txt", "apple bread cheese"), write(tmp_path / "b.txt", "bread cheese")
    one.archival.insert(SCOPE, [chunk("cheese")], now=NOW)
    load(one, a)
    assert counts(load(one, b)) == (2, 0, 0)
    assert archived(one) == "apple bread cheese"
    write(a, "apple")
    assert counts(load(one, a)) == (1, 0, 0)
    assert archived(one) == "apple bread cheese"
    assert shown(one) == {"apple": str(a), "bread": str(b), "cheese": ""}
    write(b, "")
    assert counts(load(one, b)) == (0, 0, 1)
    assert archived(one) == "apple cheese"
    assert one.archival.sources(SCOPE) == {str(a): 1}


def test_what_the_model_inserts_later_is_its_own_too(one: VirtualContext, tmp_path: Path):
    file = write(tmp_path / "a.txt", "apple bread")
    load(one, file)
    one.archival.insert(SCOPE, [chunk("apple")], now=NOW)
    write(file, "cheese")
    assert counts(load(one, file)) == (1, 1, 1)
    assert archived(one) == "apple cheese"
    assert shown(one)["apple"] == ""


def test_the_resolved_path_decides_and_the_given_one_is_shown(
    one: VirtualContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path / "a" / "intro.md", "apple")
    write(tmp_path / "b" / "intro.md", "bread")
    (tmp_path / "link").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        load(one, Path(folder))
    assert shown(one) == {"apple": "a/intro.md", "bread": "b/intro.md"}
    write(tmp_path / "a" / "intro.md", "cheese")
    assert counts(load(one, tmp_path / "link" / "intro.md")) == (1, 1, 1)
    assert archived(one) == "bread cheese"
    assert set(one.archival.sources(SCOPE)) == {"b/intro.md", f"{tmp_path}/link/intro.md"}
    for folder in ("a", "b"):
        monkeypatch.chdir(tmp_path / folder)
        load(one, Path())
    assert one.archival.sources(SCOPE) == {f"{tmp_path}/a/intro.md": 1, f"{tmp_path}/b/intro.md": 1}
    assert not any(b"intro" in name for name in everything(one._memory))


def test_what_a_function_took_out_stays_out_until_the_document_is_loaded_anew(one: VirtualContext, tmp_path: Path):
    file, other = write(tmp_path / "a.txt", "apple bread cheese"), tmp_path / "b.txt"
    load(one, file)
    tools = {tool.name: tool for tool in one.tools(user_id="u")}
    tools["archival_memory_delete"].invoke({"item": number(one, "apple")})
    tools["archival_memory_update"].invoke({"item": number(one, "bread"), "content": "bun"})
    assert counts(load(one, file)) == (3, 0, 0)
    assert archived(one) == "bun cheese"
    write(file, "apple bread dates")
    assert counts(load(one, file)) == (3, 1, 1)
    assert archived(one) == "bun dates"
    write(other, "apple")
    assert counts(load(one, other)) == (1, 1, 0)
    load(one, file)
    list(one.unload_documents(other, user_id="u"))
    assert archived(one) == "apple bun dates"
    (gone,) = one.unload_documents(file, user_id="u")
    assert (gone.retired, archived(one)) == (2, "bun")
    assert counts(load(one, file)) == (3, 3, 0)
    assert archived(one) == "apple bread bun dates"


def test_what_a_function_deletes_nobody_has_any_more(one: VirtualContext, tmp_path: Path):
    one.archival.insert(SCOPE, [chunk("apple")], now=NOW)
    tools = {tool.name: tool for tool in one.tools(user_id="u")}
    tools["archival_memory_delete"].invoke({"item": number(one, "apple")})
    file = write(tmp_path / "a.txt", "apple")
    assert counts(load(one, file)) == (1, 1, 0)
    write(file, "bread")
    assert counts(load(one, file)) == (1, 1, 1)
    assert archived(one) == "bread"


def test_a_file_that_is_gone_stays_until_it_is_removed(one: VirtualContext, tmp_path: Path):
    gone = write(tmp_path / "notes" / "gone.txt", "apple bread")
    write(tmp_path / "notes" / "kept.txt", "bread cheese")
    list(one.load_documents(tmp_path / "notes", user_id="u"))
    gone.rename(tmp_path / "notes" / "moved.txt")
    gone.with_name("moved.txt").write_bytes(b"\xff binary")
    list(one.load_documents(tmp_path / "notes", user_id="u"))
    assert archived(one) == "apple bread cheese"
    (report,) = one.unload_documents(gone, user_id="u")
    assert (report.source, report.retired, report.done, report.of) == (str(gone), 1, 1, 1)
    assert archived(one) == "bread cheese"
    with pytest.raises(DocumentError, match="Nothing in the archive"):
        list(one.unload_documents(gone, user_id="u"))
    with pytest.raises(DocumentError, match="Nothing in the archive"):
        list(one.unload_documents(tmp_path / "note", user_id="u"))
    list(one.unload_documents(tmp_path, user_id="u"))
    assert (archived(one), one.archival.sources(SCOPE)) == ("", {})


def test_a_forgotten_chunk_stays_out_and_a_forgotten_user_leaves_nothing(
    one: VirtualContext, memory: MemoryOS, tmp_path: Path
):
    file = write(tmp_path / "a.txt", "apple bread")
    load(one, file)
    apple = next(entry["fact_id"] for entry in memory.export("u") if entry.get("text") == chunk("apple"))
    memory.forget("u", fact_id=apple)
    assert not any(apple.encode() in name for name in everything(memory))
    assert counts(load(one, file)) == (2, 0, 0)
    assert archived(one) == "bread"
    write(file, "apple cheese")
    assert counts(load(one, file)) == (2, 1, 1)
    assert memory.inspect("u")["archive"] == {"items": 1, "documents": {str(file): 2}}
    memory.forget("u")
    assert {name.split(b":")[1] for name in everything(memory)} == {b"erasures"}
    assert counts(load(one, file)) == (2, 2, 0)


def meanwhile(one: VirtualContext, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen once, while the next load embeds its first batch."""
    embedder = one.archival._embedder

    def embed(texts: list[str]) -> Any:
        monkeypatch.undo()
        act()
        return embedder.embed_passages(texts)

    monkeypatch.setattr(one.archival, "_embedder", SimpleNamespace(embed_passages=embed))


def test_of_two_loads_at_once_the_one_that_began_last_wins(
    one: VirtualContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = write(tmp_path / "a.txt", "apple bread")
    load(one, file)
    write(file, "bread cheese")

    def load_another_version() -> None:
        write(file, "bread dates")
        assert counts(load(one, file)) == (2, 1, 1)

    meanwhile(one, load_another_version, monkeypatch)
    assert "Another load" in load(one, file).problem
    assert archived(one) == "bread dates"
    write(file, "bread eggs")
    meanwhile(one, lambda: load(one, file), monkeypatch)
    assert load(one, file).problem == ""
    assert archived(one) == "bread eggs"


def test_a_late_load_neither_adds_nor_retires(one: VirtualContext):
    early, late = (ArchivedDocument(document_id="d", path="/a", name="a", version=each) for each in ("1", "2"))
    archive, texts = one.archival, [chunk("apple"), chunk("bread")]
    archive.insert(SCOPE, archive.begin(SCOPE, early, texts), now=NOW, document=early)
    assert archive.begin(SCOPE, late, texts[:1]) == []
    for act in (
        lambda: archive.insert(SCOPE, [chunk("cheese")], now=NOW, document=early),
        lambda: archive.finish(SCOPE, early, [], now=NOW),
    ):
        with pytest.raises(OvertakenError):
            act()
    assert archived(one) == "apple bread"
    assert archive.finish(SCOPE, late, texts[:1], now=NOW) == 1
    assert archived(one) == "apple"


@pytest.mark.parametrize("how", ["removed", "forgotten"])
def test_a_load_writes_nothing_back_once_it_is_removed_or_forgotten(
    one: VirtualContext, memory: MemoryOS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
):
    file = write(tmp_path / "a.txt", "apple bread")
    acts: dict[str, Callable[[], object]] = {
        "removed": lambda: list(one.unload_documents(file, user_id="u")),
        "forgotten": lambda: memory.forget("u"),
    }
    meanwhile(one, acts[how], monkeypatch)
    assert load(one, file).problem
    assert (archived(one), one.archival.sources(SCOPE)) == ("", {})
    if how == "forgotten":
        assert {name.split(b":")[1] for name in everything(memory)} == {b"erasures"}


class DiedError(BaseException):
    """The process is gone."""


def die_after(commands: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only so many more commands reach Redis, those of pipelines counted one by one."""
    left = [commands]
    run_one, run_many = redis.Redis.execute_command, Pipeline.execute

    def execute_command(client: Any, *args: Any, **options: Any) -> Any:
        if isinstance(client, Pipeline):
            return run_one(client, *args, **options)
        if not left[0]:
            raise DiedError
        left[0] -= 1
        return run_one(client, *args, **options)

    def execute(pipeline: Any, *args: Any, **options: Any) -> Any:
        waiting = len(pipeline.command_stack)
        del pipeline.command_stack[left[0] :]
        left[0] -= len(pipeline.command_stack)
        done = run_many(pipeline, *args, **options)
        if len(done) < waiting:
            raise DiedError
        return done

    monkeypatch.setattr(redis.Redis, "execute_command", execute_command)
    monkeypatch.setattr(Pipeline, "execute", execute)


@pytest.mark.parametrize("new", ["bread cheese dates eggs figs", ""])
def test_a_load_that_dies_anywhere_loses_nothing_and_is_completed_by_another(
    one: VirtualContext, memory: MemoryOS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str
):
    monkeypatch.setattr("langgraph_memoryos.stores.archival._DIGESTS", 2)
    file = tmp_path / "a.txt"
    old, wanted = {"apple", "bread", "grapes", "ham", "ice"}, set(new.split())
    for commands in range(40):
        memory.forget("u")
        write(file, " ".join(sorted(old)))
        load(one, file)
        write(file, new)
        one.scope("u")  # the blocks are there
        died = False
        with monkeypatch.context() as patch:
            die_after(commands, patch)
            try:
                load(one, file)
            except DiedError:
                died = True
        there = set(archived(one).split())
        assert there >= old & wanted
        assert there >= old or there >= wanted
        load(one, file)
        assert set(archived(one).split()) == wanted
        if not died:
            break
    else:
        pytest.fail("The load was never completed.")
    assert commands > 5


def test_a_load_takes_as_many_round_trips_as_batches(one: VirtualContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = write(tmp_path / "a.txt", " ".join(f"old{at}" for at in range(300)))
    load(one, file)
    write(file, " ".join(f"new{at}" for at in range(300)))
    trips: list[int] = []
    run_many = Pipeline.execute
    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "execute", lambda pipeline: trips.append(1) or run_many(pipeline))
        assert counts(load(one, file)) == (300, 300, 300)
    assert len(trips) < 300 / 32 + 10


PARTS = st.sampled_from([
    "# Heading", "\n\n", "\n", "```\n", "\n---\n", " ", ". ", "? ", "word", "(a+b)*c?", "x" * 150, "我住在奥斯陆喜欢滑雪" * 12, "。", "，", "！",
])


@given(parts=st.lists(PARTS, max_size=40), overlap=st.integers(0, 30), markdown=st.booleans())
@example(parts=["# Picture\n\n![](data:image/png;base64," + "iVBORw0KGgoA" * 90 + ")"], overlap=10, markdown=True)
def test_chunks_hold_the_whole_text_in_order_and_are_not_too_long(*, parts: list[str], overlap: int, markdown: bool):
    numbers = VirtualContextSettings(chunk_characters=100, chunk_overlap_characters=overlap)
    chunks = split_text("".join(parts), numbers, markdown=markdown)
    assert all(chunk.strip() and len(chunk) <= 100 for chunk in chunks)
    text, ends = "".join("".join(parts).split()), {0}
    for chunk in map("".join, map(str.split, chunks)):
        ends = {start + len(chunk) for end in ends for start in range(max(0, end - overlap), end + 1) if text.startswith(chunk, start)}
    assert len(text) in ends


def test_a_long_text_is_split_between_sentences(tmp_path: Path, one: VirtualContext):
    sentences = [f"Sentence {number} is about the old harbour" for number in range(6)]
    for name in ("notes.md", "notes.txt"):
        (tmp_path / name).write_text("! ".join(sentences), encoding="utf-8")
        load(one, tmp_path / name)
    pairs = [f"{first}! {second}" for first, second in zip(sentences[::2], sentences[1::2], strict=True)]
    assert [item.text for item in one.archival.iterate(SCOPE)] == [f"{pairs[0]}!", f"{pairs[1]}!", pairs[2]]


def test_forgetting_the_user_stops_the_load_of_a_folder(memory: MemoryOS, tmp_path: Path):
    one, _ = agent(memory)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"A secret of file {name}.", encoding="utf-8")
    reports = one.load_documents(tmp_path, user_id="u")
    assert next(reports).problem == ""
    memory.forget("u")
    assert all("forgotten" in report.problem for report in reports)
    assert one.archival.count(one.scope("u")) == 0
    assert [report.problem for report in one.load_documents(tmp_path, user_id="u")] == [""] * 3
