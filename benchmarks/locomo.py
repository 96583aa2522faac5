"""Does memory find the evidence? Ours and plain rivals on the same pages, without any model call.

    python -m benchmarks.locomo --data PATH --json OUT [--cache FILE] [--sample ID ...] [--set NAME=VALUE ...]

``PATH`` is a conversation file with questions, in LoCoMo's JSON or our JSON Lines (``benchmarks/slices``). Each
conversation is one user, written through the compiled ``remember`` graph with the deterministic analyst; then every
session's queue is emptied with ``consolidate``. Recall is read where the ``recall`` graph reads it, and the text of a
token budget is the one that ``assemble_memory`` injects; rivals get the same rendering of the same pages.

Rows of unit ``page`` and ``turn`` mark the best ``k``; rows of unit ``tokens`` mark what is injected within ``k``
tokens. Evidence is what the file names and the dialogue has; questions without any are left out and counted.
"""

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.abstention import PAGES_LOOKED_AT, coverage, speaker_support
from benchmarks.adapters.host import open_rivals
from benchmarks.embedding_cache import CachedEmbeddings
from benchmarks.rivals import Rivals
from benchmarks.round_trips import RoundTripCounter
from benchmarks.scoring import ANSWERABLE, Marks, auroc, marked, rows
from langgraph_memoryos.analysts import DeterministicAnalyst
from langgraph_memoryos.conversations import load
from langgraph_memoryos.dialogue import Conversation, Question
from langgraph_memoryos.local_models import default_embeddings
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.nodes.assemble_memory import AssembleMemory
from langgraph_memoryos.prompts import memory_section
from langgraph_memoryos.records import Exchange, Page, Scope
from langgraph_memoryos.settings import MemorySettings
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.recall import RecallRequest
from langgraph_memoryos.stores.throwaway import throwaway_memory
from langgraph_memoryos.text_size import count_tokens

DEPTHS = (5, 10, 20)
TOKEN_BUDGETS = (500, 1000, 2000)
UNANSWERABLE = "5"
COST_PAGES = 1_000
COST_QUESTIONS = 60
ASKING_THREAD = "questions"


def progress(text: str) -> None:
    """Tell a person how far the run is."""
    print(text, file=sys.stderr, flush=True)


class Gold:
    """A conversation's pages and turns by number, and the evidence of its questions in them."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.exchanges = conversation.exchanges
        self._page_of = {name: number for number, item in enumerate(self.exchanges) for name in item.source_ids}
        self.number_of = {(item.thread_id, item.source_ids[0]): number for number, item in enumerate(self.exchanges)}

    @cached_property
    def has_turns(self) -> bool:
        """Whether pages consist of turns with ids of their own."""
        return any(len(item.source_ids) > 1 for item in self.exchanges)

    def numbers(self, pages: Sequence[Exchange]) -> list[int]:
        """Return the numbers of stored pages."""
        return [self.number_of[page.thread_id, page.source_ids[0]] for page in pages]

    def pages(self, question: Question) -> set[int]:
        """Return the pages that hold the evidence."""
        return {self._page_of[name] for name in question.evidence if name in self._page_of}

    def turns(self, question: Question) -> set[str]:
        """Return the turns that are the evidence."""
        return {name for name in question.evidence if name in self._page_of}

    def turns_of(self, ranking: Sequence[int]) -> list[str]:
        """Return the turns of ranked pages, in the order of the dialogue within a page."""
        return [name for number in ranking for name in self.exchanges[number].source_ids]

    @cached_property
    def entry_costs(self) -> list[int]:
        """Tokens of each page as it stands in a prompt."""
        scope = {"page_id": "", "user_id": "", "agent_id": ""}
        pages = [Page.from_json(item.to_json() | scope) for item in self.exchanges]
        return [count_tokens(memory_section.page_entry(page)) + 1 for page in pages]

    def packed(self, ranking: Sequence[int], budget: int) -> list[int]:
        """Return the ranked pages that fit the budget, as ``assemble_memory`` does: one too long is passed over."""
        left = budget - count_tokens(memory_section.section(user=[], agent=[], pages=["-"]))
        kept = []
        for number in ranking:
            if self.entry_costs[number] <= left:
                left -= self.entry_costs[number]
                kept.append(number)
        return kept


@dataclass
class Board:
    """Marks of every system, by unit and depth."""

    marks: dict[tuple[str, str, int], list[Marks]] = field(default_factory=lambda: defaultdict(list))
    tokens: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))

    def ranking(
        self, system: str, gold: Gold, question: Question, ranking: Sequence[int], *, depths: Sequence[int] = DEPTHS,
    ) -> None:
        """Mark a ranking of pages, in pages and in turns."""
        for k in depths:
            self.marks[system, "page", k].append(
                marked(ranking, gold.pages(question), k=k, category=question.category))
            if gold.has_turns:
                self.marks[system, "turn", k].append(
                    marked(gold.turns_of(ranking), gold.turns(question), k=k, category=question.category))

    def injected(
        self, system: str, gold: Gold, question: Question, pages: Sequence[int], *, budget: int, tokens: int,
    ) -> None:
        """Mark what was injected within a budget; ``pages`` most relevant first."""
        self.marks[system, "tokens", budget].append(
            marked(pages, gold.pages(question), k=len(pages), category=question.category))
        self.tokens[system, budget].append(tokens)

    def forget(self, system: str) -> None:
        """Drop all marks of a system that broke on the way."""
        for key in [key for key in self.marks if key[0] == system]:
            del self.marks[key]

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows."""
        found = []
        for (system, unit, k), marks in self.marks.items():
            labels: dict[str, Any] = {"system": system, "unit": unit, "k": k}
            if unit == "tokens":
                labels["tokens_used"] = round(statistics.fmean(self.tokens[system, k]))
            found += rows(marks, **labels)
        return found


