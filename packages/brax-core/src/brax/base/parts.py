"""The parts of a `System`: tables of links, joints, geoms, actuators and the rest."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax

from brax.base import without_effect
from brax.base.pytree import Base, dataclass, static
from brax.base.quantities import Inertia, Transform
from brax.errors import ModelError

_EULERDAMP = 1 << 15
"""MuJoCo's `mjDSBL_EULERDAMP`, the only one of its disable flags that `Option` has."""

_SOLVERS = (0, 1, 2)
"""MuJoCo's solvers: PGS, CG and Newton."""


@dataclass
class Link(Base):
    """The frame and the inertia of each link."""

    ignored: ClassVar[Mapping[str, str]] = without_effect.LINK

    transform: Transform
    """Link frame in the parent link's frame when all joints are at zero, shape (n_links, ...)."""
    inertia: Inertia
    """Mass distribution, in the link frame, shape (n_links, ...)."""
    invweight: jax.Array
    """Inverse weights, MuJoCo's `body_invweight0`: inverse inertia of the link for translation of
    its centre of mass [1/kg] and for rotation [1/(kg m^2)], in the model at rest, shape (n_links,
    2)."""
    gravcomp: jax.Array
    """Share of the weight that gravity compensation balances, shape (n_links,)."""
    gravcomp_arm: jax.Array
    """Point where the compensating force acts, from the centre of mass, in the link frame [m],
    shape (n_links, 3). It is the mean over the bodies of a link, weighted by mass and share, and
    zero if all have the same share."""


@dataclass
class Box(Base):
    """Bodies that are parts of links and have a box of their own in the fluid's inertia-box model.

    Masses and moments are shares of the link's, so that they follow when those are replaced.
    """

    transform: Transform
    """Principal frame of inertia of each body in its link's frame, shape (n_boxes, ...)."""
    i: jax.Array
    """Principal moments divided by the sum of the link's three, shape (n_boxes, 3)."""
    mass: jax.Array
    """Mass divided by the link's, shape (n_boxes,)."""


@dataclass
class Joint(Base):
    """The geometry of each joint. A link may carry several, applied in order."""

    pos: jax.Array
    """Anchor in the link frame [m], shape (n_joints, 3)."""
    axis: jax.Array
    """Unit axis in the link frame, shape (n_joints, 3)."""
    user: jax.Array
    """Parameters of third-party joint types, shape (n_joints, n_user)."""
    solref: jax.Array
    """Time constant and damping ratio of the limits (MuJoCo's `solreflimit`), (n_joints, 2)."""
    solimp: jax.Array
    """Impedance of the limits (MuJoCo's `solimplimit`), shape (n_joints, 5)."""
    margin: jax.Array
    """Distance from a limit at which its constraint becomes active [rad or m], (n_joints,)."""
    actuator_range: jax.Array
    """Bounds of the total actuator force on the joint [N or N m], infinite where free, shape
    (n_joints, 2)."""


