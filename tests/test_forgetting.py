"""Forgetting that is interrupted, or that meets another process, at every moment: before each time it asks Redis."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.errors import ErasedError, RecordNotFoundError
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Fact, Page, ProfileField, Scope
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores import erase
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.segments import PlacedPage
from tests.memory_support import START, OpenMemory, before_round_trip, exchange, exported, members, owner, run_of, tell
from tests.virtual_support import acts, agent, call, say

pytest_plugins = ["tests.memory_fixtures"]

CANARY = "zebra-canary"
TOGETHER = MemorySettings.paper(short_term_capacity_pages=1, promotion_heat=0.5, segment_threshold=-1.0)


class Interrupted(Exception):  # noqa: N818 - it is no error of the library
    """The process ended here."""


def at_every_moment(
    memory: MemoryOS, prepare: Callable[[Scope], Any], forget: Callable[[Scope, Any], object],
    meanwhile: Callable[[Scope, Any], object],
) -> Iterator[tuple[Scope, Any]]:
    """Forget as often as it has round trips, each time for a new user, with another process coming in at the next one."""
    for number in count():
        scope = owner(f"ann {number}")
        prepared = prepare(scope)
        with before_round_trip(memory, number, lambda: meanwhile(scope, prepared)) as reached:  # noqa: B023 - used at once
            forget(scope, prepared)
        if not reached:
            assert number > 3
            return
        yield scope, prepared


def write(memory: MemoryOS, scope: Scope, *said: str, thread: str = "talk") -> list[Page]:
    return [memory.parts.pages.write(scope, exchange(text, thread_id=thread)).page for text in said]


def place(memory: MemoryOS, scope: Scope, page: Page) -> None:
    placed = PlacedPage(page_id=page.page_id, chain_id=page.page_id, chain_meta="meta", keywords=())
    memory.parts.segments.assign(scope, [page], [placed], threshold=-1.0, now=START)


def learn(memory: MemoryOS, scope: Scope, *pages: Page) -> tuple[str, ...]:
    return memory.parts.facts.add(scope, [Fact(
        fact_id="", collection="user_knowledge", text="likes tea", source_page_ids=tuple(page.page_id for page in pages),
        valid_from=START, **scope.to_json(),
    )], capacity=9)


def profile(memory: MemoryOS, scope: Scope, value: str, *pages: Page) -> None:
    memory.parts.personas.set_profile(scope, "user_profile", ProfileField(
        name="drink", value=value, source_page_ids=tuple(page.page_id for page in pages), valid_from=START))


def keys_with(memory: MemoryOS, scope: Scope, text: str) -> list[bytes]:
    """Return the user's keys whose name or value has a text, but for what holds ids of erased pages."""
    client = memory.connection.client
    names = [name for name in client.scan_iter(memory._namespace.user_pattern(scope.user_id), count=1000)
             if b":erased:" not in name and b":heads:" not in name]
    return [name for name in names if text.encode() in name or text.encode() in (client.dump(name) or b"")]


def kinds_of_keys(memory: MemoryOS, user_id: str) -> set[bytes]:
    """Return what kinds of keys there are of a user."""
    names = memory.connection.client.scan_iter(memory.parts.pages.namespace.user_pattern(user_id), count=1000)
    return {name.split(b":")[1] for name in names}


def summaries(memory: MemoryOS, scope: Scope) -> str:
    return str([*memory.parts.segments.active(scope), *memory.parts.segments.archived(scope)])


@pytest.mark.parametrize("mode", ["memgpt", "hybrid"])
def test_an_event_whose_user_is_forgotten_at_any_moment_leaves_nothing(memory: MemoryOS, mode: str) -> None:
    reasons = []
    for number in count():
        saver = InMemorySaver()
        one, _ = agent(
            memory,
            acts(call("archival_memory_insert", content=CANARY), call("core_memory_append", block="human", content=CANARY),
                 call("conversation_search", query=CANARY), call("pause_heartbeats", minutes=5),
                 call("archival_memory_update", item=1, content=f"{CANARY} two"), call("send_message", message=CANARY),
                 call("archival_memory_insert", _heartbeat=True, content=f"{CANARY} three")),
            say(CANARY), mode=mode, checkpointer=saver,
        )
        user = f"ann {number}"
        with before_round_trip(memory, number, lambda: memory.forget(user)) as reached:  # noqa: B023 - used at once
            reasons.append(one.send(CANARY, user_id=user)["reason"])
        if not reached:
            break
        if "erased" in reasons:  # it has begun
            assert kinds_of_keys(memory, user) <= {b"erased", b"erasures"}
            again, model = agent(memory, mode=mode, checkpointer=saver)
            again.send("hello", user_id=user)
            assert CANARY not in str(model.asked)
            assert keys_with(memory, owner(user), CANARY) == []
    # Forgotten before it began, while it ran, and when all of it was written.
    begins, ends = reasons.index("erased"), len(reasons) - reasons[::-1].index("erased")
    assert begins == 2
    assert set(reasons[begins:ends]) == {"erased"}
    assert ends > 20


