"""Free joint: all six degrees of freedom."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, zero_vec
from brax.joints.ball import BALL
from brax.joints.interface import Bound, JointParams, JointType, Twist


class Free(JointType):
    """Free joint: position (3, world) and quaternion (4).

    The rates are velocity (3, world axes) and angular velocity (3, body axes).
    """

    name = "free"
    q_width = 7
    qd_width = 6

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[Vec3, Quat]:
        """Return the pose, with the normalized quaternion."""
        return Vec3(*q[:3]), BALL.transform(params, q[3:])[1]

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Return unit velocities along world axes, then unit angular velocities along body axes."""
        zero = zero_vec(q[0])
        one = jnp.ones_like(q[0])
        axes = [zero._replace(**{k: one}) for k in "xyz"]
        return [Twist(None, a) for a in axes] + BALL.motion_subspace(params, q[3:])

    def drift(
        self, params: JointParams, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...]
    ) -> Twist:
        """Return zero: velocities are along world axes, and for the rotation see `Ball.drift`."""
        return Twist(None, None)

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """Return the pose as coordinates."""
        return (*pos, *rot)

    def bounds(self, q: tuple[jax.Array, ...]) -> list[Bound]:
        """Return an empty list, since a free joint has no limits."""
        return []

    def zero(self, like: jax.Array) -> tuple[jax.Array, ...]:
        """Return the identity pose."""
        zero = jnp.zeros_like(like)
        return (zero, zero, zero, *BALL.zero(like))

    def integrate(
        self, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...], dt: jax.Array | float
    ) -> tuple[jax.Array, ...]:
        """Return the pose after `dt`: a straight line, and the exponential map."""
        moved = (a + dt * b for a, b in zip(q[:3], qd[:3], strict=True))
        return (*moved, *BALL.integrate(q[3:], qd[3:], dt))

    def difference(
        self, q1: tuple[jax.Array, ...], q0: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, ...]:
        """Return the velocity that takes one pose to the other in unit time."""
        moved = (a - b for a, b in zip(q1[:3], q0[:3], strict=True))
        return (*moved, *BALL.difference(q1[3:], q0[3:]))


FREE = Free()
