"""The types everything else is written in: `System`, `State` and the spatial quantities.

A `System` is one immutable pytree. What shapes the compiled program (names, parents, joint and
geometry types, collision pairs) is static and hashable; every physical number is a leaf, so any of
them can be batched for domain randomization or differentiated. Conventions: `docs/conventions.md`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from brax import math
from brax.errors import ModelError, closest

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def dataclass(cls: type[T]) -> type[T]:
    """Makes a frozen dataclass that is a pytree; mark what is not a leaf with `static()`."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


def static(**kwargs: Any) -> Any:
    """Declares a field that is part of the tree's structure: hashable, never traced."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


class Base:
    """What all of Brax's pytrees share: replacement, and arithmetic over the leaves."""

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with the named fields replaced.

        Raises:
            ModelError: if there is no field of that name.
        """
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        for name in changes:
            if name not in names:
                raise ModelError(
                    f"{type(self).__name__} has no field '{name}'. "
                    f"Fields: {', '.join(names)}.{closest(name, names)}"
                )
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def tree_replace(self, changes: Mapping[str, Any]) -> Self:
        """Returns a copy with nested fields replaced, named by dotted paths.

        Args:
            changes: for example `{'opt.timestep': 0.005, 'link.inertia.mass': mass}`.
        """
        new = self
        for path, value in changes.items():
            head, _, rest = path.partition(".")
            if rest:
                if not hasattr(new, head):
                    new.replace(**{head: value})  # raises, naming the field
                value = getattr(new, head).tree_replace({rest: value})
            new = new.replace(**{head: value})
        return new

    def __add__(self, other: Self) -> Self:
        """Adds leaf by leaf."""
        return jax.tree.map(lambda x, y: x + y, self, other)

    def __sub__(self, other: Self) -> Self:
        """Subtracts leaf by leaf."""
        return jax.tree.map(lambda x, y: x - y, self, other)

    def __neg__(self) -> Self:
        """Negates every leaf."""
        return jax.tree.map(lambda x: -x, self)

    def __mul__(self, scale: Any) -> Self:
        """Multiplies every leaf by one number or array."""
        return jax.tree.map(lambda x: x * scale, self)

    def __truediv__(self, scale: Any) -> Self:
        """Divides every leaf by one number or array."""
        return jax.tree.map(lambda x: x / scale, self)

    def take(self, indices: Any, axis: int = 0) -> Self:
        """Takes the same entries along one axis of every leaf; an index out of range is NaN."""
        return jax.tree.map(lambda x: jnp.take(x, indices, axis=axis), self)

    def slice(self, begin: int, end: int) -> Self:
        """Slices the leading axis of every leaf."""
        return jax.tree.map(lambda x: x[begin:end], self)

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Reshapes every leaf."""
        return jax.tree.map(lambda x: x.reshape(shape), self)

    def select(self, other: Self, condition: jax.Array) -> Self:
        """Takes this tree's leaves where `condition` holds and `other`'s elsewhere.

        The branch that is not taken never reaches the result, not even as a NaN.
        """

        def pick(x: jax.Array, y: jax.Array) -> jax.Array:
            where = jnp.asarray(condition, bool)
            return jnp.where(where.reshape(where.shape + (1,) * (x.ndim - where.ndim)), x, y)

        return jax.tree.map(pick, self, other)

    def concatenate(self, *others: Self, axis: int = 0) -> Self:
        """Joins this tree and others along one axis, leaf by leaf."""
        return jax.tree.map(lambda *x: jnp.concatenate(x, axis=axis), self, *others)

    @property
    def T(self) -> Self:
        """The tree with every leaf transposed."""
        return jax.tree.map(lambda x: x.T, self)


