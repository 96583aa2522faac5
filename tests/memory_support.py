"""What memory tests share: a fast embedder, a chat model that plays its part, a clock, and short ways to talk."""

import json
import math
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel, PrivateAttr, ValidationError

from langgraph_memoryos.memory import MemoryOS
from langgraph_memoryos.records import Exchange, Scope
from langgraph_memoryos.state import Remembered

START = 1_700_000_000.0
DAY = 86_400.0
NASTY_CHARACTERS = "ab A1-_.,:;|/\\@\t\n'\"{}[]()<>*?%#&=$~`^+!用户é\u0301👩\u200d👧\u200f\ud800\0\u0430"
"""Letters of ids that broke other systems: separators of tags and globs, look-alikes, marks, a lone surrogate."""


class HashEmbeddings(Embeddings):
    """Character trigrams and words hashed into a vector: no model, yet similar texts are similar."""

    def __init__(self, *, dimensions: int = 128) -> None:
        self.model = f"hash-{dimensions}"
        self._dimensions = dimensions

    def embed_query(self, text: str) -> list[float]:
        """Embed one text."""
        vector = [0.0] * self._dimensions
        for gram, count in self._grams(text).items():
            code = zlib.crc32(gram.encode("utf-8", "surrogatepass"))
            vector[code % self._dimensions] += math.sqrt(count) * (1 if code & 0x10000 else -1)
        return vector if any(vector) else [1.0] * self._dimensions

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed several texts."""
        return [self.embed_query(text) for text in texts]

    @staticmethod
    def _grams(text: str) -> Counter[str]:
        padded = f" {text.lower()} "
        grams = Counter(padded[at : at + 3] for at in range(len(padded) - 2))
        return grams + Counter(padded.split()) + Counter(padded.split())


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now


OpenMemory = Callable[..., MemoryOS]
"""What the fixture ``open_memory`` gives; takes the options of ``MemoryOS.open_sync``."""


def prompt_pages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return the page lines of an analyst's prompt, without the one shown as context."""
    lines = (line for line in str(messages[1].content).splitlines() if line.startswith("{"))
    return [page for page in map(json.loads, lines) if page["page"] > 0]


def judged(reply_model: type[BaseModel], messages: Sequence[BaseMessage]) -> str:
    """Answer an analyst's request as a good model would: every user line is a fact of its own."""
    pages = prompt_pages(messages)
    if reply_model.__name__ == "PageReadings":
        return json.dumps({"pages": [
            {"page": page["page"], "continues_previous": True, "keywords": page["user"].split()[:3],
             "chain_summary": f"They spoke of {page['user'][:40]}"}
            for page in pages
        ]})
    if reply_model.__name__ == "SegmentReadings":
        count = str(messages[1].content).count("SEGMENT ")
        return json.dumps({"segments": [
            {"segment": number, "title": f"Topic {number}", "summary": f"Summary {number}", "keywords": ["topic"]}
            for number in range(1, count + 1)
        ]})
    facts = [
        {"text": page["user"][:200], "page": page["page"], "evidence": page["user"][:60], "supersedes": []}
        for page in pages
    ]
    return json.dumps({"user_profile": [], "user_traits": [], "user_facts": facts, "agent_facts": []})


class PlayedModel(BaseChatModel):
    """A chat model: answers people with ``reply`` word by word, and analysts with what ``judge`` gives."""

    reply: Any = "Noted, thank you."
    judge: Any = judged
    pause_seconds: float = 0.0
    _calls: list[str] = PrivateAttr(default_factory=list)
    _prompts: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "played"

    @property
    def calls(self) -> list[str]:
        """What was asked, in order: ``reply`` or the name of the structured reply."""
        return self._calls

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        """The messages of each call."""
        return self._prompts

    def _answer(self, messages: list[BaseMessage], schema: type[BaseModel] | None) -> str:
        self._calls.append(schema.__name__ if schema else "reply")
        self._prompts.append(messages)
        if schema is None:
            return str(self.reply(messages) if callable(self.reply) else self.reply)
        answer = self.judge(schema, messages)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any,
    ) -> ChatResult:
        text = self._answer(messages, kwargs.get("schema"))
        message = AIMessage(text, usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        text = self._answer(messages, kwargs.get("schema"))
        words = [text] if kwargs.get("schema") or len(text) > 2000 else text.split(" ")
        for at, word in enumerate(words):
            time.sleep(self.pause_seconds)
            last = at == len(words) - 1
            usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15} if last else None
            chunk = ChatGenerationChunk(message=AIMessageChunk(
                word if last else f"{word} ", usage_metadata=usage, chunk_position="last" if last else None))
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
            yield chunk

    def with_structured_output(self, schema: Any, **_: Any) -> Runnable[Any, Any]:
        """Return the model bound to a schema, with raw and parsed reply."""
        def parse(raw: AIMessage) -> dict[str, Any]:
            try:
                return {"raw": raw, "parsed": schema.model_validate_json(raw.text), "parsing_error": None}
            except ValidationError as error:
                return {"raw": raw, "parsed": None, "parsing_error": error}

        return self.bind(schema=schema) | RunnableLambda(parse)


