"""The names of `from brax import envs`: functions to find and register environments."""

from brax.env import Env, PipelineEnv, State, Wrapper
from brax.envs.registry import (
    _envs,
    create,
    get_environment,
    list_environments,
    register_environment,
)
from brax.envs.wrappers import training

__all__ = [
    "Env",
    "PipelineEnv",
    "State",
    "Wrapper",
    "_envs",
    "create",
    "get_environment",
    "list_environments",
    "register_environment",
    "training",
]
