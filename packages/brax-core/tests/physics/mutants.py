"""Runs the mutants of `mutants.toml`: `python mutants.py [PART OF A NAME ...]`.

Each is applied to the source, its test is run and must fail, and the source is put back. Runs by
hand, after changes of the core.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "brax"


class Mutant(NamedTuple):
    file: str
    right: str
    wrong: str
    test: str


def read() -> dict[str, Mutant]:
    """The mutants by name."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return {name: Mutant(**values) for name, values in table.items()}


def killed(mutant: Mutant) -> str:
    """Whether the test fails with the mutant in place."""
    path = SOURCE / mutant.file
    source = path.read_text()
    if source.count(mutant.right) != 1:
        return f"NOT FOUND in {mutant.file}"
    path.write_text(source.replace(mutant.right, mutant.wrong))
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long"]
        command.append(str(TESTS / mutant.test))
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    finally:
        path.write_text(source)
    return {0: "SURVIVES", 1: "killed"}.get(run.returncode, f"no result:\n{run.stdout[-500:]}")


def main() -> None:
    asked = sys.argv[1:] or [""]
    results = []
    for name, mutant in read().items():
        if any(part in name for part in asked):
            results.append(killed(mutant))
            print(f"{name}: {results[-1]} ({mutant.test})", flush=True)
    sys.exit(not results or any(r != "killed" for r in results))


if __name__ == "__main__":
    main()