def exchange(query: str, reply: str = "I see.", *, source: str | None = None, **fields: Any) -> Exchange:
    """Return an exchange; its source is its text unless named."""
    values: dict[str, Any] = {"said_at": START, "thread_id": "talk", "source_ids": (source or query,)}
    return Exchange(**{**values, "query": query, "reply": reply, **fields})


def tell(
    memory: MemoryOS, user_id: str, *said: str | Exchange, agent_id: str | None = None, thread: str = "talk",
) -> list[Remembered]:
    """Let a user say something, one exchange after another; returns the reports."""
    exchanges = [item if isinstance(item, Exchange) else exchange(item, thread_id=thread) for item in said]
    return list(memory.ingest(exchanges, user_id=user_id, agent_id=agent_id))


def exported(memory: MemoryOS, user_id: str | int, kind: str = "page") -> list[dict[str, Any]]:
    """Return what an export holds of one kind."""
    return [item for item in memory.export(user_id) if item["kind"] == kind]


def queries(memory: MemoryOS, user_id: str | int) -> list[str]:
    """Return what the user said, in order of arrival."""
    return [page["query"] for page in exported(memory, user_id)]


def without_ids(value: Any) -> Any:
    """Return a result without what differs between any two users: their name, and the ids made of it."""
    if isinstance(value, dict):
        return {key: without_ids(item) for key, item in value.items() if key != "user_id"}
    if isinstance(value, list | tuple):
        return [without_ids(item) for item in value]
    if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{32}(-[-a-z0-9]+)?|.*lc_run.*", value):
        return "id"
    return (value.type, value.text) if hasattr(value, "text") else value


def lines(value: Any) -> list[str]:
    """Return a result without ids as lines, which pytest compares readably."""
    return json.dumps(without_ids(value), indent=1, ensure_ascii=False).splitlines()


def owner(user_id: str = "ann", agent_id: str = "assistant") -> Scope:
    """Return a scope."""
    return Scope(user_id=user_id, agent_id=agent_id)


def asked(text: str, message_id: str | None = None) -> dict[str, Any]:
    """Return a graph input with one user message."""
    return {"messages": [HumanMessage(text, id=message_id)]}


def run_of(user_id: str, thread: str = "talk", **more: Any) -> Mapping[str, Any]:
    """Return the config of a run of one user in one thread."""
    return {"configurable": {"user_id": user_id, "thread_id": thread, **more}}


def members(memory: MemoryOS, scope: Scope) -> dict[str, list[str]]:
    """Return the page ids of each segment as Redis lists them, archived segments included."""
    segments = memory.parts.segments
    return {
        segment.segment_id: [page.page_id for page in segments.newest_pages(scope, [segment.segment_id], limit=10_000)[segment.segment_id]]
        for segment in (*segments.active(scope), *segments.archived(scope))
    }


@contextmanager
def before_round_trip(memory: MemoryOS, number: int, act: Callable[[], object]) -> Iterator[list[bool]]:
    """Do something right before the memory asks Redis for the ``number``-th time; the list says whether it came to it."""
    pool = memory.connection.client.connection_pool
    original, sent = pool.get_connection, iter(range(10_000))
    reached: list[bool] = []

    def watched(*args: object, **kwargs: object) -> object:
        if not reached and next(sent) == number:
            reached.append(True)
            act()
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "get_connection", watched)
        yield reached
