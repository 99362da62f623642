"""The collider of a convex shape on a height field.

Each triangle of the field is the top of a prism, and each prism near the shape collides with it as
a convex body. A side that two prisms share is inside of the field and not part of its surface, so a
contact normal may not point out of it (a "ghost collision"). Nor may a normal lean further around
an edge than the triangle beyond that edge leans. Where the search finds such a normal, the prism
pushes along its triangle's normal if the shape's lowest point is over that triangle. Else the
normal leans as far around the edge as it may.

Arrays of triangles and of their points are (triangles, pairs, batch).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.convex.contact_manifold import reduce_manifold
from brax.colliders.convex.convex_convex import ConvexConvex
from brax.colliders.convex.support_search import where
from brax.colliders.interface import Collider, GeometryType, Shape, Touch
from brax.colliders.primitive.height_field_sphere import segment_on_triangles, sphere_on_triangles
from brax.colliders.shapes.capsule import CAPSULE
from brax.colliders.shapes.height_field import Triangles, bottom, triangles
from brax.colliders.shapes.mesh import MESH
from brax.colliders.shapes.sphere import SPHERE
from brax.components import Quat, Vec3, normalize

_MAX_EDGE_SINE = 1e-2
"""Sine by which a normal may exceed its bound around an edge and still count as proper."""

_MAX_TRIANGLE_OFFSET = 1e-3
"""Share of the shape's size by which a point over a triangle may lie outside of its edges."""

_MAX_TOUCHING_EXCESS = 0.02
"""Share of the shape's size by which a contact point may be farther than the nearest one."""

_FIELD_MANIFOLD_SIZES = 10.0
"""Scale for `reduce_manifold`, in sizes: it takes points within a hundredth of a size for one."""

_NEAREST_TRIANGLES = 6
"""Number of triangles that are kept because they are the nearest."""

_OUTERMOST_TRIANGLES = 8
"""Number of triangles that are kept because they are the outermost of the near ones."""

_MAX_UNCULLED_TRIANGLES = 18
"""Number of triangles up to which all are kept: those of nine cells."""


class FieldPoint(NamedTuple):
    """A contact point in the field's frame."""

    x: jax.Array
    """First coordinate [m]."""
    y: jax.Array
    """Second coordinate [m]."""
    z: jax.Array
    """Distance between the surfaces [m], called z because `reduce_manifold` takes the least z."""
    height: jax.Array
    """Third coordinate [m]."""
    normal: Vec3
    """Unit normal from the field to the shape."""


class ShapeInField(NamedTuple):
    """A convex shape in the field's frame."""

    kind: GeometryType
    """Its type."""
    shape: Shape
    """Its pose in the field's frame, and its size."""
    low: Vec3
    """Lower vertex of its bounding rectangle along the field's x and y [m]; z means nothing."""
    high: Vec3
    """Upper vertex of that rectangle [m]."""

    @property
    def size(self) -> jax.Array:
        """The larger side of the bounding rectangle [m]."""
        return jnp.maximum(self.high.x - self.low.x, self.high.y - self.low.y)

    def farthest(self, direction: Vec3) -> Vec3:
        """Return the support point along a direction, in the field's frame, (n, pairs, batch)."""
        return self.placed(self.kind.support(self.shape, self.shape.rot.inv_rotate(direction)))

    def placed(self, point: Vec3) -> Vec3:
        """Return a point of the shape's own frame in the field's frame."""
        return self.shape.pos + self.shape.rot.rotate(point)