@dataclass
class DoF(Base):
    """The passive properties of each degree of freedom."""

    armature: jax.Array
    """Rotor inertia [kg m^2 or kg], shape (nv,)."""
    damping: jax.Array
    """Viscous damping [N m s/rad or N s/m], shape (nv,)."""
    stiffness: jax.Array
    """Spring stiffness [N m/rad or N/m], shape (nv,)."""
    stiffness_poly: jax.Array
    """Coefficients of the spring's terms of second and third order, shape (nv, 2)."""
    damping_poly: jax.Array
    """Coefficients of the damping's terms of second and third order, shape (nv, 2)."""
    springref: jax.Array
    """Coordinate at which the spring is at rest [rad or m], shape (nv,)."""
    limit: tuple[jax.Array, jax.Array]
    """Lower and upper bound of the coordinate [rad or m], each (nv,); infinite where free. A joint
    whose coordinates are a quaternion repeats the bounds of the total rotation angle."""
    frictionloss: jax.Array
    """Dry friction [N m or N], shape (nv,)."""
    invweight: jax.Array
    """Inverse weight, MuJoCo's `dof_invweight0`: inverse inertia in the model at rest [1/kg or
    1/(kg m^2)], which scales the softness of constraints, shape (nv,)."""
    solref: jax.Array
    """Time constant and damping ratio of the dry friction (`solreffriction`), shape (nv, 2)."""
    solimp: jax.Array
    """Impedance of the dry friction (`solimpfriction`), shape (nv, 5)."""


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
    solref: jax.Array
    """Time constant [s] and damping ratio of contacts, MuJoCo's, shape (n_geoms, 2). Two negative
    numbers are minus a stiffness and minus a damping; see `docs/generalized.md`."""
    solimp: jax.Array
    """Impedance of contacts, MuJoCo's, shape (n_geoms, 5): without violation, at a violation of the
    width, the width [m], midpoint and power of the transition."""
    solmix: jax.Array
    """Weight of this geom's `solref` and `solimp` in a pair, shape (n_geoms,)."""
    margin: jax.Array
    """Distance from which contacts are active [m], shape (n_geoms,). A pair has the sum of two."""
    gap: jax.Array
    """Distance beyond the margin within which only adhesion acts [m], shape (n_geoms,). A pair has
    the sum of two."""
    adhesion: jax.Array
    """Force with which the surface pulls what it touches [N], shape (n_geoms,). A pair has the sum
    of two."""
    surface_velocity: jax.Array
    """Linear [m/s] and angular velocity [rad/s] of the surface about the geom's origin, in its
    frame, as contacts see it, shape (n_geoms, 6)."""
    invweight: jax.Array
    """Inverse weight of the geom's body, MuJoCo's `body_invweight0` for translation [1/kg], which
    scales the softness of contacts, shape (n_geoms,)."""
    fluid: jax.Array
    """Coefficients of the fluid's ellipsoid model, shape (n_geoms, 11). They are MuJoCo's five
    `fluidcoef` (blunt drag, slender drag, angular drag, Kutta lift, Magnus lift), and the added
    mass [m^3] and added inertia [m^5] at density one."""
    rgba: jax.Array
    """Colour and opacity in [0, 1], shape (n_geoms, 4)."""


@dataclass
class Pair(Base):
    """Contact parameters of explicit pairs of geoms, MuJoCo's `<pair>`."""

    friction: jax.Array
    """Sliding friction along the two tangents, torsional friction [m], and rolling friction about
    the two tangents [m], shape (n_pairs, 5)."""
    solref: jax.Array
    """Time constant and damping ratio, MuJoCo's, shape (n_pairs, 2)."""
    solref_friction: jax.Array
    """Time constant and damping ratio of friction under the elliptic cone, MuJoCo's
    `solreffriction`, shape (n_pairs, 2). Zeros mean those of `solref`."""
    solimp: jax.Array
    """Impedance, MuJoCo's, shape (n_pairs, 5)."""
    margin: jax.Array
    """Distance from which contacts are active [m], shape (n_pairs,)."""
    gap: jax.Array
    """Distance beyond the margin within which only adhesion acts [m], shape (n_pairs,)."""
    adhesion: jax.Array
    """Force with which the two pull at each other [N], shape (n_pairs,)."""


@dataclass
class Site(Base):
    """Sites: frames on links where sensors measure and actuators act."""

    transform: Transform
    """Frame in the link's frame, or in the world's for link -1, shape (n_sites, ...)."""
    size: jax.Array
    """MuJoCo's size parameters of the shape that it is drawn as [m], shape (n_sites, 3)."""


