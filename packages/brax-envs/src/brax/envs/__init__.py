"""Environments: a collection, and functions to find and register them.

Each environment is one module here. `task` and `goal` are their base classes. `observation` and
`parameters` declare what they observe and which settings they take. `registry` finds them by name,
and `wrappers` adapts them to other libraries. Nothing here imports agents. Start reading at `ant`,
then `task`.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brax.envs.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a name of `brax.envs.api`, or a module such as `brax.envs.base`.

    They are imported at their first use, because `api` imports JAX and `brax --help` does not need
    it.
    """
    api = importlib.import_module("brax.envs.api")
    if hasattr(api, name):
        return getattr(api, name)
    if not name.startswith("_") and importlib.util.find_spec(f"brax.envs.{name}"):
        return importlib.import_module(f"brax.envs.{name}")
    raise AttributeError(f"module 'brax.envs' has no attribute '{name}'")
