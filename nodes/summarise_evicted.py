"""Step ``summarise_evicted``: old summary and evicted messages become one new summary."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs
from typing_extensions import TypedDict

from langgraph_memoryos.dialogue import message_text
from langgraph_memoryos.prompts.summarise_evicted import build_messages
from langgraph_memoryos.state import NO_USAGE, Usage, added_usage, usage_of
from langgraph_memoryos.text_size import clip, count_tokens
from langgraph_memoryos.virtual_digest import digest, transcript
from langgraph_memoryos.virtual_queue import CountTokens, parse_queue
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import QueueMessage, Turn

_INPUT_SHARE = 0.6
_LEAST_LINE_TOKENS = 32


class SummariseEvictedInput(TypedDict):
    """What leaves, and the summary so far."""

    evicted: list[dict[str, Any]]
    summary: str
    turn: Turn


class SummariseEvictedUpdate(TypedDict):
    """The new summary."""

    summary: str
    turn: Turn


@dataclass(frozen=True, kw_only=True)
class SummariseEvicted:
    """Ask a model for the recursive summary, in parts where it must be (MemGPT, section 2.2).

    A model that fails, says nothing or writes more than it was given is replaced by a digest that only
    quotes: the turn is never lost. With ``model=None`` the digest is all there is.
    """

    settings: VirtualContextSettings
    model: BaseChatModel | None
    count: CountTokens = count_tokens

    def step(self) -> Runnable[Any, Any]:
        """Return the step for ``invoke`` and ``ainvoke``."""
        return RunnableLambda(self._run, afunc=self._arun, name="summarise_evicted")

    def _run(self, state: Mapping[str, Any], config: RunnableConfig) -> SummariseEvictedUpdate:
        work = self._summarising(state)
        asked = next(work, None)
        while asked is not None:
            try:
                reply = self._model().invoke(asked, _quiet(config))
            except Exception as error:  # noqa: BLE001 - whatever failed, the digest takes over
                asked = _send(work, error)
            else:
                asked = _send(work, reply)
        return self._update(state, work)

    async def _arun(self, state: Mapping[str, Any], config: RunnableConfig) -> SummariseEvictedUpdate:
        work = self._summarising(state)
        asked = next(work, None)
        while asked is not None:
            try:
                reply = await self._model().ainvoke(asked, _quiet(config))
            except Exception as error:  # noqa: BLE001 - whatever failed, the digest takes over
                asked = _send(work, error)
            else:
                asked = _send(work, reply)
        return self._update(state, work)

    def _model(self) -> BaseChatModel:
        assert self.model is not None
        return self.model

    def _summarising(self, state: Mapping[str, Any]) -> "_Work":
        return _Work(self._steps(state["summary"], parse_queue(state["evicted"])))

    def _steps(
        self,
        summary: str,
        evicted: Sequence[QueueMessage],
    ) -> Generator[list[BaseMessage], BaseMessage | Exception, tuple[str, Usage]]:
        used = NO_USAGE
        for part in self._parts(summary, evicted) if evicted else ():
            lines = [transcript(message, max_tokens=self._line_tokens) for message in part]
            made = ""
            if self.model is not None:
                reply = yield build_messages(summary, lines, max_tokens=self.settings.summary_tokens)
                used = added_usage(used, usage_of(reply))
                made = "" if isinstance(reply, Exception) else message_text(reply).strip()
            given = self.count(summary) + sum(self.count(line) for line in lines)
            if not made or self.count(made) > given:
                made = digest(summary, part, max_tokens=self.settings.summary_tokens)
            summary = clip(made, self.settings.summary_tokens)
        return summary, used

    @property
    def _line_tokens(self) -> int:
        return max(_LEAST_LINE_TOKENS, int(self.settings.context_window_tokens * _INPUT_SHARE / 4))

    def _parts(self, summary: str, evicted: Sequence[QueueMessage]) -> list[list[QueueMessage]]:
        """Split what is evicted so that each call's input fits the model's window."""
        room = int(self.settings.context_window_tokens * _INPUT_SHARE)
        room = max(self._line_tokens, room - max(self.count(summary), self.settings.summary_tokens))
        parts: list[list[QueueMessage]] = [[]]
        left = room
        for message in evicted:
            cost = self.count(transcript(message, max_tokens=self._line_tokens)) + 1
            if parts[-1] and cost > left:
                parts.append([])
                left = room
            parts[-1].append(message)
            left -= cost
        return parts

    def _update(self, state: Mapping[str, Any], work: "_Work") -> SummariseEvictedUpdate:
        summary, used = work.result
        turn: Turn = state["turn"]
        return SummariseEvictedUpdate(
            summary=summary, turn=Turn(**turn | {"usage": added_usage(turn["usage"], used)})
        )


class _Work:
    """A generator together with what it returned."""

    def __init__(
        self, steps: Generator[list[BaseMessage], BaseMessage | Exception, tuple[str, Usage]]
    ) -> None:
        self._steps = steps
        self.result: tuple[str, Usage] = ("", NO_USAGE)

    def __next__(self) -> list[BaseMessage]:
        """Return the first request."""
        return self._advance(lambda: next(self._steps))

    def send(self, reply: BaseMessage | Exception) -> list[BaseMessage]:
        """Return the request that follows a reply."""
        return self._advance(lambda: self._steps.send(reply))

    def _advance(self, step: Any) -> list[BaseMessage]:
        try:
            request: list[BaseMessage] = step()
        except StopIteration as done:
            self.result = done.value
            raise
        return request


def _send(work: _Work, reply: BaseMessage | Exception) -> list[BaseMessage] | None:
    try:
        return work.send(reply)
    except StopIteration:
        return None


def _quiet(config: RunnableConfig) -> RunnableConfig:
    return merge_configs(config, RunnableConfig(tags=["nostream"]))
