"""The scoreboard's side of the adapters: starts them, asks them, marks what they find, keeps what it cost."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from benchmarks.adapters.loopback import LoopbackModels
from benchmarks.adapters.setup import python_of
from langgraph_memoryos.dialogue import Conversation, Question
from langgraph_memoryos.prompts import memory_section
from langgraph_memoryos.records import Exchange
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.throwaway import throwaway_memory
from langgraph_memoryos.text_size import count_tokens

ROOT = Path(__file__).parent.parent.parent
TOP = 50
"""Pages asked for: the deepest row has 20, and 2,000 tokens hold some 30 pages."""

ANSWER_SECONDS = 3 * 3600.0
OURS = frozenset({"newest"})
NEEDS_REDIS = frozenset({"agent_memory_server"})


class RivalFailedError(Exception):
    """A rival cannot run here, or broke; the message is the reason for the report."""


class Item(NamedTuple):
    """What a rival found, as in the protocol."""

    pages: list[int]
    text: str = ""
    role: str = ""


class Gold(Protocol):
    """What is used of :class:`benchmarks.locomo.Gold`."""

    conversation: Conversation
    exchanges: Sequence[Exchange]
    entry_costs: Sequence[int]


class Board(Protocol):
    """What is used of :class:`benchmarks.locomo.Board`."""

    def ranking(self, system: str, gold: Any, question: Question, ranking: Sequence[int]) -> None:
        """Mark a ranking of pages."""

    def injected(
        self, system: str, gold: Any, question: Question, pages: Sequence[int], *, budget: int, tokens: int,
    ) -> None:
        """Mark what fits a budget."""

    def forget(self, system: str) -> None:
        """Drop all marks of a system."""


class Rival:
    """One library in one variant, as a child process.

    Attributes:
        name: ``MODULE`` or ``MODULE_VARIANT``, the ``system`` of its rows.
        told: What it said of itself when it was opened.
    """

    def __init__(self, asked_for: str, log: IO[bytes]) -> None:
        self.module, _, variant = asked_for.partition(":")
        self.variant = variant or "default"
        self.name = asked_for.replace(":", "_")
        self.told: dict[str, Any] = {}
        self._log = log
        python = Path(sys.executable) if self.module in OURS else python_of(self.module)
        if not python.exists():
            raise RivalFailedError(f"It is not installed: run `python -m benchmarks.adapters.setup {self.module}`.")
        self._process = subprocess.Popen(
            [python, "-m", f"benchmarks.adapters.{self.module}"], cwd=ROOT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, encoding="utf-8", env=_environment(),
        )

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send one order and return the answer.

        Raises:
            RivalFailedError: It refused, or it is gone.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        alarm = threading.Timer(ANSWER_SECONDS, self._process.kill)
        alarm.start()
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            alarm.cancel()
        if not line:
            raise RivalFailedError(f"It ended by itself: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "reason" in answer:
            raise RivalFailedError(answer["reason"])
        return answer

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else f"exit code {self._process.returncode}"


def _environment() -> dict[str, str]:
    """Return the environment of a child: nothing to call home with, no address but the loopback interface's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "REDIS_"))}
    return kept | {
        "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "LANGSMITH_TRACING": "false", "DO_NOT_TRACK": "1",
        "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost", "PYTHONUNBUFFERED": "1",
    }


