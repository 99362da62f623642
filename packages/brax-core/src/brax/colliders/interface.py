"""What a shape and a collider are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Quat, Vec3, tangents

NEARLY_PARALLEL = 1e-8
"""Squared sine below which a direction says nothing across a normal."""


class Shape(NamedTuple):
    """Geoms of one type in the world, components shaped (pairs, batch)."""

    pos: Vec3
    """Origin of the geom's frame [m]."""
    rot: Quat
    """Orientation of the geom's frame."""
    size: Vec3
    """The type's size parameters [m]."""
    points: Vec3 | None = None
    """The points of a type that has some, in the geom's frame [m], (points, pairs, batch); where a
    pair has fewer than another its last is repeated."""
    heights: jax.Array | None = None
    """The heights of a type that is a grid of them, over the plane z = 0 of the geom's frame [m],
    row after row, (rows * columns, pairs, batch); one pair may stand for all."""

    @property
    def axis_z(self) -> Vec3:
        """The z axis of the geom's frame."""
        return self.rot.matrix().z


class Touch(NamedTuple):
    """One point where the two shapes of each pair touch or nearly touch."""

    dist: jax.Array
    """Distance between the surfaces [m]; negative is penetration."""
    pos: Vec3
    """Midpoint between the surfaces."""
    normal: Vec3
    """Unit normal, from the first shape to the second."""
    along: Vec3 | None = None
    """A direction that the first edge of a friction pyramid lies along; None if any does."""

    def edge(self) -> Vec3:
        """What that edge lies along; where any will do, as in MuJoCo, y, or z if that is near."""
        if self.along is not None:
            return self.along
        sideways = jnp.abs(self.normal.y) < 0.5
        return Vec3(
            jnp.zeros_like(self.dist),
            jnp.where(sideways, 1.0, 0.0),
            jnp.where(sideways, 0.0, 1.0),
        )

    def across(self) -> tuple[Vec3, Vec3]:
        """Unit tangents: along the edge, and across that and the normal."""
        normal, edge = self.normal, self.edge()
        aside = edge - normal * normal.dot(edge)
        fallback, _ = tangents(normal)
        squared = aside.dot(aside)
        some = squared > NEARLY_PARALLEL
        scale = jax.lax.rsqrt(jnp.where(some, squared, 1.0))
        first = Vec3(*(jnp.where(some, a * scale, f) for a, f in zip(aside, fallback, strict=True)))
        return first, normal.cross(first)


class GeometryType(ABC):
    """A kind of shape. Instances are stateless and live in `System` as static fields."""

    name: ClassVar[str]
    """The name in model files and in the registry."""
    size_names: ClassVar[tuple[str, ...]]
    """What the leading size parameters are; each must be positive."""
    only_static: ClassVar[bool] = False
    """True if it may hang on the world alone."""
    least_points: ClassVar[int] = 0
    """How many points a geom of the type has at least; 0 if sizes alone make it."""
    wrapped: ClassVar[str] = ""
    """What a tendon may wrap around, at a distance of the first size: the centre ("point"), the z
    axis ("axis"), or neither."""
    streamed: ClassVar[bool] = False
    """True if a medium may take it for an ellipsoid, which is if it has `semi_axes`."""
    stops_rays: ClassVar[bool] = False
    """True if rays find it, which is if it has `ray`."""
    has_heights: ClassVar[bool] = False
    """True if a geom of the type is a grid of heights."""
    corners: ClassVar[int] = 0
    """How many corners the flattest side of a convex shape has: 1 if it is round, 2 if straight in
    one direction, 4 if flat; 0 if the shape is not convex, or only colliders of its own know it."""

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """The point of a convex shape that is farthest along a unit direction.

        Args:
            shape: its size; the place is not asked for.
            direction: in the shape's frame, (n, pairs, batch), as is the result.
        """
        raise NotImplementedError(f"{self.name} is no convex shape: it has no support")

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """The `corners` corners, around it, of the side of a convex shape that faces a direction.

        They may coincide, and are points of the shape's surface. Args as `support`.
        """
        return [self.support(shape, direction)]

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """The points of a convex shape that are nearest to others; those inside are their own.

        A type need not give them, but it meets shapes known by their signed distance much faster
        if it does.

        Args:
            shape: its size; the place is not asked for.
            point: in the shape's frame, (n, pairs, batch), as is the result.
        """
        raise NotImplementedError(f"{self.name} gives no nearest points")

    @property
    def has_nearest(self) -> bool:
        """True if the type gives its nearest points."""
        return type(self).nearest is not GeometryType.nearest

    def semi_axes(self, size: Vec3) -> Vec3:
        """Of the ellipsoid that a medium takes it for [m], from the size parameters."""
        raise NotImplementedError(f"{self.name} is no ellipsoid to a medium")

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """How far a line from a point is from the surface ahead [m]; infinite if it meets none.

        Args:
            size: the size parameters.
            origin: the point, in the shape's frame.
            direction: a unit vector.
        """
        raise NotImplementedError(f"{self.name} stops no rays")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """How far points are from the surface [m], negative inside: enough to meet any other shape.

        Args:
            shape: its size; the place is not asked for.
            point: in the shape's frame, (n, pairs, batch), as is the result.
        """
        raise NotImplementedError(f"{self.name} gives no signed distance")

    @property
    def has_distance(self) -> bool:
        """True if the type gives its signed distance."""
        return type(self).signed_distance is not GeometryType.signed_distance

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Vertices (n, 3) and triangles (m, 3) for drawing, unless the viewer knows the shape.

        Args:
            size: the size parameters (3,).
            points: those of the geom (n, 3), or its heights (rows, columns); not given if it has
                neither.
        """
        return None


class Collider(ABC):
    """The test of one ordered pair of shape types against each other."""

    types: ClassVar[tuple[str, str]]
    """Names of the two geometry types."""
    n_contacts: ClassVar[int]
    """How many points it returns for a pair."""

    @abstractmethod
    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The `n_contacts` points between each pair of shapes."""


@dataclass(frozen=True)
class CollisionGroup:
    """The geom pairs of a model that one collider tests, of one `condim`."""

    collider: Collider
    geom1: tuple[int, ...]
    """First geom of each pair, of the collider's first type."""
    geom2: tuple[int, ...]
    """Second geom of each pair."""
    condim: int = 3
    """Directions in which the contacts push: 1, the normal alone; 3, with sliding friction; 4, with
    torsional friction too; 6, with rolling friction too."""
    pairs: tuple[int, ...] = ()
    """Which of the model's pairs each is, if they are given what their contacts are like."""
