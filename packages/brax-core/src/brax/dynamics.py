"""Dynamics of a model as functions: mass matrix, forces, Jacobians, energy and momentum.

All functions are in joint coordinates, for one environment; use `jax.vmap` for more. Quantities of
links are in world axes. Only `constraint_forces` includes constraints.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, chapters 2, 5 and 6.
"""

import jax
import jax.numpy as jnp

from brax.base import Force, Motion, State, System, Transform
from brax.components import Vec3, quat, vec3
from brax.contracts import check_step, check_vector
from brax.generalized.linalg import frontal
from brax.generalized.pipeline import GENERALIZED
from brax.generalized.reaction import reaction
from brax.generalized.smooth_dynamics import articulated
from brax.generalized.smooth_dynamics.smooth import (
    SmoothDynamics,
    rotor_fronts,
    smooth,
)
from brax.generalized.smooth_dynamics.structure import Structure, dof_parents, structure
from brax.generalized.smooth_dynamics.tendon_rotors import has_rotors
from brax.kernels.batch_last import batch_last
from brax.kinematics import Frames, forward, link_frames
from brax.mocap import placed
from brax.spatial import Spatial
from brax.tree import layout


def mass_matrix(sys: System, q: jax.Array) -> jax.Array:
    """Return the joint-space inertia matrix M(q), armature included.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).

    Returns:
        A symmetric positive definite matrix, shape (nv, nv).

    Source: Featherstone (2008), section 6.2, the composite-rigid-body algorithm.
    """
    return _mass_matrix(sys, check_vector("mass_matrix", "q", q, sys.q_size(), "coordinates"))


def bias_force(sys: System, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Return the force that keeps all joints at constant rates: Coriolis, centrifugal and gravity.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).
        qd: joint velocities [rad/s or m/s], shape (nv,).

    Returns:
        Joint forces [N or N m], MuJoCo's `qfrc_bias`, shape (nv,).
    """
    q = check_vector("bias_force", "q", q, sys.q_size(), "coordinates")
    qd = check_vector("bias_force", "qd", qd, sys.qd_size(), "degrees of freedom")
    return _bias_force(sys, q, qd)


def inverse_dynamics(sys: System, q: jax.Array, qd: jax.Array, qdd: jax.Array) -> jax.Array:
    """Return the joint forces that cause given accelerations: M(q) qdd plus the bias force.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).
        qd: joint velocities [rad/s or m/s], shape (nv,).
        qdd: joint accelerations [rad/s^2 or m/s^2], shape (nv,).

    Returns:
        Joint forces [N or N m], shape (nv,). The forces of dampers, springs and actuators are not
        subtracted.
    """
    q = check_vector("inverse_dynamics", "q", q, sys.q_size(), "coordinates")
    qd = check_vector("inverse_dynamics", "qd", qd, sys.qd_size(), "degrees of freedom")
    qdd = check_vector("inverse_dynamics", "qdd", qdd, sys.qd_size(), "degrees of freedom")
    return _inverse_dynamics(sys, q, qd, qdd)


def forward_dynamics(sys: System, q: jax.Array, qd: jax.Array, force: jax.Array) -> jax.Array:
    """Return the accelerations that joint forces cause; the inverse of `inverse_dynamics`.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).
        qd: joint velocities [rad/s or m/s], shape (nv,).
        force: joint forces [N or N m], shape (nv,).

    Returns:
        Joint accelerations, shape (nv,).
    """
    q = check_vector("forward_dynamics", "q", q, sys.q_size(), "coordinates")
    qd = check_vector("forward_dynamics", "qd", qd, sys.qd_size(), "degrees of freedom")
    force = check_vector("forward_dynamics", "force", force, sys.qd_size(), "degrees of freedom")
    return _forward_dynamics(sys, q, qd, force)


def jacobian(sys: System, q: jax.Array, link: int, point: jax.Array) -> Motion:
    """Return the Jacobian of a link's rotation, and of a point that moves with it.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).
        link: the link's index.
        point: the point, in the link's frame [m], shape (3,).

    Returns:
        Angular velocity of the link and velocity of the point per unit of each rate, world axes,
        each (nv, 3).
    """
    q = check_vector("jacobian", "q", q, sys.q_size(), "coordinates")
    point = check_vector("jacobian", "point", point, 3, "components")
    zero = jnp.zeros(sys.qd_size(), q.dtype)

    def velocity(qd: jax.Array) -> Motion:
        x, xd = forward(sys, q, qd)
        at = Transform(x.pos[link], x.rot[link]).do(Transform.create(pos=point)).pos
        return Motion(xd.ang[link], xd.vel[link] + jnp.cross(xd.ang[link], at - x.pos[link]))

    # Velocities are linear in the rates, so that their derivative at zero is the Jacobian.
    return jax.tree.map(lambda columns: columns.T, jax.jacfwd(velocity)(zero))


def energy(sys: System, q: jax.Array, qd: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the kinetic energy, armature included, and the potential energy.

    The potential energy is that of gravity and of the springs of joints whose coordinates are
    displacements.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).
        qd: joint velocities [rad/s or m/s], shape (nv,).

    Returns:
        Both [J], shape (); gravity's is zero at the world's origin.
    """
    q = check_vector("energy", "q", q, sys.q_size(), "coordinates")
    qd = check_vector("energy", "qd", qd, sys.qd_size(), "degrees of freedom")
    return _energy(sys, q, qd)


