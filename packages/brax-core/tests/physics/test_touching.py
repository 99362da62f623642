"""`contact.touching` gives the touching contacts of `contact.get`, listed or not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import contact
from brax.base import Transform
from brax.builder import ModelBuilder
from brax.colliders.broad_phase import BOXED_PAIRS, MIN_LISTED_POINTS


def boxes(count):
    """Return a floor and some boxes that fall freely."""
    model = ModelBuilder()
    model.add_geom(type="plane")
    for i in range(count):
        body = model.add_body(f"box{i}", mass=1, inertia=(1, 1, 1))
        model.add_joint(body, "free")
        model.add_geom(body, "box", size=(0.2, 0.2, 0.2))
    return model.build()


@pytest.mark.parametrize(
    "count",
    [
        2,
        pytest.param(6, marks=[pytest.mark.slow, pytest.mark.long]),
        pytest.param(13, marks=pytest.mark.slow),
    ],
)
def test_touching_contacts_are_those_of_all_that_overlap(count):
    sys = boxes(count)
    points = sum(len(g.geom1) * g.collider.n_contacts for g in sys.collisions)
    assert (points >= MIN_LISTED_POINTS) == (count > 2)  # listed, and not
    assert (count * (count - 1) // 2 >= BOXED_PAIRS) == (count == 13)
    rng = np.random.default_rng(0)
    pos = jnp.asarray(rng.uniform(0, 0.35 * count ** (2 / 3), (8, count, 3)), jnp.float32)
    turn = rng.standard_normal((8, count, 4))
    rot = jnp.asarray(turn / np.linalg.norm(turn, axis=-1, keepdims=True), jnp.float32)
    frames = Transform(pos, rot)
    every = jax.vmap(lambda x: contact.get(sys, x))(frames)
    assert every is not None
    touches, where, normal = jax.vmap(lambda x: contact.touching(sys, x))(frames)
    right = np.asarray(every.dist <= 0)
    assert right.any() and not right.all()
    np.testing.assert_array_equal(touches, right)
    np.testing.assert_allclose(where, np.where(right[..., None], every.pos, 0), atol=1e-6)
    axis = np.where(right[..., None], every.frame[:, :, 0], 0)
    np.testing.assert_allclose(normal, axis, atol=1e-6)


def test_a_model_without_contacts_touches_nothing():
    model = ModelBuilder()
    model.add_joint(model.add_body("ball", mass=1, inertia=(1, 1, 1)), "free")
    found = contact.touching(model.build(), Transform(jnp.zeros((1, 3)), jnp.eye(4)[:1]))
    assert [a.shape for a in found] == [(0,), (0, 3), (0, 3)]
