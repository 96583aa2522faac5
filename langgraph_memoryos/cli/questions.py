"""The bundled questions, asked weeks after the last session: is the evidence among what is recalled?"""

from typing import Any

from langchain_core.messages import HumanMessage

from langgraph_memoryos.cli.ask import by_relevance
from langgraph_memoryos.cli.output import console, day_and_time, dialogue_lines, one_line
from langgraph_memoryos.dialogue import Conversation, Question
from langgraph_memoryos.memory import MemoryOS


def ask_weeks_later(memory: MemoryOS, conversation: Conversation, *, user: str, thread_id: str) -> None:
    """Ask every question of a conversation in a new thread and show the evidence that came back."""
    console.rule("three weeks later, in a new thread", align="left")
    found = 0
    for question in conversation.questions:
        context = {"user_id": user, "thread_id": thread_id}
        result = memory.recall.invoke({"messages": [HumanMessage(question.text)]}, context=context)
        found += _show(question, by_relevance(result["memory"]))
    console.print(
        f"All evidence was recalled for {found} of {len(conversation.questions)} questions.\n", style="bold"
    )


def _show(question: Question, pages: list[dict[str, Any]]) -> bool:
    """Print the question with the pages that answer it and their ranks; return whether none is missing."""
    expected = set(question.evidence)
    answering = [(rank, page) for rank, page in enumerate(pages, 1) if expected & set(page["source_ids"])]
    recalled = {source_id for _, page in answering for source_id in page["source_ids"]}
    complete = expected <= recalled
    console.print("found  " if complete else "missed ", style="green" if complete else "red", end="")
    console.print(one_line(question.text), soft_wrap=True)
    for rank, page in answering:
        for speaker, text in dialogue_lines(page)[:1]:
            console.print(
                f"       #{rank} {day_and_time(page['said_at'])} {speaker}: {one_line(text, width=80)}",
                style="dim",
                soft_wrap=True,
            )
    return complete
