"""Spatial quantities: transforms, motions, forces and inertias.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, chapter 2.
"""

from typing import Any, Self, overload

import jax
import jax.numpy as jnp
import numpy as np

from brax import math
from brax.base.pytree import Base, dataclass
from brax.errors import ModelError


@dataclass
class Transform(Base):
    """A rigid transform: rotation, then translation."""

    pos: jax.Array
    """Translation [m], shape (..., 3)."""
    rot: jax.Array
    """Unit quaternion (w, x, y, z), shape (..., 4)."""

    @classmethod
    def create(cls, pos: Any = None, rot: Any = None) -> "Transform":
        """Return a transform; a part that is not given is that of the identity.

        Args:
            pos: translation [m], shape (..., 3).
            rot: unit quaternion (w, x, y, z), shape (..., 4).

        Returns:
            Transforms of the leading shape of the parts.
        """
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

    @overload
    def do(self, other: "Transform") -> "Transform": ...
    @overload
    def do(self, other: "Motion") -> "Motion": ...
    @overload
    def do(self, other: "Force") -> "Force": ...
    @overload
    def do(self, other: "Inertia") -> "SpatialInertia": ...

    def do(self, other: Any) -> Any:
        """Transform a quantity by this frame, which is given in its parent.

        Args:
            other: A `Transform` or a `Force` in this frame: the result is in the parent, the force
                about the parent's origin. An `Inertia` whose centre of mass and axes are those of
                this frame, such as `x.do(inertia.transform)`; its own `transform` is not read. The
                result is its `SpatialInertia` about the parent's origin. A `Motion` in the parent:
                the result is in this frame, the velocity at this frame's origin. Leading shapes
                broadcast.

        Raises:
            ModelError: if `other` is no such quantity.

        Source: equations 2.24 (motion), 2.25 (force) and 2.66 (inertia); for an inertia that is
        given at its centre of mass, equation 2.63.
        """
        if isinstance(other, Transform):
            pos = self.pos + math.rotate(other.pos, self.rot)
            return Transform(pos, math.quat_mul(self.rot, other.rot))
        if isinstance(other, Motion):
            at_origin = other.vel + jnp.cross(other.ang, self.pos)
            parts = (math.inv_rotate(v, self.rot) for v in (other.ang, at_origin))
            return Motion(*parts)
        if isinstance(other, Force):
            moment, force = (math.rotate(v, self.rot) for v in (other.ang, other.vel))
            return Force(moment + jnp.cross(self.pos, force), force)
        if isinstance(other, Inertia):
            return SpatialInertia.of(self, other)
        raise _no_quantity("do", other)

    @overload
    def inv_do(self, other: "Transform") -> "Transform": ...
    @overload
    def inv_do(self, other: "Motion") -> "Motion": ...
    @overload
    def inv_do(self, other: "Force") -> "Force": ...

    def inv_do(self, other: Any) -> Any:
        """Transform a quantity by the inverse of this frame: the inverse of `do`.

        Args:
            other: A `Transform` or a `Force` in the parent, which is returned in this frame, or a
                `Motion` in this frame, which is returned in the parent. Leading shapes broadcast.

        Raises:
            ModelError: if `other` is no such quantity.
        """
        if isinstance(other, Transform):
            pos = math.inv_rotate(other.pos - self.pos, self.rot)
            return Transform(pos, math.quat_mul(math.quat_inv(self.rot), other.rot))
        if isinstance(other, Motion):
            ang, vel = (math.rotate(v, self.rot) for v in (other.ang, other.vel))
            return Motion(ang, vel - jnp.cross(ang, self.pos))
        if isinstance(other, Force):
            moment = other.ang - jnp.cross(self.pos, other.vel)
            parts = (math.inv_rotate(v, self.rot) for v in (moment, other.vel))
            return Force(*parts)
        raise _no_quantity("inv_do", other)

    def to_local(self, other: "Transform") -> "Transform":
        """Return this frame in the frame `other`, both in one parent; leading shapes broadcast."""
        return other.inv_do(self)


@dataclass
class Motion(Base):
    """A spatial velocity or acceleration."""

    ang: jax.Array
    """Angular part [rad/s], shape (..., 3)."""
    vel: jax.Array
    """Linear part [m/s], shape (..., 3)."""

    @classmethod
    def create(cls, ang: Any = None, vel: Any = None) -> "Motion":
        """Return a motion; a part that is not given is zero.

        Args:
            ang: angular part [rad/s], shape (..., 3).
            vel: linear part [m/s], shape (..., 3).

        Returns:
            Motions of the leading shape of the parts.
        """
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

    @overload
    def cross(self, other: "Motion") -> "Motion": ...
    @overload
    def cross(self, other: "Force") -> "Force": ...

    def cross(self, other: Any) -> Any:
        """Return the rate of change of a motion or force that moves at this velocity.

        Args:
            other: the motion or force; leading shapes broadcast.

        Raises:
            ModelError: if `other` is neither.

        Source: equation 2.31 for a motion, and 2.32 for a force.
        """
        if isinstance(other, Motion):
            swept = jnp.cross(self.ang, other.vel) + jnp.cross(self.vel, other.ang)
            return Motion(jnp.cross(self.ang, other.ang), swept)
        if isinstance(other, Force):
            swept = jnp.cross(self.ang, other.ang) + jnp.cross(self.vel, other.vel)
            return Force(swept, jnp.cross(self.ang, other.vel))
        raise _no_quantity("cross", other)

    def dot(self, other: "Motion | Force") -> jax.Array:
        """Return the scalar product, shape (...); with a force it is the power [W]."""
        return jnp.sum(self.ang * other.ang, axis=-1) + jnp.sum(self.vel * other.vel, axis=-1)