@dataclass(frozen=True)
class HeightFieldConvex(Collider):
    """Collider of a height field and a convex shape, with up to four points.

    They are the deepest point, and those of the others that span the largest area. The cells that
    the shape is over are tested, so that the distance from a slope beside them is that of their
    edge: too large by a share of at most half the square of the slope.
    """

    kind: GeometryType
    """The type of the convex shape."""
    grid: tuple[int, int]
    """Rows and columns of the field."""
    window: tuple[int, int]
    """Rows and columns of cells that the shape covers at most."""

    n_contacts = 4

    @property
    def types(self) -> tuple[str, str]:  # type: ignore[override]
        """Names of the two geometry types."""
        return "hfield", self.kind.name

    def are_apart(self, a: Shape, b: Shape, reach: jax.Array) -> jax.Array:
        """Return whether shapes are surely farther from the field than a distance.

        Args:
            a: the field, for each shape.
            b: convex shapes.
            reach: the distance [m], (pairs, batch).
        """
        every, seen = self._near(a, b)
        return jnp.min(_least_gap(every, seen), axis=0) > jnp.maximum(reach, 0.0)

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide the shape with each prism near it, and reduce the points to a manifold."""
        axes = a.rot.matrix()
        every, seen = self._near(a, b)
        near = _nearest(every, seen)
        find_points = _round_contact_points if self.kind in (SPHERE, CAPSULE) else _contact_points
        found, there = find_points(near, seen, bottom(a))
        least = jnp.min(jnp.where(there, found.z, jnp.inf), axis=0)
        there &= found.z < jnp.maximum(least, 0.0) + _MAX_TOUCHING_EXCESS * seen.size
        # Relative to the least distance, so that points that the manifold lacks are farther than
        # the others even where the shape is far from the field.
        far = _FIELD_MANIFOLD_SIZES * seen.size
        chosen = reduce_manifold(found._replace(z=found.z - least), there, far, found.z < 0)
        return [
            Touch(
                jnp.where(p.z < far, p.z + least, jnp.abs(least) + far),
                a.pos + axes.rotate(Vec3(p.x, p.y, p.height)),
                axes.rotate(p.normal),
            )
            for p in chosen
        ]

    def _near(self, a: Shape, b: Shape) -> tuple[Triangles, ShapeInField]:
        """Return the triangles of the cells that each shape may cover, and the shape."""
        # Everything happens in the field's frame, where cells are found by x and y.
        pos, rot = a.rot.matrix().inv_rotate(b.pos - a.pos), a.rot.inv_mul(b.rot)
        seen = _shape_in_field(self.kind, b._replace(pos=pos, rot=rot))
        return triangles(a, self.grid, self.window, seen.low), seen


def _shape_in_field(kind: GeometryType, shape: Shape) -> ShapeInField:
    """Find the bounding rectangle of a shape, given in the field's frame."""
    # Support points along +x, -x, +y and -y.
    one = jnp.ones((4, *shape.pos.x.shape), shape.pos.x.dtype)
    x, y = (one * np.reshape(c, (4, 1, 1)) for c in ((1.0, -1.0, 0.0, 0.0), (0.0, 0.0, 1.0, -1.0)))
    unbounded = ShapeInField(kind, shape, shape.pos, shape.pos)
    ends = unbounded.farthest(Vec3(x, y, 0.0 * one))
    low, high = Vec3(ends.x[1], ends.y[3], ends.z[0]), Vec3(ends.x[0], ends.y[2], ends.z[0])
    return unbounded._replace(low=low, high=high)


def _nearest(every: Triangles, seen: ShapeInField) -> Triangles:
    """Select the triangles that may have a contact point that counts.

    They are the nearest ones, and those below the shape's outermost points in eight directions. The
    latter keep a shape that lies flat on many triangles from tipping.
    """
    if every.normal.x.shape[0] <= _MAX_UNCULLED_TRIANGLES:
        return every
    # A cheap bound ranks the triangles; the search between convex bodies runs on the selected ones.
    gap = _least_gap(every, seen)
    nearest = jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(-gap, 0, -1), _NEAREST_TRIANGLES)[1], -1, 0)
    # Only triangles that may touch count as support of a shape that lies flat.
    near = gap < jnp.maximum(jnp.min(gap, axis=0), 0.0) + _MAX_TOUCHING_EXCESS * seen.size
    angles = (np.arange(_OUTERMOST_TRIANGLES) * (2 * np.pi / _OUTERMOST_TRIANGLES)).reshape(
        -1, 1, 1
    )
    x, y = (jnp.asarray(f(angles), gap.dtype) for f in (np.cos, np.sin))
    end = jax.lax.stop_gradient(seen.farthest(Vec3(x, y, 0.0 * x)))
    # Signed distance of each of the eight points from each triangle's edges, seen from above. Axes:
    # (triangles, directions, pairs, batch).
    sides = [
        out.x * (end.x[:, None] - corner.x) + out.y * (end.y[:, None] - corner.y)
        for corner, out in zip(every.corners, every.out, strict=True)
    ]
    aside = jnp.maximum(jnp.maximum(*sides[:2]), sides[2])
    outermost = jnp.argmin(jnp.where(near, aside, jnp.inf), axis=1)
    # A triangle may be selected twice, which only repeats its points.
    index = jnp.concatenate([nearest, outermost])
    return jax.tree.map(lambda x: jnp.take_along_axis(x, index, axis=0), every)


