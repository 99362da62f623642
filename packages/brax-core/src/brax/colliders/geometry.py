"""The shapes that models are made of."""

import jax
import jax.numpy as jnp

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize

_STEEP = 0.7
"""Share of a direction along a cylinder's axis from which on it points out of an end."""


_UPRIGHT = 1e-12
"""Squared sine below which a direction is along a cylinder's axis: that of a smaller part across
has derivatives out of range."""


def _at_most(x: jax.Array, bound: jax.Array) -> jax.Array:
    """A number, or the bound of its size on its side."""
    return jnp.where(jnp.abs(x) > bound, _sign(x) * bound, x)


def _shortened(v: Vec3, length: jax.Array) -> Vec3:
    """A vector, or one of a length along it if it is longer."""
    square = v.dot(v)
    longer = square > length * length
    scale = length * jax.lax.rsqrt(jnp.where(longer, square, 1.0))
    return v * jnp.where(longer, scale, 1.0)


def _sign(x: jax.Array) -> jax.Array:
    return jnp.where(x < 0, -1.0, 1.0).astype(x.dtype)


class Plane(GeometryType):
    """An infinite plane; its normal is the frame's z axis. Its sizes only matter for drawing."""

    name = "plane"
    size_names = ()
    stops_rays = True
    only_static = True

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Straight below, of the half-space."""
        return point._replace(z=jnp.where(point.z > 0, 0.0, point.z))

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """From above alone, and within what is drawn of it; a side of zero has no end."""
        t, met = rays.level(origin.z, direction.z, jnp.zeros_like(origin.z))
        at = rays.along(origin, direction, t)
        for x, half in ((at.x, size.x), (at.y, size.y)):
            met = met & ((half <= 0) | (jnp.abs(x) <= half))
        return rays.first([(t, met & (origin.z > 0))])


class Sphere(GeometryType):
    """A sphere."""

    name = "sphere"
    size_names = ("radius",)
    stops_rays = True
    wrapped = "point"
    streamed = True
    corners = 1

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Towards the middle."""
        return _shortened(point, shape.size.x)

    def semi_axes(self, size: Vec3) -> Vec3:
        """Its own."""
        return Vec3(size.x, size.x, size.x)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """The point of the surface with that normal."""
        return direction * shape.size.x

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """The nearer side, or the farther from within."""
        return rays.first(rays.ball(origin, direction, size.x))


class Capsule(GeometryType):
    """A capsule along the frame's z axis."""

    name = "capsule"
    size_names = ("radius", "half-length")
    stops_rays = True
    streamed = True
    corners = 2

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Towards the nearest point of its middle line."""
        z = _at_most(point.z, shape.size.y)
        away = _shortened(point._replace(z=point.z - z), shape.size.x)
        return away._replace(z=away.z + z)

    def semi_axes(self, size: Vec3) -> Vec3:
        """As long as the capsule is."""
        return Vec3(size.x, size.x, size.x + size.y)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """On the ball at the farther end."""
        point = direction * shape.size.x
        return point._replace(z=point.z + _sign(direction.z) * shape.size.y)

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """The line along its side."""
        point = direction * shape.size.x
        return [point._replace(z=point.z + side * shape.size.y) for side in (-1.0, 1.0)]

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Its side, or the ball at either end."""
        hits = rays.tube(origin, direction, size.x, size.y)
        for end in (-1.0, 1.0):
            start = origin._replace(z=origin.z - end * size.y)
            for t, met in rays.ball(start, direction, size.x):
                hits.append((t, met & (end * (start.z + t * direction.z) >= 0)))
        return rays.first(hits)