@dataclass
class Tendon(Base):
    """Tendons, fixed and spatial.

    The length of a fixed tendon is a weighted sum of joint coordinates. That of a spatial tendon is
    the length of a path over sites and around geoms. Units are those of a spatial tendon. The
    length of a fixed one has the unit of its coefficients times rad or m, and the other units
    follow from that.
    """

    coef: jax.Array
    """Coefficient of each joint of the fixed tendons, one tendon after another, shape (joints of
    all tendons,)."""
    share: jax.Array
    """Weight of each segment of the spatial tendons' paths, one over its pulley's divisor, one
    tendon after another, shape (segments of all tendons,)."""
    length0: jax.Array
    """Length in the model at rest [m], MuJoCo's `tendon_length0`, shape (n_tendons,)."""
    stiffness: jax.Array
    """Stiffness of the spring along the tendon [N/m], shape (n_tendons,)."""
    damping: jax.Array
    """Damping along the tendon [N s/m], shape (n_tendons,)."""
    stiffness_poly: jax.Array
    """Coefficients of the spring's terms of second and third order, shape (n_tendons, 2)."""
    damping_poly: jax.Array
    """Coefficients of the damping's terms of second and third order, shape (n_tendons, 2)."""
    armature: jax.Array
    """Inertia of changes of the length, such as of a rotor [kg], shape (n_tendons,)."""
    lengthspring: jax.Array
    """Shortest and longest length at which the spring is at rest [m], shape (n_tendons, 2)."""
    limit: tuple[jax.Array, jax.Array]
    """Lower and upper bound of the length [m], each (n_tendons,); infinite where free."""
    margin: jax.Array
    """Distance from a bound at which its constraint becomes active [m], shape (n_tendons,)."""
    solref_limit: jax.Array
    """Time constant and damping ratio of the bounds (MuJoCo's `solreflimit`), (n_tendons, 2)."""
    solimp_limit: jax.Array
    """Impedance of the bounds (MuJoCo's `solimplimit`), shape (n_tendons, 5)."""
    actuator_range: jax.Array
    """Bounds of the total force of the tendon's actuators [N], before their gears, infinite where
    free, shape (n_tendons, 2)."""
    frictionloss: jax.Array
    """Dry friction along the tendon [N], shape (n_tendons,)."""
    solref_friction: jax.Array
    """Time constant and damping ratio of the dry friction, shape (n_tendons, 2)."""
    solimp_friction: jax.Array
    """Impedance of the dry friction, shape (n_tendons, 5)."""
    invweight: jax.Array
    """Inverse weight, MuJoCo's `tendon_invweight0`: inverse inertia along the tendon in the model
    at rest, which scales the softness of constraints, shape (n_tendons,)."""


@dataclass
class Equality(Base):
    """Equality constraints between two links, joints or tendons."""

    data: jax.Array
    """MuJoCo's numbers of the type, shape (n_equalities, 11). `connect`: the anchor in the first
    link's frame and in the second's [m]. `weld`: the anchor in the second link's frame and in the
    first's [m], the second's orientation in the first's, and the weight of rotation relative to
    translation (`torquescale`) [m], where zero means no rotation. `joint`, `tendon`: the five
    coefficients of a polynomial."""
    solref: jax.Array
    """Time constant and damping ratio, MuJoCo's, shape (n_equalities, 2)."""
    solimp: jax.Array
    """Impedance, MuJoCo's, shape (n_equalities, 5)."""
    invweight: jax.Array
    """Inverse weights for translation and rotation in the model at rest, summed over both sides,
    which scale the softness, shape (n_equalities, 2)."""


@dataclass
class Actuator(Base):
    """Actuators, which turn controls into forces on joints, tendons and sites.

    The parameters are MuJoCo's: gain, bias, activation dynamics, gear and ranges.
    """

    gear: jax.Array
    """Transmission ratio, shape (nu,)."""
    wrench: jax.Array
    """Direction of actuators on sites, ball and free joints: force and torque per unit of scalar
    force times gear, shape (nu, 6). On sites they are in the axes of the site, or of the reference
    site. On joints the force is in the world's axes, and the torque in those of the link, or of the
    frame before the joint."""
    crank_length: jax.Array
    """Length of the rod of slider-cranks [m], shape (nu,)."""
    gainprm: jax.Array
    """Gain parameters, shape (nu, 10)."""
    biasprm: jax.Array
    """Bias parameters, shape (nu, 10)."""
    dynprm: jax.Array
    """Parameters of the activation dynamics, shape (nu, 10)."""
    length_range: jax.Array
    """Smallest and largest possible length of the actuator, for muscles [rad or m, times the gear],
    shape (nu, 2)."""
    ctrl_range: jax.Array
    """Bounds of the control, infinite where free, shape (nu, 2)."""
    activation_range: jax.Array
    """Bounds of the activation, infinite where free, shape (nu, 2)."""
    force_range: jax.Array
    """Bounds of the actuator force [N or N m], infinite where free, shape (nu, 2)."""


