"""Ids: what names nothing is refused, what differs stays apart, what is the same is the same again."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraph_memoryos import ids
from langgraph_memoryos.errors import IdentityError, MemoryOSError
from langgraph_memoryos.identity import resolve_scope
from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import MemoryContext
from langgraph_memoryos.stores.keys import Namespace
from tests.memory_support import NASTY_CHARACTERS

any_text = st.text(st.characters(exclude_categories=()), max_size=20)
any_id = st.text(st.sampled_from(NASTY_CHARACTERS), min_size=1, max_size=8) | any_text.filter(bool)
texts = st.lists(any_text, max_size=4)


@given(texts, texts)
@settings(deadline=None)
def test_digest_tells_every_two_lists_of_parts_apart(first: list[str], second: list[str]) -> None:
    assert (ids.digest(*first) == ids.digest(*second)) == (first == second)


@given(st.text(max_size=6), st.text(max_size=6))
def test_digest_does_not_collide_by_joining(first: str, second: str) -> None:
    assert ids.digest(first, second) != ids.digest(first + second)
    assert ids.digest(first, second, "") != ids.digest(first, second)


@given(any_id)
@settings(deadline=None)
def test_every_id_becomes_a_fixed_alphabet(name: str) -> None:
    found = ids.page_id(user_id=name, agent_id=name, thread_id=name, source_id=name)
    assert re.fullmatch("[0-9a-f]{32}", found)
    assert found == ids.page_id(user_id=name, agent_id=name, thread_id=name, source_id=name)


@given(any_id, any_id, any_id)
@settings(deadline=None)
def test_keys_of_a_user_share_one_hash_tag_and_hold_no_readable_id(user: str, agent: str, thread: str) -> None:
    keys = Namespace(name="memory").keys(Scope(user_id=user, agent_id=agent))
    tag = f"{{{keys.user}}}"
    names = [
        keys.page("p"), keys.segment("s"), keys.segment_pages("s"), keys.fact("f"), keys.chain("c"),
        keys.queue(thread), keys.log, keys.sequence, keys.erased, keys.threads, keys.agents, keys.segments,
        keys.erasures, keys.archive, keys.heat, keys.undigested("s"), keys.stale, keys.facts("x"), keys.past_facts("x"),
        keys.fact_texts("x"), keys.persona, keys.persona_history, keys.block(thread), keys.blocks,
    ]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.count("{") == name.count("}") == 1
        assert tag in name
        assert re.fullmatch(r"memory:[a-z]+:\{[0-9a-f]{32}\}(:[0-9a-z_]+)*", name)


@given(any_id, any_id)
@settings(deadline=None)
def test_tags_differ_exactly_where_ids_differ(first: str, second: str) -> None:
    space = Namespace(name="memory")
    one, two = (space.keys(Scope(user_id=name, agent_id="a")) for name in (first, second))
    assert (one.user == two.user) == (first == second)
    mine, other = (space.keys(Scope(user_id="u", agent_id=name)) for name in (first, second))
    assert (mine.agent == other.agent) == (first == second)
    assert (mine.thread_tag(first) == mine.thread_tag(second)) == (first == second)


def test_one_agent_has_another_tag_for_each_user() -> None:
    space = Namespace(name="memory")
    tags = {space.keys(Scope(user_id=user, agent_id="coach")).agent for user in ("ann", "bob")}
    assert len(tags) == 2


@pytest.mark.parametrize("missing", [None, "", 1.5, True, b"ann", ["ann"], {}])
def test_what_names_nobody_is_refused(missing: object) -> None:
    with pytest.raises(IdentityError, match="user_id"):
        ids.readable_id(missing, what="user_id")


@pytest.mark.parametrize(("given_id", "found"), [("ann", "ann"), (7, "7"), (0, "0"), (-3, "-3"), (" ", " ")])
def test_names_and_numbers_are_ids(given_id: object, found: str) -> None:
    assert ids.readable_id(given_id, what="user_id") == found


@pytest.mark.parametrize("name", ["", "a:b", "a b", "ä", "a*", "{a}", "-a", "a" * 65, "a\n"])
def test_namespace_that_could_reach_other_keys_is_refused(name: str) -> None:
    with pytest.raises(MemoryOSError, match="namespace"):
        Namespace(name=name)


def test_context_beats_config_and_config_beats_state() -> None:
    def resolved(context: object, configurable: dict[str, object], state: dict[str, object]) -> str:
        scope, _ = resolve_scope(state=state, context=context, configurable=configurable, default_agent="a")
        return scope.user_id

    named = {"user_id": "config"}, {"user_id": "state"}
    assert resolved(MemoryContext(user_id="context"), *named) == "context"
    assert resolved({"user_id": "context"}, *named) == "context"
    assert resolved(object(), *named) == "config"
    assert resolved(None, {}, {"user_id": "state"}) == "state"


@pytest.mark.parametrize("key", ["user_id", "agent_id", "thread_id"])
def test_empty_id_never_falls_back_to_another_one(key: str) -> None:
    state = {"user_id": "ann", "agent_id": "coach", "thread_id": "talk"}
    with pytest.raises(IdentityError, match=key):
        resolve_scope(state=state, context={key: ""}, configurable=state, default_agent="a")
