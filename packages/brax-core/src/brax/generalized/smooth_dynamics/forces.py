"""Applied forces along the degrees of freedom: actuators, springs, dampers and external forces.

Source: MuJoCo's documentation, chapter Computation, sections Actuation model and Passive forces.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.actuator_forces import (
    ActuatorsAtState,
    acts_on_links,
    actuators_at_state,
    at_joint_limits,
    joint_forces,
    link_forces,
    sees_links,
    within_joint_limits,
)
from brax.actuators.force_law import Command
from brax.actuators.tendons import TendonsAtState, passive_force, tendons_at_state
from brax.base import System
from brax.components import Mat3, Vec3, quat, rows, sqrt, total, vec3
from brax.forces.polynomials import coefficient, slope
from brax.generalized.linalg import frontal
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.smooth_dynamics.frames import world_frames
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, common_points, smooth
from brax.generalized.smooth_dynamics.structure import Structure
from brax.kinematics import Frames
from brax.spatial import Spatial
from brax.tree import Layout, over_subtrees


def applied_force(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> jax.Array:
    """Return the forces of actuators, springs and dampers, (nv, batch) in the model's order.

    These are MuJoCo's `qfrc_actuator` and `qfrc_passive`, without the fluid.
    """
    sys = problem.sys
    damping = sys.dof.damping
    if any(sys.joint_polynomial):
        damping = coefficient(damping, sys.dof.damping_poly, jnp.abs(motion.qd))
    parts = [spring_force(sys, motion.q) - damping * motion.qd]
    # Bounds without actuators still clip the gravity compensation.
    if sys.actuator_names or any(sys.joint_actuator_limited):
        force = jnp.zeros_like(motion.qd)
        if sys.actuator_names:
            force = actuator_force(problem, dynamics, actuators_at(problem, motion, dynamics))
        # MuJoCo's `actuatorfrcrange` of joints bounds the sum of all actuators on a joint, not
        # each.
        parts.append(within_joint_limits(sys, force, borne_by_actuators(problem, dynamics)))
    if sys.tendon_names:
        parts.append(tendon_force(problem, motion, dynamics))
    return total(parts)


def actuators_at(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> ActuatorsAtState:
    """Return the actuators at a state."""
    links = driven_frames(problem, dynamics)
    return actuators_at_state(problem.sys, command(problem, motion), motion.q, motion.qd, links)


def driven_frames(problem: GeneralizedProblem, dynamics: SmoothDynamics) -> Frames | None:
    """Return the link frames, for actuators and tendons in space; None if the model has neither."""
    return world_frames(problem.links, dynamics) if sees_links(problem.sys) else None


def tendons_at(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> TendonsAtState:
    """Return the tendons at a state."""
    return tendons_at_state(problem.sys, motion.q, motion.qd, driven_frames(problem, dynamics))


def tendon_force(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> jax.Array:
    """Return the forces of the tendons' springs and dampers, (nv, batch) in the model's order."""
    found = tendons_at(problem, motion, dynamics)
    force = passive_force(problem.sys, found)
    on_links = found.link_forces(problem.sys, force)
    return _with_links(problem, dynamics, found.joint_forces(problem.sys, force), on_links)


def actuator_force(
    problem: GeneralizedProblem, dynamics: SmoothDynamics, driven: ActuatorsAtState
) -> jax.Array:
    """Return the forces of the actuators, (nv, batch) in the model's order.

    They are not yet clipped to the force ranges of the joints.
    """
    sys = problem.sys
    return _with_links(problem, dynamics, joint_forces(sys, driven), link_forces(sys, driven))


def borne_by_actuators(problem: GeneralizedProblem, dynamics: SmoothDynamics) -> jax.Array | None:
    """Return the gravity compensation that counts among the actuators' forces, (nv, batch).

    It is zero along the joints whose actuators do not bear it; None if no joint's do.
    """
    sys, bearing = problem.sys, problem.external.bearing
    if bearing is None or not any(sys.joint_actuator_gravcomp):
        return None
    centre, axes = _centres(problem, dynamics)
    blocks = problem.plan.blocks
    along = on_dofs(sys, problem.links, blocks, dynamics, centre, bearing.wrench(axes))
    mine = np.array([[sys.joint_actuator_gravcomp[j]] for j in sys.dof_joint()])
    return jnp.where(mine, frontal.to_model(blocks, along), 0.0)


def _with_links(
    problem: GeneralizedProblem,
    dynamics: SmoothDynamics,
    force: jax.Array,
    on_links: Spatial | None,
) -> jax.Array:
    """Return the sum of joint forces and of wrenches on links about their frames, (nv, batch)."""
    sys = problem.sys
    if on_links is None:
        return force
    # Wrenches come in the model's order of links; `on_dofs` wants the layout's.
    wrench, blocks = rows(on_links, problem.links.order), problem.plan.blocks
    along = on_dofs(sys, problem.links, blocks, dynamics, dynamics.pos, wrench)
    return force + frontal.to_model(blocks, along)


def command(problem: GeneralizedProblem, motion: StepState) -> Command:
    """Return the controls and activations that the actuators read."""
    return Command(problem.act, motion.activation)


def couples_joints(sys: System) -> bool:
    """Return whether a drive on one degree of freedom may depend on the rate of another."""
    return bool(sys.tendon_names) or acts_on_links(sys)


def drive_slope(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics, tangent: jax.Array
) -> jax.Array:
    """Return the derivative of the actuators' and tendons' force along a direction of the rates.

    Args:
        problem: what is constant during the step.
        motion: the state.
        dynamics: the smooth dynamics at it.
        tangent: the direction, (nv, batch).

    Returns:
        The change of the force, (nv, batch), per unit of the direction. It is the part of MuJoCo's
        `qDeriv` that actuators and tendons have, times the direction.
    """
    sys = problem.sys
    kept = _yielding(problem, motion, dynamics)

    def force(qd: jax.Array) -> jax.Array:
        moved, now, found = motion._replace(qd=qd), dynamics, jnp.zeros_like(qd)
        # The velocities of sites and tendon ends change with the rates, so that the frames are
        # found again.
        if sees_links(sys):
            now = smooth(sys, problem.links, problem.plan.blocks, motion.q, qd)
        if sys.actuator_names:
            driven = actuators_at(problem, moved, now)
            if kept is not None:
                driven = driven._replace(force=driven.force * kept)
            found = found + actuator_force(problem, now, driven)
        return found + tendon_force(problem, moved, now) if sys.tendon_names else found

    return jax.jvp(force, (motion.qd,), (tangent,))[1]


def _yielding(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> jax.Array | None:
    """Return 1 for actuators whose force may change with the rates and 0 for the others.

    As in MuJoCo, the force does not change on a joint or tendon whose bounds of its actuators'
    force are reached. Returns None if no joint or tendon has such bounds.
    """
    sys = problem.sys
    if not (any(sys.joint_actuator_limited) or any(sys.tendon_actuator_limited)):
        return None
    driven = actuators_at(problem, motion, dynamics)
    kept = jnp.ones_like(driven.force)
    if driven.share is not None:
        kept = jnp.where(driven.share == 1, kept, 0.0)
    if any(sys.joint_actuator_limited):
        force = actuator_force(problem, dynamics, driven)
        clipped = at_joint_limits(sys, force, borne_by_actuators(problem, dynamics))
        free = (~clipped).astype(force.dtype)
        starts, one = sys.joint_qd_start(), sys.qd_size()
        # A last row of one serves the actuators that are not on a joint.
        table = jnp.concatenate([free, jnp.ones_like(free[:1])])
        kept = kept * rows(table, [starts[j] if j >= 0 else one for j in sys.actuator_joint])
    return kept


def external_force(problem: GeneralizedProblem, dynamics: SmoothDynamics) -> jax.Array | None:
    """Return the external forces along the degrees of freedom, or None if there are none.

    They are in the order of elimination, (nv, batch): the fluid, gravity compensation and the
    user's wrenches.
    """
    sys, links = problem.sys, problem.links
    centre, axes = _centres(problem, dynamics)
    ang, lin = dynamics.velocity
    velocity = Spatial(ang, lin + ang.cross(centre - common_points(links, dynamics.pos)))
    wrench = problem.external.wrench(axes, velocity)
    if wrench is None:
        return None
    return on_dofs(sys, links, problem.plan.blocks, dynamics, centre, wrench)


def _centres(problem: GeneralizedProblem, dynamics: SmoothDynamics) -> tuple[Vec3, Mat3]:
    """Return the links' centres of mass and their principal axes, world axes."""
    # All external forces act at the centre of mass; the fluid needs the principal axes.
    frame = rows(problem.sys.link.inertia.transform, problem.links.order)
    arm, axes = dynamics.rot.rotate(vec3(frame.pos)), dynamics.rot.mul(quat(frame.rot)).matrix()
    return dynamics.pos + arm, axes