def test_a_page_is_not_written_when_its_user_is_forgotten_meanwhile(memory: MemoryOS) -> None:
    for revive in (False, True):
        with before_round_trip(memory, 1, lambda: memory.forget("ann")) as reached:
            written = memory.parts.pages.write(owner(), exchange(CANARY), revive=revive)
        assert reached
        assert (written.status, written.queue_length) == ("erased", 0)
        assert kinds_of_keys(memory, "ann") <= {b"erased", b"erasures"}
    assert memory.parts.pages.write(owner(), exchange(CANARY)).status == "new"


def test_a_conversation_is_not_caught_up_when_its_user_is_forgotten_meanwhile(memory: MemoryOS) -> None:
    said = [message for at in range(3) for message in (HumanMessage(f"{CANARY} {at}", id=f"q{at}"), AIMessage("I see.", id=f"a{at}"))]
    with before_round_trip(memory, 5, lambda: memory.forget("ann")):
        report = memory.remember.invoke({"messages": said}, run_of("ann"))["remembered"]
    assert report["status"] == "erased"
    assert kinds_of_keys(memory, "ann") == {b"erased", b"erasures"}


def test_an_archived_text_is_not_kept_when_its_user_is_forgotten_meanwhile(memory: MemoryOS) -> None:
    archive = memory.parts.pages.sibling(ArchivalStore)
    with before_round_trip(memory, 1, lambda: memory.forget("ann")), pytest.raises(ErasedError):
        archive.insert(owner(), [CANARY], now=START)
    assert kinds_of_keys(memory, "ann") == {b"erasures"}
    assert archive.insert(owner(), [CANARY], now=START)


@pytest.mark.parametrize("what", ["page", "thread"])
def test_forgetting_that_was_interrupted_is_finished_by_doing_it_again(
    open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch, what: str,
) -> None:
    monkeypatch.setattr(erase, "_BATCH", 1)  # so that also what is sent together is interrupted in the middle
    memory = open_memory(settings=TOGETHER)

    def prepare(scope: Scope) -> list[Page]:
        said = [exchange(f"I love my {CANARY}.", thread_id="secret"), exchange("I like rain.", thread_id="other"),
                exchange(f"I own a {CANARY}.", thread_id="secret"), exchange("I like tea.", thread_id="other"),
                exchange("Bye.", thread_id="secret"), exchange("Bye.", thread_id="other")]
        tell(memory, scope.user_id, *said)
        pages = [page for page in memory.parts.pages.iterate(scope.user_id) if page.thread_id == "secret"]
        profile(memory, scope, CANARY, pages[0])
        log = memory.parts.pages.sibling(MessageStore)
        log.append(scope, "secret", [{"message_id": "m", "kind": "summary", "text": CANARY, "said_at": START}])
        assert {CANARY in text for text in (summaries(memory, scope), str(exported(memory, scope.user_id, "fact")))} == {True}
        return pages

    def forget(scope: Scope, pages: list[Page]) -> None:
        if what == "thread":
            memory.forget(scope.user_id, thread_id="secret")
        else:
            memory.forget(scope.user_id, page_id=[page.page_id for page in pages])

    def forget_interrupted(scope: Scope, pages: list[Page]) -> None:
        with suppress(Interrupted):
            forget(scope, pages)

    def interrupt(_scope: Scope, _pages: list[Page]) -> None:
        raise Interrupted

    for scope, pages in at_every_moment(memory, prepare, forget_interrupted, interrupt):
        left = [page.query for page in memory.parts.pages.get(scope, [page.page_id for page in pages])]
        if not any(CANARY in query for query in left):
            assert CANARY not in summaries(memory, scope)
        with suppress(RecordNotFoundError):
            forget(scope, pages)
        assert CANARY not in str(list(memory.export(scope.user_id)))
        assert keys_with(memory, scope, CANARY) == []
        memory.consolidate.invoke({"user_id": scope.user_id})
        active = memory.parts.segments.active(scope)
        assert active
        assert all(segment.summary for segment in active)
        assert memory.parts.segments.stale(scope, limit=9) == ()


def test_a_page_that_is_placed_while_it_is_erased_leaves_nothing(memory: MemoryOS) -> None:
    def prepare(scope: Scope) -> Page:
        return write(memory, scope, "secret")[0]

    for scope, page in at_every_moment(
        memory, prepare, lambda scope, page: memory.forget(scope.user_id, page_id=page.page_id),
        lambda scope, page: place(memory, scope, page),
    ):
        assert keys_with(memory, scope, page.page_id) == []
        assert memory.parts.segments.active(scope) == ()


