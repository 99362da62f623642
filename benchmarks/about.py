"""Context of a measurement: the machine, the versions, the commit."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from sides import cores

ROOT = Path(__file__).parents[1]
VERSIONS = ("brax-core", "brax-io", "brax-envs", "jax", "jaxlib", "numpy", "mujoco")


def machine() -> dict[str, Any]:
    """Return the processor, its cores that may be used, the memory [GiB], and what JAX runs on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": ", ".join(sorted(names)) or platform.machine(),
        "cores": cores(),
        "memory": round(pages / 2**30, 1),
        "platform": os.environ["JAX_PLATFORMS"],
    }


def versions(*more: str) -> dict[str, str]:
    """Versions of Python and of the packages that decide what is measured."""
    found = {name: metadata.version(name) for name in (*VERSIONS, *more)}
    return {"python": platform.python_version()} | found


def commit() -> str:
    """Return the measured commit, with `-dirty` if the code differs from it."""
    head = _git("rev-parse", "--short", "HEAD")
    code = _git("status", "--porcelain", "--", "packages", "benchmarks/*.py")
    return f"{head}-dirty" if code else head


def _git(*command: str) -> str:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()
