"""Steps of the memory graphs, one per file: each reads a few keys, asks one collaborator, returns what changed."""
