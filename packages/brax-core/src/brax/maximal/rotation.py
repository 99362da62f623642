"""Free rotation of rigid bodies: Euler's equations over a step.

Source: Landau, Lifshitz (1976), Mechanics, section 36; Magnus (1954), Comm. Pure Appl. Math. 7.
"""

import jax

from brax.components import Vec3


def gyration(moments: Vec3) -> Vec3:
    """Return the coefficients of Euler's equations in principal axes.

    The rate of each angular velocity is its coefficient times the product of the other two.
    """
    x, y, z = moments
    # Landau and Lifshitz (36.5) without torque: I_x dw_x/dt = (I_y - I_z) w_y w_z, and cyclic.
    return Vec3((y - z) / x, (z - x) / y, (x - y) / z)


def rotation_vector(spin: Vec3, gyration: Vec3, dt: jax.Array) -> Vec3:
    """Return the rotation of a freely rotating body, in principal axes, to fourth order in `dt`.

    It is Magnus's series with the derivatives of the angular velocity that Euler's equations give.

    Args:
        spin: angular velocity at the start, principal axes.
        gyration: from `gyration`; zero where the angular velocity is constant.
        dt: duration [s].
    """
    # Successive time derivatives of w at the start. Euler's equations are quadratic, so that each
    # is a sum of products of lower ones. In `first` both factors are w itself, hence the half.
    first = _products(spin, spin, gyration) * 0.5
    second = _products(first, spin, gyration)
    third = _products(second, spin, gyration) + _products(first, first, gyration)
    # Magnus's terms of order dt³ and dt⁴ have the commutators w x w' / 12 and w x w'' / 24.
    cubic = second * (1.0 / 6.0) + spin.cross(first) * (1.0 / 12.0)
    quartic = (third + spin.cross(second)) * (1.0 / 24.0)
    # Horner's rule in dt: w dt + w' dt²/2 + cubic dt³ + quartic dt⁴.
    return (spin + (first * 0.5 + (cubic + quartic * dt) * dt) * dt) * dt


def _products(a: Vec3, b: Vec3, gyration: Vec3) -> Vec3:
    """Return the derivative of the products of two components, times the coefficients."""
    return Vec3(
        gyration.x * (a.y * b.z + b.y * a.z),
        gyration.y * (a.z * b.x + b.z * a.x),
        gyration.z * (a.x * b.y + b.x * a.y),
    )
