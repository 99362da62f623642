"""Environments: a collection, and how to find and register them."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brax.envs.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Takes the names from `brax.envs.api`, imported, and JAX with it, when one is first used."""
    return getattr(importlib.import_module("brax.envs.api"), name)
