"""Hinge: rotation about an axis."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, sine_and_cosine
from brax.joints.interface import JointParams, JointType, Twist


class Hinge(JointType):
    """Hinge: one angle [rad] about the axis."""

    name = "hinge"
    q_width = 1
    qd_width = 1

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[None, Quat]:
        """Return the rotation about the axis."""
        sine, cosine = sine_and_cosine(0.5 * q[0])
        return None, Quat(cosine, *(params.axis * sine))

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Return a unit angular velocity along the axis."""
        return [Twist(params.axis, None)]

    def drift(
        self, params: JointParams, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...]
    ) -> Twist:
        """Return zero, since the axis is fixed."""
        return Twist(None, None)

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """Return the angle of the rotation's twist about the axis, in (-pi, pi]."""
        # Swing-twist decomposition: the twist's quaternion is (w, (v . axis) axis). Its half angle
        # may lie outside (-pi/2, pi/2], as q and -q are one rotation.
        half = jnp.arctan2(rot.vec.dot(params.axis), rot.w)
        return (
            2 * half
            - jnp.where(half > jnp.pi / 2, 2 * jnp.pi, 0.0)
            + jnp.where(half <= -jnp.pi / 2, 2 * jnp.pi, 0.0),
        )


HINGE = Hinge()
