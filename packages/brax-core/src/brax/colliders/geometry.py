"""The shapes that models are made of."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize

_STEEP = 0.7
"""Share of a direction along a cylinder's axis from which on it points out of an end."""


def _sign(x: jax.Array) -> jax.Array:
    return jnp.where(x < 0, -1.0, 1.0).astype(x.dtype)


class Plane(GeometryType):
    """An infinite plane; its normal is the frame's z axis. Its sizes only matter for drawing."""

    name = "plane"
    size_names = ()
    only_static = True


class Sphere(GeometryType):
    """A sphere."""

    name = "sphere"
    size_names = ("radius",)
    wrapped = "point"
    streamed = True
    corners = 1

    def semi_axes(self, size: Vec3) -> Vec3:
        """Its own."""
        return Vec3(size.x, size.x, size.x)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """The point of the surface with that normal."""
        return direction * shape.size.x


class Capsule(GeometryType):
    """A capsule along the frame's z axis."""

    name = "capsule"
    size_names = ("radius", "half-length")
    streamed = True
    corners = 2

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


class Box(GeometryType):
    """A box along the frame's axes."""

    name = "box"
    size_names = ("half-size x", "half-size y", "half-size z")
    streamed = True
    corners = 4

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


class Cylinder(GeometryType):
    """A cylinder along the frame's z axis."""

    name = "cylinder"
    size_names = ("radius", "half-length")
    wrapped = "axis"
    streamed = True
    corners = 4

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


def _sideways(direction: Vec3) -> Vec3:
    """The unit vector across the z axis that leans towards a direction; x if none does."""
    one, zero = jnp.ones_like(direction.x), jnp.zeros_like(direction.x)
    out, _ = normalize(direction._replace(z=zero), Vec3(one, zero, zero))
    return out


class Ellipsoid(GeometryType):
    """An ellipsoid along the frame's axes."""

    name = "ellipsoid"
    size_names = ("semi-axis x", "semi-axis y", "semi-axis z")
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


PLANE = Plane()
SPHERE = Sphere()
CAPSULE = Capsule()
BOX = Box()
CYLINDER = Cylinder()
ELLIPSOID = Ellipsoid()
