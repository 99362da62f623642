"""REPPO as a whole, on environments that take no time."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from agent_toys import Counter, Point, make_learner

from brax import plugins
from brax.training.agents.reppo import train as reppo
from brax.training.agents.reppo.losses import REPPOWeights
from brax.training.checkpoints import checkpoint

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {
    "episode_length": 20,
    "num_envs": 16,
    "unroll_length": 10,
    "num_minibatches": 4,
    "num_updates_per_batch": 4,
    "discounting": 0.9,
    "learning_rate": 1e-2,
    "v_min": -10.0,
    "v_max": 10.0,
    "normalize_observations": True,
    "network_factory": {
        "policy_hidden_layer_sizes": [16],
        "value_hidden_layer_sizes": [16],
        "num_bins": 21,
    },
}


def test_it_learns():
    """20 steps earn at most 20 in all, and 10 on average by doing nothing."""
    reports = []
    make_policy, params, metrics = reppo.train(
        Point(),
        160 * 100,
        num_evals=2,
        num_eval_envs=64,
        deterministic_eval=True,
        progress_fn=lambda steps, metrics: reports.append((steps, dict(metrics))),
        **SMALL,
    )
    assert [steps for steps, _ in reports] == [0, 16000]
    assert reports[0][1]["eval/episode_reward"] < 14
    assert metrics["eval/episode_reward"] > 17.5
    # The bound, 0.1, holds at most observations, also where the first statistics still change.
    assert 0.0 < metrics["training/kl"] < 0.2
    assert metrics["training/clipped_targets"] < 0.01
    obs, key = np.array([0.5, 0.1], np.float32), jax.random.key(0)
    whole, _ = make_policy(params, deterministic=True)(obs, key)
    part, _ = make_policy(params[:2], deterministic=True)(obs, key)
    assert whole == part and float(whole[0]) < -0.3


def test_targets_of_both_ends():
    """The true last observation decides the value after a truncation, and none after a termination.

    Those of `Counter` end of themselves after 2 steps or, here, by the time limit after 3. With a
    lambda of 0, the target of a step is its scaled reward and the discounted soft value after it.
    """
    settings: dict[str, Any] = {
        **SMALL,
        "episode_length": 3,
        "td_lambda": 0.0,
        "reward_scaling": 0.5,
    }
    learner = make_learner(plugins.get("trainer", "reppo"), Counter(), **settings)
    state = jax.jit(learner.init)(jax.random.key(0))
    key = jax.random.key(1)
    _, batch, _ = jax.jit(learner._collect)(state, key)
    count, ends = np.moveaxis(np.asarray(batch.observation).reshape(10, 16, 2), -1, 0)
    terminated, truncated = (ends == 2) & (count == 1), (ends == 100) & (count == 2)
    assert terminated.any() and truncated.any()
    _, next_key = jax.random.split(key)
    after = learner._soft_value(state, jnp.stack([count + 1, ends], axis=-1), next_key)
    target = 0.5 * (count + 1) + 0.9 * np.where(terminated, 0.0, after)
    np.testing.assert_allclose(batch.target.reshape(10, 16), target, rtol=1e-4, atol=1e-5)


def test_a_soft_value_is_the_value_and_minus_the_log_density():
    learner = make_learner(plugins.get("trainer", "reppo"), Point(), **SMALL)
    state = jax.jit(learner.init)(jax.random.key(0))
    obs, key = jax.random.normal(jax.random.key(2), (7, 2)), jax.random.key(3)
    action, drawn = learner._policy(state.params)(obs, key)
    params = state.params
    logits = learner.networks.q_network.apply(params.normalizer, params.value, obs, action)
    share = np.exp(np.asarray(logits, np.float64))
    value = share @ np.linspace(-10 + 10 / 21, 10 - 10 / 21, 21) / share.sum(axis=1)
    found = learner._soft_value(state._replace(log_temperature=jnp.log(0.2)), obs, key)
    np.testing.assert_allclose(found, value - 0.2 * drawn["log_prob"], rtol=1e-4, atol=1e-4)


def test_the_divergence_is_of_the_policy_that_acted():
    """The experience has the outputs of the policy by the statistics of observations of then."""
    learner = make_learner(plugins.get("trainer", "reppo"), Point(), **SMALL)
    state = jax.jit(learner.init)(jax.random.key(0))
    seen = 3.0 * jax.random.normal(jax.random.key(2), (50, 2)) + 1.0
    normalizer = learner.normalizer_after(state.params.normalizer, seen)
    state = state._replace(params=state.params._replace(normalizer=normalizer))
    _, batch, _ = jax.jit(learner._collect)(state, jax.random.key(1))
    policy = learner.networks.policy_network
    logits = policy.apply(normalizer, state.params.policy, batch.observation)
    np.testing.assert_allclose(batch.logits, logits, rtol=1e-4, atol=1e-5)


def test_gradients_of_both_networks_are_clipped_separately():
    """After one update Adam's first mean is a tenth of the clipped gradient."""
    settings: dict[str, Any] = {**SMALL, "num_minibatches": 1, "num_updates_per_batch": 1}
    settings |= {"reward_scaling": 100.0, "v_max": 1000.0, "v_min": -1000.0}
    learner = make_learner(plugins.get("trainer", "reppo"), Point(), **settings)
    state, _ = jax.jit(learner.training_step)(jax.jit(learner.init)(jax.random.key(0)))
    assert int(state.params.normalizer.count) == 160
    norms = []
    for name in ("policy", "critic"):
        means = optax.tree.get(state.optimizer_state.inner_states[name], "mu")
        leaves = [np.ravel(x) for x in jax.tree.leaves(means)]
        norms.append(10.0 * np.linalg.norm(np.concatenate(leaves)))
    assert norms == pytest.approx([0.5, 0.5], rel=1e-3)


