"""A chat model that gives exactly the replies it was told to give, with or without structured output."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import PrivateAttr, ValidationError


class ScriptedModel(BaseChatModel):
    """Replies in order; a reply that is an exception is raised."""

    replies: list[Any]
    structured: bool = False
    rejects: bool = False
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _tags: list[list[str] | None] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def asked(self) -> list[list[BaseMessage]]:
        return self._asked

    @property
    def tags_seen(self) -> list[list[str] | None]:
        return self._tags

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._asked.append(messages)
        self._tags.append(run_manager.tags if run_manager else None)
        reply = self.replies[len(self._asked) - 1]
        if isinstance(reply, Exception):
            raise reply
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply, usage_metadata=usage))])

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
        if not self.structured:
            raise NotImplementedError
        assert kwargs == {"method": "json_schema", "include_raw": True}
        if self.rejects:
            return RunnableLambda(self._reject)

        def parse(raw: AIMessage) -> dict[str, Any]:
            try:
                return {"raw": raw, "parsed": schema.model_validate_json(raw.text), "parsing_error": None}
            except ValidationError as error:
                return {"raw": raw, "parsed": None, "parsing_error": error}

        return self | RunnableLambda(parse)

    @staticmethod
    def _reject(_: Any) -> Any:
        error = RuntimeError("This server does not support response_format json_schema")
        error.status_code = 400
        raise error
