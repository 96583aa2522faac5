"""``inspect``: what each tier holds."""

from typing import Any

from rich.table import Table

from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, User, with_memory_options
from langgraph_memoryos.cli.output import console, day_and_time, errors, one_line, print_json, printable
from langgraph_memoryos.memory import MemoryOS


@with_memory_options
def inspect(options: MemoryOptions, *, user: User, as_json: AsJson = False) -> None:
    """Show what each tier holds of a user: queues, segments with their heat now, facts, persona, blocks, archive."""
    with options.open(without_model=True) as memory:
        tiers = memory.inspect(user)
        known = bool(tiers["pages"]) or is_known(memory, user)
    if not known:
        tell_unknown(user)
    if as_json:
        print_json(tiers)
    elif known:
        print_tiers(tiers)
        print_long_term(tiers)


def is_known(memory: MemoryOS, user: str) -> bool:
    """Whether anything is known of a user, with whatever agent."""
    return any(True for _ in memory.export(user))


def tell_unknown(user: str) -> None:
    """Say on standard error that nothing is known of a user: perhaps the name is misspelt."""
    errors.print(f"Nothing is known about user {printable(user)}.", soft_wrap=True)


def print_tiers(tiers: dict[str, Any], *, segments: int | None = None) -> None:
    """Print short-term and mid-term memory, only the hottest ``segments`` if a number is given."""
    console.print(
        f"{printable(tiers['user_id'])} with {printable(tiers['agent_id'])}: {tiers['pages']} pages",
        style="bold",
    )
    queues = ", ".join(
        f"{one_line(name, width=40)} ({length})" for name, length in tiers["short_term"].items()
    )
    console.print(f"short-term  {queues or 'empty'}", soft_wrap=True)
    shown = tiers["mid_term"][:segments]
    rest = len(tiers["mid_term"]) - len(shown)
    more = f", {rest} cooler ones not shown" if rest else ""
    archived = f", {tiers['archived_segments']} archived" if tiers["archived_segments"] else ""
    console.print(f"mid-term    {len(tiers['mid_term'])} segments{more}{archived}")
    if shown:
        console.print(_segments_table(shown))


def _segments_table(segments: list[dict[str, Any]]) -> Table:
    table = Table("heat", "pages", "visits", "newest page", "segment", box=None, padding=(0, 2, 0, 0))
    for segment in segments:
        table.add_row(
            f"{segment['heat']:.2f}",
            str(segment["page_count"]),
            str(segment["visits"]),
            day_and_time(segment["updated_at"]),
            _title(segment),
        )
    return table


def _title(segment: dict[str, Any]) -> str:
    return one_line(segment["title"] or ", ".join(segment["keywords"]), width=60)


def print_long_term(tiers: dict[str, Any]) -> None:
    """Print profiles, traits and facts, one a line."""
    persona = tiers["persona"]
    for of, section in (("user", "user_profile"), ("agent", "agent_profile")):
        for entry in persona[section]:
            value = one_line(entry["value"])
            console.print(f"profile     {of}: {printable(entry['name'])} = {value}", soft_wrap=True)
    for trait in persona["user_traits"]:
        level, reason = printable(trait["level"]), one_line(trait["reason"])
        console.print(f"trait       {trait['dimension']}: {level} ({reason})", soft_wrap=True)
    for kind, section in (("fact", "user_facts"), ("agent fact", "agent_traits")):
        for fact in tiers[section]:
            since, text = day_and_time(fact["valid_from"]), one_line(fact["text"])
            console.print(f"{kind:<11} {since}  {text}", soft_wrap=True)
    for block in tiers["blocks"]:
        said = f"({len(block['value'])} of {block['limit']} characters) {one_line(block['value'])}"
        console.print(f"block       {printable(block['label'])} {said}", soft_wrap=True)
    archive = tiers["archive"]
    if archive["items"]:
        console.print(f"archive     {archive['items']} items, {len(archive['documents'])} loaded documents")
