"""Environments by name."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from brax import plugins
from brax.env import AutoResetWrapper, Env, EpisodeWrapper, VmapWrapper
from brax.errors import ConfigError
from brax.plugins.outputs.environment import make


def get_environment(env_name: str, **kwargs: object) -> Env:
    """Return a new environment.

    Args:
        env_name: a registered name, see `list_environments`.
        **kwargs: arguments of its constructor, such as `backend`.

    Raises:
        UnknownNameError: if there is no such environment.
        ConfigError: if it does not take one of the arguments.
        PluginError: if the registered object does not return an environment.
    """
    return make(env_name, **kwargs)


def create(
    env_name: str,
    episode_length: int | None = 1000,
    action_repeat: int = 1,
    auto_reset: bool = True,
    batch_size: int | None = None,
    **kwargs: object,
) -> Env:
    """Return a new environment with wrappers.

    Args:
        env_name: a registered name.
        episode_length: number of steps after which an episode is truncated; None means no limit, no
            counting of steps and no repetition of actions.
        action_repeat: number of steps for which an action is repeated.
        auto_reset: whether an episode that ends is followed by another one, from the same initial
            state.
        batch_size: number of environments in the batch; None makes a single one.
        **kwargs: arguments of the environment's constructor.

    Raises:
        UnknownNameError: if there is no such environment.
        ConfigError: if an argument is not allowed.
    """
    if not isinstance(auto_reset, bool):
        raise ConfigError(f"auto_reset must be True or False, got {auto_reset!r}")
    env = get_environment(env_name, **kwargs)
    if batch_size is not None:
        # Innermost, so that the other wrappers count and reset each environment of the batch.
        env = VmapWrapper(env, batch_size)
    if episode_length is not None:
        env = EpisodeWrapper(env, episode_length, action_repeat)
    return AutoResetWrapper(env) if auto_reset else env


def register_environment(
    env_name: str, env_class: Callable[..., Env], override: bool = False
) -> None:
    """Register an environment in this process, such as one defined in a notebook.

    Args:
        env_name: its name.
        env_class: its class, or a function that makes it.
        override: whether to replace another environment of the same name without a warning. A
            class that a notebook's cell has defined again is not another one.

    Raises:
        ConfigError: if `env_class` is not a class or function.
    """
    if not callable(env_class):
        raise ConfigError(
            f"environment '{env_name}': {env_class!r:.60} cannot be called; register the class, or "
            "a function that makes the environment"
        )
    name = f"register_environment {env_name}"
    taken = plugins.specs("environment").get(env_name)
    if taken is not None and taken.spec.target is env_class:
        return
    # A notebook's cell that runs again makes a new class with the same name.
    redefined = (
        taken is not None and taken.distribution == name and _same(taken.spec.target, env_class)
    )
    if taken is not None and not (override or redefined):
        warnings.warn(
            f"environment '{env_name}' replaces the one of {taken.origin}, in this process: "
            "choose another name, or pass override=True",
            stacklevel=2,
        )
    spec = plugins.Spec(env_name, env_class, (env_class.__doc__ or "").partition("\n")[0])
    if taken is not None and taken.distribution == name:
        plugins.unregister(name)
    plugins.register(_Plugin(spec), name, override=taken is not None)


def _same(one: object, other: object) -> bool:
    """Return whether two classes or functions have the same name in the same module."""
    names = [(f.__module__, getattr(f, "__qualname__", None)) for f in (one, other)]
    return names[0] == names[1] and names[0][1] is not None


class _Plugin:
    """A plugin with one environment."""

    BRAX_PLUGIN_API = plugins.API_VERSION

    def __init__(self, spec: plugins.Spec) -> None:
        self._spec = spec

    @plugins.hookimpl
    def brax_environments(self) -> list[plugins.Spec]:
        """Return the environment."""
        return [self._spec]


def list_environments() -> list[str]:
    """Return the names of all registered environments."""
    return plugins.names("environment")


class _Environments(Mapping[str, Any]):
    """The classes of all registered environments by name, as Google's brax has them."""

    def __getitem__(self, name: str) -> Any:
        """Return the class of an environment, or the function that makes it."""
        return plugins.get("environment", name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names that are registered now."""
        return iter(list_environments())

    def __len__(self) -> int:
        """Return the number of names."""
        return len(list_environments())


_envs = _Environments()
