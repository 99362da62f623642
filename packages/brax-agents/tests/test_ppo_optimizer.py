"""PPO's optimizer, and its networks at the start, against arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.training.agents.ppo.config import PPOConfig
from brax.training.agents.ppo.networks import make_ppo_networks
from brax.training.agents.ppo.optimizer import (
    LRSchedule,
    adaptive_kl_learning_rate,
    make_optimizer,
)

WEIGHTS = jnp.array([1.0, -2.0])
GRADIENT = jnp.array([30.0, -0.1])


def _optimizer(**settings):
    optimizer = make_optimizer(PPOConfig(**{"learning_rate": 0.003, **settings}))
    return optimizer, optimizer.init(WEIGHTS)


@pytest.mark.parametrize(
    ("kl", "rate"),
    [
        (0.0, 0.003),  # nothing has moved yet
        (0.004, 0.0045),
        (0.006, 0.003),
        (0.019, 0.003),
        (0.021, 0.002),
    ],
)
def test_the_step_size_follows_how_far_the_policy_moved(kl, rate):
    """Desired is 0.01. Adam's first step is the step size, whatever the gradient."""
    optimizer, state = _optimizer(learning_rate_schedule=LRSchedule.ADAPTIVE_KL)
    state, found = adaptive_kl_learning_rate(state, jnp.float32(kl), 0.01)
    assert float(found) == pytest.approx(rate)
    step, _ = optimizer.update(GRADIENT, state, WEIGHTS)
    np.testing.assert_allclose(step, [-rate, rate], rtol=1e-5)


def test_the_step_size_stays_between_its_bounds_and_is_kept():
    _, state = _optimizer(learning_rate_schedule="ADAPTIVE_KL")
    for kl, rate in [(1e-4, 0.0045), (1e-4, 0.005), (1.0, 0.005 / 1.5), (1.0, 0.003), (1.0, 0.003)]:
        state, found = adaptive_kl_learning_rate(state, jnp.float32(kl), 0.01, 0.003, 0.005)
        assert float(found) == pytest.approx(rate)


@pytest.mark.parametrize("schedule", [None, "NONE"])
def test_without_a_schedule_the_step_size_is_a_constant(schedule):
    optimizer, state = _optimizer(learning_rate_schedule=schedule)
    step, _ = optimizer.update(GRADIENT, state, WEIGHTS)
    np.testing.assert_allclose(step, [-0.003, 0.003], rtol=1e-5)


def test_the_step_size_falls_to_zero_over_the_run():
    """Adam's steps along a constant gradient are the step size: here in 2 * 3 * 2 updates."""
    run = {"num_timesteps": 160, "batch_size": 8, "num_minibatches": 2, "num_updates_per_batch": 3}
    optimizer, state = _optimizer(learning_rate_schedule="LINEAR", unroll_length=5, **run)
    for update in range(14):
        step, state = optimizer.update(GRADIENT, state, WEIGHTS)
        rate = 0.003 * max(1.0 - update / 12, 0.0)
        np.testing.assert_allclose(step, [-rate, rate], rtol=1e-4)


@pytest.mark.parametrize("schedule", [None, "ADAPTIVE_KL"])
def test_the_gradient_is_bounded_by_its_norm(schedule):
    """Adam's second step tells how large the first gradient was beside the second."""
    optimizer, state = _optimizer(learning_rate_schedule=schedule, max_grad_norm=1.0)
    _, state = optimizer.update(jnp.array([3.0, 4.0]), state, WEIGHTS)
    step, _ = optimizer.update(jnp.array([0.6, 0.0]), state, WEIGHTS)
    mean = (0.1 * 0.9 * 0.6 + 0.1 * 0.6) / (1 - 0.9**2)
    square = (0.001 * 0.999 * 0.36 + 0.001 * 0.36) / (1 - 0.999**2)
    assert float(step[0]) == pytest.approx(-0.003 * mean / np.sqrt(square), rel=1e-4)


def _deviations(**settings):
    """Deviations that a policy starts with, at five observations."""
    networks = make_ppo_networks(
        3, 2, policy_hidden_layer_sizes=(8,), distribution_type="normal", **settings
    )
    observations = jax.random.normal(jax.random.key(1), (5, 3))
    params = networks.policy_network.init(jax.random.key(0))
    outputs = networks.policy_network.apply((), params, observations)
    return networks.parametric_action_distribution.loc_scale(outputs)


@pytest.mark.parametrize("kind", ["scalar", "log"])
def test_a_normal_policy_starts_with_the_deviation_asked_for(kind):
    mean, std = _deviations(noise_std_type=kind, init_noise_std=0.7)
    np.testing.assert_allclose(std, 0.7, rtol=1e-5)
    assert np.std(mean, axis=0).min() > 0.01
    _, std = _deviations(noise_std_type=kind, init_noise_std=0.7, state_dependent_std=True)
    assert np.std(std, axis=0).min() > 0.001


def test_weights_start_as_asked_for():
    networks = make_ppo_networks(
        3,
        2,
        policy_hidden_layer_sizes=(3,),
        value_hidden_layer_sizes=(4,),
        distribution_type="normal",
        policy_network_kernel_init_fn="orthogonal",
        policy_network_kernel_init_kwargs={"scale": 2.0},
        value_network_kernel_init_fn=jax.nn.initializers.constant,
        value_network_kernel_init_kwargs={"value": 0.25},
        mean_kernel_init_fn="zeros",
    )
    policy = networks.policy_network.init(jax.random.key(0))["params"]
    trunk = np.asarray(policy["trunk"]["hidden_0"]["kernel"])
    np.testing.assert_allclose(trunk @ trunk.T, 4 * np.eye(3), atol=1e-5)
    np.testing.assert_array_equal(policy["mean"]["kernel"], 0.0)
    value = networks.value_network.init(jax.random.key(0))["params"]
    np.testing.assert_array_equal(value["hidden_1"]["kernel"], 0.25)
