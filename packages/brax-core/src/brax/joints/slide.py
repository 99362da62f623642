"""Slide joint: translation along an axis."""

import jax

from brax.components import Quat, Vec3
from brax.joints.interface import JointParams, JointType, Twist


class Slide(JointType):
    """Slide joint: one distance [m] along the axis."""

    name = "slide"
    q_width = 1
    qd_width = 1

    def transform(self, params: JointParams, q: tuple[jax.Array, ...]) -> tuple[Vec3, None]:
        """Return the translation of the anchor."""
        return params.axis * q[0], None

    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Return a unit velocity along the axis."""
        return [Twist(None, params.axis)]

    def drift(
        self, params: JointParams, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...]
    ) -> Twist:
        """Return zero, since the axis is fixed."""
        return Twist(None, None)

    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """Return the distance along the axis."""
        return (pos.dot(params.axis),)


SLIDE = Slide()
