"""Capsules that lie on each other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import FAST_COMPILE, PIPELINES, shape

from brax import plugins
from brax.builder import ModelBuilder

LENGTHWISE = (0.5**0.5, 0.5**0.5, 0, 0)
"""The axis along -y."""


def points(turn, aside=0.0, height=0.2):
    """Return distances and positions of a capsule above another, turned about the vertical."""
    collider = plugins.get("collider", "capsule-capsule")
    c, s = jnp.cos(turn / 2), jnp.sin(turn / 2)
    above = jnp.array([aside, 0.12, height]), 0.5**0.5 * jnp.stack([c, c, s, s])
    below = jnp.array([[0, 0, 0, *LENGTHWISE]])
    found = collider.collide(
        shape("capsule", below, (0.1, 0.2, 0)),
        shape("capsule", jnp.concatenate(above)[None], (0.1, 0.3, 0)),
    )
    return jnp.stack([t.dist[0, 0] for t in found]), jnp.stack([t.pos.y[0, 0] for t in found])


def test_parallel_capsules_touch_at_the_ends_of_what_they_have_in_common(f64):
    """From -0.18 to 0.2, where MuJoCo has its two contacts."""
    dist, along = points(0.0)
    np.testing.assert_allclose(np.sort(along), (-0.18, 0.2), atol=1e-12)
    np.testing.assert_allclose(dist, 0.0, atol=1e-12)


def test_crossing_capsules_touch_at_one_point(f64):
    """Crossing capsules touch at one point. The gap at the other closes with the angle."""
    for turn in (np.pi / 2, 0.5, 0.1):
        dist, _ = points(turn)
        assert dist[0] == pytest.approx(0.0, abs=1e-12)
        assert dist[1] > 0.02 * turn**2
    np.testing.assert_allclose(points(0.5)[1][0], 0.12, atol=1e-12)


@pytest.mark.parametrize("turn", [0.26, 0.5, np.pi / 2])
def test_capsules_that_overlap_deeply_and_cross_touch_at_one_point_too(f64, turn):
    """As in MuJoCo, even where the balls of the second point overlap as well."""
    dist, _ = points(turn, height=0.05)
    assert dist[0] == pytest.approx(-0.15, abs=1e-12)
    assert dist[1] > 0


@pytest.mark.slow
def test_the_derivatives_by_the_angle_are_finite(f64):
    for turn in (0.0, 5e-4, 2e-3, 0.5, np.pi / 2):
        for found in jax.jacfwd(points, argnums=(0, 1))(turn, 0.0):
            assert np.isfinite(found).all()


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def rest(pipeline, sys):
    """Height and tilt after 2 s."""
    state = pipeline.init(sys, sys.init_q, jnp.zeros(2))
    return jax.lax.fori_loop(0, 1000, lambda _, s: pipeline.step(sys, s, jnp.zeros(0)), state).q


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_capsule_lies_still_on_another(f64, pipeline):
    """Its middle is above the lower one but not above the middle of what they have in common."""
    model = ModelBuilder()
    model.add_geom("world", "capsule", size=(0.1, 0.2), quat=LENGTHWISE)
    model.add_body("above", pos=(0, 0.12, 0.2), mass=20.0, inertia=(1.2, 1.2, 0.1))
    model.add_joint("above", "slide", axis=(0, 0, 1))
    model.add_joint("above", "hinge", axis=(1, 0, 0))
    model.add_geom("above", "capsule", size=(0.1, 0.3), quat=LENGTHWISE)
    model.set_option(timestep=0.002)
    height, tilt = rest(plugins.get("pipeline", pipeline), model.build())
    # MuJoCo 4.0.0: -1.1e-4 m and -7e-5 rad.
    assert abs(height) < 1e-3
    assert abs(tilt) < 1e-3
