"""The model-free benchmarks in short form: recall on the bundled slices, and what a turn costs as memory grows.

    python -m benchmarks [--json OUT] [--data PATH ...]

Needs no model, no key and no network. ``--data`` adds conversation files such as LoCoMo's; without it this takes a few
minutes on two cores.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import growth, locomo
from langgraph_memoryos.conversations import load

SLICES = Path(__file__).parent / "slices"
SHORT_SIZES = (100, 1_000, 3_000)
SHORT_ROUNDS = 3


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the reports to this file")
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="further conversation files with questions")
    parser.add_argument("--no-growth", action="store_true", help="measure recall only")
    given = parser.parse_args()
    reports: dict[str, Any] = {}
    for path in (SLICES / "english.jsonl", SLICES / "chinese.jsonl", *given.data):
        locomo.progress(f"Recall on {path.name}")
        reports[path.stem] = locomo.evaluate(load(path))
        print(f"## Recall on {path.name}\n\n{locomo.table(reports[path.stem])}\n", flush=True)
    if not given.no_growth:
        # The report's ratios are named after the sizes of the long form.
        largest = str(SHORT_SIZES[-1])
        reports["growth"] = {
            name.replace("10000", largest): value
            for name, value in growth.run(rounds=SHORT_ROUNDS, sizes=SHORT_SIZES).items()
        }
        print(f"## Growth\n\n{growth.table(reports['growth'])}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(reports, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