class Box(GeometryType):
    """A box along the frame's axes."""

    name = "box"
    size_names = ("half-size x", "half-size y", "half-size z")
    stops_rays = True
    streamed = True
    corners = 4

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Along each axis by itself."""
        return Vec3(*(_at_most(c, h) for c, h in zip(point, shape.size, strict=True)))

    def semi_axes(self, size: Vec3) -> Vec3:
        """Half of its sides."""
        return size

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """A corner."""
        return Vec3(*(_sign(d) * h for d, h in zip(direction, shape.size, strict=True)))

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """The side whose normal is nearest to the direction."""
        x, y, z = (jnp.abs(d) for d in direction)
        on_x = (x >= y) & (x >= z)
        on_y = ~on_x & (y >= z)
        out, size = self.support(shape, direction), shape.size

        def corner(first: float, second: float) -> Vec3:
            return Vec3(
                jnp.where(on_x, out.x, first * size.x),
                jnp.where(on_y, out.y, jnp.where(on_x, first, second) * size.y),
                jnp.where(on_x | on_y, second * size.z, out.z),
            )

        return [corner(1, 1), corner(-1, 1), corner(-1, -1), corner(1, -1)]

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Any of its six sides."""
        hits = []
        for k in range(3):
            for end in (-1.0, 1.0):
                t, met = rays.level(origin[k], direction[k], end * size[k])
                at = rays.along(origin, direction, t)
                for j in {0, 1, 2} - {k}:
                    met = met & (jnp.abs(at[j]) <= size[j])
                hits.append((t, met))
        return rays.first(hits)


class Cylinder(GeometryType):
    """A cylinder along the frame's z axis."""

    name = "cylinder"
    size_names = ("radius", "half-length")
    stops_rays = True
    wrapped = "axis"
    streamed = True
    corners = 4

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Towards the axis, and along it."""
        aside = _shortened(point._replace(z=jnp.zeros_like(point.z)), shape.size.x)
        return aside._replace(z=_at_most(point.z, shape.size.y))

    def semi_axes(self, size: Vec3) -> Vec3:
        """As wide and as long."""
        return Vec3(size.x, size.x, size.y)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """On the rim of the farther end."""
        out = _sideways(direction) * shape.size.x
        return out._replace(z=_sign(direction.z) * shape.size.y)

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """A square in the end's circle, its first corner the farthest; or the line at the side."""
        radius, half = shape.size.x, shape.size.y
        out, end = _sideways(direction) * radius, _sign(direction.z) * half
        on_end = jnp.abs(direction.z) > _STEEP
        square = [out, Vec3(-out.y, out.x, out.z), -out, Vec3(out.y, -out.x, out.z)]
        line = [-half, -half, half, half]
        return [
            Vec3(
                jnp.where(on_end, c.x, out.x),
                jnp.where(on_end, c.y, out.y),
                jnp.where(on_end, end, z),
            )
            for c, z in zip(square, line, strict=True)
        ]

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Its side, or either end."""
        hits = rays.tube(origin, direction, size.x, size.y)
        for end in (-1.0, 1.0):
            t, met = rays.level(origin.z, direction.z, end * size.y)
            at = rays.along(origin, direction, t)
            hits.append((t, met & (at.x**2 + at.y**2 <= size.x**2)))
        return rays.first(hits)


def _sideways(direction: Vec3) -> Vec3:
    """The unit vector across the z axis that leans towards a direction; x if none does."""
    x, y, zero = direction.x, direction.y, jnp.zeros_like(direction.x)
    leans = x * x + y * y > _UPRIGHT
    x, y = jnp.where(leans, x, 1.0), jnp.where(leans, y, 0.0)
    out, _ = normalize(Vec3(x, y, zero))
    return out


class Ellipsoid(GeometryType):
    """An ellipsoid along the frame's axes."""

    name = "ellipsoid"
    size_names = ("semi-axis x", "semi-axis y", "semi-axis z")
    stops_rays = True
    streamed = True
    corners = 1

    def semi_axes(self, size: Vec3) -> Vec3:
        """Its own."""
        return size

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """The point of the surface with that normal."""

        def stretch(v: Vec3) -> Vec3:
            return Vec3(*(c * h for c, h in zip(v, shape.size, strict=True)))

        unit, _ = normalize(stretch(direction))
        return stretch(unit)

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """A ball where lengths along its axes are counted by them."""
        start, way = (
            Vec3(*(c / h for c, h in zip(v, size, strict=True))) for v in (origin, direction)
        )
        return rays.first(rays.ball(start, way, jnp.ones_like(start.x)))


PLANE = Plane()
SPHERE = Sphere()
CAPSULE = Capsule()
BOX = Box()
CYLINDER = Cylinder()
ELLIPSOID = Ellipsoid()
