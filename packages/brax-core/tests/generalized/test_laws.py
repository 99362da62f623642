"""Force laws of the soft constraints are the slopes of the energies written here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.components import Vec3
from brax.generalized.laws import Ellipse, Pyramid, Rows

N = 200


def numbers(low, high, seed):
    return jnp.asarray(np.random.default_rng(seed).uniform(low, high, size=(N, 1)))


LAWS = {
    "rows": lambda: Rows(numbers(0.5, 2, 0), numbers(-2, -1, 1), numbers(1, 2, 2)),
    "pyramid": lambda: Pyramid(numbers(0.5, 2, 0), numbers(0.2, 1.5, 1), jnp.ones((N, 1))),
    "ellipse": lambda: _ellipse(numbers(0.5, 2, 0), numbers(0.2, 1.5, 1), numbers(0.5, 4, 2)),
}


def _ellipse(normal, friction, ratio):
    """As the constraints make it: stiffer along the tangents by `impratio`."""
    return Ellipse(normal, normal * ratio, friction, friction / jnp.sqrt(ratio))


def energy(law, v):
    """Of scalar rows Huber's loss, of cones the squared distance from them, in their metric."""
    if isinstance(law, Rows):
        force = jnp.clip(-law.stiffness * v, law.lower, law.upper)
        return -force * (v + 0.5 * force / law.stiffness)
    if isinstance(law, Pyramid):
        edges = [v.x + s * law.friction * t for t in (v.y, v.z) for s in (1, -1)]
        return 0.5 * law.stiffness * sum(jnp.minimum(e, 0.0) ** 2 for e in edges)
    speed = jnp.hypot(v.y, v.z)
    n, t = law.mu * v.x, law.friction * speed
    inside = law.normal * v.x**2 + law.tangent * speed**2
    beside = law.normal / (law.mu**2 * (1 + law.mu**2)) * (n - law.mu * t) ** 2
    apart, stuck = n >= law.mu * t, law.mu * n + t <= 0
    return 0.5 * jnp.where(apart, 0.0, jnp.where(stuck, inside, beside))


def full(stiffness):
    """The symmetric matrix, (n, 3, 3)."""
    xx, yy, zz, xy, xz, yz = (s[:, 0] for s in stiffness)
    return jnp.stack([jnp.stack(r, -1) for r in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))], -2)


@pytest.mark.parametrize("name", LAWS)
def test_force_and_stiffness_are_the_energys_derivatives(name):
    law = LAWS[name]()
    size = 1 if name == "rows" else 3
    v = jnp.asarray(np.random.default_rng(3).normal(size=(N, size)))

    def unpack(v):
        return v if size == 1 else Vec3(*(v[:, k : k + 1] for k in range(3)))

    def force(v):
        f, _ = law.response(unpack(v))
        return f if size == 1 else jnp.concatenate(f, axis=1)

    values, pull = jax.vjp(lambda v: energy(law, unpack(v)), v)
    np.testing.assert_allclose(pull(jnp.ones_like(values))[0], -force(v), atol=1e-9)
    slopes = jnp.stack([jax.jvp(force, (v,), (jnp.ones((N, 1)) * e,))[1] for e in jnp.eye(size)], 1)
    stiffness = law.response(unpack(v))[1]
    stiffness = stiffness[:, :, None] if size == 1 else full(stiffness)
    np.testing.assert_allclose(stiffness, -slopes, atol=1e-9)
    # Some of them act, and some do not.
    assert 0.1 < np.mean(np.abs(stiffness).max((1, 2)) > 0) < 0.98


@pytest.mark.parametrize("name", LAWS)
def test_power_and_curvature_along_a_line_are_the_energys_derivatives(name):
    law, rng = LAWS[name](), np.random.default_rng(4)
    size = 1 if name == "rows" else 3
    columns = [jnp.asarray(rng.normal(size=(N, 1))) for _ in range(2 * size)]
    v, change = (c[0] if size == 1 else Vec3(*c) for c in (columns[:size], columns[size:]))

    def slope(far):
        there = lambda far: energy(law, v + change * far)  # noqa: E731
        return jax.jvp(there, (far,), (jnp.ones_like(far),))[1]

    far = jnp.full((N, 1), 0.3)
    first, second = jax.jvp(slope, (far,), (jnp.ones_like(far),))
    power, curvature = law.along(v, change, far)
    np.testing.assert_allclose(power, -first, atol=1e-9)
    np.testing.assert_allclose(curvature, second, atol=1e-9)
