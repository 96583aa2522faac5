# ruff: noqa: FBT001, FBT003
"""Working context, archive, tools and documents."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from langgraph_memoryos.archive_documents import DocumentError
from langgraph_memoryos.errors import IdentityError
from langgraph_memoryos.function_tools import blocks_of
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import MemoryContext
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.blocks import Block, BlockError, BlockStore
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.search import SearchRequest
from langgraph_memoryos.tools import memory_tools
from langgraph_memoryos.virtual_context import VirtualContext
from langgraph_memoryos.virtual_settings import BlockSpec, VirtualContextSettings
from tests.memory_support import START as NOW
from tests.virtual_support import acts, agent, call, results, say, system

pytest_plugins = ["tests.memory_fixtures"]

SCOPE = Scope(user_id="u", agent_id="assistant")


@pytest.fixture
def blocks(memory: MemoryOS) -> BlockStore:
    store = memory.parts.pages.sibling(BlockStore)
    store.ensure(SCOPE, blocks_of(VirtualContextSettings(block_limit_characters=100)))
    return store


def test_over_the_limit_the_error_says_all_and_the_old_value_stays(memory: MemoryOS):
    one, model = agent(
        memory, acts(call("core_memory_append", True, block="human", content="Name: Ana")),
        acts(call("core_memory_append", block="human", content="x" * 95)), say("ok"), block_limit_characters=100,
    )
    one.send("I am Ana", user_id="u")
    told = results(model.asked[2])[-1]
    assert told["status"] == "Failed"
    assert "100" in told["message"]
    assert "105" in told["message"]
    assert "core_memory_replace" in told["message"]
    assert one.blocks.get(one.scope("u"), "human").value == "Name: Ana"


@pytest.mark.parametrize(("old", "new", "told"), [
    ("", "x", "empty"), ("Boyfriend named Jams", "x", "Boyfriend named James"), ("James", "y" * 200, "at most 100"),
])
def test_a_replace_that_cannot_be_says_why(blocks: BlockStore, old: str, new: str, told: str):
    blocks.append(SCOPE, "human", "Name: Ana\nBoyfriend named James", now=NOW)
    with pytest.raises(BlockError, match=told):
        blocks.replace(SCOPE, "human", old, new, now=NOW)
    assert blocks.get(SCOPE, "human").value == "Name: Ana\nBoyfriend named James"


def test_replace_and_delete_are_versioned_with_a_history(blocks: BlockStore):
    blocks.append(SCOPE, "human", "Boyfriend named James", now=NOW)
    assert blocks.replace(SCOPE, "human", "Boyfriend", "Ex-boyfriend", now=NOW + 1).value == "Ex-boyfriend named James"
    gone = blocks.replace(SCOPE, "human", "Ex-boyfriend named James", "", now=NOW + 2)
    assert (gone.value, gone.version, gone.changed_at) == ("", 3, NOW + 2)
    assert [block.value for block in blocks.history(SCOPE, "human")] == ["", "Boyfriend named James", "Ex-boyfriend named James"]


def test_a_read_only_block_and_an_unknown_one_are_refused(memory: MemoryOS):
    spec = (BlockSpec(label="rules", value="Be kind.", read_only=True),)
    one, model = agent(memory, acts(call("core_memory_append", block="rules", content="x")), acts(
        call("core_memory_replace", block="human", old="a", new="b")), say("ok"), blocks=spec)
    one.send("go", user_id="u")
    assert "read-only" in results(model.asked[1])[-1]["message"]
    assert "the blocks are: rules" in results(model.asked[2])[-1]["message"]
    one.blocks.set(one.scope("u"), "rules", "Be brief.", now=NOW)
    assert one.blocks.get(one.scope("u"), "rules").value == "Be brief."


def test_what_settings_say_of_a_block_holds_from_the_next_event(memory: MemoryOS):
    line = call("core_memory_append", True, block="persona", content="x" * 60)
    one, _ = agent(memory, acts(line), say("ok"))
    one.send("go", user_id="u")
    rules = BlockSpec(label="persona", description="Rules", value="for new agents", limit=50)
    two, model = agent(memory, acts(line), acts(call("core_memory_replace", True, block="persona", old="x" * 5, new="")), say("ok"),
                       blocks=(rules,))
    two.send("go", user_id="u")
    assert "# Block persona (60 of 50 characters): Rules" in system(model.asked[0])
    assert [each["status"] for each in results(model.asked[2])[-2:]] == ["Failed", "OK"]
    assert "at most 50" in results(model.asked[2])[-2]["message"]
    three, model = agent(memory, acts(line), say("ok"), blocks=(rules.model_copy(update={"read_only": True}),))
    three.send("go", user_id="u")
    assert "read-only" in results(model.asked[1])[-1]["message"]
    assert three.blocks.get(SCOPE, "persona").value == "x" * 55
    # Others who look, or who take tools without settings, change no declaration.
    append = memory_tools(memory.parts, user_id="u", names=["core_memory_append"])[0]
    VirtualContext(memory).scope("u")
    assert "read-only" in append.invoke({"block": "persona", "content": "x"})
    append = VirtualContext(memory).tools(names=("core_memory_append",), user_id="u")[0]
    assert append.invoke({"block": "persona", "content": "x"}).startswith("Added")


def test_a_block_that_is_shared_later_is_the_shared_one_and_the_former_text_is_kept(memory: MemoryOS):
    plain = (BlockSpec(label="human"),)
    shared = (BlockSpec(label="human", shared=True),)
    for text, blocks, expected in (("own", plain, "own"), ("shared", shared, "shared"), ("again", plain, "own\nagain")):
        one, _ = agent(memory, acts(call("core_memory_append", block="human", content=text)), blocks=blocks)
        one.send("go", user_id="u")
        assert one.blocks.get(SCOPE, "human").value == expected


def test_agents_that_share_a_block_each_have_their_own_settings_of_it(memory: MemoryOS):
    write = call("core_memory_append", True, block="human", content="x")
    writer, _ = agent(memory, acts(write), say("ok"), blocks=(BlockSpec(label="human", shared=True),))
    reader, model = agent(memory, acts(write), say("ok"), blocks=(BlockSpec(label="human", shared=True, read_only=True),))
    reader.send("go", user_id="u", agent_id="reader")
    writer.send("go", user_id="u", agent_id="writer")
    assert "read-only" in results(model.asked[1])[-1]["message"]
    assert reader.blocks.get(Scope(user_id="u", agent_id="reader"), "human").value == "x"


@pytest.mark.parametrize(("blocks", "told"), [
    ((BlockSpec(label="a", value="x" * 300, limit=100),), "has 300 characters, and its limit is 100"),
    ((BlockSpec(label="a", value="x" * 300),), "has 300 characters, and its limit is 200"),
    ((BlockSpec(label="a"), BlockSpec(label="a")), "Two blocks are labelled 'a'"),
])
def test_blocks_that_cannot_be_are_refused(blocks: tuple[BlockSpec, ...], told: str):
    with pytest.raises(ValidationError, match=told):
        VirtualContextSettings(blocks=blocks, block_limit_characters=200)


@pytest.mark.parametrize(("value", "old", "left"), [
    ("a\n\nb\n\nc", "b", "a\n\n\nc"), ("a\n\nb", "b", "a\n"), ("a\nb\n\nc", "a\nb", "\nc"), ("a b\n\nc", "b", "a \n\nc"), ("a", "a", ""),
])
def test_a_deletion_takes_the_line_that_it_empties_and_no_other(blocks: BlockStore, value: str, old: str, left: str):
    blocks.set(SCOPE, "human", value, now=NOW)
    assert blocks.replace(SCOPE, "human", old, "", now=NOW).value == left


@pytest.mark.parametrize("content", ["", " ", "\n\t"])
def test_a_blank_line_is_not_appended(blocks: BlockStore, content: str):
    with pytest.raises(BlockError, match="empty"):
        blocks.append(SCOPE, "human", content, now=NOW)
    assert blocks.get(SCOPE, "human").version == 0


def test_compare_and_set_refuses_what_was_overtaken(blocks: BlockStore):
    block = blocks.append(SCOPE, "human", "one", now=NOW)
    blocks.append(SCOPE, "human", "two", now=NOW)
    with pytest.raises(BlockError, match="has changed"):
        blocks.set(SCOPE, "human", "three", now=NOW, expected_version=block.version)


def test_compare_and_set_refuses_what_is_overtaken_after_it_was_read(blocks: BlockStore, monkeypatch: pytest.MonkeyPatch):
    block, read = blocks.append(SCOPE, "human", "one", now=NOW), blocks._read

    def overtaken(*args):
        found = read(*args)
        monkeypatch.setattr(blocks, "_read", read)
        blocks.append(SCOPE, "human", "two", now=NOW)
        return found

    monkeypatch.setattr(blocks, "_read", overtaken)
    with pytest.raises(BlockError, match="has changed"):
        blocks.set(SCOPE, "human", "three", now=NOW, expected_version=block.version)
    assert blocks.get(SCOPE, "human").value == "one\ntwo"


def test_a_block_of_a_release_with_fewer_fields_can_be_changed(blocks: BlockStore, memory: MemoryOS):
    key = memory._namespace.keys(SCOPE).block("human")
    memory.connection.client.hset(key, "json", json.dumps({"value": "one", "label": "human"}))
    assert blocks.append(SCOPE, "human", "two", now=NOW).value == "one\ntwo"


def test_history_and_ids_of_changes_are_bounded(blocks: BlockStore, memory: MemoryOS, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("langgraph_memoryos.stores.blocks.HISTORY_KEPT", 2)
    monkeypatch.setattr("langgraph_memoryos.stores.blocks.CHANGES_KEPT", 3)
    for at in (*range(5), 4, 2):
        blocks.append(SCOPE, "human", f"{at}", now=NOW, change_id=f"{at}")
    assert blocks.get(SCOPE, "human").value == "0\n1\n2\n3\n4"
    assert [block.version for block in blocks.history(SCOPE, "human")] == [3, 4]
    assert memory.connection.client.zcard(memory._namespace.keys(SCOPE).block_changes("human")) == 3


def test_parallel_appends_all_arrive(memory: MemoryOS):
    store = memory.parts.pages.sibling(BlockStore)
    store.ensure(SCOPE, [Block(label="list")])
    threads = [threading.Thread(target=store.append, args=(SCOPE, "list", f"line {at}"), kwargs={"now": NOW}) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    block = store.get(SCOPE, "list")
    assert sorted(block.value.split("\n")) == [f"line {at}" for at in range(8)]
    assert block.version == 8


def test_a_change_with_an_id_happens_once(blocks: BlockStore):
    for _ in range(3):
        blocks.append(SCOPE, "human", "once", now=NOW, change_id="c1")
    assert blocks.get(SCOPE, "human").value == "once"


def test_blocks_are_shared_between_agents_only_by_choice(memory: MemoryOS):
    store = memory.parts.pages.sibling(BlockStore)
    other = Scope(user_id="u", agent_id="other")
    for scope in (SCOPE, other):
        store.ensure(scope, [Block(label="human", shared=True), Block(label="persona")])
    store.append(SCOPE, "human", "shared fact", now=NOW)
    store.append(SCOPE, "persona", "mine", now=NOW)
    assert store.get(other, "human").value == "shared fact"
    assert store.get(other, "persona").value == ""
    with pytest.raises(Exception, match="no block"):
        store.get(Scope(user_id="U", agent_id="other"), "human")


def test_an_identical_text_is_archived_once_and_a_longer_one_in_chunks(memory: MemoryOS):
    archive = memory.parts.pages.sibling(ArchivalStore)
    first = archive.insert(SCOPE, ["a+b", "a-b", "a+b"], now=NOW)
    assert first[0] == first[2] != first[1]
    assert archive.count(SCOPE) == 2
    one, _ = agent(memory, acts(call("archival_memory_insert", content="第一句话很短。" * 400)))
    one.send("keep it", user_id="u")
    texts = [item.text for item in archive.iterate(SCOPE)]
    assert len(texts) > 3
    assert all(len(text) <= 1000 for text in texts)


def test_the_archive_has_no_small_bound(memory: MemoryOS):
    archive = memory.parts.pages.sibling(ArchivalStore)
    archive.insert(SCOPE, [f"item number {at}" for at in range(400)], now=NOW)
    assert archive.count(SCOPE) == len(list(archive.iterate(SCOPE))) == 400


def test_update_and_delete_supersede_and_can_be_told_again(memory: MemoryOS):
    one, _ = agent(memory)
    tools = {tool.name: tool for tool in one.tools(user_id="u")}
    number = int(tools["archival_memory_insert"].invoke({"content": "The key is 17"}).removesuffix(".").split()[-1])
    tools["archival_memory_update"].invoke({"item": number, "content": "The key is 18"})
    shown = tools["archival_memory_search"].invoke({"query": "key"})
    assert "18" in shown
    assert "key is 17" not in shown
    new = one.search.archive(one.scope("u"), SearchRequest(query="key")).items[0]
    tools["archival_memory_delete"].invoke({"item": new.number})
    assert tools["archival_memory_search"].invoke({"query": "key"}) == "No results."
    assert not one.archival.by_number(SCOPE, number).current
    tools["archival_memory_insert"].invoke({"content": "The key is 17"})
    assert "key is 17" in tools["archival_memory_search"].invoke({"query": "key"})


def test_tools_work_in_a_graph_of_ones_own_by_its_identity(memory: MemoryOS):
    tools = memory_tools(memory.parts, names=["archival_memory_insert", "core_memory_append"])
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    given = AIMessage("", tool_calls=[
        {"name": "archival_memory_insert", "args": {"content": "Kept"}, "id": "1"},
        {"name": "core_memory_append", "args": {"block": "human", "content": "Line"}, "id": "2"},
    ])
    compiled = graph.compile()
    result = compiled.invoke({"messages": [given]}, {"configurable": {"user_id": "u"}})
    assert [message.status for message in result["messages"][1:]] == ["success", "success"]
    assert memory.parts.pages.sibling(ArchivalStore).count(SCOPE) == 1
    assert memory.parts.pages.sibling(BlockStore).get(SCOPE, "human").value == "Line"
    assert set(tools[1].args) == {"block", "content"}


def test_what_a_tool_is_given_and_what_its_run_says_make_up_its_scope(memory: MemoryOS):
    blocks = memory.parts.pages.sibling(BlockStore)
    names = ["core_memory_append"]

    def act(state: MessagesState) -> dict[str, Any]:
        for at, tool in enumerate((*memory_tools(memory.parts, names=names, user_id="d"),
                                   *memory_tools(memory.parts, names=names, agent_id="guide"))):
            tool.invoke({"block": "human", "content": f"line {at}"})
        return {"messages": []}

    graph = StateGraph(MessagesState, context_schema=MemoryContext)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    for context in ({"user_id": "c", "agent_id": "coach"}, MemoryContext(user_id="c2", agent_id="coach2")):
        graph.compile().invoke({"messages": []}, context=context)
        user, coach = dict(context)["user_id"], dict(context)["agent_id"]
        assert blocks.get(Scope(user_id="d", agent_id=coach), "human").value == "line 0"
        assert blocks.get(Scope(user_id=user, agent_id="guide"), "human").value == "line 1"
    assert blocks.all(Scope(user_id="d", agent_id="assistant")) == ()


def test_a_tool_finds_blocks_after_its_user_was_forgotten(memory: MemoryOS):
    append = memory_tools(memory.parts, user_id="u", names=["core_memory_append"])[0]
    append.invoke({"block": "human", "content": "before"})
    memory.forget("u")
    assert append.invoke({"block": "human", "content": "after"}).startswith("Added")
    assert memory.parts.pages.sibling(BlockStore).get(SCOPE, "human").value == "after"
    assert "There is no block 'mars'; the blocks are: persona, human" in append.invoke({"block": "mars", "content": "x"})


def test_a_resumed_tool_node_changes_a_block_once(memory: MemoryOS):
    tools = ToolNode(memory_tools(memory.parts, user_id="u", names=["core_memory_append"]))
    crashes = [RuntimeError("crash")]

    def act(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        done = tools.invoke(state, config)
        if crashes:
            raise crashes.pop()
        return done

    graph = StateGraph(MessagesState)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    compiled = graph.compile(checkpointer=InMemorySaver())
    config = RunnableConfig(configurable={"thread_id": "t"})

    def asked(content: str) -> AIMessage:
        appended = {"name": "core_memory_append", "args": {"block": "human", "content": content}, "id": "call_0"}
        return AIMessage("", tool_calls=[appended])

    with pytest.raises(RuntimeError):
        compiled.invoke({"messages": [asked("one")]}, config)
    compiled.invoke(None, config)
    blocks = memory.parts.pages.sibling(BlockStore)
    assert blocks.get(SCOPE, "human").value == "one"
    # The same id in a later reply is another call.
    compiled.invoke({"messages": [asked("one")]}, config)
    assert blocks.get(SCOPE, "human").value == "one\none"


def test_a_resumed_tool_node_repeats_no_change_of_the_archive(memory: MemoryOS):
    archive = memory.parts.pages.sibling(ArchivalStore)
    archive.insert(SCOPE, ["Ana lives in Rome", "A stale note"], now=NOW)
    tools = {each.name: each for each in memory_tools(memory.parts, user_id="u")}

    def ask() -> str:
        """Ask somebody."""
        return str(interrupt("Go on?"))

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([*tools.values(), StructuredTool.from_function(ask)]))
    graph.add_edge(START, "tools")
    compiled = graph.compile(checkpointer=InMemorySaver())
    config = RunnableConfig(configurable={"thread_id": "t"})
    calls = [
        {"name": "archival_memory_update", "args": {"item": 1, "content": "Ana lives in Oslo"}, "id": "1"},
        {"name": "archival_memory_insert", "args": {"content": "A new note"}, "id": "2"},
        {"name": "archival_memory_delete", "args": {"item": 2}, "id": "3"},
        {"name": "ask", "args": {}, "id": "4"},
    ]
    compiled.invoke({"messages": [AIMessage("", tool_calls=calls)]}, config)
    numbers = {item.text: item.number for item in archive.iterate(SCOPE)}
    oslo, note = numbers.pop("Ana lives in Oslo"), numbers.pop("A new note")
    assert numbers == {}
    tools["archival_memory_update"].invoke({"item": oslo, "content": "Ana lives in Paris"})
    tools["archival_memory_delete"].invoke({"item": note})
    told = compiled.invoke(Command(resume="yes"), config)["messages"][1:]
    assert [item.text for item in archive.iterate(SCOPE)] == ["Ana lives in Paris"]
    assert [message.content for message in told] == [
        f"Item 1 was replaced by item {oslo}.", f"Kept as item {note}.", "Item 2 is out of the archive.", "yes"]


def test_what_changes_of_the_archive_gave_is_bounded(memory: MemoryOS, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("langgraph_memoryos.stores.archival.CHANGES_KEPT", 3)
    archive = memory.parts.pages.sibling(ArchivalStore)
    for at in (*range(5), 4, 2):
        archive.remember(SCOPE, f"{at}", f"told {at}")
    assert [archive.told(SCOPE, f"{at}") for at in range(5)] == [None, None, "told 2", "told 3", "told 4"]
    keys = memory._namespace.keys(SCOPE)
    assert memory.connection.client.hlen(keys.archival_changes) == 3
    assert memory.connection.client.llen(keys.archival_change_order) == 3


def test_outside_a_graph_a_call_id_may_come_again(memory: MemoryOS):
    append, replace = memory_tools(memory.parts, user_id="u", names=["core_memory_append", "core_memory_replace"])
    append.invoke({"block": "human", "content": "A"})
    for old, new in ("AB", "BA", "AB"):
        replace.invoke({"type": "tool_call", "id": "0", "name": replace.name, "args": {"block": "human", "old": old, "new": new}})
    assert memory.parts.pages.sibling(BlockStore).get(SCOPE, "human").value == "B"


def test_an_item_that_left_the_archive_is_not_updated(memory: MemoryOS):
    tools = {each.name: each for each in memory_tools(memory.parts, user_id="u")}
    tools["archival_memory_insert"].invoke({"content": "Ana has a cat"})
    tools["archival_memory_delete"].invoke({"item": 1})
    assert "not in the archive any more" in tools["archival_memory_update"].invoke({"item": 1, "content": "Ana has a dog"})
    assert memory.parts.pages.sibling(ArchivalStore).count(SCOPE) == 0


def test_tools_without_any_identity_are_refused(memory: MemoryOS):
    tool = memory_tools(memory.parts, names=["archival_memory_search"])[0]
    with pytest.raises(IdentityError):
        tool.invoke({"query": "x"})
    with pytest.raises(ValueError, match="no function"):
        memory_tools(memory.parts, names=["nonsense"])
    with pytest.raises(ValueError, match="only in the loop"):
        memory_tools(memory.parts, names=["send_message"])


def test_documents_are_loaded_with_progress_and_only_once(
    memory: MemoryOS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Harbour\n\n" + "The lighthouse keeper rests. " * 100, encoding="utf-8")
    (tmp_path / "b.txt").write_text("The zebra crossed the road.", encoding="utf-8")
    (tmp_path / "c.txt").write_bytes(b"\xff\x00\xfe binary")
    (tmp_path / "d.png").write_bytes(b"no text")
    one, _ = agent(memory)
    reports = list(one.load_documents(".", user_id="u"))
    assert [(report.source, report.done, report.of) for report in reports] == [("b.txt", 1, 3), ("c.txt", 2, 3), ("notes/a.md", 3, 3)]
    assert reports[1].problem
    assert reports[2].chunks >= 3
    assert [report.added for report in one.load_documents(".", user_id="u")] == [0, 0, 0]
    assert one.archival.sources(one.scope("u")) == {"b.txt": 1, "notes/a.md": reports[2].chunks}
    found = one.search.archive(one.scope("u"), SearchRequest(query="zebra")).items[0]
    assert (found.source, found.text) == ("b.txt", "The zebra crossed the road.")
    with pytest.raises(DocumentError, match="no file or folder"):
        list(one.load_documents(tmp_path / "missing", user_id="u"))


def test_erasing_a_user_leaves_nothing(memory: MemoryOS):
    one, _ = agent(memory, acts(call("core_memory_append", True, block="human", content="CANARY one")), acts(
        call("archival_memory_insert", True, content="CANARY two")), say("CANARY three"))
    one.send("CANARY four", user_id="u")
    memory.forget("u")
    assert list(memory.export("u")) == []
    client, name = memory.connection.client, memory.parts.pages._namespace.name
    left = [key for key in client.scan_iter(f"{name}:*") if b"CANARY" in (client.dump(key) or b"")]
    assert left == []


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("mode", ["memgpt", "hybrid"])
def test_an_event_writes_nothing_back_once_its_user_is_forgotten(memory: MemoryOS, mode: str, kept: bool):
    def meanwhile(_: Any) -> AIMessage:
        memory.forget("u")
        return acts(call("archival_memory_insert", True, content="CANARY"), call("send_message", message="CANARY"),
                    call("core_memory_append", True, block="human", content="CANARY"))

    saver = InMemorySaver() if kept else None
    one, model = agent(memory, say("first"), meanwhile, say("second"), checkpointer=saver, mode=mode)
    one.send("CANARY, hello", user_id="u")
    report = one.send("CANARY again", user_id="u")
    assert (report["reason"], report["sent"], len(model.asked)) == ("erased", [], 2)
    left = memory.connection.client.scan_iter(memory.parts.pages.namespace.user_pattern("u"))
    assert {name.split(b":")[1] for name in left} == {b"erased", b"erasures"}
    assert one.send("hello", user_id="u")["sent"] == ["second"]
    assert "CANARY" not in str(model.asked[-1])


def test_a_checkpoint_from_before_the_user_was_forgotten_is_not_used(memory: MemoryOS):
    one, model = agent(memory, checkpointer=InMemorySaver())
    one.send("CANARY", user_id="u")
    memory.forget("u")
    one.send("hello", user_id="u")
    one.send("hello again", user_id="u")
    assert "CANARY" not in str(model.asked[1:])
    assert [entry["text"] for entry in one.messages("u") if entry["kind"] == "user_message"] == ["hello", "hello again"]


def test_the_log_takes_nothing_from_before_the_user_was_forgotten(memory: MemoryOS):
    log = memory.parts.pages.sibling(MessageStore)
    entry = {"message_id": "m", "kind": "system_alert", "text": "x", "said_at": NOW}
    begun = memory.parts.pages.begun(SCOPE)
    memory.forget("u")
    assert not log.append(begun, "t", [entry])
    assert log.all(SCOPE, "t") == log.threads(SCOPE) == ()
    assert log.append(memory.parts.pages.begun(SCOPE), "t", [entry])
    assert len(log.all(SCOPE, "t")) == 1


def test_erased_pages_leave_the_log(memory: MemoryOS):
    one, _ = agent(memory, say("Your secret is CANARY"))
    one.send("the CANARY secret", user_id="u")
    page = next(memory.parts.pages.iterate("u"))
    memory.forget("u", page_id=page.page_id)
    client, name = memory.connection.client, memory.parts.pages._namespace.name
    dumped: list[Any] = [key for key in client.scan_iter(f"{name}:*") if b"CANARY" in (client.dump(key) or b"")]
    assert dumped == []
    assert [entry["kind"] for entry in one.messages("u")] == ["user_message", "assistant", "function_result"]


def test_forgetting_a_thread_takes_its_log_and_what_other_threads_retell(memory: MemoryOS):
    retold = acts(call("conversation_search", True, query="CANARY"), thought="I look for CANARY.")
    one, _ = agent(memory, say("noted CANARY"), retold, say("found"))
    one.send("my code is CANARY", user_id="u", thread_id="one")
    one.alert("CANARY alert", user_id="u", thread_id="one")
    one.send("what was my code?", user_id="u", thread_id="two")
    memory.forget("u", thread_id="one")
    client, name = memory.connection.client, memory.parts.pages._namespace.name
    assert [key for key in client.scan_iter(f"{name}:*") if b"CANARY" in (client.dump(key) or b"")] == []
    assert one.messages("u", "one") == ()
    assert one.log.threads(SCOPE) == ("two",)


def test_an_agent_that_only_has_an_archive_is_exported_inspected_and_forgotten(memory: MemoryOS):
    scope = Scope(user_id="u", agent_id="librarian")
    archive = memory.parts.pages.sibling(ArchivalStore)
    archive.insert(scope, ["The ferry leaves at 7:42."], now=NOW, source="harbour.md")
    (fact,) = memory.export("u")
    assert (fact["kind"], fact["agent_id"], fact["text"], fact["source"]) == (
        "fact", "librarian", "The ferry leaves at 7:42.", "harbour.md")
    assert memory.inspect("u", agent_id="librarian")["archive"]["items"] == 1
    assert memory.forget("u", fact_id=fact["fact_id"]).facts == 1
    assert list(memory.export("u")) == []
    archive.insert(scope, ["It leaves at 8:00 now."], now=NOW)
    memory.forget("u")
    assert list(memory.export("u")) == []
    assert memory.inspect("u", agent_id="librarian")["archive"]["items"] == 0


def test_export_and_inspect_tell_of_blocks_and_of_every_message(memory: MemoryOS):
    one, _ = agent(
        memory, acts(call("core_memory_append", True, block="human", content="Name: Ana"), thought="A name."),
        acts(call("core_memory_replace", True, block="human", old="Ana", new="Anna")), say("Hello Anna"),
    )
    one.send("I am Ana", user_id="u", thread_id="t")
    one.alert("Disk full.", user_id="u", thread_id="u")
    entries = list(memory.export("u"))
    kinds = {kind: [entry for entry in entries if entry["kind"] == kind] for kind in ("block", "past block", "message")}
    assert {block["label"]: block["value"] for block in kinds["block"]} == {"persona": "", "human": "Name: Anna"}
    assert [block["value"] for block in kinds["past block"]] == ["", "Name: Ana"]
    assert [(entry["thread_id"], entry["of"]) for entry in kinds["message"]][:2] == [("t", "user_message"), ("t", "assistant")]
    assert kinds["message"][1]["text"] == "A name."
    assert ("u", "system_alert") in [(entry["thread_id"], entry["of"]) for entry in kinds["message"]]
    assert memory.inspect("u")["blocks"][1]["value"] == "Name: Anna"
