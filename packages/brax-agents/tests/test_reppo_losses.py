"""REPPO's targets and losses against the formulas of the papers, written out in numpy."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.errors import ConfigError
from brax.training.agents.reppo.losses import (
    Batch,
    REPPOLossConfig,
    REPPOWeights,
    compute_reppo_loss,
    histogram_mean,
    smoothed_histogram,
    soft_lambda_returns,
)
from brax.training.agents.reppo.networks import make_reppo_networks

N, OBS, ACT, BINS = 6, 3, 2, 7
KEY = jax.random.key(9)
CONFIG = REPPOLossConfig(v_min=-2.0, v_max=5.0, kl_bound=0.3, target_entropy=-1.5)
LOG_TEMPERATURE, LOG_MULTIPLIER = -0.7, 0.4


@pytest.fixture(scope="module")
def reppo():
    """Linear networks, weights, and experience of a policy that is near in some rows only."""
    networks = make_reppo_networks(
        OBS,
        ACT,
        policy_hidden_layer_sizes=(),
        value_hidden_layer_sizes=(),
        num_bins=BINS,
    )
    keys = jax.random.split(jax.random.key(5), 6)
    weights = REPPOWeights(
        networks.policy_network.init(keys[0]),
        networks.q_network.init(keys[1]),
        jnp.float32(LOG_TEMPERATURE),
        jnp.float32(LOG_MULTIPLIER),
    )
    observation = jax.random.normal(keys[2], (N, OBS))
    logits = networks.policy_network.apply((), weights.policy, observation)
    away = jnp.array([0.0, 0.1, 0.2, 0.5, 1.0, 1.5])[:, None]
    batch = Batch(
        observation=observation,
        action=jax.random.uniform(keys[3], (N, ACT), minval=-1.0),
        logits=logits + away * jax.random.normal(keys[4], logits.shape),
        # The first and the last are beyond what the critic can represent.
        target=jnp.array([-3.0, -2.0, 0.1, 1.7, 4.9, 6.0]),
    )
    return networks, weights, batch


def _loss(reppo, config=CONFIG, **changes):
    networks, weights, batch = reppo
    return compute_reppo_loss(weights._replace(**changes), (), batch, KEY, networks, config)


def _cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def _histogram(target, bins, low, high):
    """Return the share of a normal distribution in each bin, of what it has in all of them."""
    width = (high - low) / bins
    edges = [(low + i * width - target) / (0.75 * width) for i in range(bins + 1)]
    inside = _cdf(edges[-1]) - _cdf(edges[0])
    return np.array([(_cdf(b) - _cdf(a)) / inside for a, b in itertools.pairwise(edges)])


def _q(weights, row, action):
    """Return the logarithms of the critic's probabilities, and its value."""
    layer = jax.tree.map(np.float64, weights.q["params"]["critic_0"]["hidden_0"])
    logits = np.concatenate([row, action]) @ layer["kernel"] + layer["bias"]
    log_share = logits - np.log(np.sum(np.exp(logits)))
    centres = [-1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    return log_share, sum(c * p for c, p in zip(centres, np.exp(log_share), strict=True))


def _normal(logits):
    return logits[:ACT], np.log1p(np.exp(logits[ACT:])) + 0.001


def _rows(weights, batch):
    """Return value, log density and KL divergence of each row's drawn action."""
    layer = jax.tree.map(np.float64, weights.policy["params"]["hidden_0"])
    unit = np.asarray(jax.random.normal(KEY, (ACT, N)), np.float64).T
    for row, before, noise in zip(batch.observation, batch.logits, unit, strict=True):
        loc, scale = _normal(row @ layer["kernel"] + layer["bias"])
        raw = loc + scale * noise
        density = np.exp(-0.5 * noise**2) / (scale * np.sqrt(2 * np.pi) * (1 - np.tanh(raw) ** 2))
        kl = 0.0
        for m, s, m2, s2 in zip(*_normal(before), loc, scale, strict=True):
            kl += np.log(s2 / s) + (s**2 + (m - m2) ** 2) / (2 * s2**2) - 0.5
        yield _q(weights, row, np.tanh(raw))[1], np.log(density).sum(), kl


def test_the_losses_are_those_of_the_paper(reppo):
    _, weights, batch = reppo
    batch = jax.tree.map(np.float64, batch)
    critic = 0.0
    for row, action, target in zip(batch.observation, batch.action, batch.target, strict=True):
        expected = _histogram(min(max(target, -2.0), 5.0), BINS, -2.0, 5.0)
        critic -= (expected @ _q(weights, row, action)[0]) / N
    temperature, multiplier = math.exp(LOG_TEMPERATURE), math.exp(LOG_MULTIPLIER)
    policy, rows = 0.0, list(_rows(weights, batch))
    for value, log_prob, kl in rows:
        policy += (temperature * log_prob - value if kl < 0.3 else multiplier * kl) / N
    kls = [kl for *_, kl in rows]
    assert 2 <= sum(kl < 0.3 for kl in kls) <= 4
    entropy = -np.mean([log_prob for _, log_prob, _ in rows])

    loss, parts = _loss(reppo)
    parts = {name: float(x) for name, x in parts.items()}
    multipliers = temperature * (entropy + 1.5), multiplier * (0.3 - np.mean(kls))
    assert float(loss) == pytest.approx(critic + policy + sum(multipliers), rel=1e-4)
    assert parts == pytest.approx(
        {
            "critic_loss": critic,
            "policy_loss": policy,
            "temperature_loss": multipliers[0],
            "multiplier_loss": multipliers[1],
            "temperature": temperature,
            "kl_multiplier": multiplier,
            "entropy": entropy,
            "kl": np.mean(kls),
            "clipped_targets": 2 / N,
        },
        rel=1e-4,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("q", "critic_loss"),
        ("policy", "policy_loss"),
        ("log_temperature", "temperature_loss"),
        ("log_multiplier", "multiplier_loss"),
    ],
)
def test_each_loss_moves_its_own_weights_only(reppo, name, part):
    """Differences of the part alone, everything else held, against the gradient of the sum."""
    networks, weights, batch = reppo
    grads = jax.grad(compute_reppo_loss, has_aux=True)(weights, (), batch, KEY, networks, CONFIG)[0]
    leaves, structure = jax.tree.flatten(getattr(weights, name))
    moved = [jnp.asarray(np.linspace(0.3, 1.0, x.size).reshape(x.shape)) for x in leaves]
    slope = sum(
        float(jnp.vdot(g, m))
        for g, m in zip(jax.tree.leaves(getattr(grads, name)), moved, strict=True)
    )

    def part_at(step):
        there = [x + step * m for x, m in zip(leaves, moved, strict=True)]
        return float(_loss(reppo, **{name: jax.tree.unflatten(structure, there)})[1][part])

    difference = (part_at(3e-3) - part_at(-3e-3)) / 6e-3
    assert slope == pytest.approx(difference, rel=5e-3, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 0.3])
