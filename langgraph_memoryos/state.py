"""What travels through the graphs: plain JSON and messages only, since checkpointers lose everything else.

``messages`` is the conversation of the parent graph. Inside the memory subgraphs it is an ephemeral input: the first
step reads what it needs, and the later checkpoints of the subgraph do not carry the conversation again.
"""

from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.channels import EphemeralValue, UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

# LangGraph takes the reducer or channel from the end of the annotation.
_CONVERSATION = Field(description="The conversation; the newest message is last.")
Messages = Annotated[list[AnyMessage], _CONVERSATION, add_messages]
TransientMessages = Annotated[list[AnyMessage], _CONVERSATION, EphemeralValue]
UserId = Annotated[str, Field(description="Whose memory to use, if the run's context or config does not say it.")]
AgentId = Annotated[str, Field(description="Which agent is talking; each has its own memory of a user.")]


class MemoryContext(BaseModel):
    """Who is talking, given as the run's ``context``; any object or dict with these names works as well."""

    model_config = ConfigDict(frozen=True)

    user_id: str | int | None = Field(default=None, description="Whose memory to use.")
    agent_id: str | int | None = Field(default=None, description="Which agent is talking; default: the memory's own.")
    thread_id: str | int | None = Field(default=None, description="The conversation; default: the run's thread_id.")


class ScopeState(TypedDict):
    """Who and where, as one turn resolved it."""

    user_id: str
    agent_id: str
    thread_id: str
    turn_id: str


class Usage(TypedDict):
    """Model calls and tokens, counted by the library itself; tokens are 0 where a model does not report them."""

    model_calls: int
    input_tokens: int
    output_tokens: int


NO_USAGE = Usage(model_calls=0, input_tokens=0, output_tokens=0)


def usage_of(message: object) -> Usage:
    """Return what one model call used, from its reply; anything but a message that tells its tokens counts 0 of them."""
    counts: Any = (message.usage_metadata if isinstance(message, AIMessage) else None) or {}
    return Usage(
        model_calls=1, input_tokens=counts.get("input_tokens", 0), output_tokens=counts.get("output_tokens", 0),
    )


def added_usage(first: Usage | None, second: Usage) -> Usage:
    """Return the sum of two usages; ``None`` counts as nothing."""
    before = first or NO_USAGE
    return Usage(
        model_calls=before["model_calls"] + second["model_calls"],
        input_tokens=before["input_tokens"] + second["input_tokens"],
        output_tokens=before["output_tokens"] + second["output_tokens"],
    )


class RecalledMemory(TypedDict):
    """What a recall hands to an agent.

    Attributes:
        text: Mid- and long-term memory as one section for a system prompt; empty when nothing is known.
        tokens: Estimated tokens of ``text``, never above ``max_memory_tokens``.
        short_term: Pages of the thread's short-term queue, oldest first.
        mid_term: Recalled pages inside the budget, oldest first, each with ``relevance`` and its ``parts``.
        user_facts: Recalled facts about the user.
        agent_traits: Recalled facts about the agent.
        persona: User profile, user traits and agent profile.
    """

    text: str
    tokens: int
    short_term: list[dict[str, Any]]
    mid_term: list[dict[str, Any]]
    user_facts: list[dict[str, Any]]
    agent_traits: list[dict[str, Any]]
    persona: dict[str, Any]


class Remembered(TypedDict, total=False):
    """What a remember did, for the stream and the state.

    Attributes:
        user_id: Whose memory it was.
        agent_id: Of which agent.
        page_id: The page that was written, absent if there was nothing to write.
        status: ``new``, ``same`` (written before), ``changed`` (other reply) or ``erased``.
        queue_length: Pages in the thread's short-term queue after the write.
        behind: How many exchanges of a long conversation are still to be written, by the next turns; absent if none.
        moved_pages: Pages that moved to mid-term memory.
        touched_segments: Segments that got a page.
        archived_segments: Segments that left mid-term search.
        digested_segments: Segments that updated the persona.
        facts: Facts stored or confirmed.
        failure: Why maintenance stopped early (memory is unchanged by the failed step; the next turn tries again).
        usage: Model calls of maintenance, the reply not included.
    """

    user_id: str
    agent_id: str
    page_id: str
    status: str
    queue_length: int
    behind: int
    moved_pages: int
    touched_segments: list[str]
    archived_segments: list[str]
    digested_segments: list[str]
    facts: int
    failure: str
    usage: Usage


