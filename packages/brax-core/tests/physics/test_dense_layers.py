"""Kernels of dense layers, against backpropagation in NumPy and elementary functions in double."""

import functools
import hashlib
import itertools
import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from brax.kernels import dense_layers
from brax.kernels.codegen import cpu
from brax.kernels.codegen import dense_layers as codegen
from brax.kernels.dense_layers import Layers

# For each activation: itself and its derivative, in double precision.
ACTIVATIONS: dict[str, tuple[Any, Any, Any]] = {
    "swish": (
        jax.nn.swish,
        lambda x: x / (1 + np.exp(-x)),
        lambda x: (1 + np.exp(-x) * (1 + x)) / (1 + np.exp(-x)) ** 2,
    ),
    "tanh": (jnp.tanh, np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "relu": (jax.nn.relu, lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0)),
    "elu": (
        jax.nn.elu,
        lambda x: np.where(x > 0, x, np.expm1(x)),
        lambda x: np.where(x > 0, 1, np.exp(x)),
    ),
    "softplus": (jax.nn.softplus, lambda x: np.logaddexp(x, 0), lambda x: 1 / (1 + np.exp(-x))),
}


def _case(sizes, rows, seed=0):
    """Return rows, weights with biases and cotangents of results, of layers of some sizes."""
    draw = np.random.default_rng(seed).normal
    pairs = itertools.pairwise(sizes)
    weights = [(draw(size=(i, o)) / np.sqrt(i), 0.3 * draw(size=o)) for i, o in pairs]
    numbers = draw(size=(rows, sizes[0])), weights, draw(size=(rows, sizes[-1]))
    return jax.tree.map(lambda x: x.astype(np.float32), numbers)


def _backpropagated(name, final, data, weights, cotangents):
    """Return results, and cotangents of rows and of weights, in double precision."""
    _, activation, derivative = ACTIVATIONS[name]
    data, weights, cotangents = jax.tree.map(np.float64, (data, weights, cotangents))
    inputs, slopes = [], []
    for i, (kernel, bias) in enumerate(weights):
        inputs.append(data)
        before = data @ kernel + bias
        active = final or i < len(weights) - 1
        data = activation(before) if active else before
        slopes.append(derivative(before) if active else np.ones_like(before))
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for (kernel, _), before, slope in list(zip(weights, inputs, slopes, strict=True))[::-1]:
        delta = cotangents * slope
        found.insert(0, (before.T @ delta, delta.sum(0)))
        cotangents = delta @ kernel.T
    return data, cotangents, found


def _close(found, expected):
    """Check that numbers agree, relative to the largest of each array; measured are 5e-6."""
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-5 * abs(y).max())


def _pulled(layers, data, weights, cotangents):
    """Return the results of layers, and all cotangents."""
    out, pull = jax.vjp(functools.partial(dense_layers.apply, layers), data, weights)
    return out, *pull(cotangents)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("final", [False, True])
def test_layers_and_their_gradient_are_those_of_backpropagation(name, final):
    """Also with sizes that fill no register, one output, and rows that fill no block."""
    activation, *_ = ACTIVATIONS[name]
    for sizes, rows in (((5, 32, 20, 3), 300), ((27, 64, 1), 128), ((3, 70, 17), 7)):
        case = _case(sizes, rows)
        layers = Layers(sizes, activation, final)
        assert dense_layers.supported(layers, jax.tree.leaves(case))
        found = jax.jit(functools.partial(_pulled, layers))(*case)
        _close(found, _backpropagated(name, final, *case))
        _close(jax.jit(dense_layers.apply, static_argnums=0)(layers, *case[:2]), found[0])


@pytest.mark.parametrize("wanted", [0, 1])
def test_only_the_cotangents_that_are_needed_are_computed(wanted):
    sizes, (data, weights, given) = (5, 16, 2), _case((5, 16, 2), 200)
    layers = Layers(sizes, jnp.tanh, False)

    def loss(*of):
        return jnp.sum(dense_layers.apply(layers, *of) * given)

    expected = _backpropagated("tanh", False, data, weights, given)
    gradient = jax.grad(loss, argnums=wanted)
    _close(gradient(data, weights), expected[1 + wanted])
    needed = f"('needed', ({wanted == 0}, {wanted == 1}))"
    assert needed in str(jax.make_jaxpr(gradient)(data, weights))


def test_a_gradient_by_one_weight():
    sizes, case = (5, 16, 2), _case((5, 16, 2), 200)
    data, weights, given = case

    def loss(kernel):
        return jnp.sum(
            dense_layers.apply(layers, data, [(kernel, weights[0][1]), weights[1]]) * given
        )

    layers = Layers(sizes, jnp.tanh, False)
    _close(jax.grad(loss)(weights[0][0]), _backpropagated("tanh", False, *case)[2][0][0])


