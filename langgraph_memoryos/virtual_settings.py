"""The numbers of MemGPT's virtual context, validated at construction."""

from collections.abc import Mapping
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.settings import environment_values

FUNCTION_NAMES = (
    "send_message",
    "pause_heartbeats",
    "core_memory_append",
    "core_memory_replace",
    "conversation_search",
    "conversation_search_date",
    "archival_memory_insert",
    "archival_memory_search",
    "archival_memory_update",
    "archival_memory_delete",
)
"""Every function a model can call, in the order in which it is told of them."""

Mode = Literal["memoryos", "memgpt", "hybrid"]


class ContextWindowError(MemoryOSError):
    """What must be in the prompt does not fit into the context window, and nothing is left to evict."""


class BlockSpec(BaseModel):
    """A working-context block that every agent starts with (MemGPT, section 2.1).

    What is changed later holds from the next event on; only ``value`` is for new agents. A text that is longer than a
    lowered limit stays, and can only get shorter. Where ``shared`` changes, the agent sees the other block from then on;
    what it wrote into its former one is there again when ``shared`` is changed back.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str = Field(min_length=1, description="The name by which functions address it.")
    description: str = Field(default="", description="Tells the model what belongs there.")
    value: str = Field(default="", description="Its text before the first change.")
    limit: int | None = Field(
        default=None, ge=1, description="Characters it may hold; None: `block_limit_characters`."
    )
    read_only: bool = Field(default=False, description="The model's functions cannot change it.")
    shared: bool = Field(
        default=False, description="All agents of the user that declare it read and write one block."
    )


PERSONA = BlockSpec(label="persona", description="Who you are: your name, role and manner.")
HUMAN = BlockSpec(label="human", description="Key facts about the user you are talking with.")


class VirtualContextSettings(BaseModel):
    """When the queue warns and flushes, how long a chain of calls may get, what functions there are.

    Token numbers are counted on the model's *input*: system message, working context, function schemas,
    recalled memory and queue. Leave room for the reply in ``context_window_tokens``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = Field(
        default="memgpt",
        description="memgpt: the model reads by function calls; hybrid: MemoryOS also recalls before events; "
        "memoryos: code alone decides, and the graph is `chat`.",
    )
    context_window_tokens: int = Field(
        default=8192,
        ge=256,
        description="Tokens of input the model may be given; unless set, no more than its profile allows.",
    )
    warn_fraction: float = Field(
        default=0.7, gt=0, le=1, description="Share of the window that warns of pressure."
    )
    flush_fraction: float = Field(
        default=1.0, gt=0, le=1, description="Share of the window at which the queue flushes."
    )
    evict_fraction: float = Field(
        default=0.5, gt=0, lt=1, description="Share of the window that a flush sets free."
    )
    keep_last_messages: int = Field(
        default=3, ge=1, le=100, description="Newest messages that are never evicted, warnings not counted."
    )
    max_summary_tokens: int = Field(
        default=512, ge=32, description="Tokens of the recursive summary, at most."
    )
    max_steps: int = Field(default=50, ge=1, le=1000, description="Model calls one event may cause.")
    max_same_failures: int = Field(
        default=3, ge=1, description="Steps in a row in which one call fails that end the chain."
    )
    page_size: int = Field(default=5, ge=1, le=100, description="Hits a search function shows at once.")
    semantic_hits: int = Field(
        default=100, ge=0, le=1000, description="Nearest vectors that count as hits of a search."
    )
    block_limit_characters: int = Field(
        default=2000, ge=1, description="Characters of a block that states no limit."
    )
    blocks: tuple[BlockSpec, ...] = Field(default=(PERSONA, HUMAN), description="Blocks of a new agent.")
    functions: tuple[str, ...] = Field(default=FUNCTION_NAMES, description="Functions the model is told of.")
    calls: Literal["auto", "native", "structured"] = Field(
        default="auto",
        description="native: the model's own tool calls; structured: one JSON schema over all functions, for "
        "models without tool calling; auto: native where the model can bind tools.",
    )
    continue_after_any_function: bool = Field(
        default=False,
        description="Run again after every function but send_message: some models forget heartbeats.",
    )
    summaries: Literal["model", "deterministic"] = Field(
        default="model",
        description="Who writes the recursive summary; `deterministic` asks no model.",
    )
    searches_are_visits: bool = Field(
        default=True,
        description="A hit of conversation_search counts as a visit of its segment (heat).",
    )
    time_zone: str = Field(
        default="UTC", description="The users' zone: day boundaries and shown times (IANA name)."
    )
    chunk_characters: int = Field(
        default=1000, ge=100, le=20_000, description="Characters of an archival chunk."
    )
    chunk_overlap_characters: int = Field(
        default=100, ge=0, description="Characters two chunks in a row share."
    )
    lease_seconds: float = Field(
        default=300.0,
        gt=0,
        description="How long a thread counts as busy after its last step, if it never ends.",
    )

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"{name!r} is no IANA time zone, such as Europe/Vienna.") from error
        return name

    @field_validator("functions")
    @classmethod
    def _known_functions(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in FUNCTION_NAMES]
        if unknown or "send_message" not in names:
            raise ValueError(f"Functions are send_message and any of {', '.join(FUNCTION_NAMES[1:])}.")
        return names

    @model_validator(mode="after")
    def _possible_blocks(self) -> Self:
        labels = [spec.label for spec in self.blocks]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"Two blocks are labelled {twice[0]!r}: give each block its own label.")
        for spec in self.blocks:
            limit = spec.limit or self.block_limit_characters
            if len(spec.value) > limit:
                raise ValueError(
                    f"The value of block {spec.label!r} has {len(spec.value)} characters, and its limit is {limit}: "
                    "shorten the value or raise the limit."
                )
        return self

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.warn_fraction > self.flush_fraction:
            raise ValueError("warn_fraction must not exceed flush_fraction")
        if self.chunk_overlap_characters >= self.chunk_characters:
            raise ValueError("chunk_overlap_characters must be below chunk_characters")
        return self

    @classmethod
    def from_env(cls, **changes: Any) -> Self:
        """Read ``LANGGRAPH_MEMORYOS_<FIELD>`` variables of all but blocks and functions; ``changes`` beat them."""
        return cls(**(environment_values(cls.model_fields.keys() - {"blocks", "functions"}) | changes))

    def fitted_to(self, profile: Mapping[str, Any]) -> Self:
        """Return the settings with a window that a model takes, where none was chosen.

        Args:
            profile: What the model says of itself (``BaseChatModel.profile``); ``max_input_tokens`` is read.
        """
        most = profile.get("max_input_tokens") or self.context_window_tokens
        if "context_window_tokens" in self.model_fields_set or most >= self.context_window_tokens:
            return self
        return self.model_copy(update={"context_window_tokens": most})

    @property
    def zone(self) -> ZoneInfo:
        """The users' time zone."""
        return ZoneInfo(self.time_zone)

    @property
    def warn_tokens(self) -> int:
        """Input tokens from which memory pressure is told."""
        return int(self.context_window_tokens * self.warn_fraction)

    @property
    def flush_tokens(self) -> int:
        """Input tokens from which the queue is flushed."""
        return int(self.context_window_tokens * self.flush_fraction)

    @property
    def kept_tokens(self) -> int:
        """Input tokens that a flush aims to leave."""
        return int(self.context_window_tokens * (1 - self.evict_fraction))

    @property
    def result_tokens(self) -> int:
        """Tokens of one function result, at most: a quarter of the window."""
        return self.context_window_tokens // 4

    @property
    def recalled_tokens(self) -> int:
        """Tokens of what MemoryOS recalls in hybrid mode, at most: a fifth of the window."""
        return self.context_window_tokens // 5

    @property
    def summary_tokens(self) -> int:
        """Tokens of the recursive summary, at most: a quarter of what a flush leaves, in a small window."""
        return min(self.max_summary_tokens, self.kept_tokens // 4)
