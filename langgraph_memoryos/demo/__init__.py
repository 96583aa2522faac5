"""Two bundled conversations of several sessions, written for this library, to see a memory at work.

Both come with questions to ask weeks after the last session, and the ids of the exchanges that answer them.
"""

from importlib import resources

from langgraph_memoryos.conversations import parse
from langgraph_memoryos.dialogue import Conversation


def english() -> Conversation:
    """Return Mara's conversation: a move, a new job, a dog and a marathon in 60 exchanges over 14 weeks."""
    return _bundled("english")


def chinese() -> Conversation:
    """Return Yutong's conversation: a cat, swimming lessons and embroidery in 21 exchanges over 9 weeks."""
    return _bundled("chinese")


def _bundled(name: str) -> Conversation:
    """Read one of the conversations beside this module."""
    text = resources.files(__name__).joinpath(f"{name}.jsonl").read_text(encoding="utf-8")
    return parse(text, name=f"{name}.jsonl")[0]
