"""The geometry type `sdf`: a solid that is known by its signed distance at the points of a grid."""

import itertools

import jax
import jax.numpy as jnp

from brax.colliders.interface import Shape
from brax.colliders.shapes.hull import WithHull
from brax.components import Vec3, sqrt
from brax.kernels.gather import picked


class SignedDistanceGrid(WithHull):
    """A signed distance, given on a grid that spans the box of the half-sizes around the origin.

    `Shape.heights` has the coefficients of a quadratic B-spline at the grid's points, which are
    equally many along x, y and z. The spline and its gradient are continuous. `Shape.points` are
    the vertices of the convex hull, with which planes collide.
    """

    name = "sdf"
    size_names = ("half-size x", "half-size y", "half-size z")
    has_grid = True

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Interpolate between the grid's points; outside of it, add the distance from its box."""
        assert shape.heights is not None
        n = grid_points(len(shape.heights))
        inner = Vec3(*(jnp.clip(p, -h, h) for p, h in zip(point, shape.size, strict=True)))
        out = point - inner
        # The nearest grid point and one to each side of it, along each axis.
        places = zip(inner, shape.size, strict=True)
        at = [(0.5 * (n - 1)) * (p / h + 1.0) for p, h in places]
        middle = [jnp.clip(jnp.round(jax.lax.stop_gradient(a)), 1, n - 2) for a in at]
        weights = [_weights(a - m) for a, m in zip(at, middle, strict=True)]
        x, y, z = (m.astype(jnp.int32) for m in middle)
        index = (x * n + y) * n + z
        steps = list(itertools.product((-1, 0, 1), repeat=3))
        around = jnp.stack([index + (i * n + j) * n + k for i, j, k in steps])
        values = picked(shape.heights, around.reshape(-1, *index.shape[-2:]))
        values = values.reshape(around.shape)
        dist = jnp.zeros_like(at[0])
        for value, step in zip(values, steps, strict=True):
            wx, wy, wz = (w[s + 1] for w, s in zip(weights, step, strict=True))
            dist = dist + wx * wy * wz * value
        return dist + sqrt(out.dot(out))


def grid_points(count: int) -> int:
    """Return the number of points along each axis of a grid with so many points in all."""
    return round(count ** (1 / 3))


def _weights(t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the weights of three grid points at a distance from the middle one, in spacings.

    Source: the uniform quadratic B-spline (de Boor 1978, A Practical Guide to Splines, chapter 9).
    """
    # Half a spacing to each side belongs to the middle point. At the border of the grid the
    # distance is up to one spacing, where the parabola continues.
    return 0.5 * (0.5 - t) * (0.5 - t), 0.75 - t * t, 0.5 * (0.5 + t) * (0.5 + t)


SDF = SignedDistanceGrid()
