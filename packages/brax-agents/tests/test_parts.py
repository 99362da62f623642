"""Parts of networks and of learners that are written otherwise than Flax and JAX have them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen

from brax.training.learner import _by_one_vector, shuffled
from brax.training.learning.some_values import CHUNK, values_of_some
from brax.training.learning.stacking import stacked_scan
from brax.training.learning.vectors import Vectors
from brax.training.nn.layers import MLP, elu, swish


@pytest.mark.parametrize(("ours", "flax"), [(swish, linen.swish), (elu, linen.elu)])
def test_activations_and_two_derivatives_are_flaxs(ours, flax):
    x = jnp.asarray([-90.0, -3.0, -0.4, 0.0, 1e-3, 0.7, 5.0, 90.0])
    for _ in range(3):
        np.testing.assert_allclose(jax.vmap(ours)(x), jax.vmap(flax)(x), rtol=1e-5, atol=2e-6)
        ours, flax = jax.grad(ours), jax.grad(flax)
    assert jnp.isnan(jax.grad(ours)(jnp.nan))


class Rows(linen.Module):
    """The same network of Flax's layers."""

    @linen.compact
    def __call__(self, x):
        for i, size in enumerate((5, 4, 2)):
            x = linen.Dense(size, name=f"hidden_{i}")(x)
            if i < 2:
                x = linen.LayerNorm(name=f"norm_{i}")(linen.swish(x))
        return x


@pytest.mark.parametrize("shape", [(3,), (6, 3), (2, 5, 3), (64, 3), (2, 50, 3)])
def test_a_network_and_its_weights_are_flaxs(shape):
    """Rows along any axes; few are laid out otherwise than many."""
    ours, flax = MLP((5, 4, 2), linen.swish, layer_norm=True), Rows()
    x = jax.random.normal(jax.random.key(0), shape)
    made, weights = (jax.jit(network.init)(jax.random.key(1), x) for network in (ours, flax))
    assert jax.tree.map(jnp.shape, made) == jax.tree.map(jnp.shape, weights)
    with jax.enable_x64(True):
        x, weights = jax.tree.map(lambda a: np.asarray(a, np.float64) + 0.1, (x, weights))
        got, want = (
            jax.jit(jax.value_and_grad(lambda w, n=network: jnp.sum(jnp.sin(n.apply(w, x)))))(
                weights
            )
            for network in (ours, flax)
        )
    assert got[0].dtype == jnp.float64
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-11), got, want)


@pytest.mark.parametrize(("inputs", "rows"), [(4, 100), (256, 100), (256, 600)])
def test_a_layer_of_any_size_is_the_product(inputs, rows):
    """Few inputs, and many multiplications, are computed in ways of their own."""
    key, kernel_key, move_key = jax.random.split(jax.random.key(2), 3)
    x = jax.random.normal(key, (rows, inputs))
    bias = jnp.linspace(-1.0, 1.0, 256)
    kernel = jax.random.normal(kernel_key, (inputs, 256)) / inputs**0.5
    kernel_dot, x_dot = 0.1 * kernel[::-1], jax.random.normal(move_key, x.shape)
    layer: Any = MLP((256,), linen.swish)

    def loss(kernel, x):
        return jnp.sum(
            jnp.sin(layer.apply({"params": {"hidden_0": dict(kernel=kernel, bias=bias)}}, x))
        )

    wide = [np.asarray(a, np.float64) for a in (kernel, x, kernel_dot, x_dot, bias)]
    w, v, w_dot, v_dot, b = wide
    slope = np.cos(v @ w + b)
    got = jax.jit(jax.grad(loss, argnums=(0, 1)))(kernel, x)
    for a, want in zip(got, (v.T @ slope, slope @ w.T), strict=True):
        np.testing.assert_allclose(a, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
    value, moved = jax.jvp(loss, (kernel, x), (kernel_dot, x_dot))
    terms = slope * (v @ w_dot + v_dot @ w)
    assert value == pytest.approx(np.sum(np.sin(v @ w + b)), abs=1e-6 * slope.size)
    assert moved == pytest.approx(np.sum(terms), abs=1e-6 * np.abs(terms).sum())


@pytest.mark.parametrize("number", [1, 2, 7, 4096, 100_001])
def test_shuffling_leaves_nothing_out(number):
    order = np.asarray(shuffled(jax.random.key(number), number))
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(number))


def test_every_order_is_as_likely():
    orders = jax.vmap(lambda key: shuffled(key, 4))(jax.random.split(jax.random.key(0), 24_000))
    _, counts = np.unique(np.asarray(orders) @ [1, 4, 16, 64], return_counts=True)
    assert len(counts) == 24
    # chi^2 of 23 degrees of freedom: beyond 49.7 once in a thousand seeds.
    assert np.sum((counts - 1000.0) ** 2) / 1000.0 < 49.7


def test_what_is_given_the_same_bits_does_not_stay_in_order():
    """Twelve bits of a million numbers a round often equal those of the neighbour."""
    order = np.asarray(shuffled(jax.random.key(5), 2**20))
    later = np.mean(np.diff(order) > 0)
    assert abs(later - 0.5) < 5 * np.sqrt(1 / 12 / 2**20)


