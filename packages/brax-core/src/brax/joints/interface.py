"""Interface of a joint type.

One definition serves every pipeline: recursive kinematics composes `transform`, dynamics uses
`motion_subspace`, and the pipelines in maximal coordinates measure a joint's error against both.
All functions work on components shaped (joints, batch); see `brax.components`.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 4.4.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3


class JointParams(NamedTuple):
    """Parameters of joints of one type, in the frame of the link before the joint acts.

    All components have the shape (joints, batch).
    """

    axis: Vec3
    """Unit axis."""
    user: tuple[jax.Array, ...]
    """The joint type's own parameters, `user_width` of them."""


class Twist(NamedTuple):
    """A spatial velocity about the anchor; a part that is zero is None, which costs nothing.

    All components have the shape (joints, batch) or one that broadcasts to it.
    """

    ang: Vec3 | None
    """Angular velocity [rad/s]."""
    vel: Vec3 | None
    """Velocity of the anchor [m/s]."""


class Bound(NamedTuple):
    """A quantity that a model's limits bound.

    All arrays have the shape (joints, batch).
    """

    value: jax.Array
    """Its value."""
    rates: tuple[jax.Array | None, ...]
    """Its rate per unit of each degree of freedom; None where it is zero."""


class JointType(ABC):
    """A kind of joint: how coordinates move the child frame, relative to the joint's anchor.

    Instances are stateless and are static fields of `System`, one for each type. In their methods
    all arrays, and all components of vectors, have the shape (joints, batch) or one that broadcasts
    to it.
    """

    name: ClassVar[str]
    """Name in model files and in the registry."""
    q_width: ClassVar[int]
    """Number of coordinates."""
    qd_width: ClassVar[int]
    """Number of degrees of freedom."""
    user_width: ClassVar[int] = 0
    """Number of own parameters that the type reads from the model (`user`)."""

    @property
    def is_plain(self) -> bool:
        """True if the rates of the coordinates are the velocities."""
        return self.q_width == self.qd_width

    @property
    def is_ball(self) -> bool:
        """True if the coordinates are a rotation and the rates its angular velocity."""
        return (self.q_width, self.qd_width) == (4, 3)

    @property
    def is_free(self) -> bool:
        """True if the coordinates are the pose, so that the link's own frame is unused."""
        return self.qd_width == 6

    @abstractmethod
    def transform(
        self, params: JointParams, q: tuple[jax.Array, ...]
    ) -> tuple[Vec3 | None, Quat | None]:
        """Return the displacement of the child at coordinates `q`.

        Args:
            params: parameters of the joints.
            q: coordinates [rad or m], `q_width` arrays.

        Returns:
            Translation of the anchor [m] and rotation about it, in the frame before the joint; None
            for a part that never moves.
        """

    @abstractmethod
    def motion_subspace(self, params: JointParams, q: tuple[jax.Array, ...]) -> list[Twist]:
        """Return the motion subspace S: the child's relative velocity per unit of each rate.

        Returns:
            `qd_width` twists about the moved anchor, in axes of the frame before the joint.
        """

    def drift(
        self, params: JointParams, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...]
    ) -> Twist:
        """Return the derivative of S qd at constant rates `qd`: not zero where axes move.

        Returns:
            The time derivative of the sum of `qd` times `motion_subspace`, in axes of the frame
            before the joint; None for a part that is zero, as where axes are fixed.
        """

        def twist(q: tuple[jax.Array, ...]) -> Twist:
            out: list[Vec3 | None] = [None, None]
            for column, rate in zip(self.motion_subspace(params, q), qd, strict=True):
                for k, part in enumerate(column):
                    if part is not None:
                        before = out[k]
                        out[k] = part * rate if before is None else before + part * rate
            return Twist(*out)

        def moved(t: jax.Array) -> tuple[jax.Array, ...]:
            return self.integrate(q, qd, t)

        t = jnp.zeros_like(q[0])
        # The derivative along the motion itself, at t = 0: Featherstone's apparent derivative of S,
        # times qd.
        return jax.jvp(lambda t: twist(moved(t)), (t,), (jnp.ones_like(t),))[1]

    @abstractmethod
    def coordinates(self, params: JointParams, pos: Vec3, rot: Quat) -> tuple[jax.Array, ...]:
        """Return the coordinates whose `transform` is nearest to the given one: its inverse."""

    def bounds(self, q: tuple[jax.Array, ...]) -> list[Bound]:
        """Return the quantities that `range` bounds: by default each coordinate.

        A joint with one bound and several degrees of freedom has its limits at the first of them.
        """
        one = jnp.ones_like(q[0])
        return [
            Bound(value, tuple(one if i == k else None for k in range(self.qd_width)))
            for i, value in enumerate(q)
        ]

    def zero(self, like: jax.Array) -> tuple[jax.Array, ...]:
        """Return the coordinates of the joint at rest, shaped as `like`."""
        return tuple(jnp.zeros_like(like) for _ in range(self.q_width))

    def integrate(
        self, q: tuple[jax.Array, ...], qd: tuple[jax.Array, ...], dt: jax.Array | float
    ) -> tuple[jax.Array, ...]:
        """Return the coordinates after `dt` at the rates `qd`."""
        return tuple(a + dt * b for a, b in zip(q, qd, strict=True))

    def difference(
        self, q1: tuple[jax.Array, ...], q0: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, ...]:
        """Return the constant rates that take `q0` to `q1` in unit time; undoes `integrate`."""
        return tuple(a - b for a, b in zip(q1, q0, strict=True))
