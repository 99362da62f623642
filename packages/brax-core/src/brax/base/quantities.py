"""Spatial quantities: transforms, motions and forces."""

from typing import Any

import jax
import jax.numpy as jnp

from brax import math
from brax.base.pytree import Base, dataclass


@dataclass
class Transform(Base):
    """A rigid transform: rotation, then translation."""

    pos: jax.Array
    """Translation [m], shape (..., 3)."""
    rot: jax.Array
    """Unit quaternion (w, x, y, z), shape (..., 4)."""

    @classmethod
    def create(cls, pos: Any = None, rot: Any = None) -> "Transform":
        """Return a transform; a part that is not given is that of the identity."""
        if pos is None and rot is None:
            return cls.zero()
        pos = jnp.zeros((*jnp.shape(rot)[:-1], 3)) if pos is None else jnp.asarray(pos)
        if rot is None:
            rot = jnp.broadcast_to(jnp.array([1.0, 0.0, 0.0, 0.0]), (*pos.shape[:-1], 4))
        return cls(pos, jnp.asarray(rot))

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> "Transform":
        """Return identity transforms of a leading shape."""
        rot = jnp.broadcast_to(jnp.array([1.0, 0.0, 0.0, 0.0]), (*shape, 4))
        return cls(jnp.zeros((*shape, 3)), rot)

    def do(self, other: "Transform") -> "Transform":
        """Compose: map `other`, given in this frame, into this frame's parent."""
        pos = self.pos + math.rotate(other.pos, self.rot)
        return Transform(pos, math.quat_mul(self.rot, other.rot))

    def to_local(self, other: "Transform") -> "Transform":
        """Map `other`, given in this frame's parent, into this frame: the inverse of `do`."""
        pos = math.inv_rotate(other.pos - self.pos, self.rot)
        return Transform(pos, math.quat_mul(math.quat_inv(self.rot), other.rot))


@dataclass
class Motion(Base):
    """A spatial velocity or acceleration."""

    ang: jax.Array
    """Angular part [rad/s], shape (..., 3)."""
    vel: jax.Array
    """Linear part [m/s], shape (..., 3)."""

    @classmethod
    def create(cls, ang: Any = None, vel: Any = None) -> "Motion":
        """Return a motion; a part that is not given is zero."""
        like = ang if ang is not None else vel
        zero = jnp.zeros((3,) if like is None else jnp.shape(like))
        return cls(
            zero if ang is None else jnp.asarray(ang), zero if vel is None else jnp.asarray(vel)
        )

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> "Motion":
        """Return zero motions of a leading shape."""
        return cls(jnp.zeros((*shape, 3)), jnp.zeros((*shape, 3)))

    def matrix(self) -> jax.Array:
        """Return the six numbers, the angular ones first, shape (..., 6)."""
        return jnp.concatenate([self.ang, self.vel], axis=-1)


@dataclass
class Force(Base):
    """A spatial force or impulse."""

    ang: jax.Array
    """Torque [N m], shape (..., 3)."""
    vel: jax.Array
    """Force [N], shape (..., 3)."""

    @classmethod
    def create(cls, ang: Any = None, vel: Any = None) -> "Force":
        """Return a force; a part that is not given is zero."""
        motion = Motion.create(ang, vel)
        return cls(motion.ang, motion.vel)