@dataclass
class Transform(Base):
    """A rigid transform: rotation, then translation."""

    pos: jax.Array
    """Translation [m], shape (..., 3)."""
    rot: jax.Array
    """Unit quaternion (w, x, y, z), shape (..., 4)."""

    @classmethod
    def create(cls, pos: Any = None, rot: Any = None) -> "Transform":
        """Makes a transform; a part that is not given is the identity's."""
        if pos is None and rot is None:
            return cls.zero()
        pos = jnp.zeros((*jnp.shape(rot)[:-1], 3)) if pos is None else jnp.asarray(pos)
        if rot is None:
            rot = jnp.broadcast_to(jnp.array([1.0, 0.0, 0.0, 0.0]), (*pos.shape[:-1], 4))
        return cls(pos, jnp.asarray(rot))

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> "Transform":
        """The identity transform, `shape` times."""
        rot = jnp.broadcast_to(jnp.array([1.0, 0.0, 0.0, 0.0]), (*shape, 4))
        return cls(jnp.zeros((*shape, 3)), rot)

    def do(self, other: "Transform") -> "Transform":
        """Composes: maps `other`, given in this frame, into this frame's parent."""
        pos = self.pos + math.rotate(other.pos, self.rot)
        return Transform(pos, math.quat_mul(self.rot, other.rot))

    def to_local(self, other: "Transform") -> "Transform":
        """Maps `other`, given in this frame's parent, into this frame; undoes `do`."""
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
        """Makes a motion; a part that is not given is zero."""
        like = ang if ang is not None else vel
        zero = jnp.zeros((3,) if like is None else jnp.shape(like))
        return cls(
            zero if ang is None else jnp.asarray(ang), zero if vel is None else jnp.asarray(vel)
        )

    @classmethod
    def zero(cls, shape: tuple[int, ...] = ()) -> "Motion":
        """No motion, `shape` times."""
        return cls(jnp.zeros((*shape, 3)), jnp.zeros((*shape, 3)))

    def matrix(self) -> jax.Array:
        """The six numbers, angular first, shape (..., 6)."""
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
        """Makes a force; a part that is not given is zero."""
        motion = Motion.create(ang, vel)
        return cls(motion.ang, motion.vel)


@dataclass
class Inertia(Base):
    """The mass distribution of each link."""

    transform: Transform
    """Principal frame of inertia in the link frame: centre of mass and principal axes."""
    i: jax.Array
    """Principal moments about the centre of mass [kg m^2], shape (n_links, 3)."""
    mass: jax.Array
    """Mass [kg], shape (n_links,)."""


@dataclass
class Link(Base):
    """Where each link hangs, and what it weighs."""

    transform: Transform
    """Link frame in the parent link's frame when all joints are at zero, shape (n_links, ...)."""
    inertia: Inertia
    """Mass distribution, in the link frame."""


@dataclass
class Joint(Base):
    """The geometry of each joint. A link may carry several, applied in order."""

    pos: jax.Array
    """Anchor in the link frame [m], shape (n_joints, 3)."""
    axis: jax.Array
    """Unit axis in the link frame, shape (n_joints, 3)."""
    user: jax.Array
    """Numbers that a joint type of one's own asks for, shape (n_joints, n_user)."""


@dataclass
class DoF(Base):
    """The passive properties of each degree of freedom."""

    armature: jax.Array
    """Rotor inertia [kg m^2 or kg], shape (nv,)."""
    damping: jax.Array
    """Viscous damping [N m s/rad or N s/m], shape (nv,)."""
    stiffness: jax.Array
    """Spring stiffness [N m/rad or N/m], shape (nv,)."""
    springref: jax.Array
    """Coordinate at which the spring is at rest [rad or m], shape (nv,)."""
    limit: tuple[jax.Array, jax.Array]
    """Lower and upper bound of the coordinate [rad or m], each (nv,); infinite where free."""


@dataclass
class Geom(Base):
    """The shapes that collide and are drawn."""

    transform: Transform
    """Frame in the link's frame, or in the world's for link -1, shape (n_geoms, ...)."""
    size: jax.Array
    """MuJoCo's size parameters of the type [m], shape (n_geoms, 3)."""
    friction: jax.Array
    """Sliding, torsional and rolling friction, shape (n_geoms, 3)."""
    elasticity: jax.Array
    """Coefficient of restitution, shape (n_geoms,)."""
    rgba: jax.Array
    """Colour and opacity in [0, 1], shape (n_geoms, 4)."""


@dataclass
class Actuator(Base):
    """What turns controls into joint forces, by MuJoCo's rule (gain, bias, gear, ranges)."""

    gear: jax.Array
    """Transmission ratio, shape (nu,)."""
    gainprm: jax.Array
    """Gain parameters, shape (nu, 10)."""
    biasprm: jax.Array
    """Bias parameters, shape (nu, 10)."""
    ctrl_range: jax.Array
    """Bounds of the control, infinite where free, shape (nu, 2)."""
    force_range: jax.Array
    """Bounds of the actuator force [N or N m], infinite where free, shape (nu, 2)."""


@dataclass
class Option(Base):
    """Settings of the simulation that are numbers."""

    timestep: jax.Array
    """Physics step [s], shape ()."""
    gravity: jax.Array
    """Gravitational acceleration, world axes [m/s^2], shape (3,)."""


@dataclass
class Contact(Base):
    """Points where two geoms touch or nearly touch; `dist < 0` is penetration."""

    dist: jax.Array
    """Distance between the surfaces [m], shape (n_contacts,)."""
    pos: jax.Array
    """Midpoint between the surfaces, world [m], shape (n_contacts, 3)."""
    frame: jax.Array
    """Rows are the contact axes, the first the normal from geom 1 to geom 2, (n_contacts, 3, 3)."""
    friction: jax.Array
    """Two sliding, one torsional, two rolling coefficients, shape (n_contacts, 5); the last three
    are zero where the pipelines know sliding friction only."""
    elasticity: jax.Array
    """Coefficient of restitution, shape (n_contacts,)."""
    link_idx: tuple[jax.Array, jax.Array]
    """Links of geom 1 and geom 2, -1 for the world, each (n_contacts,)."""