@dataclass(frozen=True, kw_only=True)
class Store:
    """Memories in one Redis that share the embedder's cache."""

    url: str
    namespace: str
    embeddings: CachedEmbeddings

    def open(self, name: str, settings: MemorySettings) -> MemoryOS:
        """Open one."""
        return MemoryOS.open_sync(
            self.url, namespace=f"{self.namespace}-{name}", settings=settings, embeddings=self.embeddings,
            embeddings_name=self.embeddings.model, analyst=DeterministicAnalyst(),
        )


@dataclass
class Subject:
    """Our memory under one name: how it recalls, and how deep it can be read.

    Attributes:
        memory: Opened with the settings that are measured.
        wide: The same pages, recalled deeper than the settings do, for the deepest rows only.
    """

    name: str
    memory: MemoryOS
    wide: MemoryOS

    def ask(self, board: Board, gold: Gold, question: Question) -> list[Page]:
        """Mark the recall of one question; return the pages, most relevant first."""
        settings = self.memory.settings
        request = RecallRequest(
            scope=Scope(user_id=gold.conversation.sample_id, agent_id=self.memory.parts.default_agent),
            thread_id=ASKING_THREAD, query=question.text, turn_id=self.memory.parts.new_turn_id(),
        )
        mid_term = self.memory.parts.recall.mid_term(request)
        long_term = self.memory.parts.recall.long_term(request)
        pages = [scored.page for scored in mid_term.pages]
        shallow = [k for k in DEPTHS if k <= settings.top_pages]
        board.ranking(self.name, gold, question, gold.numbers(pages), depths=shallow)
        if deep := [k for k in DEPTHS if k > settings.top_pages]:
            found = [scored.page for scored in self.wide.search(question.text, user_id=request.scope.user_id)]
            board.ranking(self.name, gold, question, gold.numbers(found), depths=deep)
        state: Any = {
            "short_term": [],
            "mid_term": {
                "pages": [item.to_json() for item in mid_term.pages],
                "chains": [item.to_json() for item in mid_term.chains],
            },
            "long_term": {
                "persona": long_term.persona.to_json(),
                "user_facts": [item.to_json() for item in long_term.user_facts],
                "agent_traits": [item.to_json() for item in long_term.agent_traits],
            },
        }
        order = gold.numbers(pages)
        for budget in TOKEN_BUDGETS:
            assemble = AssembleMemory(max_memory_tokens=budget, chain_metas=settings.chain_meta_in_prompt)
            memory = assemble(state)["memory"]
            kept = set(gold.numbers([Page.from_json(page) for page in memory["mid_term"]]))
            board.injected(
                self.name, gold, question, [number for number in order if number in kept], budget=budget,
                tokens=memory["tokens"],
            )
        return pages