@dataclass
class Sensor(Base):
    """Sensors."""

    cutoff: jax.Array
    """Bound of the absolute values of each sensor, infinite if it has none, shape (n_sensors,)."""


@dataclass
class Camera(Base):
    """Cameras. A camera looks along its -z axis, and its y axis is up in the image."""

    transform: Transform
    """Frame in the link's frame, shape (n_cameras, ...)."""
    fovy: jax.Array
    """Vertical field of view [degrees], shape (n_cameras,)."""


@dataclass
class Keyframe(Base):
    """Keyframes: named states to start from."""

    q: jax.Array
    """Coordinates of each [rad or m], shape (n_keyframes, nq)."""
    qd: jax.Array
    """Velocities of each [rad/s or m/s], shape (n_keyframes, nv)."""
    activation: jax.Array
    """Activations of each, shape (n_keyframes, na)."""
    ctrl: jax.Array
    """Controls of each, shape (n_keyframes, nu)."""


@dataclass
class Option(Base):
    """Settings of the simulation."""

    timestep: jax.Array
    """Physics step [s], shape ()."""
    gravity: jax.Array
    """Gravitational acceleration, world axes [m/s^2], shape (3,)."""
    wind: jax.Array
    """Velocity of the fluid, world axes [m/s], shape (3,)."""
    density: jax.Array
    """Density of the fluid [kg/m^3], shape ()."""
    viscosity: jax.Array
    """Dynamic viscosity of the fluid [N s/m^2], shape ()."""
    impratio: jax.Array
    """Ratio of frictional to normal impedance of contacts under the elliptic cone, shape ()."""
    cone: str = static()
    """Friction cone, 'pyramidal' or 'elliptic'."""
    iterations: int = static()
    """Largest number of iterations of the constraint solver of `generalized`."""
    ls_iterations: int = static()
    """Largest number of iterations of that solver's line search."""
    sweeps: int = static()
    """Passes over contacts and limits in `spring` and `positional`. More passes carry an impact
    through more bodies, and support heavier bodies on light ones."""
    max_geom_pairs: int = static()
    """Number of pairs of geoms that each collider tests at a state, of those that may be within
    their margins. 0 means all; in models with more than 1000 possible contact points 64, or 6 for
    each tree if that is more."""
    max_contact_points: int = static()
    """Number of contacts of each dimension that act at once. 0 means all; in models with more than
    1000 possible contact points 128, or 12 for each tree if that is more."""
    time_of_impact: bool = static()
    """True if `spring` resolves impacts at their time within a step, which makes the derivatives of
    bounces right. `positional` always does."""
    eulerdamp: bool = static()
    """True if the integrator `euler` of `generalized` is implicit in the damping of joints, as
    MuJoCo's is unless a model disables it. `spring` and `positional` always are."""
    enable_fluid: bool = static()
    """True if the fluid exerts forces, that is, if it has density or viscosity."""
    enable_gravcomp: bool = static()
    """True if the model compensates the weight of any body."""

    @property
    def disableflags(self) -> int:
        """MuJoCo's flags of what is disabled: `mjDSBL_EULERDAMP`, or 0."""
        return 0 if self.eulerdamp else _EULERDAMP

    def replace(self, **changes: Any) -> Self:
        """Return a copy with fields replaced, by our names or by two of MuJoCo's.

        `disableflags` sets `eulerdamp`. `solver` has no effect: MuJoCo's solvers and ours find the
        optimum of the same problem, which is unique.

        Raises:
            ModelError: if there is no such field, solver or flag.
        """
        if "solver" in changes and int(solver := changes.pop("solver")) not in _SOLVERS:
            raise ModelError(f"opt.solver must be 0 (PGS), 1 (CG) or 2 (Newton), got {solver!r}")
        if "disableflags" in changes:
            flags = int(changes.pop("disableflags"))
            if flags & ~_EULERDAMP:
                raise ModelError(
                    f"opt.disableflags={flags} has flags other than mjDSBL_EULERDAMP "
                    f"({_EULERDAMP}): disable the others by <flag> in the model file"
                )
            changes["eulerdamp"] = not flags
        return super().replace(**changes)