@dataclass
class Force(Base):
    """A spatial force or impulse."""

    ang: jax.Array
    """Torque [N m], shape (..., 3)."""
    vel: jax.Array
    """Force [N], shape (..., 3)."""

    @classmethod
    def create(cls, ang: Any = None, vel: Any = None) -> "Force":
        """Return a force; a part that is not given is zero.

        Args:
            ang: torque [N m], shape (..., 3).
            vel: force [N], shape (..., 3).

        Returns:
            Forces of the leading shape of the parts.
        """
        motion = Motion.create(ang, vel)
        return cls(motion.ang, motion.vel)


@dataclass
class Inertia(Base):
    """The mass distribution of each link."""

    transform: Transform
    """Principal frame of inertia in the link frame, centre of mass and principal axes, shape
    (n_links, ...)."""
    moments: jax.Array
    """Principal moments about the centre of mass [kg m^2], shape (n_links, 3)."""
    mass: jax.Array
    """Mass [kg], shape (n_links,)."""

    @property
    def i(self) -> jax.Array:
        """Diagonal matrices with the principal moments, shape (n_links, 3, 3)."""
        return jnp.asarray(self.moments)[..., None] * jnp.eye(3)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with fields replaced; `i` gives the moments as diagonal matrices.

        Raises:
            ModelError: if there is no field of that name, or `i` is no diagonal matrix.
        """
        if "i" in changes:
            changes["moments"] = _diagonal(changes.pop("i"))
        return super().replace(**changes)


@dataclass
class SpatialInertia(Base):
    """The inertia of a rigid body about the origin of a frame: the ten numbers of equation 2.63."""

    mass: jax.Array
    """Mass [kg], shape (...)."""
    moment: jax.Array
    """Mass times the centre of mass [kg m], shape (..., 3)."""
    i: jax.Array
    """Rotational inertia about the origin [kg m^2], shape (..., 3, 3)."""

    @classmethod
    def of(cls, frame: Transform, inertia: Inertia) -> "SpatialInertia":
        """Return the inertia of a body about the origin.

        Args:
            frame: its centre of mass and principal axes, of any leading shape.
            inertia: its principal moments [kg m^2] and its mass [kg], of the same leading shape;
                its `transform` is not read.
        """
        axes, mass = math.quat_to_3x3(frame.rot), jnp.asarray(inertia.mass)
        scaled = axes * jnp.asarray(inertia.moments)[..., None, :]
        central = jnp.matmul(scaled, jnp.swapaxes(axes, -1, -2), precision="highest")
        # The parallel axis theorem: the added part is m (c.c 1 - c c^T).
        square = jnp.sum(frame.pos**2, axis=-1)[..., None, None] * jnp.eye(3)
        outer = frame.pos[..., :, None] * frame.pos[..., None, :]
        shift = mass[..., None, None] * (square - outer)
        return cls(mass, mass[..., None] * frame.pos, central + shift)

    def mul(self, motion: Motion) -> Force:
        """Return the momentum at a velocity of the same shape, or the force for an acceleration."""
        turning = jnp.matmul(self.i, motion.ang[..., None], precision="highest")[..., 0]
        ang = turning + jnp.cross(self.moment, motion.vel)
        return Force(ang, self.mass[..., None] * motion.vel - jnp.cross(self.moment, motion.ang))


def _diagonal(value: Any) -> Any:
    """Return the diagonals of matrices (..., 3, 3); what is no array, such as an axis, as it is."""
    if np.ndim(value) < 2:
        return value
    if jnp.shape(value)[-2:] != (3, 3):
        raise ModelError(
            f"link.inertia.i has shape {jnp.shape(value)}, expected (n_links, 3, 3): diagonal "
            "matrices of the principal moments; replace link.inertia.moments by (n_links, 3)"
        )
    value = jnp.asarray(value)
    diagonal = jnp.diagonal(value, axis1=-2, axis2=-1)
    rest = jnp.any(value * (1 - jnp.eye(3)) != 0, axis=(-2, -1))
    if not isinstance(rest, jax.core.Tracer) and bool(rest.any()):
        raise ModelError(
            "link.inertia.i must be diagonal, because its axes are the principal ones, those of "
            "link.inertia.transform: give the principal moments, and rotate that transform"
        )
    # Within `jax.jit` and `jax.vmap` the values are unknown: NaN then shows the mistake.
    return jnp.where(rest[..., None], jnp.nan, diagonal)


def _no_quantity(function: str, other: Any) -> ModelError:
    """Return the error for an argument that is no spatial quantity."""
    return ModelError(
        f"Transform.{function} or Motion.{function} cannot take a {type(other).__name__}: give a "
        "brax.base Transform, Motion, Force or Inertia"
    )