class Rivals:
    """All rivals of a run. One that fails is left out from then on, its marks are dropped and its reason is kept."""

    def __init__(self, models: LoopbackModels) -> None:
        self._models = models
        self._running: dict[str, Rival] = {}
        self._facts: dict[str, dict[str, Any]] = {}

    def open(self, asked_for: str, resources: ExitStack, *, dimensions: int, chat: bool) -> None:
        """Start one rival; a reason in the report if it cannot run."""
        name = asked_for.replace(":", "_")
        self._facts[name] = {
            "pages": 0, "lost_pages": 0, "write_seconds": 0.0, "query_seconds": [], "failures": [], "calls": {},
        }
        try:
            log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the others
            rival = Rival(asked_for, resources.enter_context(log))
            resources.callback(rival.stop)
            redis_url = ""
            if rival.module in NEEDS_REDIS:
                redis_url, _ = resources.enter_context(throwaway_memory())
            rival.told = rival.ask({
                "op": "open", "variant": rival.variant, "top": TOP, "dimensions": dimensions, "chat": chat,
                "directory": resources.enter_context(tempfile.TemporaryDirectory()), "redis_url": redis_url,
                "base_url": self._models.base_url,
            })
        except RivalFailedError as error:
            self._facts[name]["reason"] = str(error)
            return
        self._running[name] = rival

    def fill(self, gold: Gold, board: Board) -> dict[str, float]:
        """Give every rival a conversation; return the seconds by name."""
        order = {"op": "pages", "user": gold.conversation.sample_id, "pages": [
            page_json(number, item) for number, item in enumerate(gold.exchanges)
        ]}
        took = {}
        for name, answer in self._answers("passage", order, board):
            facts = self._facts[name]
            facts["pages"] += len(gold.exchanges)
            facts["lost_pages"] += answer["lost"]
            facts["write_seconds"] += answer["seconds"]
            took[name] = round(answer["seconds"], 1)
        return took

    def ask(self, gold: Gold, board: Board, question: Question, budgets: Sequence[int]) -> None:
        """Ask every rival one question and mark what it finds."""
        order = {"op": "query", "user": gold.conversation.sample_id, "text": question.text}
        for name, answer in self._answers("query", order, board):
            self._facts[name]["query_seconds"].append(answer["seconds"])
            self._facts[name]["failures"] += [answer["failure"]] if answer["failure"] else []
            found = [
                Item([int(page) for page in item["pages"]], item["text"], item.get("role", ""))
                for item in answer["items"]
            ]
            board.ranking(name, gold, question, list(dict.fromkeys(page for item in found for page in item.pages)))
            for budget in budgets:
                kept, tokens = packed(gold, found, budget)
                pages = dict.fromkeys(
                    page for item in kept for page in item.pages if has_the_side(gold, question, item, page))
                board.injected(name, gold, question, list(pages), budget=budget, tokens=tokens)

    def report(self) -> dict[str, Any]:
        """Return by name how it was run and what it cost, or why it was not run."""
        return {name: self._told(name) for name in self._facts}

    def _told(self, name: str) -> dict[str, Any]:
        facts = self._facts[name]
        if "reason" in facts:
            return {"ran": False, "reason": facts["reason"]}
        pages, queries = facts["pages"], facts["query_seconds"]
        calls = {
            f"{kind}_per_{unit}": round(facts["calls"].get((kind, side), 0) / max(1, number), 2)
            for side, unit, number in (("passage", "page", pages), ("query", "query", len(queries)))
            for kind in ("chat_calls", "chat_tokens", "embedding_calls")
        }
        return {"ran": True} | self._running[name].told | {
            "write_ms_per_page": round(1e3 * facts["write_seconds"] / max(1, pages), 2),
            "query_ms": round(1e3 * statistics.median(queries), 2) if queries else None,
            "lost_pages": facts["lost_pages"], "failed_queries": len(facts["failures"]),
            "first_failure": (facts["failures"] or [""])[0],
        } | calls

    def _answers(self, side: Any, order: dict[str, Any], board: Board) -> Iterator[tuple[str, dict[str, Any]]]:
        self._models.side = side
        for name, rival in list(self._running.items()):
            before = self._counters()
            try:
                answer = rival.ask(order)
            except RivalFailedError as error:
                del self._running[name]
                self._facts[name]["reason"] = str(error)
                board.forget(name)
                continue
            calls = self._facts[name]["calls"]
            for kind, count in self._counters().items():
                calls[kind, side] = calls.get((kind, side), 0) + count - before[kind]
            yield name, answer

    def _counters(self) -> dict[str, int]:
        return {
            "chat_calls": self._models.chat_calls, "chat_tokens": self._models.chat_tokens,
            "embedding_calls": self._models.embedding_calls,
        }


@contextmanager
def open_rivals(names: Sequence[str], embedder: Embedder, *, chat: bool = False) -> Iterator[Rivals]:
    """Start the rivals; they are ended when the block is left.

    Args:
        names: ``MODULE`` or ``MODULE:VARIANT`` of the scripts beside this file.
        embedder: Ours; the rivals reach it over the loopback interface.
        chat: Also give them the local chat model.
    """
    with ExitStack() as resources:
        models = resources.enter_context(LoopbackModels(embedder, chat=chat and bool(names)))
        rivals = Rivals(models)
        for name in names:
            rivals.open(name, resources, dimensions=embedder.dimensions, chat=chat)
        yield rivals


def page_json(number: int, item: Exchange) -> dict[str, Any]:
    """Return a page as rivals get it; its id is its number."""
    sides = (("user", item.user_name or "user", item.query), ("assistant", item.agent_name or "assistant", item.reply))
    return {
        "id": str(number), "said_at": item.said_at,
        "date": datetime.fromtimestamp(item.said_at, UTC).strftime("%Y-%m-%d %H:%M"),
        "turns": [{"role": role, "speaker": name, "text": text} for role, name, text in sides if text],
    }


def packed(gold: Gold, found: Sequence[Item], budget: int) -> tuple[list[Item], int]:
    """Return the items that fit the budget, best first, and the tokens used.

    An item without text of its own costs what its pages cost in our rendering, each page once; one too long is passed
    over. As with every system, the frame around the pages is counted against the budget, but not as used.
    """
    left = budget - count_tokens(memory_section.section(user=[], agent=[], pages=["-"]))
    used, kept, whole = 0, list[Item](), set[int]()
    for item in found:
        new = set(item.pages) - whole
        cost = count_tokens(f"- {item.text}") + 1 if item.text else sum(gold.entry_costs[page] for page in new)
        if used + cost <= left:
            used += cost
            kept.append(item)
            whole |= set() if item.text else new
    return kept, used


def has_the_side(gold: Gold, question: Question, item: Item, page: int) -> bool:
    """Whether an item that is one side of a page is the side with the evidence.

    Pages of one turn a side tell; where several turns of a side were joined, either side counts.
    """
    turns = gold.exchanges[page].source_ids
    if not item.role or len(turns) != 2 or not set(turns) & set(question.evidence):
        return True
    return turns[item.role == "assistant"] in question.evidence
