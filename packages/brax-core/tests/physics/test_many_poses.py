"""Derivatives of every pair of shapes in a hundred thousand poses, random and degenerate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import SIZES, nearest, shape

from brax import plugins
from brax.colliders.dispatch import collider_of_types

NAMES = list(SIZES)
PAIRS = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i:] if (a, b) != ("plane", "plane")]
POSES, AT_ONCE = 100_000, 4096


def collider(first, second):
    """Return the registered collider of two types, or the one that follows from the types."""
    for name in plugins.names("collider"):
        found = plugins.get("collider", name)
        if set(found.types) == {first, second} and len(set(found.types)) == len({first, second}):
            return found
    found = collider_of_types(*(plugins.get("geometry_type", name) for name in (first, second)))
    assert found is not None
    return found


def poses(rng, n):
    """Places and quaternions (n, 7): half of them on a grid, turned by right angles or not."""
    pos, quat = rng.uniform(-0.7, 0.7, (n, 3)), rng.normal(size=(n, 4))
    even = rng.random(n) < 0.5
    pos[even] = rng.choice([-0.4, -0.2, 0.0, 0.0, 0.2, 0.3, 0.5], (even.sum(), 3))
    right = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0]])
    quat[even] = right[rng.integers(0, 5, even.sum())]
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    return np.concatenate([pos, quat], axis=1).astype(np.float32)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_derivatives_are_finite(first, second):
    found = collider(first, second)
    one, other = found.types

    @jax.jit
    def slopes(a, b):
        def total(a, b):
            shapes = (shape(name, place, SIZES[name]) for name, place in ((one, a), (other, b)))
            dist, normal, pos = nearest(found.collide(*shapes))
            return jnp.sum(dist) + jnp.sum(normal) + jnp.sum(pos)

        return jax.value_and_grad(total, (0, 1))(a, b)

    rng = np.random.default_rng(7)
    for start in range(0, POSES, AT_ONCE):
        a, b = poses(rng, AT_ONCE), poses(rng, AT_ONCE)
        value, grads = slopes(a, b)
        assert np.isfinite(value), start
        for grad in grads:
            wrong = np.flatnonzero(~np.isfinite(np.asarray(grad)).all(axis=1))
            assert not wrong.size, (a[wrong[0]].tolist(), b[wrong[0]].tolist())
