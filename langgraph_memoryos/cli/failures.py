"""Errors that a person can act on are one sentence on standard error and exit code 1."""

from typing import Any

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from langgraph_memoryos.cli.output import errors, printable
from langgraph_memoryos.errors import MemoryOSError


class PlainErrors(TyperGroup):
    """Commands whose expected errors are told plainly; anything else is a bug and keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            sentence = plain_sentence(error)
            if sentence is None:
                raise
            errors.print(f"Error: {printable(sentence)}", soft_wrap=True)
            raise typer.Exit(1) from None


def plain_sentence(error: Exception) -> str | None:
    """Return what to tell the user about an expected error, or ``None`` for an unexpected one.

    What a model server says is left out: it may quote the API key or the conversation.
    """
    if isinstance(error, MemoryOSError):
        return str(error)
    if isinstance(error, ValidationError):
        faults = error.errors()
        return "; ".join(f"setting {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in faults)
    package = type(error).__module__.partition(".")[0]  # by name, since importing openai takes half a second
    if package == "openai" and (status := getattr(error, "status_code", None)):
        return f"The model server refused with status {status}: check OPENAI_API_KEY and OPENAI_MODEL."
    if package == "openai":
        return f"The model cannot be used ({type(error).__name__}): check OPENAI_BASE_URL and OPENAI_API_KEY."
    if package == "redis":
        return f"Redis failed: {' '.join(str(error).split())}"
    return None
