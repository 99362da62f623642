"""The usual stack of wrappers for training."""

from brax.env.base import Env, Wrapper
from brax.env.wrappers.auto_reset import AutoResetWrapper, Reset
from brax.env.wrappers.domain_randomization import (
    DomainRandomizationVmapWrapper,
    RandomizationFn,
)
from brax.env.wrappers.episode import EpisodeWrapper
from brax.env.wrappers.vmap import VmapWrapper


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
    """
    if randomization_fn is None:
        batch: Wrapper = VmapWrapper(env)
    else:
        batch = DomainRandomizationVmapWrapper(env, randomization_fn)
    return AutoResetWrapper(EpisodeWrapper(batch, episode_length, action_repeat), reset)
