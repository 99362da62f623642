"""A shape that is known by its signed distance alone, where other colliders know the answer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import RING, SIZES, nearest, shape

from brax import plugins
from brax.colliders import GeometryType
from brax.colliders.dispatch import collider_of_types
from brax.components import sqrt


class Ball(GeometryType):
    """A ball that says nothing else of itself."""

    name = "ball"
    size_names = ("radius",)

    def signed_distance(self, shape, point):
        return sqrt(point.dot(point)) - shape.size.x


BALL = Ball()
RADIUS = 0.25
MARKS = {"plane": (), "box": (pytest.mark.slow,)}
KINDS = [pytest.param(n, marks=MARKS.get(n, (pytest.mark.slow, pytest.mark.long))) for n in SIZES]


def met(collider, order, names, places, sizes):
    """Return the nearest points of two shapes, given to the collider in one order."""
    shapes = [shape(*each) for each in zip(names, places, sizes, strict=True)]
    return nearest(collider.collide(*(shapes[k] for k in order)))


def colliders(name):
    """Return the collider of the signed-distance ball and that of a sphere, and their orders."""
    kind, sphere = (plugins.get("geometry_type", n) for n in (name, "sphere"))
    registered = {plugins.get("collider", n).types: n for n in plugins.names("collider")}
    mine = collider_of_types(BALL, kind)
    for types in (("sphere", name), (name, "sphere")):
        if types in registered:
            return mine, plugins.get("collider", registered[types]), types
    theirs = collider_of_types(sphere, kind)
    assert theirs is not None
    return mine, theirs, theirs.types


def scene(name, n=40):
    rng = np.random.default_rng(3)
    places = rng.normal(size=(2, n, 7)) * ([0.25] * 3 + [1] * 4)
    sizes = [np.tile(s, (n, 1)) for s in ((RADIUS, 0, 0), SIZES[name])]
    return places, [jnp.asarray(s, float) for s in sizes]


@functools.cache
def programs(name):
    mine, theirs, types = colliders(name)
    first = (0, 1) if types == ("sphere", name) else (1, 0)
    return tuple(
        jax.jit(functools.partial(met, collider, order, names))
        for collider, order, names in (
            (mine, (0, 1), ("ball", name)),
            (theirs, first, ("sphere", name)),
        )
    ), first


@pytest.mark.parametrize("name", KINDS)
def test_a_ball_known_by_its_distance_is_a_sphere(f64, name):
    """A signed-distance ball is a sphere: in a plane at any depth, in shapes while shallow.

    Shallow means that the shape does not contain the ball's centre.
    """
    (mine, theirs), order = programs(name)
    dist, normal, pos = map(np.asarray, mine(*scene(name)))
    expected, its_normal, its_pos = map(np.asarray, theirs(*scene(name)))
    clear = expected > (-np.inf if name == "plane" else -0.9 * RADIUS)
    assert clear.sum() > 15
    turn = 1 if order == (0, 1) else -1
    np.testing.assert_allclose(dist[clear], expected[clear], atol=1e-6)
    np.testing.assert_allclose(normal[clear], turn * its_normal[clear], atol=2e-3)
    np.testing.assert_allclose(pos[clear], its_pos[clear], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plane", "capsule", "box"])
@pytest.mark.long
def test_the_derivatives_are_those_of_a_sphere(f64, name):
    """By places, turns and sizes of both."""
    places, sizes = scene(name)
    (mine, theirs), _ = programs(name)
    clear = np.asarray(theirs(places, sizes)[0]) > -0.9 * RADIUS

    def slope(run):
        return jax.grad(lambda p, s: jnp.where(clear, run(p, s)[0], 0.0).sum(), (0, 1))(
            jnp.asarray(places), sizes
        )

    for got, expected in zip(*map(jax.tree.leaves, (slope(mine), slope(theirs))), strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-3)


@pytest.mark.slow
def test_two_balls_known_by_their_distances_meet(f64):
    collider = collider_of_types(BALL, BALL)
    places = np.zeros((2, 1, 7))
    places[..., 3] = 1
    places[1, 0, :3] = (0.3, 0.4, 0)
    sizes = [jnp.full((1, 3), r) for r in (0.3, 0.25)]
    run = jax.jit(functools.partial(met, collider, (0, 1), ("ball", "ball")))
    dist, normal, _ = run(places, sizes)
    np.testing.assert_allclose(dist, -0.05, atol=1e-8)
    np.testing.assert_allclose(normal, [[0.6, 0.8, 0]], atol=1e-5)


def test_a_ring_is_pushed_up_from_any_depth_under_a_plane(f64):
    """The lowest point is the tube's radius plus the ring's times sin(tilt) below its centre.

    The other points touch the plane too, or are away from it.
    """
    tilt, height = (a.ravel() for a in np.meshgrid((0.2, 0.9, 1.5), (0.3, 0.0, -0.09, -3.0)))
    place = np.zeros((tilt.size, 7))
    place[:, 2], place[:, 3], place[:, 4] = height, np.cos(tilt / 2), np.sin(tilt / 2)
    ground = np.tile([0.0, 0, 0, 1, 0, 0, 0], (tilt.size, 1))
    collider = collider_of_types(RING, plugins.get("geometry_type", "plane"))
    assert collider is not None

    def touches(place):
        return collider.collide(
            shape("ring", place, (0.1, 0.08, 0)), shape("plane", ground, (0,) * 3)
        )

    first, *others = jax.jit(touches)(jnp.asarray(place))
    expected = height - 0.1 * np.sin(tilt) - 0.08
    np.testing.assert_allclose(first.dist[0], expected, atol=1e-9)
    np.testing.assert_allclose(first.pos.z[0], expected / 2, atol=1e-9)
    np.testing.assert_allclose(
        np.stack(first.normal)[:, 0], [[0.0], [0.0], [-1.0]] + 0 * tilt, atol=1e-9
    )
    for other in others:
        assert ((other.dist[0] > 0) | (np.abs(other.dist[0] - expected) < 0.01)).all()


def test_a_shape_that_says_nothing_of_itself_meets_none():
    silent = type("Silent", (GeometryType,), {"name": "silent", "size_names": ()})()
    assert collider_of_types(silent, plugins.get("geometry_type", "sphere")) is None
    assert collider_of_types(silent, BALL) is None
