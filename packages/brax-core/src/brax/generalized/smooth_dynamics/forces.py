"""Forces along the degrees of freedom: motors, springs, dampers, and what acts on the links."""

import jax
import jax.numpy as jnp

from brax.actuators.actuator_forces import (
    ActuatorsAtState,
    actuators_at_state,
    joint_forces,
    link_forces,
    sees_links,
    within_joint_limits,
)
from brax.actuators.force_law import Command
from brax.actuators.site_transmission import on_sites
from brax.actuators.tendons import TendonsAtState, passive_force, tendons_at_state
from brax.base import System
from brax.components import Vec3, quat, rows, total, vec3
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
    """Motors, springs and dampers, (nv, batch) in the model's order."""
    sys = problem.sys
    parts = [spring_force(sys, motion.q) - sys.dof.damping * motion.qd]
    if sys.actuator_names:
        driven = actuators_at(problem, motion, dynamics)
        parts.append(within_joint_limits(sys, actuator_force(problem, dynamics, driven)))
    if sys.tendon_names:
        parts.append(tendon_force(problem, motion, dynamics))
    return total(parts)


def actuators_at(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> ActuatorsAtState:
    """The actuators at a state."""
    links = driven_frames(problem, dynamics)
    return actuators_at_state(problem.sys, command(problem, motion), motion.q, motion.qd, links)


def driven_frames(problem: GeneralizedProblem, dynamics: SmoothDynamics) -> Frames | None:
    """Frames of the links, for what acts on them in space; None if nothing does."""
    return world_frames(problem.links, dynamics) if sees_links(problem.sys) else None


def tendons_at(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> TendonsAtState:
    """The tendons at a state."""
    return tendons_at_state(problem.sys, motion.q, motion.qd, driven_frames(problem, dynamics))


def tendon_force(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> jax.Array:
    """What springs and dampers of tendons do, (nv, batch) in the model's order."""
    found = tendons_at(problem, motion, dynamics)
    force = passive_force(problem.sys, found)
    on_links = found.link_forces(problem.sys, force)
    return _with_links(problem, dynamics, found.joint_forces(problem.sys, force), on_links)


def actuator_force(
    problem: GeneralizedProblem, dynamics: SmoothDynamics, driven: ActuatorsAtState
) -> jax.Array:
    """What the actuators do, (nv, batch) in the model's order, whatever their joints can bear."""
    sys = problem.sys
    return _with_links(problem, dynamics, joint_forces(sys, driven), link_forces(sys, driven))


def _with_links(
    problem: GeneralizedProblem,
    dynamics: SmoothDynamics,
    force: jax.Array,
    on_links: Spatial | None,
) -> jax.Array:
    """Forces along the degrees of freedom, and what is on links about their frames, together."""
    sys = problem.sys
    if on_links is None:
        return force
    wrench, blocks = rows(on_links, problem.links.order), problem.plan.blocks
    along = on_dofs(sys, problem.links, blocks, dynamics, dynamics.pos, wrench)
    return force + frontal.to_model(blocks, along)


def command(problem: GeneralizedProblem, motion: StepState) -> Command:
    """What the actuators are told."""
    return Command(problem.act, motion.activation)


def couples_joints(sys: System) -> bool:
    """Return whether a drive on one degree of freedom may depend on the rate of another."""
    return bool(sys.tendon_names) or on_sites(sys)


def drive_slope(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics, tangent: jax.Array
) -> jax.Array:
    """How the force of actuators and tendons, if there are any, changes with the rates."""
    sys = problem.sys
    kept = _yielding(problem, motion, dynamics)

    def force(qd: jax.Array) -> jax.Array:
        moved, now, found = motion._replace(qd=qd), dynamics, jnp.zeros_like(qd)
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
    """One for actuators whose force may change with the rates, else zero; None if all may.

    As in MuJoCo those on a joint whose bounds they have reached may not.
    """
    sys = problem.sys
    if not any(sys.joint_actuator_limited):
        return None
    force = actuator_force(problem, dynamics, actuators_at(problem, motion, dynamics))
    free = (force == within_joint_limits(sys, force)).astype(force.dtype)
    starts, one = sys.joint_qd_start(), sys.qd_size()
    table = jnp.concatenate([free, jnp.ones_like(free[:1])])
    return rows(table, [starts[j] if j >= 0 else one for j in sys.actuator_joint])


def external_force(problem: GeneralizedProblem, dynamics: SmoothDynamics) -> jax.Array | None:
    """What the surroundings do, (nv, batch) in the order of elimination; None for nothing."""
    sys, links = problem.sys, problem.links
    frame = rows(sys.link.inertia.transform, links.order)
    arm, axes = dynamics.rot.rotate(vec3(frame.pos)), dynamics.rot.mul(quat(frame.rot)).matrix()
    centre, (ang, lin) = dynamics.pos + arm, dynamics.velocity
    velocity = Spatial(ang, lin + ang.cross(centre - common_points(links, dynamics.pos)))
    wrench = problem.external.wrench(axes, velocity)
    if wrench is None:
        return None
    return on_dofs(sys, links, problem.plan.blocks, dynamics, centre, wrench)


def on_dofs(
    sys: System,
    plan: Layout,
    structure: Structure,
    dynamics: SmoothDynamics,
    point: Vec3,
    wrench: Spatial,
) -> jax.Array:
    """What forces or momenta of the links have for each degree of freedom: J^T f.

    Args:
        sys: the model.
        plan: its links.
        structure: its blocks.
        dynamics: the model at the state.
        point: where each link's wrench acts, in the layout's order, (links, batch).
        wrench: torque about the point, and force, world axes.

    Returns:
        Shape (nv, batch), in the order of elimination.
    """
    arm = point - common_points(plan, dynamics.pos)
    about = Spatial(wrench.ang + arm.cross(wrench.lin), wrench.lin)
    owners = sys.dof_link()
    mine = rows(over_subtrees(about, plan), [plan.position[owners[d]] for d in structure.order])
    return dynamics.subspace.dot(mine)


def resistance(
    problem: GeneralizedProblem, motion: StepState, dynamics: SmoothDynamics
) -> jax.Array:
    """How much dampers and motors resist each rate, (nv, batch) in the model's order.

    Where nothing couples joints an actuator acts on the degree of freedom whose rate it sees, so
    that the derivative of its force by all rates together is that by its own. Else it is none.
    """
    sys = problem.sys
    if couples_joints(sys) or not sys.actuator_names:
        return sys.dof.damping
    return sys.dof.damping - drive_slope(problem, motion, dynamics, jnp.ones_like(motion.qd))


def spring_force(sys: System, q: jax.Array) -> jax.Array:
    """Force of the joints' springs: a free joint has none, a quaternion is at rest at no turn."""
    parts = []
    for kind, at, dof in zip(
        sys.joint_types, sys.joint_q_start(), sys.joint_qd_start(), strict=True
    ):
        mine = slice(dof, dof + kind.qd_width)
        dynamics = q[at : at + kind.q_width]
        if kind.qd_width == 6:
            stretch = jnp.zeros((6, q.shape[-1]), q.dtype)
        elif kind.q_width == kind.qd_width:
            stretch = dynamics - sys.dof.springref[mine]
        else:
            stretch = jnp.stack(kind.difference(tuple(dynamics), kind.zero(dynamics[0])))
        parts.append(-sys.dof.stiffness[mine] * stretch)
    return jnp.concatenate(parts, axis=0)
