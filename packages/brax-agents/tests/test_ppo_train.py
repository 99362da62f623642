"""PPO as a whole, on an environment that takes no time."""

import jax
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Point

from brax.training.agents.ppo import train as ppo


@pytest.fixture(scope="module")
def trained():
    """Return a run with its reports: steps and metrics."""
    reports = []
    result = ppo.train(
        Point(),
        150 * STEP,
        num_evals=4,
        log_training_metrics=True,
        progress_fn=lambda steps, metrics: reports.append((steps, dict(metrics))),
        **SMALL,
    )
    return *result, reports


def test_it_learns(trained):
    *_, metrics, reports = trained
    first = reports[0][1]["eval/episode_reward"]
    assert first < 14
    assert metrics["eval/episode_reward"] > 17.5


def test_reports_count_environment_steps(trained):
    reports = [r for r in trained[-1] if "eval/episode_reward" in r[1]]
    assert [steps for steps, _ in reports] == [0, 50 * STEP, 100 * STEP, 150 * STEP]


def test_the_policy_takes_the_whole_params_or_its_part(trained):
    make_policy, params, *_ = trained
    obs, key = np.array([0.5, 0.1], np.float32), jax.random.key(0)
    whole, _ = make_policy(params, deterministic=True)(obs, key)
    part, _ = make_policy((params.normalizer, params.policy), deterministic=True)(obs, key)
    assert whole.shape == (1,) and whole == part
    assert float(whole[0]) < -0.5  # back to the origin
