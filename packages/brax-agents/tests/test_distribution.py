"""Distributions against quadrature and Monte Carlo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.kernels.rows import map_rows
from brax.training.nn.distribution import (
    NormalDistribution,
    NormalTanhDistribution,
    softplus,
)

PARAMETERS = jnp.array([0.4, -0.3])
"""Mean 0.4 and deviation softplus(-0.3) + 0.001 of one raw action."""


def _raw_grid():
    return np.linspace(-12.0, 12.0, 200_001)


@pytest.mark.parametrize("kind", [NormalTanhDistribution, NormalDistribution])
def test_the_density_of_actions_integrates_to_one(kind):
    # T89
    distribution = kind(1)
    raw = _raw_grid()
    action = np.asarray(distribution.postprocess(jnp.asarray(raw)), np.float64)
    log_prob = jax.vmap(distribution.log_prob, (None, 0))(PARAMETERS, jnp.asarray(raw)[:, None])
    inside = np.abs(raw) < 6  # beyond, tanh in float32 cannot tell actions apart
    total = np.trapezoid(np.exp(np.asarray(log_prob, np.float64))[inside], action[inside])
    assert total == pytest.approx(1.0, abs=1e-3)


def test_the_density_is_that_of_a_squashed_normal_variable():
    raw, (loc, scale) = 0.7, NormalTanhDistribution(1).loc_scale(PARAMETERS)
    normal = np.exp(-0.5 * ((raw - loc[0]) / scale[0]) ** 2) / (scale[0] * np.sqrt(2 * np.pi))
    expected = np.log(normal / (1 - np.tanh(raw) ** 2))
    got = NormalTanhDistribution(1).log_prob(PARAMETERS, jnp.array([raw]))
    assert float(got) == pytest.approx(float(expected), rel=1e-5)


def test_the_deviation_is_softplus_and_at_least_the_minimum():
    loc, scale = NormalTanhDistribution(1).loc_scale(PARAMETERS)
    assert float(loc[0]) == pytest.approx(0.4)
    assert float(scale[0]) == pytest.approx(np.log1p(np.exp(-0.3)) + 0.001, rel=1e-6)


def test_entropy_agrees_with_quadrature():
    # T89
    distribution = NormalTanhDistribution(1)
    raw = _raw_grid()
    log_prob = jax.vmap(distribution.log_prob, (None, 0))(PARAMETERS, jnp.asarray(raw)[:, None])
    loc, scale = (float(x[0]) for x in distribution.loc_scale(PARAMETERS))
    density = np.exp(-0.5 * ((raw - loc) / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
    exact = -np.trapezoid(density * np.asarray(log_prob, np.float64), raw)
    keys = jax.random.split(jax.random.key(0), 40_000)
    sampled = jax.vmap(distribution.entropy, (None, 0))(PARAMETERS, keys)
    error = float(sampled.std()) / np.sqrt(len(keys))
    assert float(sampled.mean()) == pytest.approx(exact, abs=4 * error)
    assert 4 * error < 0.02


def test_samples_have_the_density():
    distribution = NormalTanhDistribution(1)
    keys = jax.random.split(jax.random.key(1), 40_000)
    samples = jax.vmap(distribution.sample, (None, 0))(PARAMETERS, keys)
    raw = np.arctanh(np.asarray(samples, np.float64))
    loc, scale = (float(x[0]) for x in distribution.loc_scale(PARAMETERS))
    assert raw.mean() == pytest.approx(loc, abs=4 * scale / np.sqrt(len(raw)))
    assert raw.std() == pytest.approx(scale, rel=0.02)


@pytest.mark.parametrize("raw", [-40.0, -9.0, 9.0, 40.0])
def test_density_and_its_gradient_are_finite_where_actions_round_to_one(raw):
    # T89
    distribution = NormalTanhDistribution(1)
    value, grads = jax.value_and_grad(distribution.log_prob, (0, 1))(PARAMETERS, jnp.array([raw]))
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in grads)


@pytest.mark.parametrize("action", [-1.0, 1.0])
def test_raw_actions_of_the_bounds_are_finite(action):
    raw = NormalTanhDistribution(1).inverse_postprocess(jnp.array([action]))
    assert np.isfinite(raw).all()
    assert float(jnp.tanh(raw)[0]) == pytest.approx(action, abs=1e-6)


def test_joint_density_is_the_product():
    distribution = NormalTanhDistribution(2)
    parameters = jnp.array([0.4, -1.0, -0.3, 0.5])
    single = NormalTanhDistribution(1)
    both = distribution.log_prob(parameters, jnp.array([0.7, -0.2]))
    one = single.log_prob(parameters[jnp.array([0, 2])], jnp.array([0.7]))
    two = single.log_prob(parameters[jnp.array([1, 3])], jnp.array([-0.2]))
    assert float(both) == pytest.approx(float(one + two), rel=1e-6)


@pytest.mark.parametrize("kind", [NormalTanhDistribution, NormalDistribution])
def test_the_kl_divergence_is_the_integral_that_defines_it(kind):
    """The densities of actions, over raw actions; the divergences of two actions add up."""
    distribution, other = kind(1), jnp.array([-0.2, 0.9])
    raw = _raw_grid()
    log_p, log_q = (
        np.asarray(jax.vmap(distribution.log_prob, (None, 0))(p, raw[:, None]), np.float64)
        for p in (PARAMETERS, other)
    )
    loc, scale = (float(x[0]) for x in distribution.loc_scale(PARAMETERS))
    density = np.exp(-0.5 * ((raw - loc) / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
    exact = np.trapezoid(density * (log_p - log_q), raw)
    found = distribution.kl_divergence(PARAMETERS, other)
    assert float(found) == pytest.approx(exact, rel=1e-4)
    both = jnp.array([PARAMETERS[0], other[0], PARAMETERS[1], other[1]])
    turned = jnp.array([other[0], PARAMETERS[0], other[1], PARAMETERS[1]])
    back = distribution.kl_divergence(other, PARAMETERS)
    found = kind(2).kl_divergence(both[None], turned[None])
    assert found.shape == (1,) and float(found[0]) == pytest.approx(float(back) + exact, rel=1e-4)


@pytest.mark.parametrize("native", ["0", "1"])
def test_softplus(native, monkeypatch):
    monkeypatch.setenv("BRAX_NATIVE", native)
    x = np.concatenate([np.linspace(-80, 90, 50_000), [0.0, -0.0, 1e-30]]).astype(np.float32)
    found = np.asarray(map_rows(softplus, jnp.asarray(x)))
    exact = np.logaddexp(0, x.astype(float))
    # Units in the last place; measured are 3.
    assert np.max(abs(found - exact) / np.spacing(exact.astype(np.float32))) < 4
    special = np.array([np.inf, -np.inf, np.nan, 200, -200], np.float32)
    np.testing.assert_array_equal(softplus(special), [np.inf, 0, np.nan, 200, 0])


@pytest.mark.parametrize("x", [-30.0, -0.4, 0.0, 2.0, 30.0])
def test_derivatives_of_softplus(x):
    share = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(jax.grad(softplus)(x), share, rtol=3e-7)
    second = share / (1 + np.exp(x))
    np.testing.assert_allclose(jax.grad(jax.grad(softplus))(x), second, rtol=1e-5)


def test_softplus_in_double_precision():
    with jax.enable_x64(True):
        x = jnp.linspace(-40.0, 40.0, 801)
        np.testing.assert_allclose(softplus(x), np.logaddexp(0, x), rtol=1e-14)
