"""The hinge: rotation about an axis."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, exp_quat, zero_vec
from brax.joints.interface import JointParams, JointType, Twist


class Hinge(JointType):
    """One angle [rad] about the axis."""

    name = "hinge"
    q_width = 1
    qd_width = 1

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[Vec3, Quat]:
        """A rotation about the anchor."""
        return zero_vec(q[0]), exp_quat(params.axis * q[0])

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Angular velocity along the axis."""
        return [Twist(params.axis, zero_vec(params.axis.x))]

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """The angle of the rotation's twist about the axis, in (-pi, pi]."""
        half = jnp.arctan2(rot.vec.dot(params.axis), rot.w)
        return (
            2 * half
            - jnp.where(half > jnp.pi / 2, 2 * jnp.pi, 0.0)
            + jnp.where(half <= -jnp.pi / 2, 2 * jnp.pi, 0.0),
        )


HINGE = Hinge()
