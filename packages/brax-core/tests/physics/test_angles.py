"""Sines, cosines, the exponential map and shortest rotations, against NumPy in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import math
from brax.components import Vec3, exp_quat, sine_and_cosine
from brax.kernels.batch_last import batch_last

ANGLES = np.concatenate(
    [np.linspace(-20, 20, 999), np.linspace(-1.6, 1.6, 999), [0.0, 1e-12, 1e-30, 1e6]]
).astype(np.float32)


def in_kernel(fun, *arrays):
    """Return a function's results, leaves (n, batch), by a kernel."""
    found = jax.jit(jax.vmap(batch_last(fun)))(*(jnp.asarray(x).T for x in arrays))
    return jax.tree.map(lambda x: np.asarray(x).T, found)


# Arrays of one row: each environment has its own angle. Of two: the larger one decides for both.
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("native", ["0", "1"])
def test_sine_and_cosine(rows, native, monkeypatch):
    monkeypatch.setenv("BRAX_NATIVE", native)
    angle = ANGLES[: len(ANGLES) // rows * rows].reshape(rows, -1)
    found = in_kernel(sine_and_cosine, angle)
    exact = np.sin(angle.astype(float)), np.cos(angle.astype(float))
    np.testing.assert_allclose(found, exact, rtol=0, atol=2.5e-7)
    # A small angle keeps all its digits.
    small = (angle * 1e-9).astype(np.float32)
    found, _ = in_kernel(sine_and_cosine, small)
    np.testing.assert_allclose(found, np.sin(small.astype(float)), rtol=2e-7, atol=1e-37)


@pytest.mark.parametrize("native", ["0", "1"])
def test_the_exponential_map(native, monkeypatch):
    monkeypatch.setenv("BRAX_NATIVE", native)
    draw = np.random.default_rng(0)
    length = np.concatenate([10.0 ** draw.uniform(-12, 2, 500), np.linspace(3.1, 3.2, 99), [0.0]])
    way = draw.normal(size=(3, len(length)))
    v = (way / np.linalg.norm(way, axis=0) * length).astype(np.float32)
    found = np.stack(in_kernel(lambda x: exp_quat(Vec3(*x[:, None])), v))[:, 0]
    half = 0.5 * np.linalg.norm(v.astype(float), axis=0)
    exact = [np.cos(half), *(0.5 * v * np.sinc(half / np.pi))]
    # The half angle of a long vector is rounded.
    assert np.max(abs(found - exact) / (1 + half)) < 2e-7
    small = length < 1e-3
    np.testing.assert_allclose(found[1:, small], np.array(exact)[1:, small], rtol=2e-7)


@pytest.mark.parametrize("x", [0.0, 0.3, 1.5, 1.6, 40.0])
def test_derivatives(x):
    """Twice, on both sides of the largest angle of the series, and at zero."""
    both = lambda x: jnp.stack(sine_and_cosine(x[None, None]))[:, 0, 0]  # noqa: E731
    first, second = jax.jacfwd(both), jax.jacrev(jax.jacfwd(both))
    np.testing.assert_allclose(first(jnp.float32(x)), [np.cos(x), -np.sin(x)], atol=4e-6)
    np.testing.assert_allclose(second(jnp.float32(x)), [-np.sin(x), -np.cos(x)], atol=4e-6)

    def turned(v):
        return jnp.stack(exp_quat(Vec3(*v[:, None, None])))[:, 0, 0]

    # A rotation about x by twice the angle; across it, the vector part moves by sin(x) / (2 x).
    for jacobian in (jax.jacfwd(turned), jax.jacrev(turned)):
        found = jacobian(jnp.array([2 * x, 0.0, 0.0], jnp.float32))
        across = 0.5 * np.sinc(x / np.pi)
        np.testing.assert_allclose(found[:2, 0], [-0.5 * np.sin(x), 0.5 * np.cos(x)], atol=4e-6)
        np.testing.assert_allclose([found[2, 1], found[3, 2]], across, atol=4e-6)


def test_angles_that_are_no_numbers():
    for x in (np.nan, np.inf):
        assert np.isnan(in_kernel(sine_and_cosine, np.full((1, 3), x, np.float32))).all()


def test_double_precision():
    with jax.enable_x64(True):
        angle = jnp.asarray(ANGLES.astype(float))[None]
        found = sine_and_cosine(angle)
        np.testing.assert_allclose(found, [np.sin(angle), np.cos(angle)], atol=1e-15)


OFF = [0.0, 1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.03, 0.5, 1.0, 1.6, 3.0, np.pi]


@pytest.mark.parametrize("off", OFF)
def test_a_shortest_rotation_near_opposite_vectors(bound, off):
    """The vectors are at an angle of pi - off. The errors are 5e-7 and 1.1e-15."""
    draw = np.random.default_rng(0)
    a, across = draw.normal(size=(2, 500, 3))
    a[:6] = [*np.eye(3), *-np.eye(3)]
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    across = np.cross(a, across)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    kind = bound(np.float64, np.float32)
    a, b = (x.astype(kind) for x in (a, across * np.sin(off) - a * np.cos(off)))
    found = np.asarray(math.from_to(jnp.asarray(a), jnp.asarray(b)), float)
    w, v = found[:, :1], found[:, 1:]
    turned = a + 2 * np.cross(v, w * a + np.cross(v, a))
    # The angle is that between the vectors, so the rotation is a shortest one.
    np.testing.assert_allclose(turned, b, rtol=0, atol=bound(4e-15, 2e-6))
    np.testing.assert_allclose(w[:, 0], np.sin(off / 2), rtol=0, atol=bound(4e-15, 2e-6))


def test_the_slope_of_a_shortest_rotation(f64):
    """In a plane the rotation is by the angle t, also near half a turn."""

    def turn(t):
        end = jnp.stack([jnp.cos(t), jnp.sin(t), jnp.zeros_like(t)])
        return math.from_to(jnp.array([1.0, 0, 0]), end)

    for t in (0.3, 2.0, np.pi - 1e-3, np.pi - 1e-5):
        slope = jax.jacfwd(turn)(t)
        want = [-np.sin(t / 2) / 2, 0, 0, np.cos(t / 2) / 2]
        np.testing.assert_allclose(slope, want, rtol=0, atol=1e-9)  # 9e-12
    assert np.isfinite(jax.jacrev(math.from_to)(jnp.eye(3)[0], -jnp.eye(3)[0])).all()
