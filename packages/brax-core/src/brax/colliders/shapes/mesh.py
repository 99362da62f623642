"""The geometry type `mesh`: the convex hull of given vertices."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.convex.contact_manifold import reduce_manifold
from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.flatness import is_flat, is_straight
from brax.components import Vec3, tangents
from brax.kernels.gather import picked

_MAX_FACE_HEIGHT_SPREAD = 1e-3
"""Share of the body's height by which the vertices of one face may differ in height."""


class MeshVertex(NamedTuple):
    """A vertex, with its coordinates in a frame whose z axis is against a direction."""

    x: jax.Array
    """Coordinate perpendicular to the direction [m]."""
    y: jax.Array
    """The other coordinate perpendicular to the direction [m]."""
    z: jax.Array
    """Distance behind the farthest vertex, along the direction [m]."""
    point: Vec3
    """The vertex itself, in the mesh's frame [m]."""


class Mesh(GeometryType):
    """The convex hull of the shape's vertices.

    Its size parameters are only scales of length, and the semi-axes of the ellipsoid that stands
    for it in a fluid.
    """

    name = "mesh"
    size_names = ()
    least_points = 4
    corners = 4
    streamed = True

    def semi_axes(self, size: Vec3) -> Vec3:
        """Return the size: MuJoCo gives a mesh the half sides of the box of its inertia."""
        return size

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the farthest vertex, by comparing all of them."""
        points = _points(shape)
        # Every vertex is compared with every direction: axes (vertices, directions, pairs, batch).
        # A walk along the hull's edges would take a number of steps that depends on the data.
        above = (1,) * (direction.x.ndim - points.x.ndim + 1)
        every = Vec3(*(c.reshape(c.shape[0], *above, *c.shape[1:]) for c in points))
        reach = every.dot(Vec3(*(d[None] for d in direction)))
        farthest = jnp.argmax(reach, axis=0)
        found = picked(points, farthest.reshape(-1, *farthest.shape[-2:]))
        return Vec3(*(c.reshape(farthest.shape) for c in found))

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """Return four vertices of the face; those that it lacks repeat the farthest one."""
        first, second, left, right = farthest_four(shape, direction)

        def there(corner: MeshVertex) -> Vec3:
            """Return a vertex, or the farthest one in the place of one that the face lacks."""
            is_there = corner.z < jnp.inf
            pairs = zip(corner.point, first.point, strict=True)
            return Vec3(*(jnp.where(is_there, c, f) for c, f in pairs))

        # In order around the face: `left` and `right` lie to either side of the other two.
        return [first.point, there(left), there(second), there(right)]

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the hull's triangles, counter-clockwise as seen from outside."""
        from scipy.spatial import ConvexHull

        vertices = np.zeros((0, 3)) if points is None else np.asarray(points, float)
        # Qhull, which computes the hull, rejects points without volume.
        if is_flat(vertices):
            return vertices, _both_sides(vertices)
        hull = ConvexHull(vertices)
        # Qhull's triangles have no consistent orientation, so each is compared with the outward
        # normal that Qhull gives with it.
        a, b, c = (vertices[hull.simplices[:, i]] for i in range(3))
        inwards = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0
        triangles = hull.simplices.copy()
        triangles[inwards] = triangles[inwards][:, ::-1]
        return vertices, triangles


def _both_sides(points: np.ndarray) -> np.ndarray:
    """Return the triangles of both sides of the convex polygon around flat points.

    Points on a line have none.
    """
    from scipy.spatial import ConvexHull

    if is_straight(points):
        return np.zeros((0, 3), int)
    # The first two principal axes span the plane, in which the polygon is a hull that a fan of
    # triangles around its first vertex fills.
    _, _, axes = np.linalg.svd(points - points.mean(axis=0))
    around = ConvexHull(points @ axes[:2].T).vertices
    fan = np.array([(around[0], b, c) for b, c in itertools.pairwise(around[1:])])
    return np.concatenate([fan, fan[:, ::-1]])


def farthest_four(shape: Shape, direction: Vec3) -> list[MeshVertex]:
    """Return four vertices of the face that faces a direction, (pairs, batch).

    They are the support point, the vertex of its face that is farthest from it, and the farthest to
    either side of the line between these two. The coordinate z of those that the face lacks is
    infinite.

    Args:
        shape: a mesh.
        direction: unit vector in its frame.
    """
    points = _points(shape)
    s, t = tangents(direction)
    reach = points.dot(direction)
    most, least = jnp.max(reach, axis=0), jnp.min(reach, axis=0)
    # A face is the vertices whose heights along the direction are nearly that of the farthest one.
    # In single precision those of a face that is exactly perpendicular still differ by rounding.
    behind = most - reach
    every = MeshVertex(points.dot(s), points.dot(t), behind, points)
    found = reduce_manifold(every, behind <= _MAX_FACE_HEIGHT_SPREAD * (most - least), most - least)
    return [c._replace(z=jnp.where(c.z < most - least, c.z, jnp.inf)) for c in found]


def _points(shape: Shape) -> Vec3:
    """Return the vertices of a mesh, which a shape of this type must have."""
    if shape.points is None:
        raise ValueError("a mesh has no points: `Shape.points` is missing")
    return shape.points


MESH = Mesh()
