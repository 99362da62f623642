"""The model: `System`, one immutable pytree."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import numpy as np

from brax.base import flat, without_effect
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
from brax.base.pytree import Base, dataclass, shown, static
from brax.base.quantities import Transform
from brax.errors import ModelError, closest


@dataclass
class System(Base):
    """A model: links, joints, geoms, actuators, sensors and options.

    A link is a body with joints. A body without joints is part of the link, or of the world, that
    carries it.

    MuJoCo's flat names (`body_mass`, `geom_friction`, `dof_damping`, ...) read and replace the same
    numbers: `sys.body_mass`, `sys.replace(body_mass=...)`, `sys.tree_replace({'body_mass': ...})`.
    Tables of bodies by these names begin with the world's row, as in MuJoCo. MuJoCo's counts
    (`nq`, `nv`, `nu`, `nbody`, ...) can be read too.
    """

    ignored: ClassVar[Mapping[str, str]] = without_effect.SYSTEM

    opt: Option
    """Settings of the simulation, such as time step and gravity."""
    link: Link
    """Frames and inertias of the links."""
    box: Box
    """Bodies with a box of their own in the fluid's inertia-box model."""
    joint: Joint
    """Geometry of the joints."""
    dof: DoF
    """Passive properties of the degrees of freedom."""
    geom: Geom
    """Shapes that collide and are drawn."""
    points: jax.Array
    """Vertices of the geoms that have them, such as meshes, one geom after another, in the geoms'
    frames [m], shape (n_points, 3)."""
    heights: jax.Array
    """Heights of the height fields over the plane z = 0 of the geoms' frames [m], one geom after
    another, row after row, shape (n_heights,)."""
    pair: Pair
    """Explicit pairs of geoms, with contact parameters of their own."""
    site: Site
    """Sites: named frames on links."""
    tendon: Tendon
    """Tendons."""
    equality: Equality
    """Equality constraints."""
    actuator: Actuator
    """Actuators."""
    sensor: Sensor
    """Sensors."""
    camera: Camera
    """Cameras."""
    keyframes: Keyframe
    """Keyframes: named states. The method `keyframe` returns one of them."""
    fixed: Transform
    """Frames of the bodies without joints, in the frame of the link that carries them, shape
    (n_fixed, ...)."""
    init_q: jax.Array
    """Coordinates to start at [rad or m], shape (nq,); MuJoCo's `qpos0` unless the model says
    otherwise."""
    ref: jax.Array
    """Reference coordinates [rad or m], in which the links are as the model file places them, shape
    (nq,). A joint moves its link by `q - ref`. Zero where the coordinates are those of a
    quaternion."""
    vel_damping: jax.Array
    """Growth rate of linear velocities [1/s], shape (). A step multiplies them by
    `exp(vel_damping dt)`, so that negative numbers damp."""
    ang_damping: jax.Array
    """Growth rate of angular velocities [1/s], as `vel_damping`, shape ()."""
    baumgarte_erp: jax.Array
    """Share of a penetration by which one step of `spring` pushes bodies apart (error reduction
    parameter), shape (). The other pipelines do not read it."""
    link_names: tuple[str, ...] = static()
    """Name of each link, parents before children."""
    link_parents: tuple[int, ...] = static()
    """Parent of each link, -1 for the world."""
    fixed_names: tuple[str, ...] = static()
    """Name of each body without joints."""
    fixed_link: tuple[int, ...] = static()
    """Link that carries each body without joints, -1 for the world."""
    fixed_mocap: tuple[int, ...] = static()
    """Mocap body that each body without joints is or is part of, -1 for none."""
    mocap_fixed: tuple[int, ...] = static()
    """Index of each mocap body among the bodies without joints."""
    link_mocap: tuple[int, ...] = static()
    """Mocap body that carries each link, -1 for none."""
    box_link: tuple[int, ...] = static()
    """Link of each body in `box`. Such bodies exist where several bodies with mass make up a link,
    or where the ellipsoid model applies to geoms of a link."""
    joint_names: tuple[str, ...] = static()
    """Name of each joint, in the order of the links."""
    joint_types: tuple[Any, ...] = static()
    """The `brax.joints.JointType` of each joint."""
    joint_link: tuple[int, ...] = static()
    """Link that each joint moves."""
    joint_limited: tuple[bool, ...] = static()
    """True for joints that have limits."""
    joint_polynomial: tuple[bool, ...] = static()
    """True for joints whose spring or damping is a polynomial."""
    joint_two_sided: tuple[bool, ...] = static()
    """True for joints whose two limits may act at once, which a margin makes possible."""
    joint_dry: tuple[bool, ...] = static()
    """True for joints that have dry friction."""
    joint_actuator_limited: tuple[bool, ...] = static()
    """True for joints that bound the total force of their actuators."""
    joint_actuator_gravcomp: tuple[bool, ...] = static()
    """True for joints whose gravity compensation is a force of their actuators: their bounds apply
    to it, and their sensors measure it."""
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
    """True for geoms in the fluid's ellipsoid model, in place of their links."""
    geom_adhesive: tuple[bool, ...] = static()
    """True for geoms whose surface pulls what it touches."""
    geom_moving: tuple[bool, ...] = static()
    """True for geoms whose surface moves along them, such as conveyor belts."""
    geom_points: tuple[int, ...] = static()
    """Number of vertices of each geom in `points`."""
    geom_grid: tuple[tuple[int, int], ...] = static()
    """Rows and columns of each geom in `heights`, (0, 0) for geoms without heights. Rows are along
    y and columns along x, both ascending."""
    geom_priority: tuple[int, ...] = static()
    """Priority of each geom. In a pair of unequal priority only the friction, `solref` and `solimp`
    of the geom with the higher one count."""
    collisions: tuple[Any, ...] = static()
    """The `brax.colliders.CollisionGroup`s: all geom pairs that may collide, by collider."""
    pair_names: tuple[str, ...] = static()
    """Name of each explicit pair."""
    pair_uneven: tuple[bool, ...] = static()
    """True for explicit pairs with anisotropic friction."""
    pair_adhesive: tuple[bool, ...] = static()
    """True for explicit pairs that pull at each other."""
    pair_damped: tuple[bool, ...] = static()
    """True for explicit pairs with a `solref` of their own for friction."""
    site_names: tuple[str, ...] = static()
    """Name of each site."""
    site_types: tuple[Any, ...] = static()
    """The `brax.colliders.GeometryType` as which each site is drawn."""
    site_link: tuple[int, ...] = static()
    """Link that carries each site, -1 for the world."""
    site_body: tuple[tuple[str, int], ...] = static()
    """Kind and index of the body that each site is on."""
    site_mocap: tuple[int, ...] = static()
    """Mocap body that carries each site, -1 for none."""
    tendon_names: tuple[str, ...] = static()
    """Name of each tendon."""
    tendon_joints: tuple[tuple[int, ...], ...] = static()
    """Joints of each fixed tendon; empty for a spatial one."""
    tendon_path: tuple[tuple[tuple[int, int, int, int], ...], ...] = static()
    """Segments of each spatial tendon; empty for a fixed one. A segment is the indices of its first
    site, its second site, the geom that it wraps around and the side site, the last two -1 if there
    are none."""
    tendon_limited: tuple[bool, ...] = static()
    """True for tendons that have limits."""
    tendon_two_sided: tuple[bool, ...] = static()
    """True for tendons whose two limits may act at once, which a margin makes possible."""
    tendon_dry: tuple[bool, ...] = static()
    """True for tendons that have dry friction."""
    tendon_polynomial: tuple[bool, ...] = static()
    """True for tendons whose spring or damping is a polynomial."""
    tendon_rotor: tuple[bool, ...] = static()
    """True for tendons that have armature."""
    tendon_actuator_limited: tuple[bool, ...] = static()
    """True for tendons that bound the total force of their actuators."""
    equality_names: tuple[str, ...] = static()
    """Name of each equality constraint."""
    equality_types: tuple[str, ...] = static()
    """Type of each equality constraint: `connect` (a point of two links), `weld` (their frames),
    `joint` or `tendon` (two coordinates)."""
    equality_pair: tuple[tuple[int, int], ...] = static()
    """The two links, joints or tendons; -1 is the world, or no second joint or tendon."""
    equality_mocap: tuple[tuple[int, int], ...] = static()
    """The mocap bodies that carry the two sides, -1 for none."""
    actuator_names: tuple[str, ...] = static()
    """Name of each actuator."""
    actuator_types: tuple[Any, ...] = static()
    """The `brax.actuators.ActuatorType` of each actuator."""
    actuator_joint: tuple[int, ...] = static()
    """Joint that each actuator drives, -1 if it drives none."""
    actuator_in_parent: tuple[bool, ...] = static()
    """True for actuators on ball and free joints whose torque is along axes of the frame before the
    joint (`jointinparent`), not of the link."""
    actuator_tendon: tuple[int, ...] = static()
    """Tendon that each actuator pulls, -1 if it pulls none."""
    actuator_site: tuple[int, ...] = static()
    """Site that each actuator acts on, -1 if it acts on none."""
    actuator_refsite: tuple[int, ...] = static()
    """Site that each actuator on a site acts against, -1 if against none. For a slider-crank, the
    site along whose z axis the slider moves."""
    actuator_crank: tuple[bool, ...] = static()
    """True for actuators that move a slider by a crank at their site."""
    actuator_body: tuple[tuple[str, int] | None, ...] = static()
    """Kind and index of the body of each adhesion actuator: a link, fixed, or the world, -1; None
    for other actuators."""
    actuator_early: tuple[bool, ...] = static()
    """True for actuators whose force is that of their activation after the step (`actearly`)."""
    sensor_names: tuple[str, ...] = static()
    """Name of each sensor."""
    sensor_types: tuple[Any, ...] = static()
    """The `brax.sensors.SensorType` of each sensor."""
    sensor_object: tuple[tuple[str, int], ...] = static()
    """Kind and index of the object that each sensor measures."""
    sensor_reference: tuple[tuple[str, int] | None, ...] = static()
    """Kind and index of the object in whose frame each sensor measures; None for the world."""
    camera_names: tuple[str, ...] = static()
    """Name of each camera."""
    camera_link: tuple[int, ...] = static()
    """Link that carries each camera, -1 for the world."""
    camera_modes: tuple[str, ...] = static()
    """MuJoCo's mode of each camera. `fixed`: moves with its link. `track` and `trackcom`: follow
    the position of the link, or of its subtree's centre of mass, without rotating. `targetbody` and
    `targetbodycom`: move with the link, and rotate towards another link, or towards its subtree's
    centre of mass."""
    camera_mocap: tuple[int, ...] = static()
    """Mocap body that carries each camera, -1 for none."""
    camera_target: tuple[int, ...] = static()
    """Link that each camera rotates towards, -1 for the world or none."""
    camera_aim: tuple[int, ...] = static()
    """Mocap body that each camera rotates towards, -1 for none."""
    keyframe_names: tuple[str, ...] = static()
    """Name of each keyframe."""
    integrator: Any = static()
    """The `brax.integrators.Integrator` that advances time."""
    file_model: Any = static(default=None)
    """MuJoCo's compiled model of the file that the system came from, a `brax.mjx.FileModel`, which
    the pipeline `mjx` steps; None for other systems."""

    def __repr__(self) -> str:
        """Return sizes and the time step on one line. The arrays would fill pages."""
        counts = {
            "links": self.num_links(),
            "joints": len(self.joint_names),
            "degrees of freedom": self.qd_size(),
            "actuators": self.act_size(),
            "geoms": len(self.geom_names),
            "sensors": len(self.sensor_names),
        }
        name = f"{self.file_model.name!r}, " if getattr(self.file_model, "name", "") else ""
        sizes = ", ".join(f"{count} {what}" for what, count in counts.items())
        # An array of one number is printed as that number, and others, as in a batch, by shape.
        return f"System({name}{sizes}, timestep {shown(self.opt.timestep)})"

    @property
    def mj_model(self) -> Any:
        """MuJoCo's compiled model of the file that the system came from, a `mujoco.MjModel`.

        It holds the numbers of the file: what was replaced in the system is not replaced in it.

        Raises:
            ModelError: if the system did not come from a file.
        """
        if self.file_model is None:
            raise ModelError(
                "mj_model: the system did not come from a file of MuJoCo's; "
                "brax.mjx.mujoco_model(sys) makes MuJoCo's model of it"
            )
        return self.file_model.model

    def num_links(self) -> int:
        """Return the number of links."""
        return len(self.link_names)

    def q_size(self) -> int:
        """Return the number of coordinates, MuJoCo's nq."""
        return sum(t.q_width for t in self.joint_types)

    def qd_size(self) -> int:
        """Return the number of degrees of freedom, MuJoCo's nv."""
        return sum(t.qd_width for t in self.joint_types)

    def act_size(self) -> int:
        """Return the number of actuators, MuJoCo's nu."""
        return len(self.actuator_names)

    def keyframe(self, name: str) -> Keyframe:
        """Return a keyframe: `q` (nq,), `qd` (nv,), `activation` (na,) and `ctrl` (nu,).

        Args:
            name: name of the keyframe.

        Raises:
            ModelError: if the model has no keyframe of that name.
        """
        if name not in self.keyframe_names:
            known = ", ".join(self.keyframe_names) or "none"
            hint = closest(name, self.keyframe_names)
            raise ModelError(f"there is no keyframe '{name}'. Keyframes: {known}.{hint}")
        return self.keyframes.take(self.keyframe_names.index(name))

    def stateful_actuators(self) -> tuple[int, ...]:
        """Return the actuators that have an activation, in the order of `State.activation`."""
        return tuple(i for i, t in enumerate(self.actuator_types) if t.stateful)

    @property
    def link_types(self) -> str:
        """One letter for each link: 'f' for a free joint, else the number of its joints."""
        return "".join(
            "f" if [t.qd_width for t in types] == [6] else str(len(types))
            for types in map(self.link_joint_types, range(self.num_links()))
        )

    def link_joints(self, link: int) -> tuple[int, ...]:
        """Return the joints of one link, in the order in which they are applied."""
        return tuple(j for j, owner in enumerate(self.joint_link) if owner == link)

    def link_joint_types(self, link: int) -> tuple[Any, ...]:
        """Return the joint types of one link, in the order in which they are applied."""
        return tuple(self.joint_types[j] for j in self.link_joints(link))

    def joint_q_start(self) -> tuple[int, ...]:
        """Return the first coordinate of each joint."""
        return tuple(np.cumsum([0] + [t.q_width for t in self.joint_types])[:-1].tolist())

    def joint_qd_start(self) -> tuple[int, ...]:
        """Return the first degree of freedom of each joint."""
        return tuple(np.cumsum([0] + [t.qd_width for t in self.joint_types])[:-1].tolist())

    def dof_link(self) -> tuple[int, ...]:
        """Return the link that each degree of freedom moves."""
        return tuple(
            link
            for link, t in zip(self.joint_link, self.joint_types, strict=True)
            for _ in range(t.qd_width)
        )

    def dof_joint(self) -> tuple[int, ...]:
        """Return the joint that each degree of freedom belongs to."""
        return tuple(j for j, t in enumerate(self.joint_types) for _ in range(t.qd_width))

    def __getattr__(self, name: str) -> Any:
        """Return the numbers, or the count, of a flat MuJoCo name."""
        if name in flat.NAMES:
            return flat.read(self, name)
        if name in flat.COUNTS:
            return flat.COUNTS[name](self)
        if name in without_effect.ZERO:
            return 0.0
        known = (*flat.NAMES, *flat.COUNTS)
        raise AttributeError(f"System has no attribute '{name}'.{closest(name, known)}")

    def replace(self, **changes: object) -> "System":
        """Return a copy with fields replaced, by our names or by flat MuJoCo names.

        A feature that the model was built without, such as dry friction, is activated if its
        numbers are replaced, whatever their values are.
        """
        new = self
        for name in [n for n in changes if n in flat.NAMES]:
            new = new.tree_replace(flat.paths(self, name, changes.pop(name)))
        return built_in(new, super(System, new).replace(**changes))
