"""Episodes that end by time alone."""

import jax
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Point

from brax.training.agents.ppo import train as ppo


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_the_value_of_short_episodes_stays_bounded(seed):
    """The squared error of values stays below 0.5.

    A step earns less than 0.04, so a value is below 0.04 / (1 - 0.97) = 1.3, its squared error
    below 2, and a quarter of that below 0.5. With targets made anew in every update it was 375.
    """
    envs = pytest.importorskip("brax.envs", reason="brax-envs is not installed")
    found = []
    ppo.train(
        envs.get_environment("fast"),
        6000,
        episode_length=20,
        num_envs=8,
        batch_size=8,
        num_minibatches=2,
        num_updates_per_batch=4,
        unroll_length=5,
        discounting=0.97,
        learning_rate=3e-4,
        entropy_cost=0.01,
        normalize_observations=True,
        num_evals=6,
        run_evals=False,
        seed=seed,
        progress_fn=lambda steps, metrics: found.append(metrics.get("training/v_loss", 0.0)),
    )
    assert len(found) == 6 and max(found) < 0.5


def test_evaluations_may_have_longer_episodes_than_training():
    settings = {**SMALL, "num_evals": 2, "num_eval_envs": 4, "num_timesteps": 4 * STEP}
    _, params, metrics = ppo.train(Point(), **settings)
    _, same, longer = ppo.train(Point(), **settings, eval_episode_length=30)
    assert metrics["eval/avg_episode_length"] == 20 and longer["eval/avg_episode_length"] == 30
    assert longer["eval/std_episode_length"] == 0
    assert jax.tree.all(jax.tree.map(np.array_equal, params.policy, same.policy))