def on_dofs(
    sys: System,
    plan: Layout,
    structure: Structure,
    dynamics: SmoothDynamics,
    point: Vec3,
    wrench: Spatial,
) -> jax.Array:
    """Return J^T f: the joint forces, or momenta, of wrenches on the links.

    Args:
        sys: the model.
        plan: the layout of its links.
        structure: the blocks of its degrees of freedom.
        dynamics: the smooth dynamics at the state.
        point: where each link's wrench acts, in the layout's order, (links, batch).
        wrench: torque about the point, and force, world axes.

    Returns:
        Shape (nv, batch), in the order of elimination.
    """
    arm = point - common_points(plan, dynamics.pos)
    # Moved to the common point, the wrenches of a subtree are a plain sum: tau_i = S_i^T sum f_j,
    # without a Jacobian.
    about = Spatial(wrench.ang + arm.cross(wrench.lin), wrench.lin)
    owners = sys.dof_link()
    mine = rows(over_subtrees(about, plan), [plan.position[owners[d]] for d in structure.order])
    return dynamics.subspace.dot(mine)


def resistance(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> jax.Array:
    """Return the damping along each degree of freedom, (nv, batch) in the model's order.

    It is the joint damping, and the derivative of the actuators' forces by the rates with its sign
    changed. Where nothing couples joints, an actuator acts only on the degree of freedom whose rate
    it reads, so that one directional derivative along all rates gives the whole diagonal. Where
    joints are coupled, `Stepper` adds the actuators' derivative as a matrix instead.
    """
    sys = problem.sys
    damping = joint_damping(sys, motion.qd)
    if couples_joints(sys) or not sys.actuator_names:
        return damping
    return damping - drive_slope(problem, motion, dynamics, jnp.ones_like(motion.qd))


def joint_damping(sys: System, qd: jax.Array) -> jax.Array:
    """Return minus the derivative of the joints' damping by their own rates, (nv, batch)."""
    if not any(sys.joint_polynomial):
        return sys.dof.damping
    return slope(sys.dof.damping, sys.dof.damping_poly, jnp.abs(qd))


def spring_force(sys: System, q: jax.Array) -> jax.Array:
    """Return the forces of the joints' springs.

    A free joint has none. A ball joint's spring is at rest at the identity, whatever `springref`
    is.
    """
    parts = []
    starts = zip(sys.joint_types, sys.joint_q_start(), sys.joint_qd_start(), strict=True)
    for joint, (kind, at, dof) in enumerate(starts):
        mine = slice(dof, dof + kind.qd_width)
        coordinates = q[at : at + kind.q_width]
        # MuJoCo gives free joints no spring.
        if kind.qd_width == 6:
            stretch = jnp.zeros((6, q.shape[-1]), q.dtype)
        elif kind.q_width == kind.qd_width:
            stretch = coordinates - sys.dof.springref[mine]
        else:
            stretch = jnp.stack(kind.difference(tuple(coordinates), kind.zero(coordinates[0])))
        stiffness = sys.dof.stiffness[mine]
        if sys.joint_polynomial[joint]:
            # A ball joint's spring acts along the rotation vector, by its length.
            plain = kind.q_width == kind.qd_width
            size = stretch if plain else sqrt(total(x * x for x in stretch))[None]
            stiffness = coefficient(stiffness, sys.dof.stiffness_poly[mine], size)
        parts.append(-stiffness * stretch)
    return jnp.concatenate(parts, axis=0)
