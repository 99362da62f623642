"""PPO's advantages and loss against their definitions, written out in numpy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.training.acme import running_statistics
from brax.training.agents.ppo.losses import (
    Batch,
    PPOLossConfig,
    compute_gae,
    compute_ppo_loss,
    quantile_huber_error,
    quantile_huber_loss,
    with_targets,
)
from brax.training.agents.ppo.networks import PPOParams, make_ppo_networks
from brax.training.policies import preprocessor

DISCOUNT, LAMBDA = 0.93, 0.8
TIME, N = 7, 6
ENDS = (0.6, 0.2, 0.2)
"""Shares of steps that go on, terminate and are truncated."""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    ended = rng.choice(["no", "terminated", "truncated"], (TIME, N), p=ENDS)
    return {
        "truncation": (ended == "truncated").astype(np.float32),
        "termination": (ended == "terminated").astype(np.float32),
        "rewards": rng.normal(size=(TIME, N)).astype(np.float32),
        "values": rng.normal(size=(TIME, N)).astype(np.float32),
        "bootstrap_value": rng.normal(size=N).astype(np.float32),
    }


def definition(data, timeout_value=None):
    """Targets and advantages by the sums that define them, one number after the other."""
    ended = data["termination"] + data["truncation"]
    next_values = np.concatenate([data["values"][1:], data["bootstrap_value"][None]])

    def successor(t, n, later):
        if data["termination"][t, n]:
            return 0.0
        if data["truncation"][t, n]:
            return timeout_value[t, n]
        return later

    def skipped(t, n):
        return data["truncation"][t, n] and timeout_value is None

    def delta(t, n):
        if skipped(t, n):
            return 0.0
        value = successor(t, n, next_values[t, n])
        return data["rewards"][t, n] + DISCOUNT * value - data["values"][t, n]

    targets = np.zeros((TIME, N))
    for n in range(N):
        for t in range(TIME):
            sum_ = 0.0
            for later in range(t, TIME):
                sum_ += (DISCOUNT * LAMBDA) ** (later - t) * delta(later, n)
                if ended[later, n]:
                    break
            targets[t, n] = data["values"][t, n] + sum_
    advantages = np.zeros((TIME, N))
    for n in range(N):
        for t in range(TIME):
            later = targets[t + 1, n] if t + 1 < TIME else data["bootstrap_value"][n]
            if not skipped(t, n):
                value = successor(t, n, later)
                advantages[t, n] = data["rewards"][t, n] + DISCOUNT * value - data["values"][t, n]
    return targets, advantages


@pytest.mark.parametrize("bootstrap", [False, True])
def test_advantages_are_the_double_sum(data, bootstrap):
    # T88
    drawn = np.random.default_rng(4).normal(size=(TIME, N)).astype(np.float32)
    timeout = jnp.asarray(drawn) if bootstrap else None
    targets, advantages = definition(data, timeout)
    arrays: dict[str, Any] = {k: jnp.asarray(v) for k, v in data.items()}
    vs, got = compute_gae(
        **arrays,
        lambda_=LAMBDA,
        discount=DISCOUNT,
        timeout_value=timeout,
    )
    np.testing.assert_allclose(vs, targets, atol=2e-6)
    np.testing.assert_allclose(got, advantages, atol=2e-6)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_gae_is_the_sum_itself(data, bootstrap):
    """Schulman et al. 2016, eq. 16: the sum of discounted temporal differences, to an end."""
    # T88
    drawn = np.random.default_rng(4).normal(size=(TIME, N)).astype(np.float32)
    timeout = jnp.asarray(drawn) if bootstrap else None
    targets, _ = definition(data, timeout)
    arrays: dict[str, Any] = {k: jnp.asarray(v) for k, v in data.items()}
    vs, got = compute_gae(
        **arrays,
        lambda_=LAMBDA,
        discount=DISCOUNT,
        timeout_value=timeout,
        estimator="gae",
    )
    np.testing.assert_allclose(vs, targets, atol=2e-6)
    np.testing.assert_allclose(got, targets - data["values"], atol=2e-6)


def _one_step(**changes):
    """Return a single step with reward 1, value 2 and 10 after it."""
    one = {
        "truncation": 0.0,
        "termination": 0.0,
        "rewards": 1.0,
        "values": 2.0,
        "timeout_value": None,
    } | changes
    arrays: dict[str, Any] = {k: v if v is None else jnp.full((1, 1), v) for k, v in one.items()}
    _, advantage = compute_gae(**arrays, bootstrap_value=jnp.array([10.0]), discount=0.5)
    return float(advantage[0, 0])


def test_what_comes_after_an_end():
    assert _one_step() == 1 + 0.5 * 10 - 2
    assert _one_step(termination=1.0) == 1 - 2
    assert _one_step(truncation=1.0) == 0
    assert _one_step(truncation=1.0, timeout_value=4.0) == 1 + 0.5 * 4 - 2
    assert _one_step(timeout_value=4.0) == 1 + 0.5 * 10 - 2
    assert _one_step(termination=1.0, timeout_value=4.0) == 1 - 2


def test_no_gradient_flows_through_targets(data):
    def total(values):
        vs, advantages = compute_gae(**{**data, "values": values})
        return jnp.sum(vs) + jnp.sum(advantages)

    np.testing.assert_array_equal(jax.grad(total)(jnp.asarray(data["values"])), 0.0)


def experience(**settings):
    """Return networks of one layer, parameters, experience, and the keys that it was drawn with.

    The policy has moved on since it acted.
    """
    networks = make_ppo_networks(
        3, 2, policy_hidden_layer_sizes=(), value_hidden_layer_sizes=(), **settings
    )
    keys = jax.random.split(jax.random.key(5), 9)
    params = PPOParams(
        (), networks.policy_network.init(keys[0]), networks.value_network.init(keys[1])
    )
    shape = (N, TIME)
    drawn = jax.random.normal(keys[4], (3, *shape))
    ended = np.random.default_rng(6).choice(["no", "terminated", "truncated"], shape, p=ENDS)
    batch = Batch(
        observation=jax.random.normal(keys[3], (*shape, 3)),
        raw_action=jax.random.normal(keys[5], (*shape, 2)),
        log_prob=jax.random.normal(keys[6], shape) - 2.0,
        value=drawn[0],
        reward=drawn[1],
        termination=jnp.asarray(ended == "terminated", jnp.float32),
        truncation=jnp.asarray(ended == "truncated", jnp.float32),
        timeout_value=None,
        last_observation=jax.random.normal(keys[7], (N, 3)),
        last_value=drawn[2, :, 0],
    )
    return networks, params, batch, keys


@pytest.fixture(scope="module")
def ppo():
    """Networks, parameters and experience."""
    return experience()[:3]


def _targets(networks, params, batch, recompute=False):
    """Targets and advantages (n, time) by their definition, of the critic that acted or of now."""
    used = np.asarray(batch.used) > 0
    values, last = batch.value, batch.last_value
    if recompute:
        values = networks.value_network.apply((), params.value, batch.observation)
        last = networks.value_network.apply((), params.value, batch.last_observation)
    numbers = {
        "truncation": batch.truncation.T,
        "termination": batch.termination.T,
        "rewards": batch.reward.T,
        "values": np.where(used, values, batch.value).T,
        "bootstrap_value": last,
    }
    late = batch.timeout_value
    found = definition(jax.tree.map(np.asarray, numbers), late if late is None else late.T)
    return tuple(x.T for x in found)


CONFIG = PPOLossConfig(
    clipping_epsilon=0.2,
    entropy_cost=0.03,
    vf_loss_coefficient=0.5,
    normalize_advantage=True,
    gae_lambda=LAMBDA,
    discounting=DISCOUNT,
    advantage_estimator="v_trace",
)


@pytest.mark.parametrize(("bootstrap", "recompute"), [(False, False), (False, True), (True, True)])
def test_the_loss_is_surrogate_value_error_and_entropy(ppo, bootstrap, recompute):
    networks, params, batch = ppo
    config = CONFIG._replace(recompute_targets=recompute)
    if bootstrap:
        batch = batch._replace(timeout_value=jax.random.normal(jax.random.key(7), (N, TIME)))
    loss, parts = jax.jit(compute_ppo_loss, static_argnums=(3, 4))(
        params, batch, jax.random.key(0), networks, config
    )

    policy = jax.tree.map(np.float64, params.policy["params"]["hidden_0"])
    value = jax.tree.map(np.float64, params.value["params"]["hidden_0"])
    x = np.asarray(batch.observation, np.float64)
    logits = x @ policy["kernel"] + policy["bias"]
    loc, scale = logits[..., :2], np.log1p(np.exp(logits[..., 2:])) + 0.001
    raw = np.asarray(batch.raw_action, np.float64)
    log_prob = -0.5 * ((raw - loc) / scale) ** 2 - np.log(scale * np.sqrt(2 * np.pi))
    log_prob = (log_prob - np.log(1 - np.tanh(raw) ** 2)).sum(-1)
    ratio = np.exp(log_prob - np.asarray(batch.log_prob))
    values = (x @ value["kernel"] + value["bias"])[..., 0]
    used = np.asarray(batch.used) > 0
    assert used.all() if bootstrap else 0 < used.sum() < used.size
    target, advantages = _targets(networks, params, batch, recompute)
    scaled = (advantages - advantages[used].mean()) / advantages[used].std()
    clipped = np.clip(ratio, 0.8, 1.2)
    assert (clipped != ratio)[used].any() and (clipped == ratio)[used].any()
    surrogate = np.minimum(ratio * scaled, clipped * scaled)[used].mean()

    assert float(parts["policy_loss"]) == pytest.approx(-surrogate, rel=1e-4)
    error = float((batch.used * (target - values) ** 2).mean())
    assert float(parts["v_loss"]) == pytest.approx(0.25 * error, rel=1e-4)
    entropy = networks.parametric_action_distribution.entropy(
        jnp.asarray(logits, jnp.float32), jax.random.key(0)
    )
    assert float(parts["entropy_loss"]) == pytest.approx(-0.03 * float(entropy.mean()), rel=1e-4)
    total = sum(float(parts[k]) for k in ("policy_loss", "v_loss", "entropy_loss"))
    assert float(loss) == pytest.approx(total, rel=1e-6)


def test_what_is_computed_once_for_all_updates_changes_no_loss():
    """Targets, advantages and normalized observations."""
    networks, params, batch, _ = experience(preprocess_observations_fn=preprocessor(True))
    normalizer = running_statistics.update(
        running_statistics.init_state(jax.ShapeDtypeStruct((3,), jnp.float32)),
        3 + 2 * batch.observation,
    )
    params = params._replace(normalizer=normalizer)
    key = jax.random.key(0)
    expected = compute_ppo_loss(params, batch, key, networks, CONFIG)
    ready = with_targets(batch, CONFIG)
    np.testing.assert_array_equal(ready.target, with_targets(ready, CONFIG).target)
    ready = ready._replace(
        observation=(batch.observation - normalizer.mean) / normalizer.std,
        # Read by nothing any more.
        reward=batch.reward + jnp.nan,
        last_value=batch.last_value + jnp.nan,
    )
    found = compute_ppo_loss(params._replace(normalizer=None), ready, key, networks, CONFIG)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_the_value_loss_takes_the_larger_error_of_the_moved_and_the_bounded_value(ppo):
    networks, params, batch = ppo
    values = networks.value_network.apply((), params.value, batch.observation)
    before = values + jax.random.normal(jax.random.key(9), values.shape)
    bounded = CONFIG._replace(clipping_epsilon_value=0.5)
    _, parts = compute_ppo_loss(
        params, batch._replace(value=before), jax.random.key(0), networks, bounded
    )
    errors = []
    target, _ = _targets(networks, params, batch._replace(value=before))
    steps = (values, before, target, batch.used)
    for v, old, aim, used in zip(*map(np.ravel, steps), strict=True):
        near = old + min(max(v - old, -0.5), 0.5)
        errors.append(used * max((aim - v) ** 2, (aim - near) ** 2))
    free = np.mean(batch.used * (target - values) ** 2)
    assert np.mean(errors) > 1.1 * free
    assert float(parts["v_loss"]) == pytest.approx(0.25 * np.mean(errors), rel=1e-4)


def test_the_loss_of_quantiles():
    """The quantile loss of two quantiles, 1/4 and 3/4, at 0 and 1.

    Target 3: errors 3 and 2, so Huber 2.5 and 1.5, weights 1/4 and 3/4. Target -1: errors -1 and
    -2, Huber 0.5 and 1.5, weights 3/4 and 1/4.
    """
    quantiles, targets = jnp.array([[0.0, 1.0]] * 2), jnp.array([3.0, -1.0])
    expected = [(0.625 + 1.125) / 2, (0.375 + 0.375) / 2]
    np.testing.assert_allclose(quantile_huber_error(quantiles, targets), expected)
    assert float(quantile_huber_loss(quantiles, targets)) == pytest.approx(sum(expected) / 2)


def _linear(distributional):
    """Networks without hidden layers; the critic has four quantiles where it has any."""
    return make_ppo_networks(
        3,
        2,
        policy_hidden_layer_sizes=(),
        value_hidden_layer_sizes=(),
        use_distributional_critic=distributional,
        num_quantiles=4,
    )


def test_a_distributional_critic_s_value_is_the_mean_and_its_loss_that_of_quantiles(ppo):
    _, params, batch = ppo
    networks = _linear(distributional=True)
    value = networks.value_network.init(jax.random.key(1))
    layer = jax.tree.map(np.float64, value["params"]["hidden_0"])
    quantiles = np.asarray(batch.observation) @ layer["kernel"] + layer["bias"]
    values = networks.value_network.apply((), value, batch.observation)
    np.testing.assert_allclose(values, quantiles.mean(-1), rtol=1e-4, atol=1e-6)
    params = params._replace(value=value)
    target, _ = _targets(networks, params, batch)
    error = target[..., None] - quantiles
    huber = np.where(abs(error) < 1, error**2 / 2, abs(error) - 0.5)
    share = np.array([1, 3, 5, 7]) / 8
    used = np.asarray(batch.used)[..., None]
    expected = np.mean(np.where(error < 0, 1 - share, share) * huber * used)
    _, parts = compute_ppo_loss(params, batch, jax.random.key(0), networks, CONFIG)
    assert float(parts["v_loss"]) == pytest.approx(0.25 * expected, rel=1e-4)


def test_clipped_quantiles_are_moved_until_their_mean_is_within_the_bound(ppo):
    """The larger of two errors: that of the quantiles, and that of quantiles moved as a whole."""
    _, params, batch = ppo
    networks = _linear(distributional=True)
    value = networks.value_network.init(jax.random.key(1))
    quantiles = np.asarray(networks.value_quantiles((), value, batch.observation), np.float64)
    means = quantiles.mean(-1)
    before = means + np.random.default_rng(4).normal(size=means.shape)
    moved = quantiles + (before + np.clip(means - before, -0.5, 0.5) - means)[..., None]

    batch = batch._replace(value=jnp.asarray(before, jnp.float32))
    params = params._replace(value=value)
    target, _ = _targets(networks, params, batch)

    def errors(quantiles):
        error = target[..., None] - quantiles
        huber = np.where(abs(error) < 1, error**2 / 2, abs(error) - 0.5)
        share = np.array([1, 3, 5, 7]) / 8
        return np.mean(np.where(error < 0, 1 - share, share) * huber, -1)

    free, larger = errors(quantiles), np.maximum(errors(quantiles), errors(moved))
    assert np.mean(batch.used * larger) > 1.1 * np.mean(batch.used * free)
    bounded = CONFIG._replace(clipping_epsilon_value=0.5)
    _, parts = compute_ppo_loss(params, batch, jax.random.key(0), networks, bounded)
    expected = 0.25 * float(np.mean(batch.used * larger))
    assert float(parts["v_loss"]) == pytest.approx(expected, rel=1e-4)


def test_a_step_that_is_not_used_teaches_the_policy_nothing(ppo):
    networks, params, batch = ppo

    @jax.jit
    def gradient(batch):
        def loss(policy):
            config = CONFIG._replace(entropy_cost=0.0)
            moved = params._replace(policy=policy)
            return compute_ppo_loss(moved, batch, jax.random.key(0), networks, config)[0]

        return jax.grad(loss)(params.policy)

    cut = batch.used == 0
    other = batch._replace(log_prob=jnp.where(cut, batch.log_prob + 0.1, batch.log_prob))
    jax.tree.map(np.testing.assert_array_equal, gradient(batch), gradient(other))
    none = batch._replace(log_prob=batch.log_prob + 0.1)
    assert any(
        not np.array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves(gradient(batch)), jax.tree.leaves(gradient(none)), strict=True
        )
    )


@pytest.mark.parametrize("distributional", [False, True])
def test_steps_that_are_not_used_teach_the_critic_nothing(ppo, distributional):
    _, params, batch = ppo
    networks = _linear(distributional)
    batch = batch._replace(truncation=jnp.ones_like(batch.truncation))

    def loss(value):
        moved = params._replace(value=value)
        return compute_ppo_loss(moved, batch, jax.random.key(0), networks, CONFIG)[0]

    grads = jax.grad(loss)(networks.value_network.init(jax.random.key(1)))
    jax.tree.map(lambda g: np.testing.assert_array_equal(g, 0.0), grads)
