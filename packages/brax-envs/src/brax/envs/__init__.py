"""Environments: a collection, and how to find and register them.

Each environment is one module here. `task` and `goal` are what they are made of, `observation` and
`parameters` lay out what they observe and take; `registry` finds them by name, and `wrappers` gives
them the interfaces of other libraries. Nothing here imports agents. Start reading at `ant`, then
`task`.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brax.envs.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Takes the names from `brax.envs.api`, imported, and JAX with it, when one is first used;
    modules, such as `brax.envs.base`, too."""
    api = importlib.import_module("brax.envs.api")
    if hasattr(api, name):
        return getattr(api, name)
    if not name.startswith("_") and importlib.util.find_spec(f"brax.envs.{name}"):
        return importlib.import_module(f"brax.envs.{name}")
    raise AttributeError(f"module 'brax.envs' has no attribute '{name}'")