@dataclass
class State(Base):
    """The part of a simulation's state that every pipeline has."""

    q: jax.Array
    """Joint coordinates, as MuJoCo's `qpos`, shape (nq,)."""
    qd: jax.Array
    """Joint velocities, as MuJoCo's `qvel`, shape (nv,)."""
    x: Transform
    """Link frames in the world, shape (n_links, ...)."""
    xd: Motion
    """Velocities of the link frames' origins, world axes, shape (n_links, 3)."""
    contact: Contact | None = None
    """Contacts at `x`, where they were asked for."""


def _rows(table: Any, first: Any, axis: int) -> Any:
    """Puts MuJoCo's world row before the links' rows."""
    first = jnp.asarray(first, table.dtype)
    shape = list(table.shape)
    shape[axis] = 1
    return jnp.concatenate([jnp.broadcast_to(first, shape), table], axis=axis)


def _drop_row(table: Any, axis: int) -> Any:
    """Takes MuJoCo's world row away; leaves what is not an array (an axis, None) alone."""
    if np.ndim(table) < -axis:
        return table
    return jax.lax.slice_in_dim(jnp.asarray(table), 1, None, axis=axis)


_BODY = {
    "body_mass": ("link.inertia.mass", 0.0, -1),
    "body_inertia": ("link.inertia.i", 0.0, -2),
    "body_ipos": ("link.inertia.transform.pos", 0.0, -2),
    "body_iquat": ("link.inertia.transform.rot", (1.0, 0.0, 0.0, 0.0), -2),
    "body_pos": ("link.transform.pos", 0.0, -2),
    "body_quat": ("link.transform.rot", (1.0, 0.0, 0.0, 0.0), -2),
}
"""MuJoCo's per-body names: our path, the world's row, and the axis of the bodies."""

_SAME = {
    "geom_pos": "geom.transform.pos",
    "geom_quat": "geom.transform.rot",
    "geom_size": "geom.size",
    "geom_friction": "geom.friction",
    "geom_rgba": "geom.rgba",
    "elasticity": "geom.elasticity",
    "jnt_pos": "joint.pos",
    "jnt_axis": "joint.axis",
    "dof_armature": "dof.armature",
    "dof_damping": "dof.damping",
    "dof_stiffness": "dof.stiffness",
    "actuator_gear": "actuator.gear",
    "actuator_gainprm": "actuator.gainprm",
    "actuator_biasprm": "actuator.biasprm",
    "actuator_ctrlrange": "actuator.ctrl_range",
    "actuator_forcerange": "actuator.force_range",
    "opt_timestep": "opt.timestep",
    "opt_gravity": "opt.gravity",
    "gravity": "opt.gravity",
    "qpos0": "init_q",
}
"""Flat names whose numbers are stored in the same shape."""


