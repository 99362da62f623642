"""The first episodes, and nothing else, count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.env import EvalWrapper, VmapWrapper, wrap
from brax.errors import ConfigError


def test_only_first_episodes_count(walker):
    env = EvalWrapper(wrap(walker(end=2.6), episode_length=4))
    state = jax.jit(env.reset)(jax.random.split(jax.random.key(0), 3))
    step = jax.jit(env.step)
    actions = jnp.array([[2.0], [0.25], [1.0]])
    for _ in range(7):
        state = step(state, actions)
    # By hand: 2 a step ends beyond 2.6 in step 2, 0.25 a step at the limit of 4, 1 a step in 3.
    result = state.info["eval_metrics"]
    assert result.episode_steps.tolist() == [2, 4, 3]
    assert result.active_episodes.tolist() == [0, 0, 0]
    assert result.episode_metrics["reward"].tolist() == [4, 1, 3]
    assert result.episode_metrics["squared"].tolist() == [8, 0.25, 3]


def test_stepping_twice_from_one_state(walker):
    env = EvalWrapper(wrap(walker(), episode_length=4))
    state = jax.jit(env.reset)(jax.random.split(jax.random.key(0), 2))
    step = jax.jit(env.step)
    once, again = (step(state, jnp.ones((2, 1))) for _ in range(2))
    assert jax.tree.all(jax.tree.map(np.array_equal, once, again))
    assert once.metrics["reward"].tolist() == [1, 1]
    assert state.info["eval_metrics"].episode_metrics["reward"].tolist() == [0, 0]


def test_it_needs_a_step_count(walker):
    with pytest.raises(ConfigError, match="EpisodeWrapper"):
        EvalWrapper(VmapWrapper(walker(), 2)).reset(jax.random.key(0))
