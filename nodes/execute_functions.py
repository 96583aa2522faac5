"""Step ``execute_functions``: carry out the calls in order, feed results back, decide what follows."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import TypedDict

from langgraph_memoryos import ids
from langgraph_memoryos.functions import (
    FunctionCall,
    FunctionError,
    MemoryFunctions,
    goes_on,
    opened,
    parse_arguments,
)
from langgraph_memoryos.prompts.virtual_context import EMPTY_REPLY
from langgraph_memoryos.records import Exchange, Page, Scope
from langgraph_memoryos.state import ScopeState
from langgraph_memoryos.stores.messages import MessageStore
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.virtual_input import said_to_user
from langgraph_memoryos.virtual_log import erased, log_entries, page_id_of, result_id, scope_of
from langgraph_memoryos.virtual_queue import parse_queue
from langgraph_memoryos.virtual_settings import VirtualContextSettings
from langgraph_memoryos.virtual_state import QueueMessage, SpokenMessages, Turn

_MOST_ERROR_CHARACTERS = 600


class ExecuteFunctionsInput(TypedDict):
    """The queue with the assistant's message at its end, unless the model said nothing."""

    scope: ScopeState
    queue: list[dict[str, Any]]
    turn: Turn


class ExecuteFunctionsUpdate(TypedDict):
    """Results in the queue, what was said in the conversation, and whether the model runs again."""

    queue: list[dict[str, Any]]
    turn: Turn
    messages: SpokenMessages


@dataclass(frozen=True, kw_only=True)
class _Done:
    """A call that was carried out: its result, and what it asks of the loop."""

    result: QueueMessage
    key: str
    heartbeat: bool
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class ExecuteFunctions:
    """The function executor (MemGPT, section 2.3).

    Failures (unknown function, unreadable or wrong arguments, an exception: its name and message only) come
    back as ``Failed`` and force another step; so does any heartbeat. A call that fails in a number of steps in
    a row, whatever succeeds beside it, or the step cap ends the chain; so does an erasure of the user, before
    anything is carried out. An empty reply while a user waits is such a failure, and the model is told. The step
    can run twice: changes carry the id of their call.
    """

    functions: MemoryFunctions
    pages: PageStore
    messages: MessageStore
    settings: VirtualContextSettings
    clock: Callable[[], float]

    def __call__(self, state: ExecuteFunctionsInput) -> ExecuteFunctionsUpdate:
        """Return results and what follows."""
        scope, thread_id = scope_of(state)
        turn, queue = state["turn"], state["queue"]
        if self.messages.erasures(scope) != scope.erasures:
            return ExecuteFunctionsUpdate(queue=queue, turn=erased(turn), messages=[])
        assistant = parse_queue(queue[-1:])[0]
        if assistant.kind != "assistant":
            return self._empty_reply(scope, thread_id, turn, queue)
        exchange = Exchange.from_json(turn["exchange"] or {})
        page_id = page_id_of(scope, turn)
        done = [
            self._carry_out(scope, assistant, call, at, thread_id=thread_id, page_id=page_id)
            for at, call in enumerate(assistant.calls)
        ]
        said = [each.said for each in done if each.said]
        page = self._complete(scope, exchange, said)
        exchange_json = turn["exchange"] if page is None else exchange.to_json() | {"reply": page.reply}
        assistant = replace(assistant, page_id=page.page_id if page else "")
        added = [assistant, *(each.result for each in done)]
        if not self.messages.append(scope, thread_id, log_entries(added, page)):
            return ExecuteFunctionsUpdate(queue=queue, turn=erased(turn), messages=[])
        told: Any = turn | {"exchange": exchange_json, "sent": [*turn["sent"], *said]}
        return ExecuteFunctionsUpdate(
            queue=[*queue[:-1], *(message.to_json() for message in added)],
            turn=self._following(told, done),
            messages=[said_to_user(text, f"{assistant.message_id}-{at}") for at, text in enumerate(said)],
        )

    def _empty_reply(
        self, scope: Scope, thread_id: str, turn: Turn, queue: list[dict[str, Any]]
    ) -> ExecuteFunctionsUpdate:
        """Let the model try again where a user waits; it is told the first time. Else silence is rest."""
        if turn["kind"] != "user_message" or turn["sent"]:
            return ExecuteFunctionsUpdate(queue=queue, turn=self._following(turn, []), messages=[])
        alert = QueueMessage(
            message_id=ids.digest("empty", turn["event_id"], str(turn["steps"])),
            kind="system_alert",
            text=EMPTY_REPLY,
            said_at=self.clock(),
        )
        failure = _Done(result=replace(alert, failed=True), key="empty reply", heartbeat=False)
        following = self._following(turn, [failure])
        told = [alert] if following["failing"][failure.key] == 1 else []
        if not self.messages.append(scope, thread_id, log_entries(told, None)):
            following = erased(turn)
        return ExecuteFunctionsUpdate(
            queue=[*queue, *(message.to_json() for message in told)], turn=following, messages=[]
        )

    def _carry_out(
        self,
        scope: Scope,
        assistant: QueueMessage,
        call: dict[str, Any],
        at: int,
        *,
        thread_id: str,
        page_id: str,
    ) -> _Done:
        name, arguments = call["name"], call["arguments"]
        key = ids.digest("call", name, _written(arguments))
        heartbeat, said = False, ""
        try:
            arguments, heartbeat = opened(name, arguments)
            # A client may number the messages of each thread from 1.
            call_id = ids.digest(thread_id, assistant.message_id, str(at), key)
            text = self.functions.call(
                name, arguments, FunctionCall(scope=scope, call_id=call_id, open_page=page_id)
            )
            failed = False
            if name == "send_message":
                said = parse_arguments(name, arguments).message
        except Exception as error:  # noqa: BLE001 - whatever went wrong is told to the model, without a traceback
            text, failed = _told(error), True
        result = QueueMessage(
            message_id=result_id(assistant.message_id, at),
            kind="function_result",
            text=text,
            said_at=self.clock(),
            call_id=call["id"],
            name=name,
            failed=failed,
        )
        return _Done(result=result, key=key, heartbeat=heartbeat, said=said)

    def _complete(self, scope: Scope, exchange: Exchange, said: list[str]) -> Page | None:
        """Write what was said into the page of the exchange, in place; recall finds it at once."""
        if not said:
            return None
        reply = "\n".join((*([exchange.reply] if exchange.reply else []), *said))
        return self.pages.write(scope, Exchange.from_json(exchange.to_json() | {"reply": reply})).page

    def _following(self, turn: Turn, done: list[_Done]) -> Turn:
        failed = {each.key for each in done if each.result.failed}
        failing = {key: turn["failing"].get(key, 0) + 1 for key in failed}
        stuck = max(failing.values(), default=0) >= self.settings.max_same_failures
        again = any(each.result.failed or goes_on(each.result.name, self.settings, asked=each.heartbeat) for each in done)
        reason = "repeated_failure" if stuck else ""
        if again and not reason and turn["steps"] >= self.settings.max_steps:
            reason = "step_cap"
        return Turn(**turn | {"failing": failing, "again": again and not reason, "reason": reason})


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True, default=str)


def _told(error: Exception) -> str:
    name = "" if isinstance(error, FunctionError) else f"{type(error).__name__}: "
    return f"{name}{error}"[:_MOST_ERROR_CHARACTERS]
