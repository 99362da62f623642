"""`wrap`: the usual stack of wrappers for training."""

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
        ConfigError: if `env` is wrapped already.
    """
    # A second stack would count steps and restart episodes inside the first one's.
    if (by := already_wrapped(env)) is not None:
        raise ConfigError(
            f"the environment is wrapped already, by {by}: pass wrap the one inside, such as "
            "brax.envs.get_environment makes it"
        )
    if randomization_fn is None:
        batch: Wrapper = VmapWrapper(env)
    else:
        batch = DomainRandomizationVmapWrapper(env, randomization_fn)
    # The batch is inside: `EpisodeWrapper` then handles all environments in one array operation,
    # and `AutoResetWrapper` can skip `reset` when no environment of the batch has ended.
    return AutoResetWrapper(EpisodeWrapper(batch, episode_length, action_repeat), reset)


def already_wrapped(env: Env) -> str | None:
    """Return the name of the outermost wrapper that `wrap` would add; None if there is none."""
    while isinstance(env, Wrapper):
        if isinstance(env, _OURS):
            return type(env).__name__
        env = env.env
    return None
