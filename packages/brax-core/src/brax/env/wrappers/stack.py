"""`wrap`: the usual stack of wrappers for training."""

import warnings

from brax.env.base import Env, Wrapper
from brax.env.wrappers.auto_reset import AutoResetWrapper, Reset
from brax.env.wrappers.domain_randomization import (
    DomainRandomizationVmapWrapper,
    RandomizationFn,
)
from brax.env.wrappers.episode import EpisodeWrapper
from brax.env.wrappers.vmap import VmapWrapper
from brax.errors import ConfigError

_OURS = (AutoResetWrapper, EpisodeWrapper, DomainRandomizationVmapWrapper, VmapWrapper)


def wrap(
    env: Env,
    episode_length: int = 1000,
    action_repeat: int = 1,
    randomization_fn: RandomizationFn | None = None,
    reset: Reset = "cached",
) -> Wrapper:
    """Return a batch of an environment that counts, ends and restarts its episodes.

    Args:
        env: one environment.
        episode_length: steps of `env` after which an episode is truncated.
        action_repeat: steps of `env` that one action lasts.
        randomization_fn: gives each environment a system of its own.
        reset: start of a new episode: 'cached' or 'fresh', see `AutoResetWrapper`.

    Returns:
        An environment whose `reset` takes a batch of keys and whose states have a leading axis.

    Raises:
        ConfigError: if `env` has wrappers of another package around these.
    """
    env = inner(env)
    if randomization_fn is None:
        batch: Wrapper = VmapWrapper(env)
    else:
        batch = DomainRandomizationVmapWrapper(env, randomization_fn)
    # The batch is inside: `EpisodeWrapper` then handles all environments in one array operation,
    # and `AutoResetWrapper` can skip `reset` when no environment of the batch has ended.
    return AutoResetWrapper(EpisodeWrapper(batch, episode_length, action_repeat), reset)


def inner(env: Env) -> Env:
    """Return an environment without the wrappers of `wrap`, with a warning if it has any.

    A second stack would count steps and restart episodes inside the first one's.

    Raises:
        ConfigError: if they are inside a wrapper of another package.
    """
    bare = env
    while isinstance(bare, _OURS):
        bare = bare.env
    hidden = bare
    while isinstance(hidden, Wrapper):
        hidden = hidden.env
        if isinstance(hidden, _OURS):
            raise ConfigError(
                f"the environment is wrapped already: {type(bare).__name__} is around "
                f"{type(hidden).__name__}. Put {type(bare).__name__} around an environment such as "
                "brax.envs.get_environment makes it"
            )
    if bare is not env:
        warnings.warn(
            f"the environment is wrapped already, by {type(env).__name__}: the one inside, "
            f"{type(bare).__name__}, is wrapped instead. Pass that one, such as "
            "brax.envs.get_environment makes it",
            stacklevel=3,
        )
    return bare
