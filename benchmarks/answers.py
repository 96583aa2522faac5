"""How good are a chat model's answers from memory? Ours and plain rivals within the same token budget.

    python -m benchmarks.answers --data PATH --json OUT [--questions N] [--seed S] [--sample ID ...]
        [--systems ours,bm25,...] [--pages N] [--set NAME=VALUE ...] [--cache DIR] [--parallel N]

The conversations are written as in ``benchmarks.locomo``. Each sampled question is asked once per system: ``ours`` and
``two_stage`` inject the text that their ``recall`` graph returns, the others the pages of their ranking that fit the same
budget, rendered alike. The model is the library's own choice: ``OPENAI_API_KEY``, ``OPENAI_BASE_URL`` and
``OPENAI_MODEL``, else local weights. A question that the model fails on counts as answered with nothing.
"""

import argparse
import hashlib
import json
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from benchmarks.answer_scores import UNANSWERABLE, answer_marks
from benchmarks.embedding_cache import CachedEmbeddings
from benchmarks.locomo import (
    ASKING_THREAD,
    Gold,
    Store,
    add_data_arguments,
    chosen_conversations,
    fill,
    progress,
    settings_from,
    write_report,
)
from benchmarks.rivals import Rivals
from benchmarks.scoring import groups
from langgraph_memoryos.dialogue import Conversation, Question, message_text
from langgraph_memoryos.local_models import choose_chat_model, default_embeddings
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.prompts import memory_section
from langgraph_memoryos.records import Page
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.throwaway import throwaway_memory
from langgraph_memoryos.text_size import count_tokens

MEMORIES = ("ours", "two_stage")
RANKINGS = ("bm25", "dense", "rrf", "last_n", "evidence", "nothing")
DEFAULT_SYSTEMS = "ours,bm25,dense,two_stage"
PROMPT = (
    "Answer the question from your memory of the conversations, in a short phrase and in their words where possible. "
    "The time in front of an exchange is when it was said: work out the dates that it speaks of and write them like "
    "7 May 2023. If the memory does not tell, answer: Not mentioned.\n\nQuestion: {question}\nShort answer:"
)
BUNDLED_REPLY_TOKENS = 48  # the bundled model does not stop by itself


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model said to one prompt.

    Attributes:
        text: The answer; empty if the model failed.
        prompt_tokens: As the model reports them, else estimated; 0 if it failed.
        failure: Kind and words of its error; empty if there was none.
        kept: It was asked in an earlier run.
    """

    text: str = ""
    prompt_tokens: int = 0
    failure: str = ""
    kept: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One question as one system's memory had it answered, with its marks (see ``AnswerMarks``)."""

    system: str
    sample_id: str
    category: str
    question: str
    gold: str
    reply: Reply
    f1: float
    bleu1: float | None


class Answerer:
    """A chat model whose replies are kept in a file, so that a run that broke off goes on where it was.

    Args:
        model: Any LangChain chat model; retrying is its own affair (``max_retries``).
        name: Tells its replies from those of other models in the same file.
        path: The file (JSON Lines), or None. A line that cannot be read is asked again; failures are not kept.
        parallel: Calls at the same time.
    """

    def __init__(self, model: BaseChatModel, *, name: str, path: Path | None = None, parallel: int = 1) -> None:
        self.name = name
        self._model = model
        self._path = path
        self._parallel = parallel
        self._kept: dict[str, Reply] = {}
        if path is not None and path.exists():
            self._kept = dict(_read_replies(path))

    def ask(self, prompts: Sequence[list[BaseMessage]]) -> list[Reply]:
        """Return a reply to each prompt, in order."""
        keys = [self._key(prompt) for prompt in prompts]
        new = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._kept}
        said = self._model.batch(
            list(new.values()), config={"max_concurrency": self._parallel}, return_exceptions=True)
        replies = {key: _reply(message, new[key]) for key, message in zip(new, said, strict=True)}
        self._keep({key: reply for key, reply in replies.items() if not reply.failure})
        return [replies.get(key) or self._kept[key] for key in keys]

    def _key(self, prompt: list[BaseMessage]) -> str:
        told = json.dumps([self.name, *((message.type, message.text) for message in prompt)])
        return hashlib.sha256(told.encode()).hexdigest()

    def _keep(self, replies: dict[str, Reply]) -> None:
        if self._path is not None and replies:
            with self._path.open("a", encoding="utf-8") as lines:
                for key, reply in replies.items():
                    lines.write(json.dumps({"key": key, "text": reply.text, "prompt_tokens": reply.prompt_tokens}) + "\n")


