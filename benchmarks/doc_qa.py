"""Document questions, retrieval only (MemGPT, section 3.2.1): on which page does the gold passage come?

Run with ``python -m benchmarks.doc_qa --data PATH --json OUT``. ``PATH`` is JSON Lines, gzipped or not: a
``question`` and its passages ``ctxs`` (``title``, ``text``, ``isgold``). Embedding 2,600 passages takes
minutes; ``--cache FILE`` keeps the vectors.
"""

import argparse
import gzip
import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.embedding_cache import CachedEmbeddings, HashedWords
from benchmarks.running import throwaway, write_report
from langgraph_memoryos.local_models import default_embeddings
from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.search import SearchRequest, SearchStore

PAGE_SIZE = 10
PAGES_READ = 10


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the passage that answers it."""

    text: str
    gold: str


def read_questions(path: Path) -> list[Question]:
    """Read the questions with their gold passages."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    return [Question(text=row["question"], gold=passage(row["ctxs"])) for row in rows]


def passage(contexts: Sequence[dict[str, Any]]) -> str:
    """Return the gold passage under its title."""
    gold = next((context for context in contexts if context.get("isgold")), contexts[0])
    return f"{gold['title']}\n{gold['text']}"


def page_of(search: SearchStore, scope: Scope, question: Question, *, semantic_hits: int) -> int | None:
    """Return the number of the page with the gold passage, or ``None`` if the first pages do not have it."""
    for page in range(PAGES_READ):
        found = search.archive(
            scope,
            SearchRequest(query=question.text, page=page, page_size=PAGE_SIZE, semantic_hits=semantic_hits),
        )
        if any(item.text == question.gold for item in found.items):
            return page
        if page >= found.last_page:
            break
    return None


def run(memory: MemoryOS, questions: Sequence[Question], *, semantic_hits: int = 100) -> Iterator[int | None]:
    """Load the passages, then yield the page of the gold passage for each question."""
    pages = memory.parts.pages
    scope = Scope(user_id=f"doc-qa-{uuid.uuid4().hex}", agent_id=memory.parts.default_agent)
    pages.sibling(ArchivalStore).insert(
        scope,
        list(dict.fromkeys(question.gold for question in questions)),
        now=time.time(),
        source="passages",
    )
    search = pages.sibling(SearchStore)
    try:
        for question in questions:
            yield page_of(search, scope, question, semantic_hits=semantic_hits)
    finally:
        memory.forget(scope.user_id)


def summary(found: Sequence[int | None]) -> dict[str, Any]:
    """Return the shares of questions by page of their gold passage."""
    counts = Counter(found)
    return {
        "questions": len(found),
        "page_size": PAGE_SIZE,
        "gold_on_page_0": counts[0] / len(found),
        "gold_within_2_pages": (counts[0] + counts[1]) / len(found),
        "by_page": {str(page): counts[page] / len(found) for page in range(PAGES_READ)},
        "not_in_first_pages": counts[None] / len(found),
    }


def main() -> None:
    """Run the benchmark and print its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cache", type=Path, help="file that keeps embeddings (npz)")
    parser.add_argument("--questions", type=int, help="ask only so many of the questions, evenly spread")
    parser.add_argument("--words-only", action="store_true", help="BM25 alone, for comparison")
    given = parser.parse_args()
    questions = read_questions(given.data)
    asked = questions[:: max(1, len(questions) // given.questions)] if given.questions else questions
    inner = HashedWords() if given.words_only else default_embeddings()
    embeddings = CachedEmbeddings(inner, None if given.words_only else given.cache, name=Embedder(inner).name)
    with throwaway(embeddings=embeddings, embeddings_name=embeddings.model) as memory:
        found = list(run(memory, asked, semantic_hits=0 if given.words_only else 100))
    embeddings.save()
    report = summary(found) | {"embedder": embeddings.model, "words_only": given.words_only}
    print(json.dumps(report, indent=2))
    write_report(given.json, report)


if __name__ == "__main__":
    main()
