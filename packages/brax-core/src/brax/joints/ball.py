"""The ball: rotation about a point."""

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, exp_quat, log_quat, normalize, normalize_quat
from brax.joints.interface import Bound, JointParams, JointType, Twist


class Ball(JointType):
    """Quaternion (4) in the frame before the joint; angular velocity (3, axes of the child)."""

    name = "ball"
    q_width = 4
    qd_width = 3

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[None, Quat]:
        """The rotation itself; the quaternion is normalized."""
        return None, normalize_quat(Quat(*q))

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Angular velocity along each of the child's axes."""
        return [Twist(axis, None) for axis in normalize_quat(Quat(*q)).matrix()]

    def drift(
        self, params: JointParams, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...]
    ) -> Twist:
        """Its axes turn with the child about themselves."""
        return Twist(None, None)

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """The rotation itself."""
        return tuple(rot)

    def zero(self, like: jax.Array) -> tuple[jax.Array, ...]:
        """No rotation."""
        zero = jnp.zeros_like(like)
        return (jnp.ones_like(like), zero, zero, zero)

    def integrate(
        self, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...], dt: jax.Array | float
    ) -> tuple[jax.Array, ...]:
        """Turns by the exact exponential."""
        return tuple(normalize_quat(Quat(*q).mul(exp_quat(Vec3(*qd) * dt))))

    def difference(
        self, q1: tuple[jax.Array, ...], q0: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, ...]:
        """The angular velocity that takes one orientation to the other in unit time."""
        return tuple(log_quat(Quat(*q0).conj.mul(Quat(*q1))))

    def bounds(self, q: tuple[jax.Array, ...]) -> list[Bound]:
        """The whole angle, whatever its axis; at no angle it is nobody's, and has no rate."""
        axis, angle = normalize(log_quat(normalize_quat(Quat(*q))))
        return [Bound(angle, tuple(axis))]


BALL = Ball()
