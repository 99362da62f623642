"""Check that no other distribution shares the import name `brax`, as Google's brax does.

Google's distribution `brax` and ours have files of the same names. This file is only in ours.
"""

import sys
from importlib import metadata

from brax.errors import PluginError

OURS = ("brax-core", "brax-io", "brax-envs", "brax-agents")
"""The distributions of this project; their plugins load first, in this order."""


def check() -> None:
    """Raise `PluginError` if Google's distribution is installed, or has replaced our file."""
    for other in metadata.distributions(name="brax"):
        if any(str(file) == "brax/__init__.py" for file in other.files or ()):
            raise _clash(f" {other.version}")
    if getattr(sys.modules["brax"], "DISTRIBUTION", "") not in OURS:
        raise _clash("")


def _clash(version: str) -> PluginError:
    """Return the error, with the command that leaves only ours."""
    found = {name for name in OURS for _ in metadata.distributions(name=name)}
    ours = " ".join(name for name in OURS if name in found)
    return PluginError(
        f"Google's distribution 'brax'{version} is installed together with "
        "brax-core, and both own the import name 'brax'. Keep one in an environment; for ours run: "
        f"pip uninstall -y brax && pip install --force-reinstall --no-deps {ours}"
    )
