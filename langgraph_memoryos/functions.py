"""What a model can do with its memory: typed arguments, errors in words (MemGPT, section 2.3).

The docstrings of the argument models are what a model is told; everything else is for people.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from langgraph_memoryos.errors import MemoryOSError
from langgraph_memoryos.prompts import function_results as results
from langgraph_memoryos.records import Scope
from langgraph_memoryos.stores.archival import ArchivalStore
from langgraph_memoryos.stores.blocks import BlockStore
from langgraph_memoryos.stores.leases import LeaseStore
from langgraph_memoryos.stores.pages import PageStore
from langgraph_memoryos.stores.search import ResultPage, SearchRequest, SearchStore
from langgraph_memoryos.stores.segments import SegmentStore
from langgraph_memoryos.virtual_settings import FUNCTION_NAMES, VirtualContextSettings

LONGEST_PAUSE_MINUTES = 360
NO_HEARTBEAT = frozenset({"send_message", "pause_heartbeats"})
_TRUE = frozenset({"true", "yes", "1"})
"""Functions without ``request_heartbeat``."""
_ARCHIVAL_CHANGES = frozenset({"archival_memory_insert", "archival_memory_update", "archival_memory_delete"})

_MARKDOWN_PLACES = (r"(?=\n#{1,6} )", r"(?<=```\n)", r"(?=\n(?:\*{3,}|-{3,}|_{3,})\n)")
_PLACES = (r"(?<=\n\n)", r"(?<=\n)", r"(?<=[\u3002\uff01\uff1f])|(?<=[.!?]\s)", r"(?<=\uff0c)", r"(?<=\s)", "")
"""Where a long text may be split, best first: patterns without width, so that no character belongs to a separator."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class FunctionError(MemoryOSError, ValueError):
    """A call that cannot be carried out; the message is for the model."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _page_number(value: Any) -> Any:
    value = value.strip() if isinstance(value, str) else value
    return 0 if value is None or (isinstance(value, str) and value.lower() in {"", "none", "null"}) else value


class _Paged(_Arguments):
    page: int = Field(default=0, ge=0, description="Page of results, from 0.")

    @field_validator("page", mode="before")
    @classmethod
    def _lenient(cls, value: Any) -> Any:
        return _page_number(value)


class SendMessage(_Arguments):
    """Say something to the user. It is the only way to reach them."""

    message: str = Field(min_length=1, description="What the user reads.")


class PauseHeartbeats(_Arguments):
    """Ignore timed events for some minutes."""

    minutes: int = Field(ge=0, description=f"At most {LONGEST_PAUSE_MINUTES}.")


class CoreMemoryAppend(_Arguments):
    """Add a line to a block of your working context."""

    block: str = Field(description="Label of the block, such as human or persona.")
    content: str = Field(description="The line to add.")


class CoreMemoryReplace(_Arguments):
    """Replace exact text in a block of your working context; an empty new text deletes it."""

    block: str = Field(description="Label of the block.")
    old: str = Field(description="The exact text to replace.")
    new: str = Field(description="The text instead; empty to delete.")


class ConversationSearch(_Paged):
    """Search everything the user and you ever said to each other."""

    query: str = Field(description="Words to look for.")


class ConversationSearchDate(_Paged):
    """List what the user and you said from one day to another, both included."""

    start: date = Field(description="First day, YYYY-MM-DD.")
    end: date = Field(description="Last day, YYYY-MM-DD.")

    @field_validator("start", "end", mode="before")
    @classmethod
    def _day(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return datetime.fromisoformat(value.strip()).date()
        except ValueError as error:
            written = _DAY.fullmatch(value.strip())
            raise ValueError(f"there is no day {value.strip()}" if written else "a day is written YYYY-MM-DD") from error


class ArchivalMemoryInsert(_Arguments):
    """Keep a text in the archive, which is unlimited and searchable but outside your context."""

    content: str = Field(description="A text that can be understood on its own.")


class ArchivalMemorySearch(_Paged):
    """Search the archive: what you kept there, and loaded documents."""

    query: str = Field(description="Words to look for.")


class ArchivalMemoryUpdate(_Arguments):
    """Replace an item of the archive by a new text."""

    item: int = Field(description="Number of the item, as a search shows it.")
    content: str = Field(description="The new text.")


class ArchivalMemoryDelete(_Arguments):
    """Take an item out of the archive."""

    item: int = Field(description="Number of the item, as a search shows it.")


_MODELS: tuple[type[_Arguments], ...] = (
    SendMessage,
    PauseHeartbeats,
    CoreMemoryAppend,
    CoreMemoryReplace,
    ConversationSearch,
    ConversationSearchDate,
    ArchivalMemoryInsert,
    ArchivalMemorySearch,
    ArchivalMemoryUpdate,
    ArchivalMemoryDelete,
)
ARGUMENTS: dict[str, type[_Arguments]] = dict(zip(FUNCTION_NAMES, _MODELS, strict=True))
"""The argument model of each function."""


@dataclass(frozen=True, kw_only=True)
class FunctionCall:
    """Who calls, when, and what must not be found or done twice.

    Attributes:
        scope: Whose memory.
        call_id: Unique per call; the same call again changes nothing again. Without one, each call is another.
        open_page: The exchange that is being answered; a search does not find it.
    """

    scope: Scope
    call_id: str = ""
    open_page: str = ""


@dataclass(frozen=True, kw_only=True)
class MemoryFunctions:
    """The functions over the stores.

    ``send_message`` is the executor's, since only it knows the conversation.
    """

    settings: VirtualContextSettings
    blocks: BlockStore
    archival: ArchivalStore
    search: SearchStore
    leases: LeaseStore
    segments: SegmentStore
    clock: Callable[[], float]

    @classmethod
    def over(
        cls,
        pages: PageStore,
        segments: SegmentStore,
        *,
        settings: VirtualContextSettings,
        clock: Callable[[], float],
    ) -> "MemoryFunctions":
        """Build the functions over the Redis that ``pages`` is in."""
        return cls(
            settings=settings,
            blocks=pages.sibling(BlockStore),
            archival=pages.sibling(ArchivalStore),
            search=pages.sibling(SearchStore),
            leases=pages.sibling(LeaseStore),
            segments=segments,
            clock=clock,
        )

    def call(self, name: str, arguments: dict[str, Any], call: FunctionCall) -> str:
        """Carry out one call and return what the model reads.

        Raises:
            FunctionError: unknown function or wrong arguments.
            BlockError: a block cannot be changed so.
            RecordNotFoundError: the archive has no such item.
        """
        if name not in ARGUMENTS or name not in self.settings.functions:
            raise FunctionError(
                f"There is no function {name!r}; the functions are: {', '.join(self.settings.functions)}."
            )
        given = parse_arguments(name, arguments)
        if name in _ARCHIVAL_CHANGES and call.call_id:
            return self._once(name, given, call)
        return str(getattr(self, f"_{name}")(given, call))

    def _once(self, name: str, given: Any, call: FunctionCall) -> str:
        """Change the archive, unless this very call did: then others may have changed it since."""
        told = self.archival.told(call.scope, call.call_id)
        if told is None:
            told = str(getattr(self, f"_{name}")(given, call))
            self.archival.remember(call.scope, call.call_id, told)
        return told

    def _send_message(self, _given: SendMessage, _call: FunctionCall) -> str:
        return "Delivered."

    def _pause_heartbeats(self, given: PauseHeartbeats, call: FunctionCall) -> str:
        minutes = min(given.minutes, LONGEST_PAUSE_MINUTES)
        now = self.clock()
        self.leases.pause(call.scope, until=now + minutes * 60, now=now)
        return f"Timed events are ignored for {minutes} minutes."

    def _core_memory_append(self, given: CoreMemoryAppend, call: FunctionCall) -> str:
        block = self.blocks.append(
            call.scope, given.block, given.content, now=self.clock(), change_id=call.call_id
        )
        return f"Added; the block now has {len(block.value)} of {block.limit} characters."

    def _core_memory_replace(self, given: CoreMemoryReplace, call: FunctionCall) -> str:
        block = self.blocks.replace(
            call.scope, given.block, given.old, given.new, now=self.clock(), change_id=call.call_id
        )
        return f"Replaced; the block now has {len(block.value)} of {block.limit} characters."

    def _conversation_search(self, given: ConversationSearch, call: FunctionCall) -> str:
        found = self.search.conversation(call.scope, self._request(given.query, given.page, call))
        return self._pages(found, call)

    def _conversation_search_date(self, given: ConversationSearchDate, call: FunctionCall) -> str:
        if given.start > given.end:
            raise FunctionError(f"The first day, {given.start}, is after the last, {given.end}.")
        found = self.search.conversation_between(
            call.scope,
            given.start,
            given.end,
            zone=self.settings.zone,
            request=self._request("", given.page, call),
        )
        return self._pages(found, call)

    def _archival_memory_insert(self, given: ArchivalMemoryInsert, call: FunctionCall) -> str:
        chunks = split_text(given.content, self.settings)
        if not chunks:
            raise FunctionError("The content is empty: nothing was kept.")
        stored = self.archival.insert(call.scope, chunks, now=self.clock())
        return f"Kept as item {self._numbers(call.scope, stored)}."

    def _archival_memory_search(self, given: ArchivalMemorySearch, call: FunctionCall) -> str:
        found = self.search.archive(call.scope, self._request(given.query, given.page, call))
        return results.archival_page(
            self._existing(found), zone=self.settings.zone, max_tokens=self.settings.result_tokens
        )

    def _archival_memory_update(self, given: ArchivalMemoryUpdate, call: FunctionCall) -> str:
        old = self.archival.by_number(call.scope, given.item)
        if not old.current:
            raise FunctionError(
                f"Item {given.item} is not in the archive any more: archival_memory_insert keeps a new text."
            )
        chunks = split_text(given.content, self.settings)
        if not chunks:
            raise FunctionError("The content is empty: use archival_memory_delete to remove an item.")
        stored = self.archival.insert(call.scope, chunks, now=self.clock(), source=old.source)
        numbers = self._numbers(call.scope, stored)
        if old.item_id not in stored and not self.archival.retire(
            call.scope, old.item_id, now=self.clock(), successor=stored[0]
        ):
            raise FunctionError(f"Item {given.item} left the archive meanwhile; the new text is item {numbers}.")
        return f"Item {given.item} was replaced by item {numbers}."

    def _archival_memory_delete(self, given: ArchivalMemoryDelete, call: FunctionCall) -> str:
        item = self.archival.by_number(call.scope, given.item)
        self.archival.retire(call.scope, item.item_id, now=self.clock())
        return f"Item {given.item} is out of the archive."

    def _numbers(self, scope: Scope, item_ids: Sequence[str]) -> str:
        return ", ".join(str(item.number) for item in self.archival.get(scope, tuple(dict.fromkeys(item_ids))))

    def _request(self, query: str, page: int, call: FunctionCall) -> SearchRequest:
        return SearchRequest(
            query=query,
            page=page,
            page_size=self.settings.page_size,
            semantic_hits=self.settings.semantic_hits,
            without=(call.open_page,) if call.open_page else (),
        )

    def _pages(self, found: ResultPage, call: FunctionCall) -> str:
        self._existing(found)
        if self.settings.searches_are_visits:
            visited = tuple(dict.fromkeys(page.segment_id for page in found.items if page.segment_id))
            self.segments.record_visits(call.scope, visited, now=self.clock())
        return results.conversation_page(
            found, zone=self.settings.zone, max_tokens=self.settings.result_tokens
        )

    def _existing(self, found: ResultPage) -> ResultPage:
        if found.page > found.last_page:
            raise FunctionError(f"There is no page {found.page}: the last page is {found.last_page}.")
        return found


def opened(name: str, arguments: Any) -> tuple[dict[str, Any], bool]:
    """Return the arguments without ``request_heartbeat``, and what that says.

    Raises:
        FunctionError: the arguments are no JSON object.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise FunctionError(
                f"The arguments of {name} are no valid JSON object: {arguments[:200]}"
            ) from None
    if not isinstance(arguments, dict):
        raise FunctionError(f"The arguments of {name} must be one JSON object.")
    rest = {key: value for key, value in arguments.items() if key != "request_heartbeat"}
    asked = arguments.get("request_heartbeat", False)
    return rest, name not in NO_HEARTBEAT and (asked is True or str(asked).strip().lower() in _TRUE)


