"""The bundled questions, asked weeks after the last session: is the evidence among what is recalled?"""

from typing import Any

from langchain_core.messages import HumanMessage

from langgraph_memoryos.cli.ask import by_relevance
from langgraph_memoryos.cli.output import console, day_and_time, dialogue_lines, one_line
from langgraph_memoryos.dialogue import Conversation, Question
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Exchange


def ask_weeks_later(memory: MemoryOS, conversation: Conversation, *, user: str, thread_id: str) -> None:
    """Ask every question of a conversation in a new thread and show the evidence that came back."""
    console.rule("three weeks later, in a new thread", align="left")
    found = 0
    said = {source_id: exchange for exchange in conversation.exchanges for source_id in exchange.source_ids}
    for question in conversation.questions:
        context = {"user_id": user, "thread_id": thread_id}
        result = memory.recall.invoke({"messages": [HumanMessage(question.text)]}, context=context)
        found += _show(question, by_relevance(result["memory"]), said)
    console.print(
        f"All evidence was recalled for {found} of {len(conversation.questions)} questions.", style="bold"
    )


def _show(question: Question, pages: list[dict[str, Any]], said: dict[str, Exchange]) -> bool:
    """Print the question and what answers it, recalled (with its rank) or missed; return whether all was recalled."""
    ranks = {source_id: rank for rank, page in enumerate(pages, 1) for source_id in page["source_ids"]}
    complete = all(source_id in ranks for source_id in question.evidence)
    console.print("found  " if complete else "missed ", style="green" if complete else "red", end="")
    console.print(one_line(question.text), soft_wrap=True)
    for source_id in (each for each in question.evidence if each in said):
        place = f"#{ranks[source_id]}" if source_id in ranks else "not recalled:"
        exchange = said[source_id]
        speaker, text = dialogue_lines(exchange.to_json())[0]
        when = day_and_time(exchange.said_at)
        console.print(f"       {place} {when} {speaker}: {one_line(text, width=80)}", style="dim", soft_wrap=True)
    return complete
