"""The planar joint: a body that slides and turns on a plane."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, exp_quat, tangents
from brax.joints import JointParams, JointType, Twist


class Planar(JointType):
    """Two distances [m] across the axis and one angle [rad] about it."""

    name = "planar"
    q_width = 3
    qd_width = 3

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[Vec3, Quat]:
        """Return a travel on the plane, then a turn about its normal."""
        right, up = tangents(params.axis)
        return right * q[0] + up * q[1], exp_quat(params.axis * q[2])

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Return velocities along two directions of the plane, and a rotation about its normal."""
        right, up = tangents(params.axis)
        return [Twist(None, right), Twist(None, up), Twist(params.axis, None)]

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """Return the travel on the plane, and the angle of the twist about its normal."""
        right, up = tangents(params.axis)
        half = jnp.arctan2(rot.vec.dot(params.axis), rot.w)
        angle = 2 * half - 2 * jnp.pi * jnp.round(half / jnp.pi)
        return pos.dot(right), pos.dot(up), angle


PLANAR = Planar()