@pytest.mark.parametrize("moving", [(True, True), (True, False), (False, True)])
def test_tangents_are_those_of_backpropagation(moving):
    """The directional derivative is the product of the gradient and the direction."""
    sizes, case = (5, 16, 2), _case((5, 16, 2), 200)
    layers, (data, weights, given) = Layers(sizes, jax.nn.swish, False), case
    directions = [
        x if m else jax.tree.map(np.zeros_like, x)
        for m, x in zip(moving, _case(sizes, 200, 1), strict=False)
    ]

    def along(t):
        moved = [
            jax.tree.map(lambda a, b: a + t * b, x, d) if m else x
            for m, x, d in zip(moving, (data, weights), directions, strict=True)
        ]
        return dense_layers.apply(layers, *moved)

    _, found = jax.jvp(along, (jnp.float32(0),), (jnp.float32(1),))
    out, *gradient = _backpropagated("swish", False, *case)
    wanted = sum(
        np.sum(a * b) for a, b in zip(*map(jax.tree.leaves, (gradient, directions)), strict=True)
    )
    assert found.shape == out.shape
    np.testing.assert_allclose(np.sum(found * given), wanted, rtol=1e-5)


def test_derivatives_of_derivatives_are_those_of_xla():
    """Forwards over reverse and reverse over reverse, of a function of rows and weights."""
    sizes, (data, weights, given) = (5, 16, 2), _case((5, 16, 2), 200)
    layers, directions = Layers(sizes, jnp.tanh, True), _case(sizes, 200, 1)[:2]

    def plain(data, weights):
        for kernel, bias in weights:
            data = jnp.tanh(data @ kernel + bias)
        return data

    def twice(apply):
        def loss(*x):
            return jnp.sum(apply(*x) ** 2 * given)

        gradient = jax.grad(loss, argnums=(0, 1))

        def along(*x):
            pairs = zip(*map(jax.tree.leaves, (gradient(*x), directions)), strict=True)
            return sum(jnp.sum(a * b) for a, b in pairs)

        forwards = jax.jvp(gradient, (data, weights), directions)[1]
        return forwards, jax.grad(along, argnums=(0, 1))(data, weights)

    found = twice(functools.partial(dense_layers.apply, layers))
    _close(found, twice(plain))
    _close(found[0], found[1])


def test_batched_layers_are_computed_one_after_another():
    sizes = 4, 9, 2
    layers, cases = Layers(sizes, jnp.tanh, False), [_case(sizes, 50, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *cases)
    found = jax.vmap(functools.partial(_pulled, layers))(*stacked)
    for i, case in enumerate(cases):
        mine = jax.tree.map(lambda x, i=i: x[i], found)
        np.testing.assert_array_equal(mine[0], _pulled(layers, *case)[0])
        _close(mine, _backpropagated("tanh", False, *case))


def test_without_jit_layers_are_operations():
    sizes, case = (4, 9, 2), _case((4, 9, 2), 50)
    with jax.disable_jit():
        found = _pulled(Layers(sizes, jnp.tanh, False), *case)
    _close(found, _backpropagated("tanh", False, *case))


def test_exported_layers_are_computed_by_xla():
    sizes, case = (4, 9, 2), _case((4, 9, 2), 50)
    run = jax.jit(functools.partial(_pulled, Layers(sizes, jnp.tanh, True)))
    program = export.export(run, platforms=["cpu"])(*case)
    assert "custom_call" not in program.mlir_module()
    _close(jax.jit(program.call)(*case), run(*case))


def test_no_rows_and_their_gradient():
    """A sum over no rows is zero; the kernel of a block may not write into empty arrays."""
    sizes, (_, weights, _) = (4, 9, 2), _case((4, 9, 2), 50)
    nothing = np.zeros((0, 4), np.float32), weights, np.zeros((0, 2), np.float32)
    layers = Layers(sizes, jnp.tanh, False)
    run = jax.jit(functools.partial(_pulled, layers)).lower(*nothing)
    # The kernels' operand with the rows is not empty.
    calls = [line for line in run.as_text().splitlines() if "custom_call @brax_" in line]
    assert len(calls) == 2 and not any("tensor<0x" in line for line in calls)
    out, of_data, of_weights = run.compile()(*nothing)
    assert (out.shape, of_data.shape) == ((0, 2), (0, 4))
    for x, y in zip(jax.tree.leaves(of_weights), jax.tree.leaves(weights), strict=True):
        np.testing.assert_array_equal(x, np.zeros_like(y))


def test_what_has_no_kernel():
    sizes, (data, weights, _) = (4, 9, 2), _case((4, 9, 2), 50)
    arrays = jax.tree.leaves((data, weights))
    plain = Layers(sizes, jnp.tanh, False)
    assert dense_layers.supported(plain, arrays)
    # Sines are computed in double precision only, and a sum over an axis is no activation.
    assert not dense_layers.supported(plain._replace(activation=jnp.sin), arrays)
    assert not dense_layers.supported(plain._replace(activation=jax.nn.softmax), arrays)
    assert not dense_layers.supported(plain, [x.astype(np.float16) for x in arrays])
    for empty in ((0, 9, 2), (4, 0, 2), (4, 9, 0)):
        assert not dense_layers.supported(plain._replace(sizes=empty), arrays)


def test_variables_of_the_environment_turn_kernels_off(monkeypatch):
    monkeypatch.setenv("BRAX_NATIVE", "0")
    layers = Layers((4, 2), jnp.tanh, False)
    assert not dense_layers.supported(layers, jax.tree.leaves(_case((4, 2), 50)))


def test_a_variable_leaves_layers_to_xla_that_were_traced_before(monkeypatch):
    run = jax.jit(functools.partial(_pulled, Layers((4, 9, 2), jnp.tanh, False)))
    traced = run.trace(*_case((4, 9, 2), 50))
    assert "dense_layers" in str(traced.jaxpr)
    monkeypatch.setenv("BRAX_NATIVE", "0")
    assert "custom_call" not in traced.lower().as_text()


def test_a_failing_compiler_leaves_layers_to_xla(monkeypatch):
    def failing(*_):
        raise RuntimeError("unknown instruction")

    monkeypatch.setattr(cpu, "register", failing)
    sizes = 6, 11, 2
    case = _case(sizes, 50)
    said = "dense layers of 6, 11, 2 numbers .*unknown instruction"
    with pytest.warns(RuntimeWarning, match=said):
        found = jax.jit(functools.partial(_pulled, Layers(sizes, jnp.tanh, False)))(*case)
    _close(found, _backpropagated("tanh", False, *case))


def test_an_error_of_the_code_generator_leaves_layers_without_a_kernel(monkeypatch):
    def failing(*_, **__):
        raise KeyError("axis")

    monkeypatch.setattr(codegen, "forward_text", failing)
    arrays = jax.tree.leaves(_case((7, 3), 50)[:2])
    with pytest.warns(RuntimeWarning, match="dense layers of 7, 3 numbers .*KeyError: 'axis'"):
        assert not dense_layers.supported(Layers((7, 3), jnp.tanh, False), arrays)


def test_within_a_shard_map_there_is_no_kernel():
    layers, (data, *_) = Layers((4, 2), jnp.tanh, False), _case((4, 2), 50)
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))
    found = []

    def part(data):
        found.append(dense_layers.supported(layers, [data]))
        return data

    jax.shard_map(part, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))(jnp.asarray(data))
    assert found == [False]