@pytest.mark.parametrize("lambda_", [0.0, 0.8, 1.0])
def test_targets_are_sums_of_soft_returns(lambda_, temperature):
    """The mean of n-step returns by powers of lambda, each up to the end of its episode.

    A return has the entropy of each action that it sees after the first. The first column
    terminates after its third step, the second is truncated there, the third runs to the end.
    """
    steps, discount = 5, 0.9
    rng = np.random.default_rng(0)
    reward, value, log_prob = rng.normal(size=(3, steps, 3))
    termination, truncation = np.zeros((2, steps, 3))
    termination[2, 0] = truncation[2, 1] = 1.0
    expected = np.zeros((steps, 3))
    for t in range(steps):
        for env in range(3):
            last = 2 if env < 2 and t <= 2 else steps - 1
            weight_left = 1.0
            for n in range(1, last - t + 2):
                final = t + n - 1
                total = sum(discount**k * reward[t + k, env] for k in range(n))
                total -= sum(discount**k * temperature * log_prob[t + k, env] for k in range(1, n))
                total += discount**n * value[final, env] * (1 - termination[final, env])
                weight = weight_left if final == last else weight_left * (1 - lambda_)
                weight_left -= weight
                expected[t, env] += weight * total
    given = [jnp.asarray(x) for x in (reward, termination, truncation, value, log_prob)]
    numbers: tuple[Any, ...] = (*given, jnp.float32(temperature), lambda_, discount)
    found = soft_lambda_returns(*numbers)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bins", [2, 51, 151])
def test_histograms_of_targets(bins):
    """Each is a distribution; its mean is the target, where no tail of it is cut off."""
    low, high = -10.0, 90.0
    target = jnp.linspace(low - 5.0, high + 5.0, 40)
    found = np.asarray(smoothed_histogram(target, bins, low, high), np.float64)
    assert found.shape == (40, bins) and (found >= 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    for row, t in zip(found, np.asarray(target), strict=True):
        expected = _histogram(min(max(float(t), low), high), bins, low, high)
        np.testing.assert_allclose(row, expected, atol=1e-5)
    means = histogram_mean(jnp.log(found + 1e-30), low, high)
    width = (high - low) / bins
    inside = (target > low + 4 * width) & (target < high - 4 * width)
    # A Gaussian of 0.75 bins loses next to nothing by being cut into bins.
    np.testing.assert_allclose(means[inside], target[inside], atol=1e-4 * width + 1e-3)
    # A centre cannot lie outside, so what is represented is within half a bin and its smoothing.
    assert low < means.min() and means.max() < high


def test_networks_need_two_bins():
    with pytest.raises(ConfigError, match=r"num_bins=1 must be at least 2"):
        make_reppo_networks(OBS, ACT, num_bins=1)
    with pytest.raises(ConfigError, match=r"num_bins=0 must be a whole number of at least 1"):
        make_reppo_networks(OBS, ACT, num_bins=0)
