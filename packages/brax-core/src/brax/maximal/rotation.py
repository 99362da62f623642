"""How bodies turn that nothing holds: Euler's equations over a step.

Source: Landau, Lifshitz (1976), Mechanics, section 36; Magnus (1954), Comm. Pure Appl. Math. 7.
"""

import jax

from brax.components import Vec3


def gyration(moments: Vec3) -> Vec3:
    """How fast each angular velocity changes per product of the other two, in principal axes."""
    x, y, z = moments
    return Vec3((y - z) / x, (z - x) / y, (x - y) / z)


def rotation_vector(spin: Vec3, gyration: Vec3, dt: jax.Array) -> Vec3:
    """The rotation of a body that turns freely, in principal axes, to fourth order.

    Magnus' series, with the derivatives of the angular velocity that Euler's equations give.

    Args:
        spin: angular velocity at the start, principal axes.
        gyration: see above; zero where the angular velocity stays.
        dt: for how long.
    """
    first = _products(spin, spin, gyration) * 0.5
    second = _products(first, spin, gyration)
    third = _products(second, spin, gyration) + _products(first, first, gyration)
    cubic = second * (1.0 / 6.0) + spin.cross(first) * (1.0 / 12.0)
    quartic = (third + spin.cross(second)) * (1.0 / 24.0)
    return (spin + (first * 0.5 + (cubic + quartic * dt) * dt) * dt) * dt


def _products(a: Vec3, b: Vec3, gyration: Vec3) -> Vec3:
    """The change of the product of two components with that of both, times the gyration."""
    return Vec3(
        gyration.x * (a.y * b.z + b.y * a.z),
        gyration.y * (a.z * b.x + b.z * a.x),
        gyration.z * (a.x * b.y + b.x * a.y),
    )