def fill(memory: MemoryOS, gold: Gold) -> float:
    """Write a conversation and empty its queues; return the seconds it took."""
    started = time.perf_counter()
    user = gold.conversation.sample_id
    for report in memory.ingest(gold.exchanges, user_id=user):
        if report.get("failure"):
            raise RuntimeError(report["failure"])
    memory.consolidate.invoke({"user_id": user, "drain": True})
    return time.perf_counter() - started


def asked(gold: Gold) -> list[Question]:
    """Return the questions that can be marked."""
    return [question for question in gold.conversation.questions if gold.pages(question)]


def counts(golds: Sequence[Gold]) -> dict[str, Any]:
    """Return how much was measured, and what was left out."""
    questions = [question for gold in golds for question in gold.conversation.questions]
    kept = [question for gold in golds for question in asked(gold)]
    named = sum(len(question.evidence) for question in kept)
    known = sum(len(gold.turns(question)) for gold in golds for question in asked(gold))
    return {
        "conversations": len(golds), "pages": sum(len(gold.exchanges) for gold in golds),
        "questions": len(questions), "questions_with_evidence": len(kept),
        "evidence_ids": named, "evidence_ids_that_exist": known,
        "by_category": {
            name: sum(question.category == name for question in kept)
            for name in sorted({question.category for question in kept})
        },
    }


@dataclass
class Signals:
    """Values of abstention signals on answerable and on unanswerable questions."""

    values: dict[tuple[str, bool], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, question: Question, pages: Sequence[Page], rivals: Rivals) -> None:
        """Compute the signals for one question from the recalled pages."""
        best = [f"{page.query}\n{page.reply}" for page in pages[:PAGES_LOOKED_AT]]
        for name, value in {
            "best_cosine": float(rivals.cosines(question.text).max()),
            "coverage": coverage(question.text, best, rivals.bm25),
            "speaker_support": speaker_support(question.text, pages, rivals.bm25),
        }.items():
            self.values[name, question.category != UNANSWERABLE].append(value)

    def report(self) -> dict[str, float]:
        """Return AUROC by signal: 0.5 is chance, 1 separates all."""
        names = dict.fromkeys(name for name, _ in self.values)
        return {
            name: round(auroc(self.values[name, True], self.values[name, False]), 4)
            for name in names if self.values[name, True] and self.values[name, False]
        }


def cost(store: Store, golds: Sequence[Gold], settings: MemorySettings) -> dict[str, Any]:
    """Measure what a recall costs beside the bare commands it sends, for one user with 1,000 pages.

    The pages are those of the data, one conversation after another (again from the start where they are fewer); the
    query's vector is at hand, so the embedder does not count.
    """
    every = [
        (f"{lap}-{gold.conversation.sample_id}", item)
        for lap in range(COST_PAGES) for gold in golds for item in gold.exchanges
    ] if sum(len(gold.exchanges) for gold in golds) < COST_PAGES else [
        (gold.conversation.sample_id, item) for gold in golds for item in gold.exchanges
    ]
    questions = [question.text for gold in golds for question in asked(gold)]
    questions = questions[:: max(1, len(questions) // COST_QUESTIONS)][:COST_QUESTIONS]
    with store.open("cost", settings) as memory:
        client = memory.connection.client
        scope = Scope(user_id="everyone", agent_id=memory.parts.default_agent)
        before = _used_bytes(client)
        for prefix, item in every[:COST_PAGES]:
            memory.parts.pages.write(scope, replace(item, thread_id=f"{prefix}/{item.thread_id}"))
        after = _used_bytes(client)
        counter = RoundTripCounter(client)
        ours, same, bare, trips = [], [], [], []
        for question in questions:
            memory.search(question, user_id=scope.user_id)
            with counter.counting() as made:
                started = time.perf_counter()
                memory.search(question, user_id=scope.user_id)
                ours.append(time.perf_counter() - started)
            same.append(counter.repeat(made))
            bare.append(counter.replay(made))
            trips.append(len(made))
        with counter.counting() as made:
            memory.recall.invoke({"messages": [("user", questions[0])], "user_id": "everyone", "thread_id": "asks"})
    return {
        "pages_of_the_user": COST_PAGES, "bytes_per_page": round((after - before) / COST_PAGES),
        "search_round_trips": max(trips), "recall_round_trips": len(made),
        "search_ms": round(1e3 * statistics.median(ours), 2),
        "bare_commands_ms": round(1e3 * statistics.median(same), 2),
        "bare_bytes_ms": round(1e3 * statistics.median(bare), 2),
        "search_to_bare_commands_ratio": _ratio(ours, same), "search_to_bare_bytes_ratio": _ratio(ours, bare),
        "model_calls_per_turn_ingest": 0, "model_calls_per_turn_recall": 0,
    }


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return round(statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True)), 2)


