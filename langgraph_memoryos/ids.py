"""Identifiers: who is meant (scope ids) and what is meant (deterministic record ids).

Readable ids never become part of a key or a tag. TAG fields fold case and split on commas, prefix queries cross
boundaries and braces change a cluster slot, which is how memories of ``alice`` leak to ``alice2`` or ``Alice``.
Keys and tags hold a hash of the exact id instead: fixed alphabet, fixed length, case kept apart.
"""

import hashlib

from langgraph_memoryos.errors import IdentityError

_LENGTH = 32


def readable_id(value: object, *, what: str) -> str:
    """Return an id as text.

    Args:
        value: A non-empty string, or an integer (taken as its decimal text).
        what: What it names, for the error, such as ``"user_id"``.

    Raises:
        IdentityError: if it is missing, empty or of another type.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value:
        return value
    if value is None or value == "":
        raise IdentityError(
            f"{what} is missing: pass it in the run's context, in config['configurable'] or in the state.",
        )
    raise IdentityError(f"{what} must be a non-empty string or an integer, not {type(value).__name__}.")


def digest(*parts: str) -> str:
    """Return 128 bits of SHA-256 over the exact parts as 32 hex characters; no two lists of parts collide by joining."""
    hasher = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        hasher.update(len(encoded).to_bytes(8, "big"))
        hasher.update(encoded)
    return hasher.hexdigest()[:_LENGTH]


def step_id(event_id: str, step: int) -> str:
    """Return the id of what the model says in a step (from 0) of an event: the same step is the same message."""
    return digest("step", event_id, str(step))


def page_id(*, user_id: str, agent_id: str, thread_id: str, source_id: str) -> str:
    """Return the id of the exchange that begins with message ``source_id``: the same turn is the same page."""
    return digest("page", user_id, agent_id, thread_id, source_id)


def segment_id(first_page_id: str) -> str:
    """Return the id of the segment that ``first_page_id`` opens."""
    return digest("segment", first_page_id)


def document_id(path: str) -> str:
    """Return the id of the document at an absolute path."""
    return digest("document", path)


def fact_id(*, user_id: str, agent_id: str, collection: str, text_key: str, origin: str) -> str:
    """Return the id of a fact: its normalised text and the page (or moment) it first came from."""
    return digest("fact", user_id, agent_id, collection, text_key, origin)