_PROGRAM = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import test_dense_layers
print(test_dense_layers.digest())
"""


def digest():
    """Return a hash of the bits of a gradient."""
    sizes = 27, 64, 64, 3
    found = jax.jit(functools.partial(_pulled, Layers(sizes, jax.nn.swish, False)))
    bits = b"".join(np.asarray(x).tobytes() for x in jax.tree.leaves(found(*_case(sizes, 2560))))
    return hashlib.sha256(bits).hexdigest()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot choose processors")
def test_bits_do_not_depend_on_the_number_of_threads():
    path = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    single = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert single.stdout.split()[-1] == digest()


# Bounds of the error in units in the last place; measured are 1.2, 2.0, 2.8, 2.8, 3.6 and UNITS.
@pytest.mark.parametrize(
    ("function", "low", "high", "units"),
    [
        (jnp.exp, -86, 88.7, 1.5),
        (jnp.expm1, -5, 5, 2.5),
        (jnp.tanh, -12, 12, 3),
        (jnp.log, 1e-6, 3, 3),
        (jnp.log1p, -0.9, 10, 4),
        (jax.nn.sigmoid, -86, 86, 3),
    ],
)
def test_functions_of_single_precision(function, low, high, units):
    layers = Layers((1, 1), function, True)
    whole = np.linspace(low, high, 100_000), np.linspace(low, high, 10_001) * 1e-3
    x = np.concatenate(whole).astype(np.float32)
    x = x[x > 0] if function is jnp.log else x
    one = [(jnp.ones((1, 1)), jnp.zeros(1))]
    found = np.asarray(dense_layers.apply(layers, jnp.asarray(x[:, None]), one))[:, 0]
    exact = _logistic if function is jax.nn.sigmoid else getattr(np, function.__name__)
    expected = exact(x.astype(np.float64))
    assert np.max(abs(found - expected) / np.spacing(abs(expected.astype(np.float32)))) < units
    # Special numbers.
    x = np.array([np.nan, np.inf, -np.inf, 0, 200, -200], np.float32)
    found = np.asarray(dense_layers.apply(layers, jnp.asarray(x[:, None]), one))[:, 0]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        np.testing.assert_allclose(found, exact(x), rtol=1e-6, atol=1e-38)


def _logistic(x):
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))
