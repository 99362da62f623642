"""The model: one immutable pytree."""

from typing import Any

import jax
import numpy as np

from brax.base import flat
from brax.base.gates import built_in
from brax.base.parts import (
    Actuator,
    Box,
    Camera,
    DoF,
    Equality,
    Geom,
    Joint,
    Keyframe,
    Link,
    Option,
    Pair,
    Sensor,
    Site,
    Tendon,
)
from brax.base.pytree import Base, dataclass, static
from brax.base.quantities import Transform
from brax.errors import ModelError, closest


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
    box: Box
    """Bodies that a medium takes for boxes of their own."""
    joint: Joint
    """Geometry of the joints."""
    dof: DoF
    """Passive properties of the degrees of freedom."""
    geom: Geom
    """Shapes that collide and are drawn."""
    points: jax.Array
    """Points of the geoms that have some, such as a mesh's corners, geom after geom, in the geoms'
    frames [m], shape (n_points, 3)."""
    heights: jax.Array
    """Heights of the geoms that are a grid of them, geom after geom, row after row, over the plane
    z = 0 of the geoms' frames [m], shape (n_heights,)."""
    pair: Pair
    """Pairs of geoms that are given what their contacts are like."""
    site: Site
    """Places on links."""
    tendon: Tendon
    """Tendons."""
    equality: Equality
    """What is tied together."""
    actuator: Actuator
    """Actuators."""
    sensor: Sensor
    """Sensors."""
    camera: Camera
    """Where pictures are taken from."""
    keyframes: Keyframe
    """States that the model names; `keyframe` has one of them."""
    fixed: Transform
    """Frames of the bodies without joints, in the link that carries them, shape (n_fixed, ...)."""
    init_q: jax.Array
    """Coordinates to start at, shape (nq,); the model as it is written unless it says otherwise."""
    ref: jax.Array
    """Coordinates of the joints at rest, shape (nq,): a joint acts by `q - ref`. Zero where the
    coordinates hold a quaternion."""
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
    fixed_names: tuple[str, ...] = static()
    """Name of each body without joints."""
    fixed_link: tuple[int, ...] = static()
    """Link that carries each body without joints, -1 for the world."""
    fixed_mocap: tuple[int, ...] = static()
    """Mocap body that each body without joints is, or is part of; -1 for none."""
    mocap_fixed: tuple[int, ...] = static()
    """The mocap bodies, which the state places, by their number among the bodies without joints."""
    link_mocap: tuple[int, ...] = static()
    """Mocap body that carries each link, -1 for none."""
    box_link: tuple[int, ...] = static()
    """Link that each body which a medium takes for a box of its own is part of: where several
    bodies with mass make up a link, or a medium takes geoms of a link for ellipsoids."""
    joint_names: tuple[str, ...] = static()
    """Name of each joint, in the order of the links."""
    joint_types: tuple[Any, ...] = static()
    """The `brax.joints.JointType` of each joint."""
    joint_link: tuple[int, ...] = static()
    """Link that each joint moves."""
    joint_limited: tuple[bool, ...] = static()
    """Whether each joint has limits."""
    joint_two_sided: tuple[bool, ...] = static()
    """True if both limits of each joint may act at once, which a margin makes possible."""
    joint_dry: tuple[bool, ...] = static()
    """Whether each joint has dry friction."""
    joint_actuator_limited: tuple[bool, ...] = static()
    """Whether each joint bounds the force of its actuators together."""
    geom_names: tuple[str, ...] = static()
    """Name of each geom."""
    geom_types: tuple[Any, ...] = static()
    """The `brax.colliders.GeometryType` of each geom."""
    geom_link: tuple[int, ...] = static()
    """Link that carries each geom, -1 for the world."""
    geom_body: tuple[tuple[str, int], ...] = static()
    """Kind and index of the body that each geom is on: a link, fixed, or the world, -1."""
    geom_mocap: tuple[int, ...] = static()
    """Mocap body that carries each geom, -1 for none."""
    geom_streamed: tuple[bool, ...] = static()
    """True if a medium acts on each geom as an ellipsoid, and so not on its link as a box."""
    geom_points: tuple[int, ...] = static()
    """How many of the points each geom has."""
    geom_grid: tuple[tuple[int, int], ...] = static()
    """Rows and columns of the heights of each geom: rows along y, columns along x, from the least
    to the largest; (0, 0) of one that has none."""
    geom_priority: tuple[int, ...] = static()
    """In a pair of unequal priority the higher geom's friction, `solref` and `solimp` count."""
    collisions: tuple[Any, ...] = static()
    """The `brax.colliders.CollisionGroup`s: which geoms are tested against which, and by what."""
    pair_names: tuple[str, ...] = static()
    """Name of each pair that is given what its contacts are like."""
    pair_uneven: tuple[bool, ...] = static()
    """Whether each of them slides or rolls otherwise along its two tangents."""
    site_names: tuple[str, ...] = static()
    """Name of each site."""
    site_types: tuple[Any, ...] = static()
    """The `brax.colliders.GeometryType` that each site is drawn as."""
    site_link: tuple[int, ...] = static()
    """Link that carries each site, -1 for the world."""
    site_body: tuple[tuple[str, int], ...] = static()
    """Kind and index of the body that each site is on."""
    site_mocap: tuple[int, ...] = static()
    """Mocap body that carries each site, -1 for none."""
    tendon_names: tuple[str, ...] = static()
    """Name of each tendon."""
    tendon_joints: tuple[tuple[int, ...], ...] = static()
    """Joints that each fixed tendon runs over; none of a spatial one."""
    tendon_path: tuple[tuple[tuple[int, int, int, int], ...], ...] = static()
    """The stretches of each spatial tendon; none of a fixed one. From one site to another, around a
    geom or -1, on a side site's side or -1."""
    tendon_limited: tuple[bool, ...] = static()
    """Whether each tendon has limits."""
    tendon_two_sided: tuple[bool, ...] = static()
    """True if both limits of each tendon may act at once, which a margin makes possible."""
    tendon_dry: tuple[bool, ...] = static()
    """Whether each tendon has dry friction."""
    equality_names: tuple[str, ...] = static()
    """Name of each equality."""
    equality_types: tuple[str, ...] = static()
    """What each ties: `connect` a point of two links, `weld` their frames, `joint` or `tendon` two
    coordinates."""
    equality_pair: tuple[tuple[int, int], ...] = static()
    """The two links, joints or tendons; -1 is the world, or nothing beside a joint or tendon."""
    equality_mocap: tuple[tuple[int, int], ...] = static()
    """The mocap bodies that carry what is tied, -1 for none."""
    actuator_names: tuple[str, ...] = static()
    """Name of each actuator."""
    actuator_types: tuple[Any, ...] = static()
    """The `brax.actuators.ActuatorType` of each actuator."""
    actuator_joint: tuple[int, ...] = static()
    """Joint that each actuator drives, -1 if it drives none."""
    actuator_tendon: tuple[int, ...] = static()
    """Tendon that each actuator pulls, -1 if it pulls none."""
    actuator_site: tuple[int, ...] = static()
    """Site that each actuator acts on, -1 if it acts on none."""
    actuator_refsite: tuple[int, ...] = static()
    """Site that each actuator on a site acts against, -1 if against none."""
    actuator_body: tuple[tuple[str, int] | None, ...] = static()
    """Kind and index of the body that each actuator lets adhere to what it touches: a link, fixed,
    or the world, -1; None if it does not."""
    actuator_early: tuple[bool, ...] = static()
    """Whether each actuator's force is that of its activation after the step."""
    sensor_names: tuple[str, ...] = static()
    """Name of each sensor."""
    sensor_types: tuple[Any, ...] = static()
    """The `brax.sensors.SensorType` of each sensor."""
    sensor_object: tuple[tuple[str, int], ...] = static()
    """Kind and index of what each sensor measures."""
    sensor_reference: tuple[tuple[str, int] | None, ...] = static()
    """Kind and index of what each sensor measures in the frame of; None for the world."""
    camera_names: tuple[str, ...] = static()
    """Name of each camera."""
    camera_link: tuple[int, ...] = static()
    """Link that carries each camera, -1 for the world."""
    camera_modes: tuple[str, ...] = static()
    """How each moves, MuJoCo's modes: `fixed` to its link; `track` and `trackcom` beside its link,
    or the centre of mass of all that it carries, never turning; `targetbody` and `targetbodycom`
    fixed to its link, turned towards another link, or the centre of mass of all that it carries."""
    camera_mocap: tuple[int, ...] = static()
    """Mocap body that carries each camera, -1 for none."""
    camera_target: tuple[int, ...] = static()
    """Link that each camera is turned towards, -1 for the world or none."""
    camera_aim: tuple[int, ...] = static()
    """Mocap body that each camera is turned towards, -1 for none."""
    keyframe_names: tuple[str, ...] = static()
    """Name of each keyframe."""
    integrator: Any = static()
    """The `brax.integrators.Integrator` that advances time."""

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

    def keyframe(self, name: str) -> Keyframe:
        """A state that the model names: `q` (nq,), `qd` (nv,), `activation` (na,), `ctrl` (nu,).

        Raises:
            ModelError: if there is none of that name.
        """
        if name not in self.keyframe_names:
            known = ", ".join(self.keyframe_names) or "none"
            hint = closest(name, self.keyframe_names)
            raise ModelError(f"there is no keyframe '{name}'. Keyframes: {known}.{hint}")
        return self.keyframes.take(self.keyframe_names.index(name))

    def stateful_actuators(self) -> tuple[int, ...]:
        """Actuators that have an activation, in the order of `State.activation`."""
        return tuple(i for i, t in enumerate(self.actuator_types) if t.stateful)

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
        if name in flat.NAMES:
            return flat.read(self, name)
        raise AttributeError(f"System has no attribute '{name}'.{closest(name, flat.NAMES)}")

    def replace(self, **changes: Any) -> "System":
        """Returns a copy with fields replaced, by our names or by flat MuJoCo names.

        What a model was built without, such as dry friction, is built in where its numbers are
        replaced, whatever they are: they may be those of a batch.
        """
        new = self
        for name in [n for n in changes if n in flat.NAMES]:
            new = new.tree_replace(flat.paths(self, name, changes.pop(name)))
        return built_in(new, super(System, new).replace(**changes))
