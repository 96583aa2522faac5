"""``migrate``: embed everything again with another embedder."""

from langgraph_memoryos.cli.memory_options import AsJson, MemoryOptions, with_memory_options
from langgraph_memoryos.cli.output import console, print_json, progress_bar
from langgraph_memoryos.local_models import default_embeddings
from langgraph_memoryos.stores.embedder import Embedder
from langgraph_memoryos.stores.keys import Namespace
from langgraph_memoryos.stores.migrate import Migration


@with_memory_options
def migrate(options: MemoryOptions, *, as_json: AsJson = False) -> None:
    """Embed everything again with the embedder that the environment names now.

    That is the one every other command would use: OPENAI_EMBEDDING_MODEL, else the bundled one. Stop the
    applications that use this memory first. The command can be interrupted and run again; until its last
    moments the memory stays as it was and works with its old embedder.
    """
    with options.connect() as connection, progress_bar() as bar:
        embedder = Embedder(default_embeddings())
        namespace = Namespace(name=options.namespace)
        migration = Migration(connection.client, namespace=namespace, embedder=embedder)
        task = bar.add_task("embedding", total=migration.count())
        report = migration.run(progress=lambda done: bar.advance(task, done))
    if as_json:
        print_json(report.to_json())
    elif report.was_needed:
        console.print(
            f"{report.embedded} texts embedded and {report.segments} segments renewed with {report.embedder} "
            f"({report.dimensions} dimensions).",
            soft_wrap=True,
        )
    else:
        console.print(f"Nothing to do: this memory's vectors are from {report.embedder}.", soft_wrap=True)
