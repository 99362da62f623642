"""The interfaces of geometry types and colliders, and the shapes and contact points they handle."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Quat, Vec3, tangents

NEARLY_PARALLEL = 1e-8
"""Squared sine of the angle between a direction and a normal below which they count as parallel."""


class Shape(NamedTuple):
    """Geoms of one type in the world.

    All components have the shape (pairs, batch), unless a field says otherwise.
    """

    pos: Vec3
    """Origin of the geom's frame [m]."""
    rot: Quat
    """Orientation of the geom's frame."""
    size: Vec3
    """The type's size parameters [m]."""
    points: Vec3 | None = None
    """The vertices of a type that has them, in the geom's frame [m], (points, pairs, batch). A pair
    with fewer vertices than another repeats its last one."""
    heights: jax.Array | None = None
    """The heights of a height field over the plane z = 0 of the geom's frame [m], row after row,
    (rows * columns, pairs, batch). The axis of the pairs has length one if they share a field. Of a
    grid of signed distances these are its coefficients; the last axis, z, runs fastest."""
    kind: jax.Array | None = None
    """The index of each shape's own type where the shapes are of several types, as
    `colliders.convex.any_convex` numbers them, (pairs, batch)."""

    @property
    def axis_z(self) -> Vec3:
        """The z axis of the geom's frame, in world axes."""
        return self.rot.matrix().z


class Touch(NamedTuple):
    """One contact point of each pair of shapes; all components have the shape (pairs, batch)."""

    dist: jax.Array
    """Distance between the surfaces along the normal [m]; negative is penetration depth."""
    pos: Vec3
    """Midpoint between the surfaces, world axes [m]."""
    normal: Vec3
    """Unit normal, from the first shape to the second, world axes."""
    along: Vec3 | None = None
    """Direction of the first tangent of the friction pyramid; None if the collider prefers none."""

    def edge(self) -> Vec3:
        """Return a direction whose part across the normal is the first tangent.

        Where the collider prefers none, it is the y axis, or the z axis if y is near the normal.
        """
        if self.along is not None:
            return self.along
        # The axes and the bound of one half are MuJoCo's, so that the pyramids of both have the
        # same edges and friction forces compare.
        sideways = jnp.abs(self.normal.y) < 0.5
        return Vec3(
            jnp.zeros_like(self.dist),
            jnp.where(sideways, 1.0, 0.0),
            jnp.where(sideways, 0.0, 1.0),
        )

    def across(self) -> tuple[Vec3, Vec3]:
        """Return the two unit tangents; they and the normal are a right-handed frame."""
        normal, edge = self.normal, self.edge()
        # One Gram-Schmidt step. A direction along the normal has no part across it; then the
        # tangents come from the normal only, and the division never sees zero.
        aside = edge - normal * normal.dot(edge)
        fallback, _ = tangents(normal)
        # Both branches of a `where` are differentiated: zero is replaced before the root is taken.
        squared = aside.dot(aside)
        some = squared > NEARLY_PARALLEL
        scale = jax.lax.rsqrt(jnp.where(some, squared, 1.0))
        first = Vec3(*(jnp.where(some, a * scale, f) for a, f in zip(aside, fallback, strict=True)))
        # The second tangent needs no normalization: both factors are perpendicular unit vectors.
        return first, normal.cross(first)


