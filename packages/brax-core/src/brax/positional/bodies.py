"""The free motion of links: translation, and rotation at constant angular momentum.

The paper integrates rotations to first order, with an explicit gyroscopic torque (Mueller et al.
2020, algorithm 2). Here a free body rotates by a Magnus series of fourth order, and its angular
momentum is constant to rounding.
"""

import jax

from brax.components import Mat3, Quat, Vec3, exp_quat, unit_again
from brax.maximal.links import Links
from brax.maximal.rotation import gyration, rotation_vector


def scale(a: Vec3, b: Vec3) -> Vec3:
    """Return the component-wise product."""
    return Vec3(a.x * b.x, a.y * b.y, a.z * b.z)


def _over(a: Vec3, b: Vec3) -> Vec3:
    """Return the component-wise quotient."""
    return Vec3(a.x / b.x, a.y / b.y, a.z / b.z)


def turn(moments: Vec3, axes: Mat3, ang: Vec3, dt: jax.Array) -> Quat:
    """Return the rotation, in principal axes, of bodies that rotate freely for `dt`.

    Args:
        moments: principal moments of inertia [kg m^2].
        axes: the principal axes in the world.
        ang: angular velocity, world axes [rad/s].
        dt: time step [s].
    """
    # Euler's equations are in principal axes, where the inertia is diagonal.
    return exp_quat(rotation_vector(axes.inv_rotate(ang), gyration(moments), dt))


def drift(moments: Vec3, bodies: Links, moved: Vec3, turned: Quat) -> Links:
    """Move bodies, and change their angular velocity so that angular momentum is constant.

    Args:
        moments: principal moments of inertia [kg m^2].
        bodies: the bodies before the motion.
        moved: displacement of the centres of mass, world axes [m].
        turned: rotation in principal axes, from `turn`.
    """
    # Rounding would let the length of the quaternion drift over many steps.
    rot = unit_again(bodies.rot.mul(turned))
    axes = rot.matrix()
    spin = bodies.axes.inv_rotate(bodies.ang)
    # In the rotated principal axes the same momentum has other components, and so the angular
    # velocity another value. Only the change of it is computed and added, so that a body that does
    # not rotate keeps its velocity to the last bit.
    gain = _over(turned.turned_back(scale(moments, spin)), moments) - turned.turned_back(spin)
    ang = bodies.ang + axes.rotate(gain)
    return bodies._replace(pos=bodies.pos + moved, rot=rot, axes=axes, ang=ang)
