"""What travels through the virtual context's graph: plain JSON, and messages for the people outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.channels import EphemeralValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from langgraph_memoryos.records import Record
from langgraph_memoryos.state import Identified, RecalledMemory, ScopeState, Usage

Kind = Literal[
    "summary",
    "user_message",
    "assistant",
    "function_result",
    "system_alert",
    "memory_pressure",
    "user_interaction",
    "timed",
]
"""What a message of the queue is; the first of the queue is the summary once something was evicted."""

EVENT_KINDS = ("user_message", "system_alert", "user_interaction", "timed")
_SHOWN_MESSAGES = 100


@dataclass(frozen=True, kw_only=True)
class QueueMessage(Record):
    """One message of the FIFO queue and of the message log (MemGPT, section 2.1).

    Attributes:
        message_id: Unique within the thread.
        kind: What it is.
        text: What it says; the inner monologue of an assistant message.
        said_at: Seconds since the epoch (UTC).
        page_id: The page whose text it is part of, for what user and agent said to each other.
        calls: Function calls of an assistant message: ``id``, ``name``, ``arguments`` (an object, or the text
            that could not be read as one).
        call_id: The call a function result answers.
        name: The function of a result, or the speaker's name.
        failed: The result of a call that failed.
        blocks: Content blocks of a user message that is not only text.
        until: Of a summary: id of the newest message it stands for; the log up to there is no longer in view.
    """

    message_id: str
    kind: Kind
    text: str = ""
    said_at: float = 0.0
    page_id: str = ""
    calls: tuple[dict[str, Any], ...] = ()
    call_id: str = ""
    name: str = ""
    failed: bool = False
    blocks: tuple[dict[str, Any], ...] = ()
    until: str = ""


class Turn(TypedDict, total=False):
    """What one event has caused so far.

    Attributes:
        event_id: Id of the event; names the lease on the thread.
        kind: What happened.
        steps: Model calls of the loop.
        again: Whether the model runs once more.
        reason: Why it ended: ``done``, ``step_cap``, ``repeated_failure``, ``busy`` (a timed event, or one that runs
            already), ``paused``, ``nothing`` (nothing came in that was not handled before), ``erased`` (the user was
            forgotten while the event ran: nothing more was done or kept).
        erasures: How often the user had been erased when the event began.
        exchange: The exchange that is being written, as ``Exchange`` JSON.
        sent: Texts that reached the user.
        failing: Hashes of the calls that failed in the last step, and in how many steps in a row each did.
        flushes: Evictions.
        evicted: Messages evicted.
        warnings: Memory-pressure messages.
        usage: Model calls and tokens, summaries included.
    """

    event_id: str
    kind: str
    steps: int
    again: bool
    reason: str
    erasures: int
    exchange: dict[str, Any] | None
    sent: list[str]
    failing: dict[str, int]
    flushes: int
    evicted: int
    warnings: int
    usage: Usage


class Pressure(TypedDict, total=False):
    """How full the window is.

    Attributes:
        tokens: Input tokens of the next model call.
        fixed_tokens: Those of them that are not the queue's.
        warned: Whether this period's warning was given; a flush clears it.
        flush: Whether the queue must be flushed before the next model call.
        correction: What the estimate is multiplied by, learnt from the model's own count; at least 1.
    """

    tokens: int
    fixed_tokens: int
    warned: bool
    flush: bool
    correction: float


class Event(TypedDict, total=False):
    """Something that happens beside a user's message.

    Attributes:
        kind: ``system_alert``, ``user_interaction`` or ``timed``.
        text: What happened, for the model to read.
        id: Makes the same event handled once, text or an integer; default: made from the other fields, so that an event
            without ``id`` and ``at`` that stays in a parent's state happens again in each run.
        at: When, in seconds since the epoch; default: now.
    """

    kind: str
    text: str
    id: str | int
    at: float


def recent_messages(left: Sequence[AnyMessage], right: Any) -> list[AnyMessage]:
    """Merge whatever ``add_messages`` takes as it does, by id, and keep the newest 100: recall keeps them all."""
    merged: Any = add_messages(list(left), right)  # type: ignore[arg-type]
    return list(merged[-_SHOWN_MESSAGES:])


_CONVERSATION = Field(description="What user and agent said; the newest message is last.")
SpokenMessages = Annotated[list[AnyMessage], _CONVERSATION, recent_messages]


class VirtualInput(Identified, total=False):
    """Input of ``virtual_context``: the user's message, or another event."""

    messages: SpokenMessages
    event: Annotated[
        Event | None,
        Field(description="A system alert, a user interaction or a timed event."),
        EphemeralValue,
    ]


class VirtualOutput(TypedDict, total=False):
    """Output of ``virtual_context``: what was said, and a report of the event."""

    messages: SpokenMessages
    virtual: Annotated[Turn, Field(description="What the event caused: texts sent, steps, flushes, why it ended.")]


class VirtualState(VirtualInput, VirtualOutput, total=False):
    """Channels of ``virtual_context``.

    Attributes:
        scope: Whose memory, in which thread.
        queue: The FIFO queue as :class:`QueueMessage` JSON, oldest first; index 0 is the summary after a
            flush.
        handled: Id of the newest user message that was taken into the queue.
        turn: What the current event has caused.
        context: Working context and statistics as text, ready for the prompt.
        memory: What MemoryOS recalled for this event (hybrid mode), else ``None``.
        pressure: How full the window is.
        evicted: Messages that are about to leave, oldest first.
        summary: The new recursive summary.
    """

    scope: ScopeState
    queue: list[dict[str, Any]]
    handled: str
    turn: Turn
    context: str
    memory: RecalledMemory | None
    pressure: Pressure
    evicted: list[dict[str, Any]]
    summary: str