def momentum(sys: System, q: jax.Array, qd: jax.Array) -> Force:
    """Return the linear momentum of all links, and the angular momentum about the world's origin.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).
        qd: joint velocities [rad/s or m/s], shape (nv,).

    Returns:
        `ang` [N m s] and `vel` [N s], world axes, each (3,). Armature has no momentum here.
    """
    q = check_vector("momentum", "q", q, sys.q_size(), "coordinates")
    qd = check_vector("momentum", "qd", qd, sys.qd_size(), "degrees of freedom")
    return _momentum(sys, q, qd)


def constraint_forces(
    sys: System, state: State, act: jax.Array, external: Force | None = None
) -> tuple[jax.Array, jax.Array]:
    """Return the forces of all constraints at a state, as the generalized pipeline computes them.

    Args:
        sys: the model.
        state: from `init` or `step`.
        act: controls, shape (nu,).
        external: torque and force on each link [N m, N], as in `step`, shape (n_links, ...).

    Returns:
        Joint forces [N or N m], MuJoCo's `qfrc_constraint`, shape (nv,); and for each contact of
        `brax.contact.get` the force [N] on its second geom, world axes, shape (n_contacts, 3). The
        first geom receives the opposite force at the same point.
    """
    act = check_step("constraint_forces", sys, state, act, 1, external)
    return _constraint_forces(sys, state.replace(contact=None), act, external)


def _evaluate(sys: System, q: jax.Array, qd: jax.Array) -> tuple[Structure, SmoothDynamics]:
    # Without constraints: the blocks of the tree alone, which has no fill-in.
    """Return the blocks of the mass matrix, and the smooth dynamics."""
    blocks = structure(dof_parents(sys))
    return blocks, smooth(sys, layout(sys), blocks, q, qd)


@batch_last
def _mass_matrix(sys: System, q: jax.Array) -> jax.Array:
    still = jnp.zeros((sys.qd_size(), q.shape[-1]), q.dtype)
    blocks, dynamics = _evaluate(sys, q, still)
    return frontal.dense(blocks, dynamics.mass)


@batch_last
def _bias_force(sys: System, q: jax.Array, qd: jax.Array) -> jax.Array:
    blocks, dynamics = _evaluate(sys, q, qd)
    return frontal.to_model(blocks, dynamics.bias)


@batch_last
def _inverse_dynamics(sys: System, q: jax.Array, qd: jax.Array, qdd: jax.Array) -> jax.Array:
    blocks, dynamics = _evaluate(sys, q, qd)
    # tau = M qdd + bias, the equation of motion.
    inertial = frontal.multiply(blocks, dynamics.mass, frontal.to_blocks(blocks, qdd))
    return frontal.to_model(blocks, inertial + dynamics.bias)


