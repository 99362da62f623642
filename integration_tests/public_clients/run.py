"""Runs public projects that were written for Google's brax on these packages: `hatch run clients`.

Each script beside this one is named after a project on PyPI, and runs that project's own entry
points for a few steps. Its first comment lists what to install (PEP 723), its docstring says what
it runs. Each project gets an environment of its own in the cache folder, with the packages of this
repository in place of Google's `brax`.
"""

import ast
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
PACKAGES = sorted((HERE.parents[1] / "packages").iterdir())
SCRIPTS = {path.stem: path for path in sorted(HERE.glob("*.py")) if path != Path(__file__)}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brax" / "clients"
UV: list[str | Path] = [sys.executable, "-m", "uv"]

# Projects require `brax`, which is Google's distribution. It would overwrite these packages.
OVERRIDES = "brax ; sys_platform == 'never'\n"

TIME_LIMIT = 1800
"""Seconds for an installation or a script; the slowest takes ten minutes on a busy computer."""

VERSION = "from importlib.metadata import version; print(version('{}'))"


class Result(NamedTuple):
    """A row of the table."""

    version: str
    ran: str
    failure: str
    """One line of the error; empty if the script ended well."""
    seconds: float


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def main(names):
    """Run public clients, or those that are named, and prints a table.

    The first run installs them from PyPI. `UV_TORCH_BACKEND=cpu` keeps Torch small.
    """
    unknown = sorted(set(names) - set(SCRIPTS))
    if unknown:
        raise click.UsageError(f"no client {', '.join(unknown)}. There are: {', '.join(SCRIPTS)}")
    table = Table("client", "version", "what ran", "result", "s")
    failed = False
    for name in names or SCRIPTS:
        click.echo(f"== {name}", err=True)
        result = tried(name, SCRIPTS[name])
        failed |= bool(result.failure)
        outcome = f"failed: {result.failure}" if result.failure else "ok"
        table.add_row(name, result.version, result.ran, outcome, f"{result.seconds:.0f}")
    Console().print(table)
    sys.exit(failed)


def tried(name: str, script: Path) -> Result:
    """Install a client and run its script."""
    text = script.read_text()
    ran = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    python, failure = installed(name, requirements(text))
    if failure:
        return Result("", ran, failure, 0.0)
    start = time.perf_counter()
    # The script has the name of the module that it imports: its folder may not be searched first.
    failure = call([python, "-P", script], cwd=CACHE / name)
    seconds = time.perf_counter() - start
    done = subprocess.run(
        [python, "-c", VERSION.format(name)], capture_output=True, text=True, check=False
    )
    return Result(done.stdout.strip(), ran, failure, seconds)


def requirements(script: str) -> list[str]:
    """Return the dependencies in a script's first comment."""
    block = re.search(r"^# /// script\n(.*?)^# ///$", script, re.MULTILINE | re.DOTALL)
    assert block, "a client's script lists its dependencies"
    lines = [line.removeprefix("#").strip() for line in block[1].splitlines()]
    return tomllib.loads("\n".join(lines))["dependencies"]


def installed(name: str, wanted: list[str]) -> tuple[Path, str]:
    """Return the interpreter of a client's environment, and an error of the installation."""
    place = CACHE / name
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    overrides = CACHE / "overrides.txt"
    overrides.write_text(OVERRIDES)
    # Wheels, as users have them: some clients look for files beside `brax/__init__.py`. uv would
    # take those that it built before.
    again = [
        f"--{verb}-package={path.name}" for path in PACKAGES for verb in ("refresh", "reinstall")
    ]
    failure = "" if python.exists() else call([*UV, "venv", "--quiet", place])
    install = [*UV, "pip", "install", "--quiet", "--python", python, "--overrides", overrides]
    return python, failure or call([*install, *again, *PACKAGES, *wanted])


def call(command: list[str | Path], cwd: Path | None = None) -> str:
    """Run a command and return the last line of its error, or nothing if it ended well.

    A command that reaches the time limit is killed.
    """
    # Otherwise the last line may be JAX's note that it left frames out.
    env = os.environ | {"JAX_TRACEBACK_FILTERING": "off"}
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env=env,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {TIME_LIMIT} s"
    lines = done.stderr.strip().splitlines() or [""]
    return "" if done.returncode == 0 else f"{lines[-1]} (exit code {done.returncode})"


if __name__ == "__main__":
    main()
