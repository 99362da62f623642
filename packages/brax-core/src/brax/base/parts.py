"""What a `System` is made of."""

import jax

from brax.base.pytree import Base, dataclass, static
from brax.base.quantities import Transform


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
    invweight: jax.Array
    """How easily the centre of mass moves [1/kg] and the link turns [1/(kg m^2)] in the model at
    rest, as built (MuJoCo's `body_invweight0`), (n_links, 2)."""
    gravcomp: jax.Array
    """Share of the weight that is compensated, shape (n_links,)."""
    gravcomp_arm: jax.Array
    """Mean distance of what is compensated from the centre of mass, weighted by mass and share
    over the parts of a link, link frame [m], (n_links, 3); zero where all parts have one share."""


@dataclass
class Box(Base):
    """Bodies that are parts of links, and that a medium takes for boxes of their own.

    Masses and moments are shares of the link's, so that they follow where those are replaced.
    """

    transform: Transform
    """Principal frame of inertia of each body in its link's frame, shape (n_boxes, ...)."""
    i: jax.Array
    """Principal moments over the sum of the link's three, shape (n_boxes, 3)."""
    mass: jax.Array
    """Mass over the link's, shape (n_boxes,)."""


@dataclass
class Joint(Base):
    """The geometry of each joint. A link may carry several, applied in order."""

    pos: jax.Array
    """Anchor in the link frame [m], shape (n_joints, 3)."""
    axis: jax.Array
    """Unit axis in the link frame, shape (n_joints, 3)."""
    user: jax.Array
    """Numbers that a joint type of one's own asks for, shape (n_joints, n_user)."""
    solref: jax.Array
    """Time constant and damping ratio of the limits (MuJoCo's `solreflimit`), (n_joints, 2)."""
    solimp: jax.Array
    """Impedance of the limits (MuJoCo's `solimplimit`), shape (n_joints, 5)."""
    margin: jax.Array
    """Distance from a limit at which it begins to act [rad or m], shape (n_joints,)."""
    actuator_range: jax.Array
    """Bounds of the force of all actuators together [N or N m], infinite where free, shape
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
    springref: jax.Array
    """Coordinate at which the spring is at rest [rad or m], shape (nv,)."""
    limit: tuple[jax.Array, jax.Array]
    """Lower and upper bound of the coordinate [rad or m], each (nv,); infinite where free. Where
    the coordinates are a quaternion, the bounds of the whole angle, repeated."""
    frictionloss: jax.Array
    """Dry friction [N m or N], shape (nv,)."""
    invweight: jax.Array
    """How easily each moves in the model at rest, as built (MuJoCo's `dof_invweight0`): the scale
    of its constraints' softness [1/kg or 1/(kg m^2)], shape (nv,)."""
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
    """Time constant and damping ratio of contacts, MuJoCo's, shape (n_geoms, 2)."""
    solimp: jax.Array
    """Impedance of contacts, MuJoCo's, shape (n_geoms, 5)."""
    solmix: jax.Array
    """Weight of this geom's `solref` and `solimp` in a pair, shape (n_geoms,)."""
    margin: jax.Array
    """Distance at which contacts begin to act [m]; a pair's is the sum; shape (n_geoms,)."""
    gap: jax.Array
    """How much farther adhesion reaches than the margin [m]; a pair's is the sum; (n_geoms,)."""
    invweight: jax.Array
    """How easily the centre of mass of each one's body moves [1/kg] in the model at rest, as built
    (MuJoCo's `body_invweight0` of that body): the scale of contacts' softness, (n_geoms,)."""
    fluid: jax.Array
    """What a medium does to it as an ellipsoid: MuJoCo's five `fluidcoef` (blunt drag, slender
    drag, angular drag, Kutta lift, Magnus lift), and the mass [m^3] and inertia [m^5] that it takes
    along at density one, shape (n_geoms, 11)."""
    rgba: jax.Array
    """Colour and opacity in [0, 1], shape (n_geoms, 4)."""


@dataclass
class Pair(Base):
    """What the contacts of some pairs of geoms are like, where it is not mixed from the two's."""

    friction: jax.Array
    """Friction of sliding along the two tangents, of twisting, and of rolling about the two, shape
    (n_pairs, 5)."""
    solref: jax.Array
    """Time constant and damping ratio, MuJoCo's, shape (n_pairs, 2)."""
    solimp: jax.Array
    """Impedance, MuJoCo's, shape (n_pairs, 5)."""
    margin: jax.Array
    """Distance at which contacts begin to act [m], shape (n_pairs,)."""
    gap: jax.Array
    """How much farther adhesion reaches than the margin [m], shape (n_pairs,)."""


@dataclass
class Site(Base):
    """Places on links, where sensors measure and actuators act."""

    transform: Transform
    """Frame in the link's frame, or in the world's for link -1, shape (n_sites, ...)."""
    size: jax.Array
    """MuJoCo's size parameters of the shape that it is drawn as [m], shape (n_sites, 3)."""


@dataclass
class Tendon(Base):
    """Tendons: fixed ones as long as a weighted sum of joint coordinates, and spatial ones, as long
    as a path over sites and around geoms."""

    coef: jax.Array
    """Weight of each joint, fixed tendon by fixed tendon, shape (joints of all tendons,)."""
    share: jax.Array
    """How much each stretch of a path counts: one over its pulley's divisor, spatial tendon by
    spatial tendon, shape (stretches of all tendons,)."""
    length0: jax.Array
    """Length in the model at rest, as built (MuJoCo's `tendon_length0`), shape (n_tendons,)."""
    stiffness: jax.Array
    """Stiffness of the spring along it, shape (n_tendons,)."""
    damping: jax.Array
    """Damping along it, shape (n_tendons,)."""
    lengthspring: jax.Array
    """Shortest and longest length at which the spring is at rest, shape (n_tendons, 2)."""
    limit: tuple[jax.Array, jax.Array]
    """Lower and upper bound of the length, each (n_tendons,); infinite where free."""
    margin: jax.Array
    """Distance from a bound at which it begins to act, shape (n_tendons,)."""
    solref_limit: jax.Array
    """Time constant and damping ratio of the bounds (MuJoCo's `solreflimit`), (n_tendons, 2)."""
    solimp_limit: jax.Array
    """Impedance of the bounds (MuJoCo's `solimplimit`), shape (n_tendons, 5)."""
    frictionloss: jax.Array
    """Dry friction along it, shape (n_tendons,)."""
    solref_friction: jax.Array
    """Time constant and damping ratio of the dry friction, shape (n_tendons, 2)."""
    solimp_friction: jax.Array
    """Impedance of the dry friction, shape (n_tendons, 5)."""
    invweight: jax.Array
    """How easily each changes its length in the model at rest, as built (MuJoCo's
    `tendon_invweight0`): the scale of its constraints' softness, shape (n_tendons,)."""


@dataclass
class Equality(Base):
    """What ties two links, joints or tendons to one another."""

    data: jax.Array
    """MuJoCo's numbers of the type, shape (n_equalities, 11). `connect`: the point in the first
    link's frame and in the second's [m]. `weld`: the point in the second link's frame and in the
    first's, the second's orientation in the first's, and how much a turn counts beside a shift
    [m], nothing at zero. `joint`, `tendon`: the five coefficients of a polynomial."""
    solref: jax.Array
    """Time constant and damping ratio, MuJoCo's, shape (n_equalities, 2)."""
    solimp: jax.Array
    """Impedance, MuJoCo's, shape (n_equalities, 5)."""
    invweight: jax.Array
    """How easily what is tied moves, and turns, in the model at rest, as built, summed over both:
    the scale of softness, shape (n_equalities, 2)."""


@dataclass
class Actuator(Base):
    """What turns controls into forces on joints, tendons and sites, by MuJoCo's rule (gain, bias,
    gear, ranges)."""

    gear: jax.Array
    """Transmission ratio, shape (nu,)."""
    wrench: jax.Array
    """Of those on sites: force and torque per unit of force times gear, in the axes of the site, or
    of the reference site, shape (nu, 6)."""
    gainprm: jax.Array
    """Gain parameters, shape (nu, 10)."""
    biasprm: jax.Array
    """Bias parameters, shape (nu, 10)."""
    dynprm: jax.Array
    """Parameters of the activations' dynamics, shape (nu, 10)."""
    length_range: jax.Array
    """Smallest and largest length that each can have, for muscles, shape (nu, 2)."""
    ctrl_range: jax.Array
    """Bounds of the control, infinite where free, shape (nu, 2)."""
    activation_range: jax.Array
    """Bounds of the activation, infinite where free, shape (nu, 2)."""
    force_range: jax.Array
    """Bounds of the actuator force [N or N m], infinite where free, shape (nu, 2)."""


@dataclass
class Sensor(Base):
    """What is measured."""

    cutoff: jax.Array
    """Bound of the numbers of each sensor, infinite where there is none, shape (n_sensors,)."""


@dataclass
class Camera(Base):
    """Where pictures are taken from: a camera looks along its -z axis, and y is up."""

    transform: Transform
    """Frame in the link's frame, shape (n_cameras, ...)."""
    fovy: jax.Array
    """Angle of view from bottom to top [degrees], shape (n_cameras,)."""


@dataclass
class Keyframe(Base):
    """States that the model names, to start from."""

    q: jax.Array
    """Coordinates of each, shape (n_keyframes, nq)."""
    qd: jax.Array
    """Rates of each, shape (n_keyframes, nv)."""
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
    """Velocity of the medium, world axes [m/s], shape (3,)."""
    density: jax.Array
    """Density of the medium [kg/m^3], shape ()."""
    viscosity: jax.Array
    """Viscosity of the medium [N s/m^2], shape ()."""
    impratio: jax.Array
    """Ratio of frictional to normal impedance of contacts under the elliptic cone, shape ()."""
    cone: str = static()
    """Friction cone, 'pyramidal' or 'elliptic'."""
    iterations: int = static()
    """Steps of the constraint solver of `generalized`."""
    ls_iterations: int = static()
    """Steps of its line search."""
    sweeps: int = static()
    """Passes over contacts and limits in `spring` and `positional`: more of them carry an impact
    through many bodies, and hold up heavy ones on light ones."""
    max_geom_pairs: int = static()
    """How many pairs of geoms each collider tests at a state, the nearest ones; 0 for all or, where
    a great many contacts could be, for 64."""
    max_contact_points: int = static()
    """How many contacts of each number of directions act at once, the nearest ones; 0 for all or,
    where a great many could be, for 128."""
    time_of_impact: bool = static()
    """True if in `spring` what is thrown back flies freely before and after the impact within a
    step, which makes derivatives of bounces right; in `positional` it always does."""
    eulerdamp: bool = static()
    """True if the integrator `euler` of `generalized` is implicit in the damping of joints, as
    MuJoCo's is unless a model disables it."""
    enable_fluid: bool = static()
    """Whether the medium acts at all: whether the model gave it density or viscosity."""
    enable_gravcomp: bool = static()
    """True if the model compensates the weight of any body."""