@batch_last
def _forward_dynamics(sys: System, q: jax.Array, qd: jax.Array, force: jax.Array) -> jax.Array:
    if articulated.suits(sys, structure(dof_parents(sys))):
        nothing = jnp.zeros_like(force)
        return articulated.accelerations(sys, layout(sys), q, qd, force, True, nothing)
    blocks, dynamics = _evaluate(sys, q, qd)
    net = frontal.to_blocks(blocks, force) - dynamics.bias
    return frontal.to_model(
        blocks, frontal.solve(blocks, frontal.factor(blocks, dynamics.mass), net)
    )


def link_momenta(sys: System, q: jax.Array, qd: jax.Array) -> tuple[Vec3, Spatial, Spatial]:
    """Return the links' centres of mass, and velocities and momenta there, in model order.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        q: coordinates [rad or m], shape (nq, batch).
        qd: velocities [rad/s or m/s], shape (nv, batch).

    Returns:
        Centres of mass [m], their spatial velocities, and the spatial momenta about them, in world
        axes, components shaped (n_links, batch).
    """
    frames: Frames = link_frames(sys, q, qd)
    inertia = sys.link.inertia
    arm = frames.rot.rotate(vec3(inertia.transform.pos))
    axes = frames.rot.mul(quat(inertia.transform.rot)).matrix()
    velocity = Spatial(frames.ang, frames.vel + frames.ang.cross(arm))
    # Inertia is diagonal in the principal axes: R diag(I) Rᵀ w.
    spin, moments = axes.inv_rotate(frames.ang), vec3(inertia.moments)
    turning = axes.rotate(Vec3(spin.x * moments.x, spin.y * moments.y, spin.z * moments.z))
    return frames.pos + arm, velocity, Spatial(turning, velocity.lin * inertia.mass)


def _reaction(
    sys: System, state: State, act: jax.Array, external: Force | None
) -> tuple[jax.Array, jax.Array]:
    """Return the forces of `constraint_forces`, batch last."""
    problem = GENERALIZED.problem(placed(sys, state.mocap), act, external)
    return reaction(problem, GENERALIZED.enter(problem, state))


_constraint_forces = batch_last(_reaction, full=(1, 2))


@batch_last
def _energy(sys: System, q: jax.Array, qd: jax.Array) -> tuple[jax.Array, jax.Array]:
    centre, velocity, momenta = link_momenta(sys, q, qd)
    # A rotor adds armature qd² / 2: it turns about its joint's axis only.
    kinetic = 0.5 * (velocity.dot(momenta).sum(0) + (sys.dof.armature * qd * qd).sum(0))
    if has_rotors(sys):
        blocks, dynamics = _evaluate(sys, q, qd)
        rates = frontal.to_blocks(blocks, qd)
        fronts = rotor_fronts(sys, layout(sys), blocks, dynamics)
        kinetic = kinetic + 0.5 * (rates * frontal.multiply(blocks, fronts, rates)).sum(0)
    gravity = Vec3(*(sys.opt.gravity[i : i + 1] for i in range(3)))
    potential = -(sys.link.inertia.mass * centre.dot(gravity)).sum(0)
    # Springs of ball and free joints are left out, as the coordinates of these are not
    # displacements.
    for kind, at, dof in zip(
        sys.joint_types, sys.joint_q_start(), sys.joint_qd_start(), strict=True
    ):
        if kind.q_width == kind.qd_width:
            mine = slice(dof, dof + kind.qd_width)
            stretch = q[at : at + kind.q_width] - sys.dof.springref[mine]
            first, second = (sys.dof.stiffness_poly[mine, k] for k in (0, 1))
            stiffness = sys.dof.stiffness[mine] / 2 + stretch * (first / 3 + stretch * second / 4)
            potential = potential + (stiffness * stretch * stretch).sum(0)
    return kinetic, potential


@batch_last
def _momentum(sys: System, q: jax.Array, qd: jax.Array) -> Force:
    centre, _, momenta = link_momenta(sys, q, qd)
    # About the world's origin: spin about the centre of mass plus c x m v.
    angular = momenta.ang + centre.cross(momenta.lin)
    return Force(*(jnp.stack([c.sum(0) for c in v]) for v in (angular, momenta.lin)))
