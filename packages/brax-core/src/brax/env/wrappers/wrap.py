"""The usual stack of wrappers for training."""

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
    """Makes of one environment a batch that counts, ends and restarts its episodes.

    Args:
        env: one environment.
        episode_length: steps of `env` after which an episode is truncated.
        action_repeat: steps of `env` that one action lasts.
        randomization_fn: gives each environment a system of its own.
        reset: where a new episode starts: 'cached' or 'fresh', see `AutoResetWrapper`.

    Returns:
        An environment whose `reset` takes a batch of keys and whose states have a leading axis.

    Raises:
        ConfigError: if `env` is wrapped so already.
    """
    if (by := already_wrapped(env)) is not None:
        raise ConfigError(
            f"the environment is wrapped already, by {by}: pass wrap the one inside, such as "
            "brax.envs.get_environment makes it"
        )
    if randomization_fn is None:
        batch: Wrapper = VmapWrapper(env)
    else:
        batch = DomainRandomizationVmapWrapper(env, randomization_fn)
    return AutoResetWrapper(EpisodeWrapper(batch, episode_length, action_repeat), reset)


def already_wrapped(env: Env) -> str | None:
    """The name of the outermost wrapper of an environment that `wrap` would add; None if none."""
    while isinstance(env, Wrapper):
        if isinstance(env, _OURS):
            return type(env).__name__
        env = env.env
    return None