class Identified(TypedDict, total=False):
    """Ids that may come by state instead of context or config."""

    user_id: UserId
    agent_id: AgentId
    thread_id: Annotated[str, Field(description="The conversation, if the run has no thread_id.")]


class RecallInput(Identified, total=False):
    """Input of ``recall``: the conversation so far."""

    messages: TransientMessages


Memory = Annotated[RecalledMemory, Field(description="What recall found for this turn; its text is for the prompt.")]
RememberedReport = Annotated[Remembered, Field(description="What remember stored after this turn, and what it cost.")]


class RecallOutput(TypedDict, total=False):
    """Output of ``recall``."""

    memory: Memory


class RetrieveInput(TypedDict):
    """What the three stages of a recall read: who asks what."""

    scope: ScopeState
    query: str


class RecallState(RecallInput, RecallOutput, total=False):
    """Channels of ``recall``."""

    scope: ScopeState
    query: str
    short_term: list[dict[str, Any]]
    mid_term: dict[str, Any]
    long_term: dict[str, Any]


class RememberInput(Identified, total=False):
    """Input of ``remember``: the conversation with the newest reply."""

    messages: TransientMessages
    said_at: Annotated[
        float | None, Field(description="When it was said, in seconds since the epoch (UTC); default: now."),
        EphemeralValue,
    ]
    exchanges: Annotated[
        list[dict[str, Any]], Field(description="Exchanges to import instead of messages."), EphemeralValue,
    ]
    remembered: Annotated[Remembered, Field(description="The report of the turn before, if the thread has one.")]


class RememberOutput(TypedDict, total=False):
    """Output of ``remember``."""

    remembered: RememberedReport


class MaintenanceState(TypedDict, total=False):
    """Channels of eviction and promotion, shared by ``remember`` and ``consolidate``.

    Attributes:
        scope: Whose memory; ``thread_id`` names the queue that is being emptied.
        overflow: Pages to move, oldest first.
        previous: The page before them in their thread, or ``None``.
        chain: The chain of ``previous``, or ``None``.
        analyses: What the analyst said of each page in ``overflow``.
        touched: Segments that got a page, with their newest pages, for the summary.
        summaries: New texts of the touched segments.
        due: Ids of segments that must be digested before they can be archived.
        hot: Segments to digest, with their undigested pages.
        known: Persona and current facts that the digest may confirm or supersede.
        digest: What the analyst learnt.
        eviction_rounds: How often cold segments were looked for in this run.
        remembered: The report so far.
        failure: Why the last thinking step gave up, or empty.
    """

    scope: ScopeState
    overflow: list[dict[str, Any]]
    previous: dict[str, Any] | None
    chain: dict[str, Any] | None
    analyses: list[dict[str, Any]]
    touched: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
    due: list[str]
    hot: list[dict[str, Any]]
    known: dict[str, Any]
    digest: dict[str, Any]
    eviction_rounds: int
    remembered: Remembered
    failure: str


class RememberState(RememberInput, MaintenanceState, total=False):
    """Channels of ``remember``."""


class ConsolidateInput(Identified, total=False):
    """Input of ``consolidate``."""

    drain: Annotated[bool, Field(description="Also empty short-term queues that are below capacity.")]
    thread_ids: Annotated[
        list[str] | None, Field(description="Only empty the short-term queues of these threads; default: of all."),
    ]
    remembered: Annotated[Remembered, Field(description="The report of the turn before, if the thread has one.")]


class ConsolidateState(ConsolidateInput, MaintenanceState, total=False):
    """Channels of ``consolidate``.

    Attributes:
        queue: Thread whose queue is emptied next, or empty when there is none.
        lengths: Length of each queue when it was chosen last in this run; later runs of a thread begin anew.
        failed_queues: On how many of them a thinking step failed in this run.
    """

    queue: str
    lengths: Annotated[dict[str, int], UntrackedValue]
    failed_queues: Annotated[int, UntrackedValue]


class ChatInput(Identified, total=False):
    """Input of ``chat``: the user's new message."""

    messages: Messages


class ChatState(ChatInput, total=False):
    """Channels of ``chat``."""

    memory: Memory
    remembered: RememberedReport
    reply_usage: Annotated[Usage, Field(description="Model calls and tokens of the reply.")]


class MemoryState(Identified, total=False):
    """State for your own graph: the conversation, who is talking, and what ``recall`` and ``remember`` fill in."""

    messages: Messages
    memory: Memory
    remembered: RememberedReport
