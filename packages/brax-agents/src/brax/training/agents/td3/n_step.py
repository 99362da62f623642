"""Transitions over several steps, made from single steps when they are drawn from a replay buffer.

A transition has at most `steps` steps. It is shorter where the episode ends within them.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.training import types
from brax.training.learner import ends
from brax.training.learning.replay_buffers import ReplayBuffer, ReplayBufferState


class Step(NamedTuple):
    """A step as the replay buffer keeps it, leaves (n, ...)."""

    observation: Any
    """Observation that the policy acted on."""
    action: jax.Array
    """Action, in (-1, 1), (n, action_size)."""
    reward: jax.Array
    """Reward, unscaled, (n,)."""
    terminated: jax.Array
    """1 where the episode terminated, 0 where it was truncated or continues, (n,)."""
    last: jax.Array
    """1 at the last step of an episode, for whatever reason it ended, (n,)."""
    next_observation: Any
    """The true observation after the step."""

    @staticmethod
    def like(observation: object, action_size: int) -> "Step":
        """Return a single step of zeros, which gives the buffer its shapes."""
        number, action = jnp.zeros(()), jnp.zeros(action_size)
        return Step(observation, action, number, number, number, observation)

    @staticmethod
    def of(data: types.Transition) -> "Step":
        """Return a step of all environments, leaves (num_envs, 1, ...), for `ReplayBuffer.insert`.

        The extras must have the state's `truncation`.
        """
        terminated, truncated = ends(data)
        last = jnp.maximum(terminated, truncated)
        kept = data.observation, data.action, data.reward, terminated, last, data.next_observation
        return Step(*jax.tree.map(lambda x: x[:, None], kept))


class NStep(NamedTuple):
    """A transition over several steps, leaves (n, ...)."""

    observation: Any
    """Observation before the first step."""
    action: jax.Array
    """Action of the first step, (n, action_size)."""
    reward: jax.Array
    """Discounted sum of the rewards of all steps, unscaled, (n,)."""
    discount: jax.Array
    """Factor of the value of `next_observation`: 0 where the episode terminated, (n,)."""
    next_observation: Any
    """The true observation after the last step."""


def draw(
    buffer: ReplayBuffer,
    state: ReplayBufferState,
    key: jax.Array,
    steps: int,
    discounting: float,
) -> NStep:
    """Draw transitions uniformly, with replacement.

    Args:
        buffer: buffer of `Step`.
        state: its state, filled with at least `steps` steps of each environment.
        key: random key.
        steps: number of steps, at least 1.
        discounting: discount factor per step.
    """
    env, places = buffer.draw_windows(state, key, steps)
    data: Step = state.data
    last = _read(data.last, env[:, None], places)
    # 1 from the first step to the end of the episode or of the window: (n, steps).
    inside = jnp.cumprod(1.0 - last[:, :-1], axis=1)
    inside = jnp.concatenate([jnp.ones_like(last[:, :1]), inside], axis=1)
    number = jnp.sum(inside, axis=1).astype(jnp.int32)
    discounts = discounting ** jnp.arange(steps + 1, dtype=last.dtype)
    reward = _read(data.reward, env[:, None], places)
    first = places[:, 0]
    end = jnp.take_along_axis(places, number[:, None] - 1, axis=1)[:, 0]
    return NStep(
        observation=_read(data.observation, env, first),
        action=_read(data.action, env, first),
        # `where` and not a product with 0: a later episode's reward need not be finite.
        reward=jnp.sum(jnp.where(inside > 0, discounts[:steps] * reward, 0.0), axis=1),
        discount=discounts[number] * (1.0 - _read(data.terminated, env, end)),
        next_observation=_read(data.next_observation, env, end),
    )


def end_episodes(buffer: ReplayBuffer, state: ReplayBufferState) -> ReplayBufferState:
    """Mark the newest step of every environment as the last of its episode.

    This is for resets that no step shows: a transition must not lead across them.
    """
    newest = (state.position - 1) % buffer.steps
    last = state.data.last.at[:, newest].set(1.0)
    return state._replace(data=state.data._replace(last=last))


def _read(tree: object, env: jax.Array, step: jax.Array) -> Any:
    """Return the entries of some environments at some places of their rings."""
    return jax.tree.map(lambda x: x.at[env, step].get(mode="promise_in_bounds"), tree)
