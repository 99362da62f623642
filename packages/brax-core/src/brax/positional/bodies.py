"""The free motion of links in the positional pipeline."""

import jax

from brax.components import Mat3, Quat, Vec3, exp_quat, unit_again
from brax.maximal.links import Links
from brax.maximal.rotation import gyration, rotation_vector


def scale(a: Vec3, b: Vec3) -> Vec3:
    """Product component by component."""
    return Vec3(a.x * b.x, a.y * b.y, a.z * b.z)


def _over(a: Vec3, b: Vec3) -> Vec3:
    return Vec3(a.x / b.x, a.y / b.y, a.z / b.z)


def turn(moments: Vec3, axes: Mat3, ang: Vec3, dt: jax.Array) -> Quat:
    """Rotation in principal axes of bodies that turn freely for `dt`."""
    return exp_quat(rotation_vector(axes.inv_rotate(ang), gyration(moments), dt))


def drift(moments: Vec3, bodies: Links, moved: Vec3, turned: Quat) -> Links:
    """Moves bodies, whose angular momentum stays as it is.

    Args:
        moments: principal moments of inertia.
        bodies: with the velocities that they keep.
        moved: displacement of the centres of mass.
        turned: rotation in principal axes.
    """
    rot = unit_again(bodies.rot.mul(turned))
    axes = rot.matrix()
    spin = bodies.axes.inv_rotate(bodies.ang)
    # What turning adds to momentum and spin in principal axes; only sums are rounded.
    gain = _over(turned.turned_back(scale(moments, spin)), moments) - turned.turned_back(spin)
    ang = bodies.ang + axes.rotate(gain)
    return bodies._replace(pos=bodies.pos + moved, rot=rot, axes=axes, ang=ang)
