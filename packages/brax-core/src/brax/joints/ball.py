"""Ball joint: rotation about a point."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, exp_quat, log_quat, normalize, normalize_quat
from brax.joints.interface import Bound, JointParams, JointType, Twist


class Ball(JointType):
    """Ball joint: a quaternion (4), and the angular velocity (3) in axes of the child.

    The quaternion is in the frame before the joint.
    """

    name = "ball"
    q_width = 4
    qd_width = 3

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[None, Quat]:
        """Return the rotation, from the normalized quaternion."""
        return None, normalize_quat(Quat(*q))

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Return unit angular velocities along the child's axes."""
        return [Twist(axis, None) for axis in normalize_quat(Quat(*q)).matrix()]

    def drift(
        self, params: JointParams, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...]
    ) -> Twist:
        """Return zero: the angular velocity is constant in axes that rotate with the child."""
        # The derivative of S qd is w x w = 0, since w is constant in axes of the child.
        return Twist(None, None)

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """Return the quaternion of the rotation."""
        return tuple(rot)

    def zero(self, like: jax.Array) -> tuple[jax.Array, ...]:
        """Return the identity."""
        zero = jnp.zeros_like(like)
        return (jnp.ones_like(like), zero, zero, zero)

    def integrate(
        self, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...], dt: jax.Array | float
    ) -> tuple[jax.Array, ...]:
        """Return the orientation after `dt`, by the exponential map, which is exact."""
        # On the right: the angular velocity is in axes of the child.
        return tuple(normalize_quat(Quat(*q).mul(exp_quat(Vec3(*qd) * dt))))

    def difference(
        self, q1: tuple[jax.Array, ...], q0: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, ...]:
        """Return the angular velocity that takes one orientation to the other in unit time."""
        return tuple(log_quat(Quat(*q0).conj.mul(Quat(*q1))))

    def bounds(self, q: tuple[jax.Array, ...]) -> list[Bound]:
        """Return the total rotation angle.

        It is non-negative. At zero the axis is undefined and the rate is zero.
        """
        # The rate of the angle by the angular velocity is the axis, in axes of the child.
        axis, angle = normalize(log_quat(normalize_quat(Quat(*q))))
        return [Bound(angle, tuple(axis))]


BALL = Ball()
