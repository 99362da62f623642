"""Distances between shapes: T53, and the same against a search by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import plugins
from brax.colliders.interface import Shape
from brax.components import Quat, Vec3

PARALLEL = (0.0, 0.0, 0.3, 1.0, 0.0, 0.3)
COLLINEAR = (1.5, 0.0, 0.0, 2.5, 0.0, 0.0)


def column(values):
    return [jnp.asarray(v, float).reshape(1, 1) for v in values]


def capsule(ends, radius=0.1):
    """Return the capsule between two points."""
    ends = jnp.asarray(ends, float).reshape(2, 3)
    half = 0.5 * (ends[1] - ends[0])
    length = jnp.sqrt(jnp.sum(half**2))
    d = half / length
    # The half-way rotation from z to d.
    quat = jnp.array([1 + d[2], -d[1], d[0], 0.0])
    quat = quat / jnp.sqrt(jnp.sum(quat**2))
    pos = 0.5 * (ends[0] + ends[1])
    return Shape(Vec3(*column(pos)), Quat(*column(quat)), Vec3(*column((radius, length, 0.0))))


def ball(centre, radius):
    return Shape(Vec3(*column(centre)), Quat(*column((1, 0, 0, 0))), Vec3(*column((radius, 0, 0))))


def touch(name, a, b):
    """Return the nearest contact of a pair as plain arrays; the middle of two equally near ones."""
    points = plugins.get("collider", name).collide(a, b)
    dists = jnp.stack([p.dist[0, 0] for p in points])
    nearest = dists <= jnp.min(dists) + 1e-6

    def middle(vectors):
        rows = jnp.stack([jnp.stack([c[0, 0] for c in v]) for v in vectors])
        return jnp.sum(jnp.where(nearest[:, None], rows, 0.0), axis=0) / jnp.sum(nearest)

    return jnp.min(dists), middle([p.pos for p in points]), middle([p.normal for p in points])


def collider(*types):
    """Return the registered collider of two geometry types."""
    for name in plugins.names("collider"):
        if plugins.get("collider", name).types == types:
            return name
    raise AssertionError(types)


FIRST = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("second", "dist"),
    [
        ((0.5, -0.5, 0.5, 0.5, 0.5, 0.5), 0.3),
        (PARALLEL, 0.1),
        (COLLINEAR, 0.3),
        ((1.3, 0.4, 0.0, 1.3, 1.4, 0.0), 0.3),
    ],
    ids=["crossing", "parallel", "collinear", "end-to-end"],
)
def test_distance_of_two_capsules(bound, second, dist):
    # T53
    name = collider("capsule", "capsule")
    got, pos, normal = touch(name, capsule(FIRST), capsule(second))
    assert got == pytest.approx(dist, abs=bound(1e-12, 1e-6))
    # The point is midway: each surface is half the distance away along the normal.
    assert np.linalg.norm(normal) == pytest.approx(1.0, abs=bound(1e-12, 1e-6))
    back = touch(name, capsule(second), capsule(FIRST))
    np.testing.assert_allclose(back[0], got, atol=bound(1e-12, 1e-6))
    np.testing.assert_allclose(back[1], pos, atol=bound(1e-12, 1e-6))
    np.testing.assert_allclose(back[2], -normal, atol=bound(1e-12, 1e-6))


@pytest.mark.parametrize(
    "second", [PARALLEL, COLLINEAR, FIRST], ids=["parallel", "collinear", "same"]
)
def test_gradient_of_the_distance_is_finite(bound, second):
    # T53, T83: "same" are two capsules in one place.
    def distance(first, second):
        return touch(collider("capsule", "capsule"), capsule(first), capsule(second))[0]

    both = jax.jit(jax.grad(distance, argnums=(0, 1)))(jnp.array(FIRST), jnp.array(second))
    for g in both:
        assert np.isfinite(g).all()


@pytest.mark.slow
def test_gradient_of_the_distance_pushes_apart(f64):
    # Lifting one of two parallel capsules by h adds h, however its two ends share it.
    def lifted(h):
        second = jnp.array(PARALLEL).at[jnp.array([2, 5])].add(h)
        return touch(collider("capsule", "capsule"), capsule(FIRST), capsule(second))[0]

    assert jax.grad(lifted)(0.0) == pytest.approx(1.0, abs=1e-12)


def nearest_by_search(a, b, rounds=6, n=21):
    """Least distance between two segments, by grids around the best point so far."""
    a, b = np.reshape(a, (2, 3)), np.reshape(b, (2, 3))
    low, high = np.zeros(2), np.ones(2)
    for _ in range(rounds):
        s, t = (np.linspace(low[k], high[k], n) for k in range(2))
        p = a[0] + s[:, None] * (a[1] - a[0])
        q = b[0] + t[:, None] * (b[1] - b[0])
        d = np.linalg.norm(p[:, None] - q[None], axis=-1)
        i, j = np.unravel_index(d.argmin(), d.shape)
        width = (high - low) * 2 / n
        centre = np.array([s[i], t[j]])
        low, high = np.clip(centre - width, 0, 1), np.clip(centre + width, 0, 1)
    return d.min()


def test_distance_of_random_capsules(f64):
    rng = np.random.default_rng(0)
    pairs = rng.uniform(-1, 1, (200, 2, 6))
    name = collider("capsule", "capsule")
    distance = jax.jit(jax.vmap(lambda a, b: touch(name, capsule(a), capsule(b))[0]))
    got = distance(pairs[:, 0], pairs[:, 1])
    want = [nearest_by_search(a, b) - 0.2 for a, b in pairs]
    np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize(
    ("centre", "dist", "normal"),
    [
        ((0.5, 0.0, 0.5), 0.5 - 0.3, (0, 0, -1)),  # beside the middle
        ((-0.3, 0.4, 0.0), 0.5 - 0.3, (0.6, -0.8, 0)),  # 3-4-5 from an end
        ((0.5, 0.0, 0.25), -0.05, (0, 0, -1)),  # inside by .05
    ],
)
def test_distance_of_a_sphere_and_a_capsule(bound, centre, dist, normal):
    got = touch(collider("sphere", "capsule"), ball(centre, 0.2), capsule(FIRST))
    assert got[0] == pytest.approx(dist, abs=bound(1e-12, 1e-6))
    np.testing.assert_allclose(got[2], normal, atol=bound(1e-12, 1e-6))


def test_distance_of_two_spheres(bound):
    got = touch(collider("sphere", "sphere"), ball((0, 0, 0), 0.1), ball((0.3, 0, 0.4), 0.2))
    assert got[0] == pytest.approx(0.2, abs=bound(1e-12, 1e-6))
    # The surfaces are at .1 and .3 along (.6, 0, .8); midway is .2.
    np.testing.assert_allclose(got[1], [0.12, 0, 0.16], atol=bound(1e-12, 1e-6))
    np.testing.assert_allclose(got[2], [0.6, 0, 0.8], atol=bound(1e-12, 1e-6))


def test_concentric_spheres_have_a_finite_gradient(bound):
    # T83
    def out(x):
        dist, pos, normal = touch(collider("sphere", "sphere"), ball(x, 0.1), ball((0, 0, 0), 0.2))
        return dist + jnp.sum(pos) + jnp.sum(normal)

    assert np.isfinite(jax.jit(jax.grad(out))(jnp.zeros(3))).all()


@pytest.mark.parametrize("ends", [FIRST, (0, 0, -1, 0, 0, 1), (0.3, -0.4, 0.5, -0.3, 0.4, -0.5)])
def test_a_ball_on_the_axis_of_a_capsule_leaves_across_it(f64, ends):
    axis = np.subtract(ends[3:], ends[:3])
    second = capsule(ends)
    first = ball(0.5 * np.add(ends[3:], ends[:3]), 0.2)
    dist, _, normal = touch(collider("sphere", "capsule"), first, second)
    assert dist == pytest.approx(-0.3, abs=1e-12)
    assert np.linalg.norm(normal) == pytest.approx(1)
    assert abs(normal @ axis) < 1e-9


def tilted_plane():
    """Through (0, 0, .1), its normal (.6, 0, .8)."""
    half = 0.5 * np.arctan2(0.6, 0.8)
    quat = (np.cos(half), 0, np.sin(half), 0)
    return Shape(Vec3(*column((0, 0, 0.1))), Quat(*column(quat)), Vec3(*column((0, 0, 1))))


def test_distance_of_a_plane_and_a_sphere(bound):
    got = touch(collider("plane", "sphere"), tilted_plane(), ball((1, 0, 1.1), 0.25))
    # (1, 0, 1) . (.6, 0, .8) = 1.4, less the radius; the point is 1.15 / 2 above the plane.
    assert got[0] == pytest.approx(1.15, abs=bound(1e-12, 1e-6))
    np.testing.assert_allclose(got[2], [0.6, 0, 0.8], atol=bound(1e-12, 1e-6))
    want = np.array([1, 0, 1.1]) - (0.25 + 1.15 / 2) * np.array([0.6, 0, 0.8])
    np.testing.assert_allclose(got[1], want, atol=bound(1e-12, 1e-6))


def test_both_ends_of_a_capsule_meet_a_plane(bound):
    points = plugins.get("collider", collider("plane", "capsule")).collide(
        tilted_plane(), capsule((0, 0, 0.1, 0, 0, 1.1), 0.25)
    )
    dists = sorted(float(p.dist[0, 0]) for p in points)
    np.testing.assert_allclose(dists, [-0.25, 0.8 - 0.25], atol=bound(1e-12, 1e-6))
