"""``forget``: destroy what is known."""

from typing import Annotated, Any

import typer

from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, User, with_memory_options
from langgraph_memoryos.cli.output import console, print_json, printable
from langgraph_memoryos.stores.checkpoints import erase_checkpoints


@with_memory_options
def forget(
    options: MemoryOptions,
    *,
    user: User,
    page: Annotated[
        list[str] | None,
        typer.Option(help="Only this page (an id from `export`); may be repeated.", show_default=False),
    ] = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(help="Only this fact (an id from `export`); may be repeated.", show_default=False),
    ] = None,
    thread: Annotated[str | None, typer.Option(help="Only this thread.", show_default=False)] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Destroy pages, facts, a thread or, with none of them named, all that is known of a user.

    What only rests on it goes with it. The checkpoints of the user's `chat` sessions go in every case:
    they hold what was recalled. This cannot be undone; `export` first if in doubt.
    """
    named = {"page_id": page or None, "fact_id": fact or None, "thread_id": thread}
    chosen: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if len(chosen) > 1:
        raise typer.BadParameter("name pages, facts or one thread, or none of them for the whole user.")
    what = "everything"
    for name, value in chosen.items():
        what = f"{name.removesuffix('_id')} {value if isinstance(value, str) else ' '.join(value)}"
    if not yes:
        typer.confirm(printable(f"Destroy {what} of user {user}?"), abort=True, err=True)
    with options.open(without_model=True) as memory:
        # What was recalled goes before what it was recalled from, so that an interrupted run can be repeated; and
        # `forget` has the files written anew for both.
        checkpoints = erase_checkpoints(memory.connection.client, namespace=options.namespace, user_id=user)
        erased = memory.forget(user, **chosen)
    if as_json:
        print_json(
            {"user": user, "pages": erased.pages, "facts": erased.facts, "checkpoint_keys": checkpoints}
        )
    else:
        told = f"Destroyed {erased.pages} pages, {erased.facts} facts and {checkpoints} checkpoint keys."
        console.print(told, soft_wrap=True)
