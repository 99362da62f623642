"""Shapes that are known by their signed distance, beside arithmetic and SciPy's splines."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import nearest, shape
from scipy.ndimage import map_coordinates, spline_filter

from brax import plugins
from brax.builder import ModelBuilder
from brax.colliders import Shape
from brax.colliders.dispatch import collider_of_types
from brax.components import Quat, Vec3
from brax.errors import ModelError

N = 9
HALF = (0.4, 0.5, 0.6)


def kind(name):
    return plugins.get("geometry_type", name)


def at_origin(size, heights=None):
    one = [jnp.full((1, 1), x, float) for x in (0, 0, 0, 1, 0, 0, 0, *size)]
    return Shape(Vec3(*one[:3]), Quat(*one[3:7]), Vec3(*one[7:]), heights=heights)


def distance(name, size, points, heights=None):
    """Return a type's signed distances at points (n, 3)."""
    table = None if heights is None else jnp.asarray(heights).reshape(-1, 1, 1)
    at = Vec3(*(jnp.asarray(c)[:, None, None] for c in np.asarray(points, float).T))
    return np.asarray(kind(name).signed_distance(at_origin(size, table), at))[:, 0, 0]


@pytest.fixture
def grid():
    """Return a grid of coefficients, and random points within it, away from its border."""
    rng = np.random.default_rng(0)
    coefficients = spline_filter(rng.normal(size=(N, N, N)), order=2, mode="mirror")
    return coefficients, rng.uniform(-0.85, 0.85, (50, 3)) * HALF


def test_a_grid_is_the_quadratic_spline_of_scipy(f64, grid):
    coefficients, points = grid
    at = (points / HALF + 1) * (N - 1) / 2
    expected = map_coordinates(coefficients, at.T, order=2, prefilter=False)
    np.testing.assert_allclose(distance("sdf", HALF, points, coefficients), expected, atol=1e-12)


def test_outside_of_a_grid_the_distance_from_its_box_is_added(f64, grid):
    out = [(0.4, 0.1, 0.2), (0.7, 0.1, 0.2), (0.7, 0.9, 0.2)]
    border, beyond, corner = distance("sdf", HALF, out, grid[0])
    assert beyond == pytest.approx(border + 0.3, abs=1e-12)
    edge = distance("sdf", HALF, [(0.4, 0.5, 0.2)], grid[0])[0]
    assert corner == pytest.approx(edge + 0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "size", "point", "expected"),
    [
        # 0.3 m beyond the ring's circle and 0.4 m above it: 0.5 m from the circle.
        ("sdf_torus", (0.5, 0.1, 0), (0.8, 0, 0.4), 0.4),
        # Inside the bowl, 0.2 m from the sphere; above its rim, which is at (0.8, 0.6).
        ("sdf_bowl", (1, 0.02, 0.6), (0, 0, -0.8), 0.18),
        ("sdf_bowl", (1, 0.02, 0.6), (0.8, 0, 0.9), 0.28),
        ("sdf_bowl", (1, 0.02, 0.6), (0, 0.8, 0.6), -0.02),
        # Above the upper side of a gear at the pitch circle, and beyond the tips of its teeth.
        ("sdf_gear", (2.8, 0.112, 0.2), (0, 1.3, 0.4), 0.3),
        ("sdf_gear", (2.8, 0.112, 0.2), (0, 1.9, 0), 1.9 - 1.512),
        # Within the ring of the gear, 0.1 m from it: 1.512 - 2.2 * 0.112 - 0.14 * 2.8 = 0.8736.
        ("sdf_gear", (2.8, 0.112, 0.2), (0.7736, 0, 0), 0.1),
        # Beside the flat of a head, in two of its sectors, and on the thread of the shaft below:
        # at 9 turns of 1/12 m the wave is at its largest, half of a twelfth.
        ("sdf_bolt", (0.255, 0.5, 0.5), (0.6, 0, -0.3), 0.1),
        ("sdf_nut", (0.26, 0.5, 0.5), (0.3, 0.3 * 3**0.5, -0.3), 0.1),
        ("sdf_bolt", (0.255, 0.5, 0.5), (0.255 + 0.5 / 12 + 0.1, 0, -0.75), 0.1 * 0.5**0.5),
    ],
)
def test_closed_forms(f64, name, size, point, expected):
    assert distance(name, size, [point])[0] == pytest.approx(expected, abs=1e-9)


def test_teeth_and_turns_repeat(f64):
    """A gear of 25 teeth turned by a tooth, and a bolt screwed by half a turn, are the same."""
    points = np.random.default_rng(1).normal(size=(40, 3)) * (1, 1, 0.05)

    def turned(angle, up=0.0):
        c, s = np.cos(angle), np.sin(angle)
        return points @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + (0, 0, up)

    size = (2.8, 0.112, 0.2)
    again = distance("sdf_gear", size, turned(2 * np.pi / 25))
    np.testing.assert_allclose(again, distance("sdf_gear", size, points), atol=1e-9)
    points = np.random.default_rng(1).uniform(-0.28, 0.28, (40, 3)) - (0, 0, 0.7)
    aside = np.linalg.norm(points[:, :2], axis=1)
    points = points[(points[:, 2] > -0.8) & (points[:, 2] < -0.6) & (aside > 0.2)]
    size = (0.255, 0.5, 0.5)
    again = distance("sdf_bolt", size, turned(np.pi, 0.5 / 12))
    np.testing.assert_allclose(again, distance("sdf_bolt", size, points), atol=1e-9)
    assert len(points) > 5


def contacts(first, second, sizes, places):
    """Return distances, normals and positions of the nearest points of two shapes."""
    collider = collider_of_types(kind(first), kind(second))
    assert collider is not None
    names, order = (first, second), (0, 1)
    if collider.types != names:
        order = (1, 0)
    table = [np.array([[*p, 1, 0, 0, 0]], float) for p in places]
    shapes = [
        shape(n, jnp.asarray(t), jnp.asarray([s], float))
        for n, t, s in zip(names, table, sizes, strict=True)
    ]
    return nearest(collider.collide(*(shapes[k] for k in order)))


@pytest.mark.slow
@pytest.mark.long
def test_a_nut_hangs_in_the_thread_of_its_bolt(f64):
    """The thread of the nut is 5 mm wider: their flanks, at 45 degrees, are 5 mm / sqrt(2) apart.

    The nut is seven turns below the bolt's head, so that it touches nothing but the thread.
    """
    sizes = (0.255, 0.5, 0.5), (0.26, 0.5, 0.5)
    places = (0, 0, 0), (0, 0, -7 / 12)
    dist, normal, pos = jax.jit(lambda: contacts("sdf_bolt", "sdf_nut", sizes, places))()
    assert float(dist[0]) == pytest.approx(0.005 * 0.5**0.5, abs=1e-6)
    assert abs(float(normal[0][2])) == pytest.approx(0.5**0.5, abs=0.01)
    assert 0.255 < np.hypot(*np.asarray(pos[0])[:2]) < 0.31


def test_a_grid_has_equally_many_points_along_each_axis():
    builder = ModelBuilder()
    builder.add_body("stone", mass=1.0, inertia=(1, 1, 1))
    builder.add_joint("stone", "free")
    corners = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T.tolist()
    builder.add_geom("stone", "sdf", size=(1, 1, 1), points=corners, heights=np.ones((6, 3)))
    with pytest.raises(ModelError, match=r"n \* n rows of n, with n >= 3, got 6 x 3"):
        builder.build()
