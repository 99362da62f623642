"""Acting and evaluation, on environments whose returns are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Point

from brax.env import Env, State, wrap
from brax.training.runner import acting
from brax.training.runner.evaluator import Evaluator


class Countdown(Env):
    """Pays 1 a step; the episode of key number n ends after 1 + n % 4 steps of itself."""

    action_size = 1

    def reset(self, rng):
        lasts = 1.0 + jax.random.randint(rng, (), 0, 4).astype(jnp.float32)
        zero = jnp.zeros(())
        return State(lasts, lasts[None], zero, zero, {"spent_per_step": zero}, {})

    def step(self, state, action):
        left = state.pipeline_state - 1
        return state.replace(
            pipeline_state=left,
            obs=left[None],
            reward=jnp.ones(()),
            done=(left <= 0).astype(jnp.float32),
            metrics={"spent_per_step": 2.0 * jnp.ones(())},
        )


def _still(obs, key):
    return jnp.zeros((*obs.shape[:-1], 1)), {}


def _evaluate(env, length, action_repeat=1, **kwargs):
    wrapped = wrap(env, episode_length=length, action_repeat=action_repeat)
    evaluator = Evaluator(
        wrapped, lambda params: _still, 64, length, action_repeat, jax.random.key(0)
    )
    return evaluator.run_evaluation((), {"training/x": 1.0}, **kwargs)


@pytest.fixture(scope="module")
def metrics():
    return _evaluate(Countdown(), 3)


def test_each_environment_counts_its_first_episode_only(metrics):
    """Lengths are 1, 2, 3 and 3 (of 4, truncated), and the reward is the length."""
    length = metrics["eval/avg_episode_length"]
    assert 1.5 < length < 3
    assert metrics["eval/episode_reward"] == pytest.approx(length)
    assert metrics["eval/episode_reward_std"] == pytest.approx(metrics["eval/std_episode_length"])


def test_metrics_per_step_are_divided_by_the_length(metrics):
    assert metrics["eval/episode_spent_per_step"] == pytest.approx(2.0)
    assert metrics["eval/episode_spent_per_step_std"] == pytest.approx(0.0)


def test_the_keys_that_plots_rely_on(metrics):
    assert {"eval/epoch_eval_time", "eval/sps", "eval/walltime", "training/x"} <= set(metrics)
    assert np.isfinite(list(metrics.values())).all()


def test_episodes_one_by_one():
    metrics = _evaluate(Countdown(), 3, aggregate_episodes=False)
    assert metrics["eval/episode_reward"].shape == (64,)
    assert set(metrics["eval/episode_reward"]) == {1.0, 2.0, 3.0}
    assert metrics["eval/episode_reward"].sum() == pytest.approx(
        64 * metrics["eval/avg_episode_length"]
    )


@pytest.mark.parametrize("length", [12, 10])
def test_action_repeat_counts_environment_steps(length):
    """Also where the last action lasts for fewer than all of its repeats."""
    metrics = _evaluate(Point(), length, action_repeat=3)
    assert metrics["eval/avg_episode_length"] == length
    distance = metrics["eval/episode_distance"]
    assert metrics["eval/episode_reward"] == pytest.approx(length - distance, abs=1e-4)


def test_every_evaluation_starts_from_fresh_resets():
    wrapped = wrap(Point(), episode_length=2)
    evaluator = Evaluator(wrapped, lambda p: _still, 8, 2, 1, jax.random.key(0))
    rewards = [evaluator.run_evaluation((), {})["eval/episode_reward"] for _ in range(2)]
    assert rewards[0] != rewards[1]


@pytest.fixture(scope="module")
def unroll():
    env = wrap(Point(), episode_length=3)
    first = env.reset(jax.random.split(jax.random.key(1), 4))

    def policy(obs, key):
        return -0.1 * obs[..., :1], {"seen": obs[..., 0]}

    run = jax.jit(lambda s: acting.generate_unroll(env, s, policy, jax.random.key(2), 5, ["steps"]))
    return first, *run(first)


def test_time_comes_first(unroll):
    _, last, data = unroll
    assert data.observation.shape == (5, 4, 2) and data.reward.shape == (5, 4)
    assert data.extras["policy_extras"]["seen"].shape == (5, 4)
    np.testing.assert_array_equal(data.extras["state_extras"]["steps"][:, 0], [1, 2, 3, 1, 2])
    np.testing.assert_array_equal(last.info["steps"], 2)


def test_where_no_last_observation_is_kept_that_before_a_truncated_step_stands_for_it():
    """The second of three environments is truncated, and the third terminates."""
    number = jnp.array([0.0, 1.0, 1.0])
    info = {"truncation": jnp.array([0.0, 1.0, 0.0])}
    before = State((), jnp.array([[1.0], [2.0], [3.0]]), number, number)
    after = State((), jnp.array([[4.0], [5.0], [6.0]]), number, number, {}, info)
    found = acting.last_observation(before, after)
    np.testing.assert_array_equal(found, [[4.0], [2.0], [6.0]])
    kept = after.replace(info=info | {"terminal_obs": 10 * after.obs})
    np.testing.assert_array_equal(acting.last_observation(before, kept), 10 * after.obs)


def test_the_next_observation_is_the_true_one_where_the_environment_was_reset(unroll):
    first, _, data = unroll
    x = np.asarray(first.obs)[:, 0]
    expected = x * np.float32(0.98) ** 3  # each step moves by 0.2 * -0.1 x
    np.testing.assert_allclose(data.next_observation[2, :, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(data.observation[3, :, 0], x, rtol=1e-6)
    np.testing.assert_array_equal(data.discount[:, 0], [1, 1, 0, 1, 1])
