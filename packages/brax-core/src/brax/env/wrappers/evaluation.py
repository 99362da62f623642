"""`EvalWrapper`: measures the first episode of each environment."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.base import Base, dataclass
from brax.env.base import State, Wrapper, check_state
from brax.errors import ConfigError


@dataclass
class EvalMetrics(Base):
    """Sums over the first episodes so far."""

    episode_metrics: dict[str, jax.Array]
    """Sums of the reward and of each metric, shape (*batch,)."""
    active_episodes: jax.Array
    """1 while the first episode lasts, else 0; shape (*batch,)."""
    episode_steps: jax.Array
    """Steps of the first episode, int32, shape (*batch,)."""


class EvalWrapper(Wrapper):
    """A wrapper that sums reward and metrics over the first episodes, in `eval_metrics`.

    The reward is also reported as the metric `reward`.
    """

    def reset(self, rng: jax.Array) -> State:
        """Start the first episodes.

        Raises:
            ConfigError: if no `EpisodeWrapper` counts the steps.
        """
        state = self.env.reset(rng)
        if "steps" not in state.info:
            raise ConfigError("EvalWrapper needs an environment in an EpisodeWrapper: use wrap")
        metrics = state.metrics | {"reward": state.reward}
        sums = jax.tree.map(jnp.zeros_like, metrics)
        steps = jnp.zeros_like(state.info["steps"])
        return _report(state, EvalMetrics(sums, jnp.ones_like(state.done), steps))

    def step(self, state: State, action: jax.Array) -> State:
        """Advance, and add to the sums of the first episodes that have not ended.

        Args:
            state: from `reset` or `step`.
            action: shape (*batch, action_size).

        Raises:
            ShapeError: if the state does not come from `reset`.
        """
        check_state(self, state, "eval_metrics")
        before: EvalMetrics = state.info["eval_metrics"]
        inner: dict[str, Any] = {k: v for k, v in state.info.items() if k != "eval_metrics"}
        new = self.env.step(state.replace(info=inner), action)
        # Read before the step, so that the reward of an episode's last step still counts.
        active = before.active_episodes > 0
        earned = new.metrics | {"reward": new.reward}
        sums = {
            name: total + jnp.where(active, earned[name], 0)
            for name, total in before.episode_metrics.items()
        }
        steps = jnp.where(active, new.info["steps"], before.episode_steps)
        return _report(new, EvalMetrics(sums, before.active_episodes * (1 - new.done), steps))


def _report(state: State, metrics: EvalMetrics) -> State:
    """Return the state with the metric `reward` and with `eval_metrics`."""
    return state.replace(
        metrics=state.metrics | {"reward": state.reward},
        info=state.info | {"eval_metrics": metrics},
    )
