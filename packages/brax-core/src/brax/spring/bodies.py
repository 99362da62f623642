"""The state of the spring pipeline inside a step, and its free motion."""

from typing import NamedTuple

import jax

from brax.components import Quat, Vec3, exp_quat, normalize_quat
from brax.spring.model import GroupModel


class Bodies(NamedTuple):
    """The links of one group: their principal frames in the world, and their velocities."""

    pos: Vec3
    """Centre of mass [m]."""
    rot: Quat
    """Principal axes."""
    vel: Vec3
    """Velocity of the centre of mass [m/s]."""
    ang: Vec3
    """Angular velocity, world axes [rad/s]."""
    q: tuple[jax.Array, ...]
    """Coordinates of the stack; they follow the frames."""
    rates: tuple[jax.Array, ...]
    """Rates of its degrees of freedom."""


def gyration(model: GroupModel, rot: Quat, ang: Vec3) -> Vec3:
    """Angular acceleration of a body that no torque acts on, world axes [rad/s^2].

    Source: Euler's equations, Landau and Lifshitz (1976), Mechanics, section 36.
    """
    w, i = rot.conj.rotate(ang), model.moments
    return rot.rotate(
        Vec3(
            (i.y - i.z) / i.x * w.y * w.z,
            (i.z - i.x) / i.y * w.z * w.x,
            (i.x - i.y) / i.z * w.x * w.y,
        )
    )


def drift(model: GroupModel, body: Bodies, dt: jax.Array) -> Bodies:
    """Free motion: straight lines, and rotation at constant angular momentum.

    The rotation vector is exact to second order, the exponential and the conservation of angular
    momentum to round-off.
    """
    i = model.moments
    local = body.rot.conj.rotate(body.ang)
    momentum = body.rot.rotate(Vec3(local.x * i.x, local.y * i.y, local.z * i.z))
    turn = (body.ang + gyration(model, body.rot, body.ang) * (0.5 * dt)) * dt
    rot = normalize_quat(exp_quat(turn).mul(body.rot))
    local = rot.conj.rotate(momentum)
    ang = rot.rotate(Vec3(local.x / i.x, local.y / i.y, local.z / i.z))
    return body._replace(pos=body.pos + body.vel * dt, rot=rot, ang=ang)