def goes_on(name: str, settings: VirtualContextSettings, *, asked: bool) -> bool:
    """Return whether a call that succeeded leads to another step: its heartbeat was ``asked`` for, or any call does."""
    return asked or (settings.continue_after_any_function and name not in NO_HEARTBEAT)


def parse_arguments(name: str, arguments: dict[str, Any]) -> Any:
    """Return the typed arguments of a call.

    Raises:
        FunctionError: they do not fit; the message names each fault.
    """
    try:
        return ARGUMENTS[name].model_validate(arguments)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
            for fault in error.errors()[:5]
        )
        expected = ", ".join(ARGUMENTS[name].model_fields)
        raise FunctionError(f"Wrong arguments for {name} ({faults}). It takes: {expected}.") from None


def split_text(text: str, settings: VirtualContextSettings, *, markdown: bool = False) -> list[str]:
    """Split a text into chunks at paragraphs, sentences or words; none is empty, short texts stay whole."""
    if len(text) <= settings.chunk_characters:
        return [text.strip()] if text.strip() else []
    # Imported where it is needed: short texts, the usual case, need no splitter.
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415

    splitter = RecursiveCharacterTextSplitter(
        separators=[*(_MARKDOWN_PLACES if markdown else ()), *_PLACES],
        chunk_size=settings.chunk_characters,
        chunk_overlap=settings.chunk_overlap_characters,
        is_separator_regex=True,
    )
    return [chunk for chunk in splitter.split_text(text) if chunk.strip()]


def described(names: Sequence[str]) -> list[tuple[str, type[BaseModel]]]:
    """Return the named functions with their argument models, in order."""
    return [(name, cast("type[BaseModel]", ARGUMENTS[name])) for name in names]