def _least_gap(every: Triangles, seen: ShapeInField) -> jax.Array:
    """Return a lower bound of the gap between the shape and each prism [m].

    The gap along any separating axis is one (Ericson 2005, Real-Time Collision Detection, section
    5.2.1). The axes are the triangle's normal, the normals of the prism's sides, and the directions
    between these.
    """

    def along(normal: Vec3, corner: Vec3) -> jax.Array:
        """Return the gap along a normal of the prism through one of its vertices."""
        return normal.dot(seen.farthest(-normal) - corner)

    gap = along(every.normal, every.corners[0])
    for corner, out in zip(every.corners, every.out, strict=True):
        side, _ = normalize(out._replace(z=jnp.zeros_like(out.z)))
        between, _ = normalize(every.normal + out)
        steep = jnp.where(between.z > 0, along(between, corner), gap)
        gap = jnp.maximum(gap, jnp.maximum(along(side, corner), steep))
    return gap


def _contact_points(
    near: Triangles, seen: ShapeInField, low: jax.Array
) -> tuple[FieldPoint, jax.Array]:
    """Return all contact points of all prisms, and a mask of those on the field's surface.

    `low` is the height of the field's bottom, where the prisms end.
    """
    # A prism is a mesh of six vertices to the collider of convex shapes.
    points = ConvexConvex(seen.kind, MESH).collide(*_as_pairs(near, seen.shape, low))
    shape = near.normal.x.shape
    first, *others = (jax.tree.map(lambda x: x.reshape(shape), p) for p in points)
    # The collider's first shape is the convex one, so its normals point to the field.
    first, *others = (p._replace(normal=-p.normal) for p in (first, *others))
    first, *others = (
        p._replace(dist=_distance_with_derivative(near, seen, p)) for p in (first, *others)
    )
    normal, proper = _surface_normal(near, first)
    own, over = _contact_along_normal(near, seen)
    # The triangle's own normal replaces an improper one in penetration only.
    over &= ~(proper | (first.dist > 0))
    first = jax.tree.map(lambda x, y: jnp.where(over, y, x), first._replace(normal=normal), own)
    # The prism of least distance always counts, so that a shape deep in the ground has a contact.
    least = first.dist <= jnp.min(first.dist, axis=0)
    there = [proper | over | least, *(proper for _ in others)]
    return _concatenated([first, *others]), jnp.concatenate(there)


def _round_contact_points(
    near: Triangles, seen: ShapeInField, low: jax.Array
) -> tuple[FieldPoint, jax.Array]:
    """Return the same as `_contact_points` for a sphere or a capsule, in closed form.

    A capsule has one point for each end and one for the segment between them. Closed forms are
    hundreds of times as fast as the search between convex bodies.
    """
    radius, middle = seen.shape.size.x, seen.shape.pos
    if seen.kind is SPHERE:
        found = [sphere_on_triangles(near, middle, radius, low)]
    else:
        arm = seen.shape.axis_z * seen.shape.size.y
        ends = [sphere_on_triangles(near, end, radius, low) for end in (middle - arm, middle + arm)]
        found = [*ends, segment_on_triangles(near, middle, arm, radius)]
    least = jnp.min(jnp.stack([jnp.min(touch.dist, axis=0) for touch in found]), axis=0)
    normals, proper = zip(*(_surface_normal(near, touch) for touch in found), strict=True)
    turned = [t._replace(normal=n) for t, n in zip(found, normals, strict=True)]
    there = [p | (t.dist <= least) for t, p in zip(found, proper, strict=True)]
    return _concatenated(turned), jnp.concatenate(there)


def _concatenated(touches: Sequence[Touch]) -> FieldPoint:
    """Concatenate contact points of several kinds, each (triangles, pairs, batch)."""
    points = [FieldPoint(p.pos.x, p.pos.y, p.dist, p.pos.z, p.normal) for p in touches]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *points)


def _distance_with_derivative(near: Triangles, seen: ShapeInField, touch: Touch) -> jax.Array:
    """Return the distance with the derivative of the points that touch, at a fixed normal.

    Where a side of the prism lies flat on the shape, its support point is an arbitrary vertex. The
    point that touches moves with all vertices of the triangle, by its barycentric coordinates.
    """
    # The points on both surfaces are half the distance from the midpoint, along the normal.
    still, dist, pos, normal = jax.tree.map(
        jax.lax.stop_gradient, (seen.shape, touch.dist, touch.pos, touch.normal)
    )
    below, above = pos - normal * (0.5 * dist), pos + normal * (0.5 * dist)
    shares = jax.lax.stop_gradient(_barycentric(near, below))
    terms = [corner * share for corner, share in zip(near.corners, shares, strict=True)]
    moved = seen.placed(still.rot.inv_rotate(above - still.pos)) - terms[0] - terms[1] - terms[2]
    reach = seen.kind.support(seen.shape, still.rot.inv_rotate(-normal))
    change = normal.dot(moved) + normal.dot(still.rot.rotate(reach))
    return dist + change - jax.lax.stop_gradient(change)