def _used_bytes(client: Any) -> int:
    return int(client.info("memory")["used_memory"])


def evaluate(
    conversations: Sequence[Conversation], *, cache: Path | None = None, redis_url: str | None = None,
    settings: MemorySettings | None = None, paper: bool = True, costs: bool = True,
    rivals: Sequence[str] = (), chat: bool = False, say: Callable[[str], None] = progress,
) -> dict[str, Any]:
    """Run all systems on the conversations and return the report.

    Args:
        conversations: One user each; names must differ.
        cache: File that keeps embeddings (npz).
        redis_url: A Redis with search; default: an embedded one, thrown away.
        settings: Of ours; default ``MemorySettings()``.
        paper: Also run the paper's two-stage retrieval, on a memory of its own.
        costs: Also measure time, round trips and bytes.
        rivals: Other libraries, as in :func:`benchmarks.adapters.host.open_rivals`.
        chat: Let the other libraries ask the local chat model.
        say: Takes lines of progress.
    """
    started = time.perf_counter()
    golds = [Gold(conversation) for conversation in conversations]
    settings = settings or MemorySettings()
    inner = default_embeddings()
    embeddings = CachedEmbeddings(inner, cache, name=Embedder(inner).name)
    embedder = Embedder(embeddings, name=embeddings.model)
    board, signals = Board(), Signals()
    with ExitStack() as stack:
        url, namespace = stack.enter_context(throwaway_memory(redis_url))
        store = Store(url=url, namespace=namespace, embeddings=embeddings)
        subjects = list(_subjects(stack, store, {"ours": settings} | (
            {"two_stage": MemorySettings.paper()} if paper else {})))
        others = stack.enter_context(open_rivals(rivals, embedder, chat=chat))
        for number, gold in enumerate(golds, start=1):
            plain = Rivals(gold.exchanges, embedder)
            embeddings.save()
            took = {subject.name: round(fill(subject.memory, gold), 1) for subject in subjects}
            took |= others.fill(gold, board)
            say(f"{number}/{len(golds)} {gold.conversation.sample_id}: {len(gold.exchanges)} pages written, {took} s")
            for question in asked(gold):
                _ask(board, signals, gold, question, rivals=plain, subjects=subjects)
                others.ask(gold, board, question, TOKEN_BUDGETS)
            embeddings.save()
            say(f"{number}/{len(golds)} {gold.conversation.sample_id}: {len(asked(gold))} questions asked")
        spent = cost(store, golds, settings) if costs else {}
    return {
        "embedder": embeddings.model, "settings": settings.model_dump(), "counts": counts(golds),
        "rows": board.rows(), "abstention_auroc": signals.report(), "cost": spent, "rivals": others.report(),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _subjects(stack: ExitStack, store: Store, chosen: dict[str, MemorySettings]) -> Iterator[Subject]:
    for name, settings in chosen.items():
        deeper = settings.model_copy(update={"top_pages": max(settings.top_pages, *DEPTHS)})
        yield Subject(
            name=name, memory=stack.enter_context(store.open(name, settings)),
            wide=stack.enter_context(store.open(name, deeper)),
        )


def _ask(
    board: Board, signals: Signals, gold: Gold, question: Question, *, rivals: Rivals, subjects: Sequence[Subject],
) -> None:
    for name, ranking in rivals.rankings(question.text).items():
        board.ranking(name, gold, question, ranking)
        for budget in TOKEN_BUDGETS:
            kept = gold.packed(ranking, budget)
            board.injected(
                name, gold, question, kept, budget=budget, tokens=sum(gold.entry_costs[number] for number in kept))
    for subject in subjects:
        pages = subject.ask(board, gold, question)
        if subject.name == "ours" and question.category in ANSWERABLE | {UNANSWERABLE}:
            signals.add(question, pages, rivals)


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown, in percent."""
    main = next(name for name in ("1-4", "all") if any(row["categories"] == name for row in report["rows"]))
    names = list(dict.fromkeys(row["categories"] for row in report["rows"]))
    value = {(row["system"], row["unit"], row["k"], row["categories"]): row for row in report["rows"]}
    systems = list(dict.fromkeys(row["system"] for row in report["rows"]))
    units = [unit for unit in ("page", "turn") if any(row["unit"] == unit for row in report["rows"])]
    columns: list[tuple[str, str, int, str, str]] = []
    columns += [(f"r@{k} {unit}s", unit, k, main, "recall") for unit in units for k in DEPTHS]
    columns += [("all@10", "page", 10, main, "all_evidence"), ("ndcg@10", "page", 10, main, "ndcg")]
    columns += [(f"{budget} tok", "tokens", budget, main, "recall") for budget in TOKEN_BUDGETS]
    columns += [(f"id {name}" if name.isdigit() else name, "page", 10, name, "recall") for name in names if name != main]
    lines = [
        f"Recall of the evidence in percent, categories {main}; the last columns are recall@10 pages by category.", "",
        "| system | " + " | ".join(column[0] for column in columns) + " |", "|---" * (len(columns) + 1) + "|",
    ]
    for system in systems:
        cells = []
        for _, unit, k, group, measure in columns:
            row = value.get((system, unit, k, group))
            cells.append(f"{100 * row[measure]:.1f}" if row else "")
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    lines += ["", f"`{json.dumps(report['counts'])}`"]
    for title in ("abstention_auroc", "cost"):
        if report[title]:
            lines += ["", f"| {title.replace('_', ' ')} | |", "|---|---|"]
            lines += [f"| {name.replace('_', ' ')} | {number} |" for name, number in report[title].items()]
    lines += [f"\n{name}: `{json.dumps(facts)}`" for name, facts in report["rivals"].items()]
    return "\n".join(lines)


def beginning(conversation: Conversation, pages: int) -> Conversation:
    """Return the first pages of a conversation, with the questions whose whole evidence is in them."""
    kept = conversation.exchanges[:pages]
    known = {name for item in kept for name in item.source_ids}
    questions = tuple(item for item in conversation.questions if item.evidence and known.issuperset(item.evidence))
    return replace(conversation, exchanges=kept, questions=questions)


def settings_from(changes: Sequence[str]) -> MemorySettings:
    """Return the default settings with changes such as ``top_pages=20``."""
    pairs = (change.partition("=") for change in changes)
    return MemorySettings.model_validate({name: value for name, _, value in pairs})


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every run over a conversation file is told: the data, where results go, and our settings."""
    parser.add_argument("--data", type=Path, required=True, help="a conversation file with questions")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the report to this file")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="directory that keeps what was computed between runs")
    parser.add_argument("--sample", nargs="+", metavar="ID", help="only these conversations")
    parser.add_argument("--pages", type=int, metavar="N", help="only the first pages, and questions about them")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of ours to change")
    parser.add_argument("--redis-url", help="a Redis with search; default: an embedded one, thrown away")


def chosen_conversations(parser: argparse.ArgumentParser, given: argparse.Namespace) -> list[Conversation]:
    """Return the conversations that the arguments name, and make the cache's directory; exit if there are none."""
    found = load(given.data)
    chosen = [item for item in found if not given.sample or item.sample_id in given.sample]
    if not chosen:
        parser.error(f"no such sample; there are {', '.join(item.sample_id for item in found)}")
    if given.pages:
        chosen = [beginning(item, given.pages) for item in chosen]
    if given.cache:
        given.cache.mkdir(parents=True, exist_ok=True)
    return chosen


def write_report(report: dict[str, Any], path: Path | None) -> None:
    """Write a report as JSON, if a file is named."""
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Run from the command line."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locomo", description=summary)
    add_data_arguments(parser)
    parser.add_argument("--no-paper", action="store_true", help="leave the two-stage retrieval out")
    parser.add_argument("--no-cost", action="store_true", help="leave time, round trips and bytes out")
    parser.add_argument("--rivals", nargs="+", default=[], metavar="NAME[:VARIANT]", help="other libraries")
    parser.add_argument("--rivals-chat", action="store_true", help="give the other libraries the local chat model")
    given = parser.parse_args()
    chosen = chosen_conversations(parser, given)
    report = evaluate(
        chosen, cache=given.cache / "embeddings.npz" if given.cache else None, redis_url=given.redis_url,
        settings=settings_from(given.set), paper=not given.no_paper, costs=not given.no_cost,
        rivals=given.rivals, chat=given.rivals_chat,
    )
    write_report(report, given.json)
    print(table(report))


if __name__ == "__main__":
    main()
