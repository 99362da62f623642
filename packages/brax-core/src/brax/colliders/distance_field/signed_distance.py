"""The collider of a shape that is known by its signed distance with any other shape.

The contact points are the points of the other shape where the signed distance is least. Several
searches find them (`descent`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.convex.contact_derivatives import (
    ContactCurvature,
    Sym2,
    curvature,
    distance_and_slope,
    with_rolling,
)
from brax.colliders.convex.contact_manifold import reduce_manifold
from brax.colliders.distance_field.descent import (
    MAX_DISTANCE_EXCESS,
    OtherShape,
    Slope,
    descend,
    size_of,
)
from brax.colliders.interface import Collider, GeometryType, Shape, Touch
from brax.colliders.shapes.plane import PLANE
from brax.components import Mat3, Vec3, tangents

_DISTANCE_MANIFOLD_SIZES = 10.0
"""Scale for `reduce_manifold`, in sizes: it takes points within a hundredth of a size for one."""

_SUPPORT_DISTANCE = 32.0
"""Distance, in sizes, from which the distance of a surface gives its support function. The error is
w^2 / 64 sizes for a support point that is w sizes off the line."""

_PLANE_CLEARANCE = 0.125
"""Distance, in sizes, between a lowered plane and the surface by this estimate."""


class SurfacePoint(NamedTuple):
    """A point of least distance, with coordinates in the contact frame of the nearest one."""

    x: jax.Array
    """Coordinate along the first tangent [m]."""
    y: jax.Array
    """Coordinate along the second tangent [m]."""
    z: jax.Array
    """Its distance minus that of the nearest point [m]."""
    point: Vec3
    """The point in the other shape's frame [m]."""
    corners: tuple[Vec3, ...]
    """The simplex around the point, of a shape without `nearest`; else empty."""


