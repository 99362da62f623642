"""The state of the spring pipeline inside a step, and its free motion."""

from typing import NamedTuple

import jax

from brax.components import Mat3, Quat, Vec3, exp_quat, normalize_quat
from brax.fusion import fence
from brax.spring.model import GroupModel


class Bodies(NamedTuple):
    """The links of one group: their principal frames in the world, and their velocities."""

    pos: Vec3
    """Centre of mass [m]."""
    rot: Quat
    """Orientation of the principal axes."""
    axes: Mat3
    """The same as a matrix."""
    vel: Vec3
    """Velocity of the centre of mass [m/s]."""
    ang: Vec3
    """Angular velocity, world axes [rad/s]."""
    q: tuple[jax.Array, ...]
    """Coordinates of the stack; they follow the frames."""
    rates: tuple[jax.Array, ...]
    """Rates of its degrees of freedom."""


def _gyration(moments: Vec3, spin: Vec3) -> Vec3:
    """Angular acceleration of a body that no torque acts on, both in principal axes.

    Source: Euler's equations, Landau and Lifshitz (1976), Mechanics, section 36.
    """
    i = moments
    return Vec3(
        (i.y - i.z) / i.x * (spin.y * spin.z),
        (i.z - i.x) / i.y * (spin.z * spin.x),
        (i.x - i.y) / i.z * (spin.x * spin.y),
    )


def drift(model: GroupModel, body: Bodies, dt: jax.Array, held: bool) -> Bodies:
    """Free motion: straight lines, and rotation at constant angular momentum.

    The exponential and the conservation of angular momentum are exact to round-off. The rotation
    vector of a link that nothing holds is exact to second order; that of a link `held` by joints is
    constant, which is what the joints count on.
    """
    i = model.moments
    spin = fence(body.axes.inv_rotate(body.ang))
    mean = spin if held else spin + _gyration(i, spin) * (0.5 * dt)
    turn = fence(exp_quat(mean * dt))
    rot = fence(normalize_quat(fence(body.rot.mul(turn))))
    axes = fence(rot.matrix())
    turned = turn.conj.rotate(Vec3(spin.x * i.x, spin.y * i.y, spin.z * i.z))
    ang = axes.rotate(Vec3(turned.x / i.x, turned.y / i.y, turned.z / i.z))
    return body._replace(pos=body.pos + body.vel * dt, rot=rot, axes=axes, ang=fence(ang))
