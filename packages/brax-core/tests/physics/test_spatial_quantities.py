"""Spatial algebra of `brax.base`: closed forms, identities, and numbers of Google's brax 0.14.2."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.base import Force, Inertia, Motion, Transform
from brax.errors import ModelError

# The rotation is about y, with cosine 0.28 and sine 0.96, so that all results are short decimals.
FRAME = Transform(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.8, 0.0, 0.6, 0.0]))
OTHER = Transform(jnp.array([-0.5, 0.25, 0.1]), jnp.array([0.6, 0.8, 0.0, 0.0]))
MOTION = Motion(jnp.array([1.0, -2.0, 0.5]), jnp.array([0.3, 0.7, -1.0]))
SECOND = Motion(jnp.array([0.2, 0.4, -0.6]), jnp.array([2.0, -1.0, 0.5]))
FORCE = Force(MOTION.ang, MOTION.vel)
BODY = Inertia(OTHER, jnp.array([2.0, 3.0, 4.0]), jnp.array(5.0))
TABLE = np.array([[0.28, 0, 0.96], [0, 1, 0], [-0.96, 0, 0.28]])
"""The matrix of FRAME's rotation."""

GOOGLES: dict[str, tuple[Any, list[Any]]] = {
    "transform": (
        FRAME.do(OTHER),
        [(0.956, 2.25, 3.508), (0.48, 0.64, 0.36, -0.48)],
    ),
    "to_local": (
        FRAME.to_local(OTHER),
        [(1.5, 2.294, -2.492), (0.48, -0.64, 0.36, -0.48)],
    ),
    "motion": (FRAME.do(MOTION), [(-0.2, -2, 1.1), (-4.756, -1.8, -5.592)]),
    "inverse of a motion": (FRAME.inv_do(MOTION), [(0.76, -2, -0.82), (3.484, 3.8, -4.088)]),
    "force": (FRAME.do(FORCE), [(-2.476, -4.06, 1.632), (-0.876, 0.7, -0.568)]),
    "cross": (MOTION.cross(SECOND), [(1, 0.7, 0.8), (-0.52, 0.48, 2.98)]),
    "cross of a force": (MOTION.cross(FORCE), [(0, 0, 0), (1.65, 1.15, 1.3)]),
    "dot": (MOTION.dot(SECOND), [-1.5]),
    "inertia": (
        FRAME.do(BODY),
        [5, (5, 10, 15),
         [(68.8432, -10, -14.4624), (-10, 53, -30), (-14.4624, -30, 27.1568)]],
    ),
    "momentum": (FRAME.do(BODY).mul(MOTION), [(61.112, -121.5, 59.616), (-33.5, -9, 15)]),
}  # fmt: skip
"""Results here, and those that Google's brax printed for the same arguments, to six digits."""


@pytest.mark.parametrize("name", GOOGLES)
def test_results_are_those_of_googles_brax(name):
    found, expected = GOOGLES[name]
    for x, y in zip(jax.tree.leaves(found), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("value", [OTHER, MOTION, FORCE])
def test_the_inverse_takes_back(value):
    for there in (FRAME.inv_do(FRAME.do(value)), FRAME.do(FRAME.inv_do(value))):
        for x, y in zip(jax.tree.leaves(there), jax.tree.leaves(value), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)


def test_power_is_the_same_in_every_frame():
    power = FRAME.do(MOTION).dot(FRAME.inv_do(FORCE))
    np.testing.assert_allclose(power, MOTION.dot(FORCE), rtol=1e-5)


def test_power_does_not_change_where_both_move_along():
    # v x is minus the transpose of v x*: Featherstone (2008), equation 2.29.
    one, two = MOTION.cross(SECOND).dot(FORCE), SECOND.dot(MOTION.cross(FORCE))
    np.testing.assert_allclose(one, -two, rtol=1e-5)


def test_a_momentum_about_the_origin():
    # Spin and orbit: R diag(I) R^T w + c x m (v + w x c).
    c, w = np.array(FRAME.pos), np.array(MOTION.ang)
    speed = np.array(MOTION.vel) + np.cross(w, c)
    spin = TABLE @ np.diag([2, 3, 4]) @ TABLE.T @ w
    momentum = FRAME.do(BODY).mul(MOTION)
    np.testing.assert_allclose(momentum.vel, 5 * speed, rtol=1e-5)
    np.testing.assert_allclose(momentum.ang, spin + np.cross(c, 5 * speed), rtol=1e-5)


def test_leading_axes_broadcast_and_vmap_maps_methods():
    many = jax.tree.map(lambda a: jnp.stack([a, -a, 2 * a]), MOTION)
    frames = jax.tree.map(lambda a: jnp.stack([a] * 3), FRAME)
    expected = [FRAME.do(many.take(i)) for i in range(3)]
    nested = jax.tree.map(lambda a: a[None], frames).vmap(in_axes=(0, None)).vmap()
    for found in (FRAME.do(many), frames.vmap().do(many), FRAME.vmap(in_axes=(None, 0)).do(many),
                  nested.do(many).take(0)):  # fmt: skip
        for i in range(3):
            np.testing.assert_allclose(found.ang[i], expected[i].ang, rtol=1e-5)
            np.testing.assert_allclose(found.vel[i], expected[i].vel, rtol=1e-5)
    across = frames.vmap(in_axes=0, out_axes=1).do(many)
    np.testing.assert_allclose(across.vel[:, 2], expected[2].vel, rtol=1e-5)


def test_entries_are_set_and_added():
    rows = Motion(jnp.zeros((3, 3)), jnp.ones((3, 3)))
    np.testing.assert_array_equal(rows.index_set(1, MOTION).ang[1], MOTION.ang)
    np.testing.assert_array_equal(rows.index_sum(1, MOTION).vel[1], 1 + MOTION.vel)


def test_moments_are_also_diagonal_matrices():
    two = Inertia(OTHER, jnp.array([[2.0, 3.0, 4.0], [1.0, 1.0, 1.0]]), jnp.ones(2))
    np.testing.assert_array_equal(two.i, [np.diag([2, 3, 4]), np.eye(3)])
    np.testing.assert_array_equal(two.replace(i=2 * two.i).moments, 2 * two.moments)
    assert two.replace(i=None).moments is None  # an axis for `jax.vmap`
    with pytest.raises(ModelError, match=r"has shape \(2, 3\), expected \(n_links, 3, 3\)"):
        two.replace(i=two.moments)
    with pytest.raises(ModelError, match=r"must be diagonal, .* rotate that transform"):
        two.replace(i=jnp.ones((2, 3, 3)))
    unknown = jax.jit(lambda i: two.replace(i=i).moments)
    assert jnp.isnan(unknown(jnp.ones((2, 3, 3)))).all()
    np.testing.assert_array_equal(unknown(two.i), two.moments)


def test_what_is_no_quantity():
    frame, motion, body = cast(tuple[Any, Any, Any], (FRAME, MOTION, BODY))
    for wrong in (lambda: frame.do(3), lambda: motion.cross(frame), lambda: frame.inv_do(body)):
        with pytest.raises(ModelError, match=r"cannot take a \w+: give a brax.base"):
            wrong()