def test_a_rate_that_falls_goes_on_from_a_checkpoint(tmp_path):
    """Two training steps of 16 updates each; the second begins at half of the first rate."""
    folders = tmp_path / "whole", tmp_path / "rest"
    settings: dict[str, Any] = {**SMALL, "learning_rate_schedule": "LINEAR", "run_evals": False}
    for folder, start in zip(folders, (None, folders[0] / f"{160:012d}"), strict=True):
        reppo.train(
            Point(),
            320,
            save_interval_steps=160,
            save_checkpoint_path=folder,
            restore_checkpoint_path=start,
            **settings,
        )
    one, other = (checkpoint.load(folder).arrays for folder in folders)
    assert [name for name in one if not np.array_equal(one[name], other[name])] == []


def test_a_rate_that_falls_is_half_in_the_middle():
    """Adam's steps along a constant gradient are the step size: here in 2 * 4 * 4 updates."""
    settings: dict[str, Any] = {**SMALL, "num_timesteps": 320, "learning_rate_schedule": "LINEAR"}
    optimizer = make_learner(plugins.get("trainer", "reppo"), Point(), **settings)._optimizer
    weights = REPPOWeights(*jnp.ones(4))
    state = optimizer.init(weights)
    for update in range(33):
        step, state = optimizer.update(weights, state)
        np.testing.assert_allclose(step, -1e-2 * (1.0 - update / 32), rtol=1e-4, atol=1e-8)


def test_staggered_episodes_end_one_by_one():
    """After 10 of 20 steps those have ended that began at step 10 or later, and no others."""
    for stagger in (False, True):
        settings: dict[str, Any] = SMALL | {"stagger_episodes": stagger}
        learner = make_learner(plugins.get("trainer", "reppo"), Point(), **settings)
        first = jax.jit(learner.init)(jax.random.key(0))
        for state in (first, jax.jit(learner.fresh_environments)(first)):
            began = np.asarray(state.env_state.info["steps"])
            assert len(set(began)) > 8 if stagger else not began.any()
            assert began.min() >= 0 and began.max() < 20
        *_, ended = jax.jit(learner._collect)(state, jax.random.key(1))
        assert int(ended.episodes_ended) == np.sum(began >= 10)
