"""``ask``: one question to a user's memory, with the evidence."""

import uuid
from typing import Annotated, Any

import typer
from langchain_core.messages import AnyMessage, HumanMessage

from langgraph_memoryos.cli.inspection import is_known, tell_unknown
from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, User, with_memory_options
from langgraph_memoryos.cli.output import (
    console,
    day_and_time,
    dialogue_lines,
    errors,
    one_line,
    print_json,
    printable,
)
from langgraph_memoryos.dialogue import message_text
from langgraph_memoryos.errors import ModelUnavailableError
from langgraph_memoryos.local_models import choose_chat_model
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.nodes.generate_reply import prompt_messages
from langgraph_memoryos.records import Scope
from langgraph_memoryos.state import RecalledMemory
from langgraph_memoryos.stores.archival import ArchivalItem
from langgraph_memoryos.stores.search import SearchRequest, SearchStore

_ARCHIVED_SHOWN = 3
_EVIDENCE = (
    "page_id",
    "user_id",
    "thread_id",
    "source_ids",
    "user_name",
    "query",
    "agent_name",
    "reply",
    "relevance",
    "parts",
)


@with_memory_options
def ask(
    options: MemoryOptions,
    question: Annotated[str, typer.Argument(help="What to look for, in any language.")],
    *,
    user: User,
    model: Annotated[
        bool | None,
        typer.Option(
            "--model/--no-model",
            show_default=False,
            help="Have a chat model answer, or not; by default any but the bundled one answers.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the parts of each page's relevance.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a user's memory: see the pages it recalls, and an answer if a chat model is at hand.

    The most relevant page comes first. Relevance ranks the pages of one question by words, meaning and
    neighbourhood; it is no probability, and numbers of different questions do not compare.
    The archive is no part of a recall: its best texts are shown last, and are not told to the model.
    The question is asked in a thread of its own and is not remembered; what it finds counts as visited.
    """
    answers = _answers(model)
    with options.open(without_model=True) as memory:
        recalled = _recalled(memory, question, user)
        archived = _archived(memory, question, user)
        if not _holds_anything(recalled) and not is_known(memory, user):
            tell_unknown(user)
        elif not as_json:
            _show_evidence(recalled, archived, explain=explain)
        answer = _answer(memory, question, recalled, aloud=not as_json) if answers else None
    if as_json:
        print_json(
            {
                "question": question,
                "user": user,
                "answer": answer,
                "memory": recalled,
                "evidence": [_evidence(page) for page in by_relevance(recalled)],
                "archive": [item.to_json() for item in archived],
            }
        )


def _answers(wanted: bool | None) -> bool:  # noqa: FBT001 - three answers: yes, no, whatever is sensible
    """Return whether a model is to answer.

    Raises:
        ModelUnavailableError: one was demanded and none is at hand.
    """
    if wanted is not None:
        return wanted and bool(choose_chat_model())
    try:
        is_bundled = choose_chat_model().is_bundled
    except ModelUnavailableError:
        return False
    if is_bundled:
        note = "Evidence only: --model has the small bundled model answer, which is often wrong."
        errors.print(note, soft_wrap=True)
    return not is_bundled


def _recalled(memory: MemoryOS, question: str, user: str) -> RecalledMemory:
    run = {"user_id": user, "thread_id": f"ask-{uuid.uuid4().hex}"}
    result = memory.recall.invoke({"messages": [HumanMessage(question)]}, context=run)
    found: RecalledMemory = result["memory"]
    return found


def _archived(memory: MemoryOS, question: str, user: str) -> tuple[ArchivalItem, ...]:
    """Return the best texts of the archive; to a blank question there are none."""
    if not question.strip():
        return ()
    scope = Scope(user_id=user, agent_id=memory.parts.default_agent)
    request = SearchRequest(query=question, page_size=_ARCHIVED_SHOWN)
    return memory.parts.pages.sibling(SearchStore).archive(scope, request).items


def _holds_anything(recalled: RecalledMemory) -> bool:
    return bool(recalled["mid_term"] or recalled["user_facts"] or recalled["agent_traits"])


def by_relevance(recalled: RecalledMemory) -> list[dict[str, Any]]:
    """Return the recalled pages, most relevant first."""
    return sorted(recalled["mid_term"], key=lambda page: -float(page["relevance"]))


def _evidence(page: dict[str, Any]) -> dict[str, Any]:
    return {"said_at": day_and_time(page["said_at"])} | {name: page[name] for name in _EVIDENCE}


def _show_evidence(recalled: RecalledMemory, archived: tuple[ArchivalItem, ...], *, explain: bool) -> None:
    pages = by_relevance(recalled)
    if not _holds_anything(recalled) and not archived:
        console.print("Nothing is remembered that answers this.")
    for page in pages:
        _show_page(page, explain=explain)
    for fact in (*recalled["user_facts"], *recalled["agent_traits"]):
        console.print(f"fact  {printable(fact['text'])}", soft_wrap=True)
    for item in archived:
        source = f"  from {one_line(item.source, width=80)}" if item.source else ""
        head = f"{day_and_time(item.added_at)}  archive, item {item.number}{source}"
        console.print(head, style="bold", soft_wrap=True)
        text = printable(item.text).strip().replace("\n", "\n  ")
        console.print(f"  {text}", soft_wrap=True)


def _show_page(page: dict[str, Any], *, explain: bool) -> None:
    place = one_line(page["thread_id"], width=40)
    head = f"{day_and_time(page['said_at'])}  thread {place}  relevance {page['relevance']:.2f}"
    parts = " + ".join(f"{name} {value:.2f}" for name, value in page["parts"].items()) if explain else ""
    console.print(f"{head} = {parts}" if parts else head, style="bold", soft_wrap=True)
    for speaker, text in dialogue_lines(page):
        said = printable(text).strip().replace("\n", "\n    ")
        console.print(f"  {speaker}: {said}", soft_wrap=True)


def _answer(memory: MemoryOS, question: str, recalled: RecalledMemory, *, aloud: bool) -> str:
    """Return the model's answer; aloud, it is printed token by token."""
    asked: list[AnyMessage] = [HumanMessage(question)]
    pieces: list[str] = []
    for chunk in memory.reply_model.stream(prompt_messages(asked, recalled)):
        pieces.append(message_text(chunk))
        if aloud:
            console.print(printable(pieces[-1]), end="", soft_wrap=True)
    if aloud:
        console.print()
    return "".join(pieces)
