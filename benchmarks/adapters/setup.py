"""Make the environments of other memory libraries: ``python -m benchmarks.adapters.setup [NAME ...]``.

Each gets a virtual environment ``.rivals/NAME`` with exactly what ``requirements-NAME.txt`` pins; nothing of it touches
the project's own environment. The first line of a requirements file names the Python that the library wants.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent.parent / ".rivals"
NAMES = tuple(sorted(path.stem.removeprefix("requirements-") for path in HERE.glob("requirements-*.txt")))


def requirements(name: str) -> Path:
    """Return the file that pins a library and all it needs."""
    return HERE / f"requirements-{name}.txt"


def python_of(name: str) -> Path:
    """Return the Python of a library's environment, which may not exist yet."""
    return ENVIRONMENTS / name / "bin" / "python"


def interpreter(name: str) -> str:
    """Return the program that can make the environment: this Python if it is of the wanted version, else one on the path.

    Raises:
        FileNotFoundError: There is no such Python.
    """
    wanted = requirements(name).read_text(encoding="utf-8").partition("\n")[0].rpartition(" ")[2]
    if wanted == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{wanted}")
    if found is None:
        raise FileNotFoundError(f"{name} wants Python {wanted}; put python{wanted} on the path.")
    return found


def make(name: str) -> None:
    """Make one environment, from scratch."""
    shutil.rmtree(ENVIRONMENTS / name, ignore_errors=True)
    subprocess.run([interpreter(name), "-m", "venv", ENVIRONMENTS / name], check=True)
    subprocess.run(
        [python_of(name), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps",
         "--requirement", requirements(name)], check=True,
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapters.setup", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"of {', '.join(NAMES)}; default: all")
    given = parser.parse_args().name
    if unknown := set(given) - set(NAMES):
        parser.error(f"There is no library {', '.join(sorted(unknown))} here: name {', '.join(NAMES)}.")
    for name in given or NAMES:
        print(f"{name}: {python_of(name).parent.parent}", flush=True)
        make(name)


if __name__ == "__main__":
    main()
