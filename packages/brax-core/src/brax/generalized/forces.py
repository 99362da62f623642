"""Forces along the degrees of freedom: motors, springs, dampers, and what acts on the links."""

import jax
import jax.numpy as jnp

from brax.actuators.drive import drive_forces
from brax.actuators.law import Command
from brax.base import System
from brax.components import Vec3, quat, rows, vec3
from brax.generalized.problem import Motion, Problem
from brax.generalized.smooth import Smooth, composites
from brax.generalized.structure import Structure
from brax.spatial import Spatial
from brax.tree import Layout, join


def applied_force(problem: Problem, motion: Motion) -> jax.Array:
    """Motors, springs and dampers, (nv, batch) in the model's order."""
    sys = problem.sys
    force = spring_force(sys, motion.q) - sys.dof.damping * motion.qd
    driven = drive_forces(sys, command(problem, motion), motion.q, motion.qd)
    return force if driven is None else force + driven


def command(problem: Problem, motion: Motion) -> Command:
    """What the actuators are told."""
    return Command(problem.act, motion.activation)


def drive_slope(problem: Problem, motion: Motion, tangent: jax.Array) -> jax.Array:
    """How the force of actuators and tendons, if there are any, changes with the rates."""

    def force(qd: jax.Array) -> jax.Array:
        found = drive_forces(problem.sys, command(problem, motion), motion.q, qd)
        return jnp.zeros_like(qd) if found is None else found

    return jax.jvp(force, (motion.qd,), (tangent,))[1]


def outer_force(problem: Problem, here: Smooth) -> jax.Array | None:
    """What the surroundings do, (nv, batch) in the order of elimination; None for nothing."""
    sys, links = problem.sys, problem.links
    frame = rows(sys.link.inertia.transform, links.order)
    arm, axes = here.rot.rotate(vec3(frame.pos)), here.rot.mul(quat(frame.rot)).matrix()
    centre, (ang, lin) = here.pos + arm, here.velocity
    velocity = Spatial(ang, lin + ang.cross(centre - common_points(links, here.pos)))
    wrench = problem.surroundings.wrench(axes, velocity)
    if wrench is None:
        return None
    return on_dofs(sys, links, problem.plan.blocks, here, centre, wrench)


def common_points(plan: Layout, pos: Vec3) -> Vec3:
    """Each link's tree's common point, its root's origin; one row if there is one tree."""
    return rows(pos, [0] if len(set(plan.root)) == 1 else plan.root)


def on_dofs(
    sys: System, plan: Layout, structure: Structure, here: Smooth, point: Vec3, wrench: Spatial
) -> jax.Array:
    """What forces or momenta of the links have for each degree of freedom: J^T f.

    Args:
        sys: the model.
        plan: its links.
        structure: its blocks.
        here: the model at the state.
        point: where each link's wrench acts, in the layout's order, (links, batch).
        wrench: torque about the point, and force, world axes.

    Returns:
        Shape (nv, batch), in the order of elimination.
    """
    arm = point - common_points(plan, here.pos)
    about = Spatial(wrench.ang + arm.cross(wrench.lin), wrench.lin)
    owners = sys.dof_link()
    mine = rows(join(composites(plan, about)), [plan.position[owners[d]] for d in structure.order])
    return here.subspace.dot(mine)


def resistance(problem: Problem, motion: Motion) -> jax.Array:
    """How much dampers and motors resist each rate, (nv, batch) in the model's order.

    Without tendons an actuator acts on the degree of freedom whose rate it sees, so that the
    derivative of its force by all rates together is that by its own. With tendons it is none.
    """
    sys = problem.sys
    if sys.tendon_names or not sys.actuator_names:
        return sys.dof.damping
    return sys.dof.damping - drive_slope(problem, motion, jnp.ones_like(motion.qd))


def spring_force(sys: System, q: jax.Array) -> jax.Array:
    """Force of the joints' springs: a free joint has none, a quaternion is at rest at no turn."""
    parts = []
    for kind, at, dof in zip(
        sys.joint_types, sys.joint_q_start(), sys.joint_qd_start(), strict=True
    ):
        mine = slice(dof, dof + kind.qd_width)
        here = q[at : at + kind.q_width]
        if kind.qd_width == 6:
            stretch = jnp.zeros((6, q.shape[-1]), q.dtype)
        elif kind.q_width == kind.qd_width:
            stretch = here - sys.dof.springref[mine]
        else:
            stretch = jnp.stack(kind.difference(tuple(here), kind.zero(here[0])))
        parts.append(-sys.dof.stiffness[mine] * stretch)
    return jnp.concatenate(parts, axis=0)