@dataclass(frozen=True)
class SignedDistance(Collider):
    """Collider of a signed distance field and another shape, with up to four points.

    They are the nearest point, and those of the others in contact that span the largest area. By
    Danskin's theorem, the distance has the derivative at a fixed point. The normal and the position
    have the derivatives of two surfaces that roll on each other (`contact_derivatives`).
    """

    surface: GeometryType
    """The type whose signed distance is used."""
    other: GeometryType
    """A plane, a convex shape, or one with a signed distance too."""

    n_contacts = 4

    @property
    def types(self) -> tuple[str, str]:  # type: ignore[override]
        """Names of the two geometry types."""
        return self.surface.name, self.other.name

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Return the points of the other shape that are nearest to the surface."""
        # The search needs no derivatives: `_touch` attaches them to its result.
        still: tuple[Shape, Shape] = jax.tree.map(jax.lax.stop_gradient, (a, b))
        drop = self._drop(*still)
        lowered, still_lowered = (
            shape._replace(pos=shape.pos - shape.axis_z * drop) for shape in (b, still[1])
        )
        spots = self._search(still[0], still_lowered)
        return [self._touch(spot, a, lowered, drop) for spot in spots]

    def _drop(self, a: Shape, b: Shape) -> jax.Array:
        """Return the distance by which to lower a plane to be clear of the surface [m]; else zero.

        A plane that cuts through the surface has points nearest to the surface's upper side, which
        would push the shape down. Below all of the surface, the least distance minus the drop is
        the distance to the half-space at any depth.
        """
        up, reach = b.axis_z, size_of(a)
        if self.other is not PLANE:
            return jnp.zeros_like(reach)
        far = a.rot.inv_rotate(up * (-_SUPPORT_DISTANCE * reach))
        # From far away, the level surfaces of a distance are nearly planes, so that the distance
        # gives the support function.
        lowest = (
            _SUPPORT_DISTANCE * reach
            - self.surface.signed_distance(a, Vec3(*(c[None] for c in far)))[0]
        )
        return jnp.maximum(lowest + _PLANE_CLEARANCE * reach - up.dot(a.pos - b.pos), 0.0)

    def _search(self, a: Shape, b: Shape) -> list[SurfacePoint]:
        """Return the contact manifold, in the other shape's frame."""
        other, slope = OtherShape(self.other, b), self._slope(a, b)
        reach = size_of(a)
        found = descend(other, slope, b.rot.inv_rotate(a.pos - b.pos), reach)
        best, normal = (Vec3(*(c[:1] for c in v)) for v in (found.point, found.slope))
        s, t = tangents(normal)
        aside, least = found.point - best, found.dist[0]
        corners = tuple(corner.point for corner in found.corners)
        spots = SurfacePoint(aside.dot(s), aside.dot(t), found.dist - least, found.point, corners)
        # Searches that ended farther off found other local minima, or have not converged.
        near = found.dist < jnp.maximum(least, 0.0) + MAX_DISTANCE_EXCESS * reach
        # Points are compared in the plane across the normal at the nearest one.
        return reduce_manifold(spots, near, _DISTANCE_MANIFOLD_SIZES * reach, found.dist < 0)

    def _slope(self, a: Shape, b: Shape) -> Slope:
        """Return the first shape's distance and gradient as a function in the other's frame."""
        turn: Mat3 = a.rot.inv_mul(b.rot).matrix()
        apart = a.rot.inv_rotate(b.pos - a.pos)

        def slope(point: Vec3) -> tuple[jax.Array, Vec3]:
            dist, out = distance_and_slope(self.surface, a, apart + turn.rotate(point))
            return dist, turn.inv_rotate(out)

        return slope

    def _touch(self, spot: SurfacePoint, a: Shape, b: Shape, drop: jax.Array) -> Touch:
        """Return a contact point with its derivatives; it is far apart if the manifold lacks it.

        Args:
            spot: the point.
            a: the first shape.
            b: the second shape, lowered.
            drop: the distance by which it is lowered [m].
        """
        point, place, normal = self._moved(spot, a, b)
        # Danskin's theorem: the least distance has the derivative at a fixed pair of points. It is
        # taken along the normal, because the gradient differs from that where the search stopped
        # before convergence.
        fixed = jax.tree.map(jax.lax.stop_gradient, normal)
        inside = jax.tree.map(jax.lax.stop_gradient, b.rot.inv_rotate(fixed))
        apart = fixed.dot(b.pos + b.rot.rotate(spot.point) - (a.pos + a.rot.rotate(point)))
        dist = self.surface.signed_distance(a, point) + (apart - jax.lax.stop_gradient(apart))
        dist = dist + OtherShape(self.other, b).growth(spot.point, inside) - drop
        # The midpoint between the surfaces, with the plane back at its own height.
        middle = place - normal * (0.5 * dist + drop)
        far = _DISTANCE_MANIFOLD_SIZES * size_of(a)
        return Touch(jnp.where(spot.z < far, dist, jnp.abs(dist) + far), middle, normal)

    def _moved(self, spot: SurfacePoint, a: Shape, b: Shape) -> tuple[Vec3, Vec3, Vec3]:
        """Return the fixed point in the first shape's frame, the moving position and the normal."""
        still_a, still_b = jax.tree.map(jax.lax.stop_gradient, (a, b))
        place = still_b.pos + still_b.rot.rotate(spot.point)
        point = still_a.rot.inv_rotate(place - still_a.pos)
        out = still_a.rot.rotate(distance_and_slope(self.surface, still_a, point)[1])
        other, size = OtherShape(self.other, still_b), size_of(still_a)
        facing, flat = other.facing(spot.point, spot.corners, still_b.rot.inv_rotate(out), size)
        normal = still_b.rot.rotate(facing)
        axes = tangents(normal)
        own, others = ([rot.inv_rotate(v) for v in axes] for rot in (still_a.rot, still_b.rot))
        # Both curvatures along the same tangents, each in its shape's own frame.
        curved = other.curvature(spot.point, spot.corners, facing, others, size)
        # A face is flat, whatever the support points around it suggest.
        curved = Sym2(*(jnp.where(flat, 0.0, c) for c in curved))
        bent = ContactCurvature.of(curvature(self.surface, still_a, point, own), curved, size)
        places = a.pos + a.rot.rotate(point), b.pos + b.rot.rotate(spot.point)
        normals = a.rot.rotate(distance_and_slope(self.surface, a, point)[1]), b.rot.rotate(facing)
        return point, *with_rolling(bent, axes, places, normals)
