"""The geometry type `sdf_gear`: MuJoCo's gear, a spur gear with involute teeth."""

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.interface import Shape
from brax.colliders.shapes.azimuth import azimuth
from brax.colliders.shapes.hull import WithHull
from brax.components import Vec3, sqrt

_WHOLE_DEPTH = 2.2
"""Height of a tooth, in modules."""

_RIM = 0.14
"""Width of the rim below the teeth, in pitch diameters."""

_TIP_ROUNDING = 0.0035
"""Length over which the edges of the teeth's tips are rounded, in pitch diameters."""

_CLEAR = 0.2
"""Distance from the tips beyond which the teeth do not matter [m]."""


class SignedDistanceGear(WithHull):
    """A spur gear around the z axis.

    Its pitch diameter is `size[0]`, its module, the diameter over the number of teeth, `size[1]`,
    and its thickness `size[2]`. It is open within the rim that carries the teeth.
    """

    name = "sdf_gear"
    size_names = ("pitch diameter", "module", "thickness")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Return the distance from the plane figure of the gear, extruded along the z axis.

        Source: MuJoCo's plugin `mujoco.sdf.gear`, for the function and its constants.
        """
        flat = _figure(shape, point)
        level = jnp.abs(point.z) - 0.5 * shape.size.z
        x, z = jnp.maximum(flat, 0.0), jnp.maximum(level, 0.0)
        return jnp.minimum(jnp.maximum(flat, level), 0.0) + sqrt(x * x + z * z)


def _figure(shape: Shape, point: Vec3) -> jax.Array:
    """Return the signed distance from the gear's figure in the plane z = 0 [m]."""
    diameter, module, _ = shape.size
    pitch, teeth = 0.5 * diameter, diameter / module
    # A fit of the pressure angle [rad], at which the flanks of two gears push each other.
    pressure = 0.551 - 6.557e-3 * teeth + 3.096e-5 * teeth * teeth
    tip, base = pitch + module, pitch * jnp.cos(pressure)
    root = tip - _WHOLE_DEPTH * module
    inner = root - _RIM * diameter
    rho = sqrt(point.x * point.x + point.y * point.y)
    flanks = _flanks(rho, azimuth(point), base, pressure, 2 * np.pi / teeth)
    cogs = _rounded_intersection(rho - tip, flanks, _TIP_ROUNDING * diameter)
    solid = _rounded_union(rho - root, cogs, base - root)
    solid = jnp.maximum(solid, inner - rho)
    solid = jnp.where(rho < inner, inner - rho, solid)
    return jnp.where(rho > tip + _CLEAR, rho - tip, solid)


def _flanks(
    rho: jax.Array, angle: jax.Array, base: jax.Array, pressure: jax.Array, stride: jax.Array
) -> jax.Array:
    """Return the signed distance from the space between the two flanks of the nearest tooth.

    Args:
        rho: distance from the axis [m].
        angle: angle about the axis.
        base: radius of the circle whose involutes the flanks are [m].
        pressure: the pressure angle.
        stride: angle between two teeth.
    """
    shift = 0.5 * stride - 2.0 * (jnp.tan(pressure) - pressure)
    first = _wrapped(angle, shift, stride)
    second = _wrapped(-angle - shift, shift, stride)
    # The distance from an involute is the difference of two lengths: that of the tangent to the
    # base circle, and that of the thread that is unwound up to there. Within the circle is none.
    outside = rho > base
    tangent = sqrt(jnp.where(outside, rho * rho - base * base, 0.0))
    turned = jnp.arctan2(tangent, base)
    off = [jnp.where(outside, tangent - base * (a + turned), -jnp.inf) for a in (first, second)]
    walls = jnp.maximum(first, second) - (stride - shift)
    return jnp.maximum(walls, jnp.maximum(*off))


def _wrapped(angle: jax.Array, shift: jax.Array, stride: jax.Array) -> jax.Array:
    """Return an angle, less whole strides, from minus half a shift on."""
    from_there = angle + 0.5 * shift
    return angle - stride * jnp.floor(jax.lax.stop_gradient(from_there / stride))


def _rounded_union(a: jax.Array, b: jax.Array, width: jax.Array) -> jax.Array:
    """Return the smaller of two distances, blended by a parabola where they nearly agree."""
    share = jnp.clip(0.5 + 0.5 * (b - a) / width, 0.0, 1.0)
    return b + share * (a - b) - width * share * (1.0 - share)


def _rounded_intersection(a: jax.Array, b: jax.Array, width: jax.Array) -> jax.Array:
    """Return the larger of two distances, less where an edge between the surfaces is rounded."""
    either = _rounded_union(jnp.maximum(a, -b), jnp.maximum(b, -a), width)
    return jnp.maximum(jnp.maximum(a, b), -either)


SDF_GEAR = SignedDistanceGear()
