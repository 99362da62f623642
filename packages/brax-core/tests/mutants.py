"""Runs the mutants of all packages, `packages/*/tests/mutants.toml`.

    python mutants.py [PART OF A NAME ...]

Each is applied to the source, its test is run and must fail, and the source is put back. Runs by
hand, after changes of what they are about.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

COMMAND = sys.executable, "-m", "pytest", "-q", "-x"

PACKAGES = Path(__file__).parents[2]


class Mutant(NamedTuple):
    source: Path
    right: str
    wrong: str
    test: str
    """Its file, below the package's tests, and its name."""
    tests: Path

    @property
    def applied(self) -> str:
        """The source with the fault in it.

        Raises:
            LookupError: if the place is not there, or not once.
        """
        source = self.source.read_text()
        if source.count(self.right) != 1:
            raise LookupError(f"{source.count(self.right)} places in {self.source.name}")
        return source.replace(self.right, self.wrong)


def read() -> dict[str, Mutant]:
    """Return the mutants by name."""
    found = {}
    for table in sorted(PACKAGES.glob("*/tests/mutants.toml")):
        tests = table.parent
        for name, told in tomllib.loads(table.read_text()).items():
            source = tests.parent / "src" / "brax" / told["file"]
            assert name not in found, f"two mutants are called '{name}'"
            found[name] = Mutant(source, told["right"], told["wrong"], told["test"], tests)
    return found


def killed(mutant: Mutant) -> str:
    """Return whether the test fails with the mutant in place."""
    whole = mutant.source.read_text()
    try:
        mutant.source.write_text(mutant.applied)
        # The sources that stand beside this file, wherever the packages are installed from.
        paths = os.pathsep.join(map(str, PACKAGES.glob("*/src")))
        # The variants of a test that are not long, or the long ones where there are no others.
        for marked in ("not long", "long"):
            run = subprocess.run(
                [*COMMAND, "-m", marked, str(mutant.tests / mutant.test)],
                capture_output=True,
                text=True,
                timeout=600,
                env={**os.environ, "PYTHONPATH": paths},
            )
            if run.returncode != pytest.ExitCode.NO_TESTS_COLLECTED:
                break
    except LookupError as error:
        return f"NOT FOUND: {error}"
    finally:
        mutant.source.write_text(whole)
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
