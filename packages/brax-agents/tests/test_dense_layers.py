"""Networks of many rows, which are kernels on a CPU, against networks that XLA computes."""

import functools
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from brax.kernels.codegen import translate
from brax.training.agents.ppo import losses
from brax.training.agents.ppo import networks as ppo_networks
from brax.training.nn import distribution, layers, networks

ROWS = layers.MIN_KERNEL_ROWS


def _has_kernel(function, *arguments):
    """Return whether a function calls a kernel of dense layers."""
    return "= dense_layers[" in str(jax.make_jaxpr(function)(*arguments))


def _graded(module, weights, data):
    """Return the gradient of a loss of a network's results by weights and data."""
    return jax.grad(lambda *x: jnp.mean(jnp.sin(module.apply(*x))), argnums=(0, 1))(weights, data)


def _close(found, expected, units=1e-5):
    """Check that numbers agree, relative to the largest of each array."""
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=units * abs(y).max())


@pytest.mark.parametrize("name", networks.ACTIVATION)
def test_a_network_of_many_rows_is_that_of_few(name, monkeypatch):
    """By a kernel where there is one, and by XLA."""
    module = layers.MLP((20, 7), networks.ACTIVATION[name], activate_final=True)
    data = jax.random.normal(jax.random.key(0), (2, ROWS, 5))
    weights = module.init(jax.random.key(1), data)
    found = module.apply(weights, data), _graded(module, weights, data)
    monkeypatch.setenv("BRAX_NATIVE", "0")
    assert not _has_kernel(module.apply, weights, data)
    _close(found, (module.apply(weights, data), _graded(module, weights, data)))


def test_which_networks_are_kernels():
    data = jnp.ones((ROWS, 5))
    widest = layers.MAX_KERNEL_WIDTH

    def kernel(sizes=(8, 2), data=data, activation: Any = linen.swish, **settings):
        module = layers.MLP(sizes, activation, **settings)
        weights = module.init(jax.random.key(0), data)
        return _has_kernel(module.apply, weights, data)

    assert kernel()
    assert kernel((widest, 1))
    assert kernel(activation=linen.elu)
    assert not kernel(data=data[1:])
    assert not kernel((widest + 1, 1))
    assert not kernel(layer_norm=True)
    assert not kernel(activation=jnp.sin)


def test_networks_of_several_seeds_and_on_shares_of_devices():
    module = layers.MLP((20, 7), linen.swish)
    data = jax.random.normal(jax.random.key(0), (3, ROWS, 5))
    weights = jax.vmap(module.init, in_axes=(0, None))(
        jax.random.split(jax.random.key(1), 3), data[0]
    )
    graded = functools.partial(_graded, module)
    assert _has_kernel(jax.vmap(graded), weights, data)
    found = jax.jit(jax.vmap(graded))(weights, data)
    mesh = jax.make_mesh((1,), ("seeds",), axis_types=(AxisType.Auto,))
    on_shares = jax.shard_map(
        lambda weights, data: jax.lax.map(lambda x: graded(*x), (weights, data)),
        mesh=mesh,
        in_specs=P("seeds"),
        out_specs=P("seeds"),
    )
    assert not _has_kernel(on_shares, weights, data)
    _close(found, jax.jit(on_shares)(weights, data))


@pytest.mark.parametrize("distribution", ["tanh_normal", "normal"])
def test_ppos_gradient_by_kernels_is_that_of_xla(distribution, monkeypatch):
    unrolls, time, observation, action = ROWS // 4, 4, 6, 3
    draw = np.random.default_rng(0).normal
    made = ppo_networks.make_ppo_networks(
        observation,
        action,
        policy_hidden_layer_sizes=(16, 16),
        value_hidden_layer_sizes=(24,),
        distribution_type=distribution,
    )
    keys = jax.random.split(jax.random.key(0))
    first = made.policy_network.init(keys[0]), made.value_network.init(keys[1])

    def step(*shape):
        return jnp.float32(draw(size=(unrolls, time, *shape)))

    batch = losses.Batch(
        observation=step(observation),
        raw_action=step(action),
        log_prob=step() - action,
        value=step(),
        reward=step(),
        termination=1.0 * (step() > 2),
        truncation=1.0 * (step() > 2),
        timeout_value=step(),
        last_observation=step(observation)[:, 0],
        last_value=step()[:, 0],
    )
    config = losses.PPOLossConfig(0.3, 1e-2, 0.5, True, 0.95, 0.97, "v_trace")

    def loss(weights):
        params = ppo_networks.PPOParams((), *weights)
        return losses.compute_ppo_loss(params, batch, jax.random.key(2), made, config)[0]

    def graded():
        # New each time, since JAX keeps the programs of functions.
        return jax.value_and_grad(lambda weights: loss(weights))

    assert _has_kernel(graded(), first)
    found = jax.jit(graded())(first)
    monkeypatch.setenv("BRAX_NATIVE", "0")
    assert not _has_kernel(graded(), first)
    _close(found, jax.jit(graded())(first))


class _Certain(distribution.NormalTanhDistribution):
    """A distribution with an entropy of its own."""

    def entropy(self, parameters, seed):
        """Return the first network output times three."""
        return 3.0 * parameters[..., 0]


@pytest.mark.parametrize("native", ["0", "1"])
def test_ppo_asks_a_distribution_for_its_own_entropy(native, monkeypatch):
    monkeypatch.setenv("BRAX_NATIVE", native)
    number, first = 256, jnp.ones((1,))
    logits = jax.random.normal(jax.random.key(0), (number, 1, 4))
    made: Any = types.SimpleNamespace(
        parametric_action_distribution=_Certain(2),
        policy_network=types.SimpleNamespace(apply=lambda _, weights, data: logits * weights),
        value_network=types.SimpleNamespace(apply=lambda *_: jnp.zeros((number, 1))),
        value_quantiles=None,
    )
    none = jnp.zeros((number, 1))
    batch = losses.Batch(
        none, jnp.zeros((number, 1, 2)), none, none, none, none, none, None, none[:, 0], none[:, 0]
    )
    config = losses.PPOLossConfig(0.3, 0.1, 0.5, False, 0.95, 0.97, "gae")

    def loss(weights):
        params = ppo_networks.PPOParams((), weights, ())
        return losses.compute_ppo_loss(params, batch, jax.random.key(2), made, config)

    # Without advantages, the entropy is all of the loss that depends on the weights.
    expected = -0.1 * 3.0 * np.mean(logits[..., 0])
    slope, parts = jax.grad(loss, has_aux=True)(first)
    np.testing.assert_allclose([slope[0], parts["entropy_loss"]], expected, rtol=1e-5)
    np.testing.assert_allclose(parts["total_loss"], expected, rtol=1e-5)


def test_a_policy_outside_of_jit_is_translated_once(monkeypatch):
    translated: list[object] = []

    def counted(*arguments, **named):
        translated.append(arguments)
        return translate.translate(*arguments, **named)

    monkeypatch.setattr("brax.kernels.codegen.cpu.translate", counted)
    made = ppo_networks.make_ppo_networks(3, 2, policy_hidden_layer_sizes=(4,))
    key = jax.random.key(0)
    policy = ppo_networks.make_inference_fn(made)(((), made.policy_network.init(key)))
    observations = jnp.ones((ROWS, 3))
    policy(observations, key)
    first = len(translated)
    assert first > 0
    policy(observations, key)
    assert len(translated) == first
