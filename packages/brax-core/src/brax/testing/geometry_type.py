"""`check_geometry_type`: verifies that a geometry type follows its interface."""

from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders import GeometryType, Shape
from brax.components import Quat, Vec3, normalize, stack
from brax.errors import describe_error
from brax.plugins.outputs.geometry import mesh_problem
from brax.testing.faults import in_turn, interface, outputs, raise_problems

_N_POINTS = 64
"""Number of random points and directions."""
_GEOMETRY_TOLERANCE = 1e-3
"""Tolerance of lengths [m] and slopes, in single precision."""


def check_geometry_type(kind: GeometryType, size: Sequence[float] | None = None) -> None:
    """Check one geometry type.

    Its functions must return the declared shapes. The slope of a signed distance must have length
    one at nine in ten random points. A support point must be the farthest of many points along its
    direction. `nearest` must return points of the shape, beyond which no support point lies towards
    the query point. A mesh must be drawable, with vertices where the signed distance is zero.

    Args:
        kind: the geometry type.
        size: its size parameters; by default 0.4, 0.3 and 0.2.

    Raises:
        PluginError: naming everything that is wrong.
    """
    numbers = list(size or (0.4, 0.3, 0.2))[: len(kind.size_names)] if _sized(kind) else []
    problems = in_turn(
        kind,
        interface("geometry_type"),
        outputs("geometry_type"),
        lambda kind: _numbers(kind, [*numbers, 0.0, 0.0, 0.0][:3]),
    )
    raise_problems(kind, "geometry types", problems)


def _sized(kind: object) -> bool:
    """Return whether a type names its size parameters."""
    return isinstance(getattr(kind, "size_names", None), tuple)


def _numbers(kind: GeometryType, size: Sequence[float]) -> Iterator[str]:
    """Yield the problems of a type's values at random points and directions."""
    # A fixed seed: the check of an object always has the same result.
    drawn = jnp.asarray(np.random.default_rng(0).normal(size=(3, _N_POINTS, 1, 1)), jnp.float32)
    points = Vec3(*drawn)
    column = lambda *v: [jnp.full((1, 1), x, jnp.float32) for x in v]  # noqa: E731
    shape = Shape(Vec3(*column(0, 0, 0)), Quat(*column(1, 0, 0, 0)), Vec3(*column(*size)))
    # A grid's distances are those of the geom that it is made for.
    if kind.has_distance and not kind.has_grid:
        slope = jax.grad(lambda p: jnp.sum(kind.signed_distance(shape, p)))(points)
        length = np.linalg.norm(np.asarray(stack(slope)), axis=-2)
        if not np.isfinite(length).all():
            yield "signed_distance or its derivative is not finite at a random point"
        # A true distance solves the eikonal equation |∇d| = 1 except on edges and medial axes,
        # which one point in ten may hit.
        elif (np.abs(length - 1) > _GEOMETRY_TOLERANCE).mean() > 0.1:
            yield "signed_distance must be a true distance: its slope does not have length one"
    if kind.corners and not kind.least_points:
        yield from _support(kind, shape, points)
    if kind.has_nearest:
        yield from _nearest(kind, shape, points)
    if not (kind.least_points or kind.has_heights):
        yield from _mesh(kind, shape, size)


def _support(kind: GeometryType, shape: Shape, points: Vec3) -> Iterator[str]:
    """Yield a problem if another support point is farther along a direction than its own."""
    unit = np.array(stack(points))[:, 0, :, 0]
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    directions = Vec3(*(jnp.asarray(c)[:, None, None] for c in unit.T))
    found = np.asarray(stack(kind.support(shape, directions))).reshape(-1, 3)
    reach = unit @ found.T
    if not np.isfinite(found).all():
        yield "support is not finite in a random direction"
    elif (reach.max(axis=1) > np.diag(reach) + _GEOMETRY_TOLERANCE).any():
        yield "support must be the farthest point: that of another direction is farther"


def _nearest(kind: GeometryType, shape: Shape, points: Vec3) -> Iterator[str]:
    """Yield a problem if `nearest` moves its own results, or if another point is nearer."""
    found = kind.nearest(shape, points)
    moved = kind.nearest(shape, found) - found
    if not np.isfinite(np.asarray(stack(found))).all():
        yield "nearest is not finite at a random point"
    elif float(jnp.max(moved.dot(moved))) > _GEOMETRY_TOLERANCE**2:
        yield "nearest must return points of the shape: their own nearest points are others"
    elif kind.corners:
        away, _ = normalize(points - found, points)
        # No point of a convex shape lies beyond the plane through the nearest point that is
        # orthogonal to the direction of the query point.
        beyond = away.dot(kind.support(shape, away) - found)
        outside = (points - found).dot(points - found) > _GEOMETRY_TOLERANCE**2
        if bool(jnp.any(outside & (beyond > _GEOMETRY_TOLERANCE))):
            yield "nearest must return the nearest points: the support towards a point is nearer"


def _mesh(kind: GeometryType, shape: Shape, size: Sequence[float]) -> Iterator[str]:
    """Yield the problems of a mesh for drawing."""
    try:
        out = kind.mesh(np.asarray(size))
    except Exception as error:
        yield f"mesh raised {describe_error(error)}"
        return
    if problem := mesh_problem(out):
        yield problem
    elif out is not None and kind.has_distance:
        corners = Vec3(*(jnp.asarray(c, jnp.float32)[:, None, None] for c in np.asarray(out[0]).T))
        off = float(np.abs(kind.signed_distance(shape, corners)).max())
        if off > _GEOMETRY_TOLERANCE:
            yield f"mesh has a vertex that is {off:.2g} m off the surface of signed_distance"
