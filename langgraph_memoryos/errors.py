"""The exception tree: every error this library raises on purpose is a :class:`MemoryOSError`.

Messages are one sentence that says what happened and what to do. They never contain passwords, API keys or
what a user said.
"""


class MemoryOSError(Exception):
    """Base of every error raised on purpose by this library."""


class IdentityError(MemoryOSError, ValueError):
    """A user, agent, thread or block id is missing, empty or of a type that cannot name anything."""


class RedisUnavailableError(MemoryOSError, ConnectionError):
    """No Redis could be reached or started."""


class SearchUnavailableError(RedisUnavailableError):
    """Redis answers but has no query engine (search module), or one that is too old."""


class EmbedderMismatchError(MemoryOSError):
    """The stored vectors were made by another embedder (name, dimension or metric) than the one given."""


class SchemaMismatchError(MemoryOSError):
    """The stored data has a schema version this release cannot read."""


class ModelUnavailableError(MemoryOSError):
    """No chat model or embedder is configured, or the bundled one cannot run on this machine."""


class ModelOutputError(MemoryOSError):
    """A model's reply did not fit the asked schema, also after the error had been shown to it once."""


class RecordNotFoundError(MemoryOSError, KeyError):
    """The named page, fact, segment or block does not exist for this user."""

    def __str__(self) -> str:
        """Return the plain sentence (``KeyError`` would quote it)."""
        return str(self.args[0]) if self.args else ""


class ErasedError(MemoryOSError):
    """Everything of the user was forgotten since what was to be written began: nothing of it is kept."""

    def __init__(self) -> None:
        """Say it in one sentence."""
        super().__init__("Everything of this user was forgotten meanwhile: nothing was kept.")


class ConversationFormatError(MemoryOSError, ValueError):
    """A conversation file is not in one of the formats that can be replayed."""
