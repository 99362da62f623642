"""The hinge: rotation about an axis."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3
from brax.joints.interface import JointParams, JointType, Twist


class Hinge(JointType):
    """One angle [rad] about the axis."""

    name = "hinge"
    q_width = 1
    qd_width = 1

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[None, Quat]:
        """A rotation about the anchor."""
        sine = jnp.sin(0.5 * q[0])
        return None, Quat(jnp.cos(0.5 * q[0]), *(params.axis * sine))

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Angular velocity along the axis."""
        return [Twist(params.axis, None)]

    def drift(
        self, params: JointParams, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...]
    ) -> Twist:
        """Its axis is fixed."""
        return Twist(None, None)

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """The angle of the rotation's twist about the axis, in (-pi, pi]."""
        half = jnp.arctan2(rot.vec.dot(params.axis), rot.w)
        return (
            2 * half
            - jnp.where(half > jnp.pi / 2, 2 * jnp.pi, 0.0)
            + jnp.where(half <= -jnp.pi / 2, 2 * jnp.pi, 0.0),
        )


HINGE = Hinge()
