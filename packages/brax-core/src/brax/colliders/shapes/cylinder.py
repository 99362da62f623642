"""The geometry type `cylinder`."""

import jax
import jax.numpy as jnp

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.clamping import clip_size, shorten, sign
from brax.components import Vec3, normalize

_MIN_END_COSINE = 0.7
"""Cosine between a direction and a cylinder's axis above which the direction faces a cap."""

_MAX_ALONG_AXIS_SINE_SQUARED = 1e-12
"""Squared sine of the angle to a cylinder's axis below which a direction counts as along the axis.
Below it the derivative of the unit vector across the axis is out of range."""


class CylinderGeometry(GeometryType):
    """A cylinder along the frame's z axis."""

    name = "cylinder"
    size_names = ("radius", "half-length")
    stops_rays = True
    wrapped = "axis"
    streamed = True
    corners = 4

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Clamp the radial and the axial part of the point."""
        aside = shorten(point._replace(z=jnp.zeros_like(point.z)), shape.size.x)
        return aside._replace(z=clip_size(point.z, shape.size.y))

    def semi_axes(self, size: Vec3) -> Vec3:
        """Return the semi-axes of an ellipsoid as wide and as long as the cylinder."""
        return Vec3(size.x, size.x, size.y)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the point of the farther rim that leans towards the direction."""
        out = _sideways(direction) * shape.size.x
        return out._replace(z=sign(direction.z) * shape.size.y)

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """Return a square in the cap, or the line at the side.

        The first vertex of the square is the support point.
        """
        # The vertices of a line are doubled, because every face of the type has four.
        radius, half = shape.size.x, shape.size.y
        out, end = _sideways(direction) * radius, sign(direction.z) * half
        # Between cap and side the direction faces the rim, where either face is a good
        # approximation.
        on_end = jnp.abs(direction.z) > _MIN_END_COSINE
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
        """Intersect the ray with the side and both caps (Ericson 2005, section 5.3.7)."""
        hits = rays.tube(origin, direction, size.x, size.y)
        for end in (-1.0, 1.0):
            t, met = rays.level(origin.z, direction.z, end * size.y)
            at = rays.along(origin, direction, t)
            hits.append((t, met & (at.x**2 + at.y**2 <= size.x**2)))
        return rays.first(hits)


def _sideways(direction: Vec3) -> Vec3:
    """Return the unit vector across the z axis that leans towards a direction; x if none does."""
    x, y, zero = direction.x, direction.y, jnp.zeros_like(direction.x)
    # Both branches of a `where` are differentiated, so zero is replaced before the root is taken.
    # Else a cylinder that stands exactly upright has no finite derivative.
    leans = x * x + y * y > _MAX_ALONG_AXIS_SINE_SQUARED
    x, y = jnp.where(leans, x, 1.0), jnp.where(leans, y, 0.0)
    out, _ = normalize(Vec3(x, y, zero))
    return out


CYLINDER = CylinderGeometry()