def test_a_gradient_by_one_vector_is_the_same_in_all_shapes_and_types():
    grads = {
        "kernel": jnp.asarray([[1.0, -2.0], [3.0, 0.1]]),
        "bias": jnp.asarray([0.5, 5.0], jnp.bfloat16),
        "scale": jnp.float32(-1.25),
    }
    got, norm = jax.jit(_by_one_vector)(grads)
    assert jax.tree.map(lambda x: x.dtype, got) == jax.tree.map(lambda x: x.dtype, grads)
    jax.tree.map(np.testing.assert_array_equal, got, grads)
    # 1 + 4 + 9 + 0.01 + 0.25 + 25 + 1.5625
    assert norm == pytest.approx(40.8225**0.5)


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_one_number_that_is_not_finite_makes_the_norm_by_one_vector_so(bad):
    _, norm = _by_one_vector({"kernel": jnp.ones((2, 3)), "bias": jnp.asarray([0.0, bad])})
    assert not jnp.isfinite(norm)


def test_results_that_a_scan_stores_together_keep_their_place_and_type():
    def step(total, x):
        row = jnp.arange(3.0) + x
        results = {
            "a": (total, row, jnp.int32(x), 2.0 * total),
            "b": [-row, row > 1.0, jnp.outer(row, row)],
        }
        return total + x, results

    last, got = jax.jit(lambda: stacked_scan(step, 10.0, jnp.arange(4.0)))()
    assert last == 16
    rows = np.arange(4.0)[:, None] + np.arange(3.0)
    want = {
        "a": (
            np.asarray([10.0, 10.0, 11.0, 13.0]),
            rows,
            np.arange(4),
            np.asarray([20.0, 20.0, 22.0, 26.0]),
        ),
        "b": [-rows, rows > 1, rows[:, :, None] * rows[:, None, :]],
    }
    jax.tree.map(np.testing.assert_array_equal, got, want)
    kinds = [x.dtype for x in jax.tree.leaves(got)]
    assert kinds == [jnp.float32, jnp.float32, jnp.int32, *[jnp.float32] * 2, bool, jnp.float32]


def test_a_scan_that_stores_nothing_returns_nothing():
    assert stacked_scan(lambda n, _: (n + 1, ()), 0, length=5) == (5, ())


OPTIMIZERS = {
    "adam": optax.adam(0.1),
    "clipped": optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.1)),
    "injected": optax.inject_hyperparams(optax.adam)(learning_rate=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_a_vector_are_those_of_the_tree(name):
    optimizer = OPTIMIZERS[name]
    draw = np.random.default_rng(0).normal
    weights = {"a": draw(size=(3, 2)), "b": {"c": draw(size=4), "d": draw(size=())}}, draw(size=2)
    weights = jax.tree.map(jnp.float32, weights)
    state, vectors = optimizer.init(weights), Vectors(weights)
    flat, vector = vectors.flatten(state), vectors.first
    assert vector.shape == (13,)
    for _ in range(3):
        grads = jax.tree.map(lambda w: jnp.sin(3 * w), weights)
        change, state = optimizer.update(grads, state, weights)
        weights = optax.apply_updates(weights, change)
        change, flat = optimizer.update(jnp.sin(3 * vector), flat, vector)
        vector = optax.apply_updates(vector, change)
    found = vectors.restore(vector), vectors.unflatten(flat, state)
    assert str(jax.tree.structure(found)) == str(jax.tree.structure((weights, state)))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves((weights, state)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.parametrize("few", [0, 1, CHUNK, CHUNK + 1, 3 * 700])
@pytest.mark.parametrize("split", [False, True])
def test_values_of_some_observations(few, split):
    """The chosen ones and those of the last time are right, and few others are computed."""
    draw = np.random.default_rng(few)
    observations = {"a": draw.normal(size=(4, 700, 2)), "b": draw.normal(size=(4, 700, 1))}
    observations = jax.tree.map(jnp.float32, observations)
    chosen = np.zeros(3 * 700, bool)
    chosen[draw.choice(len(chosen), few, replace=False)] = True
    chosen = np.concatenate([chosen.reshape(3, 700), np.zeros((1, 700), bool)])
    computed: list[int] = []

    def value(seen):
        jax.debug.callback(lambda x: computed.append(x.size), seen["b"][..., 0])
        return jnp.sum(seen["a"], axis=-1) * seen["b"][..., 0]

    found = jax.jit(lambda x, y: values_of_some(value, x, y, split))(observations, chosen)
    expected = np.sum(observations["a"], axis=-1) * observations["b"][..., 0]
    jax.effects_barrier()
    chunks = -(-few // CHUNK)
    assert sum(computed) == (4 * 700 if split else 700 + CHUNK * chunks)
    chosen[-1] = True
    np.testing.assert_allclose(np.asarray(found)[chosen], expected[chosen], rtol=1e-6)