def _barycentric(near: Triangles, point: Vec3) -> list[jax.Array]:
    """Return the barycentric coordinates of a point of a triangle, clamped to be non-negative.

    See Ericson (2005), Real-Time Collision Detection, section 3.4.
    """
    ahead = (*near.corners[1:], near.corners[0])
    # A vertex's coordinate is the distance from the opposite edge, which begins at the next vertex,
    # over the vertex's own distance from it.
    far = [
        jnp.maximum(out.dot(begin - point) / out.dot(begin - corner), 0.0)
        for corner, begin, out in zip(
            near.corners, ahead, (*near.out[1:], near.out[0]), strict=True
        )
    ]
    total = jnp.maximum(far[0] + far[1] + far[2], 1e-6)
    return [share / total for share in far]


def _surface_normal(near: Triangles, touch: Touch) -> tuple[Vec3, jax.Array]:
    """Return a normal of the field's surface at a triangle, and whether the given one is proper.

    A normal is proper if it leans over each edge no further than `Triangles.turn` allows. Where the
    shapes are apart the normal stays as it is: the point of least distance of all prisms is on the
    surface in any case.
    """
    normal = touch.normal
    # A normal that points down belongs to the bottom of a prism, not to the field's surface.
    up = normal.z > -_MAX_EDGE_SINE
    # The part of the normal across the triangle's own is scaled down until it leans as far as it
    # may over the edge where it exceeds the bound most.
    upright = near.normal * normal.dot(near.normal)
    proper, share = up, jnp.ones_like(touch.dist)
    for out, turn in zip(near.out, near.turn, strict=True):
        lean = normal.dot(out)
        proper &= lean < turn + _MAX_EDGE_SINE
        share = jnp.minimum(share, turn / jnp.maximum(lean, jnp.maximum(turn, _MAX_EDGE_SINE)))
    turned = where(up, upright + (normal - upright) * share, near.normal)
    keeps = proper | (touch.dist > 0)
    return where(keeps, normal, normalize(turned, near.normal)[0]), proper


def _contact_along_normal(near: Triangles, seen: ShapeInField) -> tuple[Touch, jax.Array]:
    """Return a contact at the shape's deepest point below each triangle's plane.

    Also return a mask of the triangles that this point is over.
    """
    lowest = seen.farthest(-near.normal)
    dist = near.normal.dot(lowest - near.corners[0])
    over = dist < np.inf
    for corner, out in zip(near.corners, near.out, strict=True):
        over &= out.dot(lowest - corner) < _MAX_TRIANGLE_OFFSET * seen.size
    return Touch(dist, lowest - near.normal * (0.5 * dist), near.normal), over


def _as_pairs(near: Triangles, shape: Shape, low: jax.Array) -> tuple[Shape, Shape]:
    """Return one copy of the shape for each prism, and the prisms, (triangles * pairs, batch)."""
    n, *rest = near.normal.x.shape

    def flat(x: jax.Array) -> jax.Array:
        """Merge the axes of triangles and pairs, so that the prisms are pairs of one collider."""
        return jnp.broadcast_to(x, (n, *rest)).reshape(-1, rest[-1])

    def each(points: object) -> Any:
        """Do the same with vertices, whose axis stays in front."""
        return jax.tree.map(lambda x: jnp.stack([flat(row) for row in x]), points)

    # The first vertex is the origin of the prism's frame.
    a, *others = near.corners
    top = [a * 0.0, *(c - a for c in others)]
    points = [*top, *(c._replace(z=low - a.z) for c in top)]
    stacked = Vec3(*(jnp.stack(c) for c in zip(*points, strict=True)))
    one, zero = jnp.ones_like(a.x), jnp.zeros_like(a.x)
    prism = Shape(a, Quat(one, zero, zero, zero), Vec3(one, one, one), stacked)
    own = shape.points
    tiled = jax.tree.map(flat, shape._replace(points=None))
    placed = jax.tree.map(flat, prism._replace(points=None))
    return (
        tiled._replace(points=None if own is None else each(own)),
        placed._replace(points=each(stacked)),
    )
