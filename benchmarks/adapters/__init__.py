"""Other memory libraries, each in an environment of its own, on the pages and questions of ``benchmarks.locomo``."""