class GeometryType(ABC):
    """A geometry type. Instances are stateless and live in `System` as static fields."""

    name: ClassVar[str]
    """The name in model files and in the registry."""
    size_names: ClassVar[tuple[str, ...]]
    """The meanings of the leading size parameters; each of these must be positive."""
    only_static: ClassVar[bool] = False
    """True if a geom of the type may only be fixed to the world."""
    least_points: ClassVar[int] = 0
    """The least number of vertices that a geom of the type has; 0 if its sizes define it."""
    wrapped: ClassVar[str] = ""
    """The core that a tendon wraps around at a distance of the first size: the centre ("point"),
    the z axis ("axis"), or nothing ("")."""
    streamed: ClassVar[bool] = False
    """True if the ellipsoid model of fluids applies to the type, which then has `semi_axes`."""
    stops_rays: ClassVar[bool] = False
    """True if rays intersect the type, which then has `ray`."""
    has_heights: ClassVar[bool] = False
    """True if a geom of the type is a height field."""
    has_grid: ClassVar[bool] = False
    """True if a geom of the type is a grid of signed distances, in `Shape.heights`."""
    corners: ClassVar[int] = 0
    """Number of vertices of a face that `face` returns: 1 for a shape that is round everywhere, 2
    for one with straight edges, 4 for one with flat faces. It is 0 for a shape that is not convex
    or has no support function."""

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the support point: the point of a convex shape that is farthest along a direction.

        Args:
            shape: the shape, of which only the size and the vertices matter.
            direction: unit vectors in the shape's frame, (n, pairs, batch), as is the result.
        """
        raise NotImplementedError(f"{self.name} is no convex shape: it has no support")

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """Return the vertices of the face of a convex shape that faces a direction.

        There are `corners` of them, in order around the face. They are points of the shape's
        surface and may coincide. The arguments are those of `support`.
        """
        # The default is right for shapes that are round everywhere.
        return [self.support(shape, direction)]

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Return the points of a convex shape that are nearest to given points.

        A point inside of the shape is its own nearest point. The method is optional. A type that
        has it collides much faster with shapes that give their signed distance.

        Args:
            shape: the shape, of which only the size and the vertices matter.
            point: the given points in the shape's frame, (n, pairs, batch), as is the result.
        """
        raise NotImplementedError(f"{self.name} gives no nearest points")

    @property
    def has_nearest(self) -> bool:
        """True if the type implements `nearest`."""
        return type(self).nearest is not GeometryType.nearest

    def semi_axes(self, size: Vec3) -> Vec3:
        """Return the semi-axes [m] of the ellipsoid that stands for the shape in a fluid.

        Args:
            size: the size parameters, components of any one shape.

        Returns:
            Components of the same shape.
        """
        raise NotImplementedError(f"{self.name} is no ellipsoid to a medium")

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Return the distance from a ray's origin to the surface [m], infinite if it misses.

        Args:
            size: the size parameters [m], components shaped (geoms, batch).
            origin: the ray's origin, in the shape's frame [m], components shaped (geoms, batch).
            direction: the ray's direction, a unit vector in the shape's frame, components shaped
                (geoms, batch).

        Returns:
            Distances, shape (geoms, batch), or that to which the arguments broadcast.
        """
        raise NotImplementedError(f"{self.name} stops no rays")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Return the signed distance of points from the surface [m], negative inside.

        A type that implements it collides with every other type but height fields.

        Args:
            shape: the shape, of which only the size and the vertices matter.
            point: the points in the shape's frame [m], components shaped (n, pairs, batch).

        Returns:
            Distances, (n, pairs, batch).
        """
        raise NotImplementedError(f"{self.name} gives no signed distance")

    @property
    def has_distance(self) -> bool:
        """True if the type implements `signed_distance`."""
        return type(self).signed_distance is not GeometryType.signed_distance

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return vertices (n, 3) and triangles (m, 3) for drawing.

        The default is None: the viewer draws the type itself.

        Args:
            size: the size parameters (3,).
            points: the geom's vertices (n, 3) or its heights (rows, columns); it is not passed for
                a geom that has neither.
        """
        return None


class Collider(ABC):
    """The narrow-phase test of one ordered pair of geometry types."""

    types: ClassVar[tuple[str, str]]
    """Names of the two geometry types, in the order in which `collide` takes them."""
    n_contacts: ClassVar[int]
    """Number of points that `collide` returns, whether or not the shapes touch."""

    @abstractmethod
    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Return the `n_contacts` contact points of each pair of shapes.

        Args:
            a: shapes of the first type.
            b: shapes of the second type, as many as of the first.
        """


@dataclass(frozen=True)
class CollisionGroup:
    """The geom pairs of a model that one collider tests and that have the same `condim`."""

    collider: Collider
    """The collider."""
    geom1: tuple[int, ...]
    """First geom of each pair, of the collider's first type."""
    geom2: tuple[int, ...]
    """Second geom of each pair."""
    condim: int = 3
    """Dimension of the contact force: 1 is the normal force only, 3 adds sliding friction, 4 adds
    torsional friction and 6 adds rolling friction."""
    pairs: tuple[int, ...] = ()
    """Index of each pair among the model's explicit pairs, which have contact parameters of their
    own (MuJoCo's `<pair>`); empty if the parameters are those of the geoms."""