def test_a_page_that_joins_while_its_segment_empties_is_kept(memory: MemoryOS) -> None:
    def prepare(scope: Scope) -> list[Page]:
        pages = write(memory, scope, "secret", "secret too")
        place(memory, scope, pages[0])
        return pages

    for scope, pages in at_every_moment(
        memory, prepare, lambda scope, pages: memory.forget(scope.user_id, page_id=pages[0].page_id),
        lambda scope, pages: place(memory, scope, pages[1]),
    ):
        assert [page for held in members(memory, scope).values() for page in held] == [pages[1].page_id]
        (segment,) = memory.parts.segments.active(scope)
        assert (segment.page_count, segment.interactions) == (1, 1)


@pytest.mark.parametrize("erased", [0, 1, 2])
def test_a_chain_tells_nothing_of_a_page_that_is_erased_while_its_pages_are_placed(
    memory: MemoryOS, monkeypatch: pytest.MonkeyPatch, erased: int,
) -> None:
    """One page of the chain is in a segment already, the others are placed with what was judged before."""
    scripted, moves = memory.parts.segments._move, count()
    for moment in range(3):
        scope = owner(f"ann {moment}")
        pages = write(memory, scope, "one", "two", "three", "four")
        place(memory, scope, pages[0])
        placed = [PlacedPage(page_id=page.page_id, chain_id=pages[0].page_id, chain_meta=CANARY, keywords=())
                  for page in pages[1:]]

        def move(*args: Any, moment: int = moment, scope: Scope = scope, page: Page = pages[erased], **kwargs: Any) -> Any:
            if next(moves) % 3 == moment:
                memory.forget(scope.user_id, page_id=page.page_id)
            return scripted(*args, **kwargs)

        monkeypatch.setattr(memory.parts.segments, "_move", move)
        memory.parts.segments.assign(scope, pages[1:], placed, threshold=-1.0, now=START)
        assert sum(segment.page_count for segment in memory.parts.segments.active(scope)) == 3
        assert keys_with(memory, scope, CANARY) == []
        monkeypatch.undo()


def test_a_fact_that_is_forgotten_while_its_page_is_erased_leaves_no_ghost(memory: MemoryOS) -> None:
    def prepare(scope: Scope) -> tuple[list[Page], str]:
        pages = write(memory, scope, "one", "two")
        return pages, learn(memory, scope, *pages)[0]

    for scope, (_, fact_id) in at_every_moment(
        memory, prepare, lambda scope, known: memory.forget(scope.user_id, page_id=known[0][0].page_id),
        lambda scope, known: memory.forget(scope.user_id, fact_id=known[1]),
    ):
        assert keys_with(memory, scope, fact_id) == []


def test_a_persona_entry_that_is_set_while_a_page_is_erased_stays(memory: MemoryOS) -> None:
    def prepare(scope: Scope) -> list[Page]:
        pages = write(memory, scope, "one", "two")
        profile(memory, scope, "tea", *pages)
        return pages

    for scope, pages in at_every_moment(
        memory, prepare, lambda scope, pages: memory.forget(scope.user_id, page_id=pages[0].page_id),
        lambda scope, pages: profile(memory, scope, "coffee", pages[1]),
    ):
        (entry,) = memory.parts.personas.get(scope).user_profile
        assert (entry.value, entry.source_page_ids) == ("coffee", (pages[1].page_id,))
        assert pages[0].page_id not in str(memory.parts.personas.history(scope))


def test_messages_of_a_thread_that_is_forgotten_while_a_page_is_erased_stay_away(memory: MemoryOS) -> None:
    log = memory.parts.pages.sibling(MessageStore)

    def prepare(scope: Scope) -> Page:
        log.append(scope, "other", [{"message_id": "m", "kind": "summary", "text": "x", "said_at": START}])
        return write(memory, scope, "secret")[0]

    for scope, _ in at_every_moment(
        memory, prepare, lambda scope, page: memory.forget(scope.user_id, page_id=page.page_id),
        lambda scope, _: memory.forget(scope.user_id, thread_id="other"),
    ):
        assert memory.connection.client.exists(memory._namespace.keys(scope).message_contents("other")) == 0