def _read_replies(path: Path) -> Iterator[tuple[str, Reply]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
            yield row["key"], Reply(text=row["text"], prompt_tokens=row["prompt_tokens"], kept=True)
        except (ValueError, KeyError, TypeError):
            continue


def _reply(said: BaseMessage | Exception, prompt: list[BaseMessage]) -> Reply:
    if isinstance(said, Exception):
        return Reply(failure=f"{type(said).__name__}: {said}")
    usage = said.usage_metadata if isinstance(said, AIMessage) else None
    estimated = sum(count_tokens(message.text) for message in prompt)
    return Reply(text=message_text(said).strip(), prompt_tokens=usage["input_tokens"] if usage else estimated)


def prompt_for(question: str, memory: str) -> list[BaseMessage]:
    """Return the messages that ask a question: memory as the system's, if there is any, then the question."""
    asking = HumanMessage(PROMPT.format(question=question))
    return [SystemMessage(memory), asking] if memory else [asking]


def sampled(golds: Sequence[Gold], *, count: int | None, seed: int) -> list[list[Question]]:
    """Return the questions to ask of each conversation, in the file's order.

    Every category is shuffled and spread evenly over one line, whose first ``count`` are taken: each has its share, and a
    larger sample holds the smaller one. Questions without a right answer are left out, but those of category 5.
    """
    by_category: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, gold in enumerate(golds):
        for place, question in enumerate(gold.conversation.questions):
            if question.answer or question.category == UNANSWERABLE:
                by_category[question.category].append((number, place))
    random = Random(seed)
    line = []
    for category, items in sorted(by_category.items()):
        random.shuffle(items)
        line += [((at + 0.5) / len(items), category, item) for at, item in enumerate(items)]
    taken = sorted(item for _, _, item in sorted(line)[:count])
    return [
        [gold.conversation.questions[place] for owner, place in taken if owner == number]
        for number, gold in enumerate(golds)
    ]


def evaluate(
    conversations: Sequence[Conversation], answerer: Answerer, *, systems: Sequence[str], count: int | None = None,
    seed: int = 0, cache: Path | None = None, redis_url: str | None = None, settings: MemorySettings | None = None,
    say: Callable[[str], None] = progress,
) -> dict[str, Any]:
    """Ask the sampled questions and return the report.

    Args:
        conversations: One user each; names must differ. All are written, also those with no sampled question.
        answerer: The model.
        systems: Of ``MEMORIES`` and ``RANKINGS``. ``evidence`` has the pages that the file names (what retrieval can
            reach at best), ``nothing`` no memory.
        count: Questions to ask of each system; default all.
        seed: Of the sample.
        cache: File that keeps embeddings (npz).
        redis_url: A Redis with search; default: an embedded one, thrown away.
        settings: Of ours; default ``MemorySettings()``. Its ``max_memory_tokens`` is everyone's budget.
        say: Takes lines of progress.
    """
    started = time.perf_counter()
    golds = [Gold(conversation) for conversation in conversations]
    samples = sampled(golds, count=count, seed=seed)
    total = sum(map(len, samples))
    settings = settings or MemorySettings()
    presets = {"ours": settings, "two_stage": MemorySettings.paper(max_memory_tokens=settings.max_memory_tokens)}
    inner = default_embeddings()
    embeddings = CachedEmbeddings(inner, cache, name=Embedder(inner).name)
    embedder = Embedder(embeddings, name=embeddings.model)
    answers: list[Answer] = []
    with ExitStack() as stack:
        url, namespace = stack.enter_context(throwaway_memory(redis_url))
        store = Store(url=url, namespace=namespace, embeddings=embeddings)
        memories = {
            name: stack.enter_context(store.open(name, presets[name])) for name in systems if name in MEMORIES
        }
        for gold, questions in zip(golds, samples, strict=True):
            rivals = Rivals(gold.exchanges, embedder)
            took = {name: round(fill(memory, gold), 1) for name, memory in memories.items()}
            embeddings.save()
            say(f"{gold.conversation.sample_id}: {len(gold.exchanges)} pages written, {took} s")
            for question in questions:
                known = texts(gold, question, systems, memories, rivals, budget=settings.max_memory_tokens)
                marked = _answers(gold, question, known, answerer)
                answers += marked
                scores = ", ".join(f"{item.system} {item.reply.failure or format(item.f1, '.2f')}" for item in marked)
                say(f"{len(answers) // len(systems)}/{total} {gold.conversation.sample_id} {question.category}: {scores}")
        embeddings.save()
    return {
        "model": answerer.name, "prompt": PROMPT, "seed": seed, "embedder": embeddings.model,
        "memory_tokens": settings.max_memory_tokens, "settings": settings.model_dump(),
        "questions": dict(sorted(Counter(question.category for asked in samples for question in asked).items())),
        "rows": rows(answers), "answers": [asdict(answer) for answer in answers],
        "seconds": round(time.perf_counter() - started, 1),
    }


def texts(
    gold: Gold, question: Question, systems: Sequence[str], memories: dict[str, MemoryOS], rivals: Rivals, *, budget: int,
) -> dict[str, str]:
    """Return the memory that each system injects for a question, at most ``budget`` estimated tokens."""
    rankings = rivals.rankings(question.text) | {"evidence": sorted(gold.pages(question)), "nothing": []}
    user = gold.conversation.sample_id
    return {
        name: injected(memories[name], question.text, user) if name in memories
        else rendered(gold, gold.packed(rankings[name], budget))
        for name in systems
    }


def injected(memory: MemoryOS, question: str, user: str) -> str:
    """Return the text that the ``recall`` graph hands to an agent."""
    state = {"messages": [("user", question)], "user_id": user, "thread_id": ASKING_THREAD}
    return str(memory.recall.invoke(state)["memory"]["text"])


def rendered(gold: Gold, numbers: Sequence[int]) -> str:
    """Return pages as ``recall`` renders them, oldest first."""
    scope = {"page_id": "", "user_id": "", "agent_id": ""}
    pages = [Page.from_json(gold.exchanges[number].to_json() | scope) for number in sorted(numbers)]
    return memory_section.section(user=[], agent=[], pages=[memory_section.page_entry(page) for page in pages])


def _answers(gold: Gold, question: Question, known: dict[str, str], answerer: Answerer) -> list[Answer]:
    replies = answerer.ask([prompt_for(question.text, memory) for memory in known.values()])
    return [
        Answer(
            system=system, sample_id=gold.conversation.sample_id, category=question.category, question=question.text,
            gold=question.answer, reply=reply,
            **asdict(answer_marks(reply.text, question.answer, category=question.category)),
        )
        for system, reply in zip(known, replies, strict=True)
    ]


def rows(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return one row per system and group of categories.

    ``f1`` and ``bleu1`` are means over all questions of the group (a failed one is 0); ``bleu1`` is None where category 5
    is among them. ``prompt_tokens`` is the sum over the answers, kept ones included; ``model_calls`` are those of this
    run, without what the model's client repeats by itself; ``kept`` answers come from an earlier run.
    """
    found = []
    for system in dict.fromkeys(answer.system for answer in answers):
        own = [answer for answer in answers if answer.system == system]
        for name, belongs in groups(answer.category for answer in own).items():
            chosen = [answer for answer in own if belongs(answer.category)]
            if not chosen:
                continue
            bleu = [answer.bleu1 for answer in chosen if answer.bleu1 is not None]
            kept = sum(answer.reply.kept for answer in chosen)
            found.append({
                "system": system, "categories": name, "questions": len(chosen),
                "f1": round(statistics.fmean(answer.f1 for answer in chosen), 4),
                "bleu1": round(statistics.fmean(bleu), 4) if len(bleu) == len(chosen) else None,
                "prompt_tokens": sum(answer.reply.prompt_tokens for answer in chosen),
                "model_calls": len(chosen) - kept, "kept": kept,
                "failed": sum(bool(answer.reply.failure) for answer in chosen),
            })
    return found


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown, F1 and BLEU-1 in percent."""
    lines = [
        f"{report['model']}, seed {report['seed']}, {report['memory_tokens']} tokens of memory at most. The prompt:", "",
        "```text", f"(memory)\n\n{report['prompt']}", "```", "",
        "| system | categories | questions | F1 | BLEU-1 | prompt tokens | model calls | kept | failed |",
        "|---" * 9 + "|",
    ]
    for row in report["rows"]:
        bleu = "" if row["bleu1"] is None else f"{100 * row['bleu1']:.1f}"
        lines.append(
            f"| {row['system']} | {row['categories']} | {row['questions']} | {100 * row['f1']:.1f} | {bleu} | "
            f"{row['prompt_tokens']} | {row['model_calls']} | {row['kept']} | {row['failed']} |")
    return "\n".join(lines)


def chosen_answerer(*, cache: Path | None = None, parallel: int = 1) -> Answerer:
    """Return the model that the environment names, else the bundled one with short replies.

    Raises:
        ModelUnavailableError: There is none, or the local one cannot run on this machine.
    """
    choice = choose_chat_model()
    model = choice.build(**({"max_tokens": BUNDLED_REPLY_TOKENS} if choice.is_bundled else {}))
    return Answerer(model, name=choice.name, path=cache / "answers.jsonl" if cache else None, parallel=parallel)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=(__doc__ or "").partition("\n")[0])
    add_data_arguments(parser)
    parser.add_argument("--questions", type=int, metavar="N", help="how many to ask; default all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample of questions")
    parser.add_argument(
        "--systems", default=DEFAULT_SYSTEMS, metavar="NAME,...",
        help=f"of {', '.join(MEMORIES + RANKINGS)}; default {DEFAULT_SYSTEMS}",
    )
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="model calls at the same time, per question")
    given = parser.parse_args()
    systems = list(dict.fromkeys(given.systems.split(",")))
    if unknown := set(systems) - {*MEMORIES, *RANKINGS}:
        parser.error(f"no such system: {', '.join(sorted(unknown))}; there are {', '.join(MEMORIES + RANKINGS)}")
    conversations = chosen_conversations(parser, given)
    report = evaluate(
        conversations, chosen_answerer(cache=given.cache, parallel=given.parallel), systems=systems,
        count=given.questions, seed=given.seed, cache=given.cache / "embeddings.npz" if given.cache else None,
        redis_url=given.redis_url, settings=settings_from(given.set),
    )
    write_report(report, given.json)
    print(table(report))


if __name__ == "__main__":
    main()