@dataclass
class System(Base):
    """A model: what moves, how it is joined, what touches, what drives it.

    Flat MuJoCo names (`body_mass`, `geom_friction`, `dof_damping`, ...) read and replace the same
    numbers: `sys.body_mass`, `sys.replace(body_mass=...)`, `sys.tree_replace({'body_mass': ...})`.
    Per-body tables have MuJoCo's world row in front; a link is a body that has joints, and bodies
    that have none are part of the link (or the world) that carries them.
    """

    opt: Option
    """Time step and gravity."""
    link: Link
    """Frames and inertias of the links."""
    joint: Joint
    """Geometry of the joints."""
    dof: DoF
    """Passive properties of the degrees of freedom."""
    geom: Geom
    """Shapes that collide and are drawn."""
    actuator: Actuator
    """Actuators."""
    init_q: jax.Array
    """Coordinates of the model as it is written, shape (nq,)."""
    vel_damping: jax.Array
    """Rate of linear velocity [1/s], `exp(vel_damping dt)` a step: negative damps; shape ()."""
    ang_damping: jax.Array
    """Rate of angular velocity [1/s], as `vel_damping`, shape ()."""
    baumgarte_erp: jax.Array
    """Share of a penetration that is taken back in one step, shape ()."""
    link_names: tuple[str, ...] = static()
    """Name of each link, parents before children."""
    link_parents: tuple[int, ...] = static()
    """Parent of each link, -1 for the world."""
    joint_names: tuple[str, ...] = static()
    """Name of each joint, in the order of the links."""
    joint_types: tuple[Any, ...] = static()
    """The `brax.joints.JointType` of each joint."""
    joint_link: tuple[int, ...] = static()
    """Link that each joint moves."""
    joint_limited: tuple[bool, ...] = static()
    """Whether each joint has limits."""
    geom_names: tuple[str, ...] = static()
    """Name of each geom."""
    geom_types: tuple[Any, ...] = static()
    """The `brax.colliders.GeometryType` of each geom."""
    geom_link: tuple[int, ...] = static()
    """Link that carries each geom, -1 for the world."""
    collisions: tuple[Any, ...] = static()
    """The `brax.colliders.CollisionGroup`s: which geoms are tested against which, and by what."""
    actuator_names: tuple[str, ...] = static()
    """Name of each actuator."""
    actuator_types: tuple[Any, ...] = static()
    """The `brax.actuators.ActuatorType` of each actuator."""
    actuator_joint: tuple[int, ...] = static()
    """Joint that each actuator drives."""
    integrator: Any = static()
    """The `brax.integrators.Integrator` that advances time."""

    _flat: ClassVar[tuple[str, ...]] = (*_BODY, *_SAME, "jnt_range", "jnt_stiffness")

    def num_links(self) -> int:
        """Number of links."""
        return len(self.link_names)

    def q_size(self) -> int:
        """Number of coordinates, MuJoCo's nq."""
        return sum(t.q_width for t in self.joint_types)

    def qd_size(self) -> int:
        """Number of degrees of freedom, MuJoCo's nv."""
        return sum(t.qd_width for t in self.joint_types)

    def act_size(self) -> int:
        """Number of actuators, MuJoCo's nu."""
        return len(self.actuator_names)

    @property
    def link_types(self) -> str:
        """One letter a link: 'f' for a free link, else its number of joints."""
        return "".join(
            "f" if [t.qd_width for t in types] == [6] else str(len(types))
            for types in map(self.link_joint_types, range(self.num_links()))
        )

    def link_joints(self, link: int) -> tuple[int, ...]:
        """Joints of one link, in the order they are applied."""
        return tuple(j for j, owner in enumerate(self.joint_link) if owner == link)

    def link_joint_types(self, link: int) -> tuple[Any, ...]:
        """Joint types of one link, in the order they are applied."""
        return tuple(self.joint_types[j] for j in self.link_joints(link))

    def joint_q_start(self) -> tuple[int, ...]:
        """First coordinate of each joint."""
        return tuple(np.cumsum([0] + [t.q_width for t in self.joint_types])[:-1].tolist())

    def joint_qd_start(self) -> tuple[int, ...]:
        """First degree of freedom of each joint."""
        return tuple(np.cumsum([0] + [t.qd_width for t in self.joint_types])[:-1].tolist())

    def dof_link(self) -> tuple[int, ...]:
        """Link that each degree of freedom moves."""
        return tuple(
            link
            for link, t in zip(self.joint_link, self.joint_types, strict=True)
            for _ in range(t.qd_width)
        )

    def dof_joint(self) -> tuple[int, ...]:
        """Joint that each degree of freedom belongs to."""
        return tuple(j for j, t in enumerate(self.joint_types) for _ in range(t.qd_width))

    def __getattr__(self, name: str) -> Any:
        """Reads a flat MuJoCo name."""
        if name in _BODY:
            path, world, axis = _BODY[name]
            return _rows(self._read(path), world, axis)
        if name in _SAME:
            return self._read(_SAME[name])
        if name == "jnt_range":
            first = np.asarray(self.joint_qd_start(), int)
            return jnp.stack([bound[..., first] for bound in self.dof.limit], axis=-1)
        if name == "jnt_stiffness":
            return self.dof.stiffness[..., np.asarray(self.joint_qd_start(), int)]
        raise AttributeError(f"System has no attribute '{name}'.{closest(name, self._flat)}")

    def replace(self, **changes: Any) -> "System":
        """Returns a copy with fields replaced, by our names or by flat MuJoCo names."""
        new = self
        for name in [n for n in changes if n in self._flat]:
            new = new.tree_replace(dict(self._unflatten(name, changes.pop(name))))
        return super(System, new).replace(**changes)

    def _read(self, path: str) -> Any:
        value = self
        for part in path.split("."):
            value = getattr(value, part)
        return value

    def _unflatten(self, name: str, value: Any) -> dict[str, Any]:
        """Our path and value for a flat name's new value."""
        if name in _BODY:
            path, _, axis = _BODY[name]
            return {path: _drop_row(value, axis)}
        if name in _SAME:
            return {_SAME[name]: value}
        joint = np.asarray(self.dof_joint(), int)
        if name == "jnt_stiffness":
            return {"dof.stiffness": value[..., joint] if np.ndim(value) else value}
        limit = (value[..., joint, 0], value[..., joint, 1]) if np.ndim(value) else (value, value)
        return {"dof.limit": limit}