@pytest.mark.parametrize("moment", ["summarise_segments", "refresh"])
def test_a_summary_made_from_a_page_that_is_erased_meanwhile_is_not_written(
    open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch, moment: str,
) -> None:
    memory = open_memory(settings=TOGETHER.model_copy(update={"maintenance": "deferred"}))
    tell(memory, "ann", f"I love my {CANARY}.", "I like rain.", "I like tea.")
    (page, *_) = memory.parts.pages.iterate("ann")
    place(memory, owner(), page)
    store: Any = DeterministicAnalyst if moment == "summarise_segments" else memory.parts.segments
    original = getattr(store, moment)

    def erase_first(*args: Any, **kwargs: Any) -> Any:
        with suppress(RecordNotFoundError):
            memory.forget("ann", page_id=page.page_id)
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(store, moment, erase_first)
        memory.consolidate.invoke({"user_id": "ann", "drain": True})
    assert CANARY not in summaries(memory, owner())
    memory.consolidate.invoke({"user_id": "ann", "drain": True})
    assert [bool(segment.summary) for segment in memory.parts.segments.active(owner())] == [True]
    assert memory.parts.segments.stale(owner(), limit=9) == ()


def test_what_is_learnt_from_a_page_while_it_is_erased_is_gone_or_refused(memory: MemoryOS) -> None:
    def learn_meanwhile(scope: Scope, page: Page) -> None:
        learn(memory, scope, page)
        profile(memory, scope, "tea", page)

    for scope, _ in at_every_moment(
        memory, lambda scope: write(memory, scope, "I like tea.")[0],
        lambda scope, page: memory.forget(scope.user_id, page_id=page.page_id), learn_meanwhile,
    ):
        assert list(memory.export(scope.user_id)) == []


def test_a_fact_that_was_confirmed_by_an_erased_page_goes_with_its_last_page(memory: MemoryOS) -> None:
    scope = owner()
    erased, kept = write(memory, scope, "one", "two")
    memory.forget("ann", page_id=erased.page_id)
    learn(memory, scope, erased, kept)
    profile(memory, scope, "tea", erased, kept)
    assert memory.forget("ann", page_id=kept.page_id).facts == 1
    assert list(memory.export("ann")) == []


def test_erasing_an_old_fact_leaves_the_words_to_the_newer_one(memory: MemoryOS) -> None:
    scope = owner()
    one, two, three = write(memory, scope, "one", "two", "three")
    (old,) = learn(memory, scope, one)
    other = Fact(fact_id="", collection="user_knowledge", text="hates tea", source_page_ids=(two.page_id,),
                 valid_from=START, **scope.to_json())
    memory.parts.facts.add(scope, [other], capacity=9, supersedes=[[old]])
    (new,) = learn(memory, scope, three)
    memory.forget("ann", page_id=one.page_id)
    assert learn(memory, scope, two) == (new,)


def test_several_pages_or_facts_are_forgotten_at_once_and_the_missing_ones_are_told(memory: MemoryOS) -> None:
    scope = owner()
    pages = write(memory, scope, "one", "two", "three")
    facts = learn(memory, scope, pages[2])
    assert memory.forget("ann", page_id=[page.page_id for page in pages[:2]]).pages == 2
    assert memory.forget("ann", page_id=[]).pages == 0
    with pytest.raises(RecordNotFoundError, match=r"no fact 'invented', 'this too'"):
        memory.forget("ann", fact_id=("invented", *facts, "this too"))
    assert [entry["kind"] for entry in memory.export("ann")] == ["page"]


def test_a_speakers_name_is_known_as_long_as_a_page_has_it(memory: MemoryOS) -> None:
    def names() -> set[bytes]:
        return set(memory.connection.client.hkeys(memory._namespace.keys(owner()).names))

    def say(text: str, name: str, thread: str = "talk", reply: str = "I see.") -> str:
        said = exchange(text, reply, source=text, thread_id=thread, user_name=name, agent_name="Juniper")
        return memory.parts.pages.write(owner(), said).page.page_id

    first = say("one", "Ann")
    assert [say("one", "Ann"), say("two", "Ann", thread="other")][0] == first
    say("three", "Annie", thread="other")
    assert say("three", "Anna", thread="other", reply="Aha.")
    assert names() == {b"Ann", b"Anna", b"Juniper"}
    memory.forget("ann", page_id=first)
    assert names() == {b"Ann", b"Anna", b"Juniper"}
    memory.forget("ann", thread_id="other")
    assert names() == set()


def test_a_page_whose_predecessor_is_erased_is_found_as_one_that_never_had_any(memory: MemoryOS) -> None:
    first, second = exchange("apples and pears", source="m1"), exchange("grapes and melons", source="m2")
    tell(memory, "ann", first, second)
    tell(memory, "bob", second)
    memory.forget("ann", page_id=exported(memory, "ann")[0]["page_id"])
    texts = [
        memory.connection.client.hget(
            memory.parts.pages.namespace.keys(owner(user)).window(exported(memory, user)[0]["page_id"]), "text")
        for user in ("ann", "bob")
    ]
    assert texts[0] == texts[1] is not None
