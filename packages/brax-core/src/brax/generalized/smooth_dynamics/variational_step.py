"""Free motion at constant momentum: a variational step of the kinetic energy.

Of all motions between two configurations the free one makes the action stationary. Each link's
action depends on how far its centre moved and how far it turned alone, whatever frame that is
looked at from, and so linear and angular momentum are kept however long the step is.

Source: Marsden, West (2001), Discrete mechanics and variational integrators, Acta Numerica 10,
part 1; of the rotations Manchester, Peck (2016), Quaternion Variational Integrators for Spacecraft
Dynamics, J. Guidance, Control and Dynamics 39(1).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, quat, rows, vec3
from brax.generalized.linalg import frontal
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.smooth_dynamics.forces import on_dofs
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, smooth
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kinematics.frames import hung, poses
from brax.pipeline import integrate
from brax.spatial import Spatial

CORRECTIONS = 6
"""Quasi-Newton steps; each makes the error smaller by about a link's turn within the step."""


class PrincipalFrames(NamedTuple):
    """Principal frames of all links, in the layout's order."""

    centre: Vec3
    rot: Quat


def variational_step(problem: GeneralizedProblem, motion: StepState, dt: jax.Array) -> StepState:
    """Moves freely for `dt`: the momenta at the start are given, those at the end follow."""
    sys, blocks = problem.sys, problem.plan.blocks
    still = jnp.zeros_like(motion.qd)
    start = smooth(sys, problem.links, blocks, motion.q, still)
    pivots = frontal.factor(blocks, start.mass)
    wanted = frontal.multiply(blocks, start.mass, frontal.to_blocks(blocks, motion.qd))
    dynamics = _principal_frames(problem, start.pos, start.rot)

    def correct(_: int, rates: jax.Array) -> jax.Array:
        q = fusion_barrier(integrate(sys, motion.q, rates, dt))
        momenta = fusion_barrier(_momenta(problem, dynamics, _at(problem, q), dt))
        missing = wanted - _along_dofs(problem, start, dynamics.centre, momenta, rates)
        return rates + frontal.to_model(
            blocks, frontal.solve(blocks, pivots, fusion_barrier(missing))
        )

    rates = jax.lax.fori_loop(0, CORRECTIONS, correct, motion.qd)
    q = fusion_barrier(integrate(sys, motion.q, rates, dt))
    end = smooth(sys, problem.links, blocks, q, still)
    there = _principal_frames(problem, end.pos, end.rot)
    momenta = _momenta(problem, dynamics, there, dt)
    # What rounding kept from being found moves on with the body, so that it does not add up.
    missing = wanted - _along_dofs(problem, start, dynamics.centre, momenta, rates)
    found = fusion_barrier(_along_dofs(problem, end, there.centre, momenta, rates) + missing)
    qd = frontal.to_model(blocks, frontal.solve(blocks, frontal.factor(blocks, end.mass), found))
    return motion._replace(q=q, qd=qd)


def _at(problem: GeneralizedProblem, q: jax.Array) -> PrincipalFrames:
    sys, plan = problem.sys, problem.links
    still = jnp.zeros((sys.qd_size(), 1), q.dtype)
    stacks = [hung(sys, plan, group, q - sys.ref, still) for group in plan.stacks]
    return _principal_frames(problem, *fusion_barrier(poses(plan, stacks)))


def _principal_frames(problem: GeneralizedProblem, pos: Vec3, rot: Quat) -> PrincipalFrames:
    frame = rows(problem.sys.link.inertia.transform, problem.links.order)
    return PrincipalFrames(pos + rot.rotate(vec3(frame.pos)), rot.mul(quat(frame.rot)))


def _momenta(
    problem: GeneralizedProblem, a: PrincipalFrames, b: PrincipalFrames, dt: jax.Array
) -> Spatial:
    """Momenta of all links about their centres, in world axes, that bring them from `a` to `b`."""
    inertia = rows(problem.sys.link.inertia, problem.links.order)
    turn, moments = a.rot.inv_mul(b.rot), vec3(inertia.i)
    half = Vec3(moments.x * turn.x, moments.y * turn.y, moments.z * turn.z)
    spin = (half * turn.w + turn.vec.cross(half)) * (2.0 / dt)
    return Spatial(a.rot.rotate(spin), (b.centre - a.centre) * (inertia.mass / dt))


def _along_dofs(
    problem: GeneralizedProblem,
    where: SmoothDynamics,
    centre: Vec3,
    momenta: Spatial,
    rates: jax.Array,
) -> jax.Array:
    """Momenta conjugate to the coordinates, rotors included, in the order of elimination."""
    rotors = frontal.to_blocks(problem.plan.blocks, problem.sys.dof.armature * rates)
    return rotors + on_dofs(problem.sys, problem.links, problem.plan.blocks, where, centre, momenta)
