"""The screw: rotation about an axis that travels along it."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, exp_quat
from brax.joints import JointParams, JointType, Twist


class Screw(JointType):
    """One angle [rad] about the axis; the child travels `user[0]` metres along it per radian."""

    name = "screw"
    q_width = 1
    qd_width = 1
    user_width = 1

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[Vec3, Quat]:
        """Return a travel along the axis and a rotation about it."""
        return params.axis * (params.user[0] * q[0]), exp_quat(params.axis * q[0])

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Return the angular velocity along the axis with the travel's velocity."""
        return [Twist(params.axis, params.axis * params.user[0])]

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """Return the twist angle of the rotation, with the whole turns that the travel implies."""
        angle = 2 * jnp.arctan2(rot.vec.dot(params.axis), rot.w)
        turns = (pos.dot(params.axis) / params.user[0] - angle) / (2 * jnp.pi)
        return (angle + 2 * jnp.pi * jnp.round(turns),)


SCREW = Screw()
