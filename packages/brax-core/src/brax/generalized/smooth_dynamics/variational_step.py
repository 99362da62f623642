"""Free motion at constant momentum: a variational step of the kinetic energy.

The discrete action of a link depends only on how far its centre of mass moved and on how far the
link turned. Both are the same in every frame, so that linear and angular momentum are conserved for
any length of the step (the discrete Noether theorem).

Source: Marsden, West (2001), Discrete mechanics and variational integrators, Acta Numerica 10, part
1; for the rotations Manchester, Peck (2016), Quaternion Variational Integrators for Spacecraft
Dynamics, J. Guidance, Control and Dynamics 39(1).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, quat, rows, vec3
from brax.generalized.linalg import frontal
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.smooth_dynamics.forces import on_dofs
from brax.generalized.smooth_dynamics.smooth import (
    SmoothDynamics,
    rotor_fronts,
    smooth,
)
from brax.generalized.smooth_dynamics.tendon_rotors import has_rotors
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kinematics.frames import hung, poses
from brax.pipeline import integrate
from brax.spatial import Spatial

QUASI_NEWTON_STEPS = 6
"""Number of quasi-Newton steps. Each one reduces the error by a factor of about the angle that a
link turns within the step."""


class PrincipalFrames(NamedTuple):
    """Principal frames of all links, in the layout's order."""

    centre: Vec3
    """Centres of mass in the world [m]."""
    rot: Quat
    """Orientations of the principal axes in the world."""


def variational_step(problem: GeneralizedProblem, motion: StepState, dt: jax.Array) -> StepState:
    """Return the state after free motion for `dt`, with the momenta conserved.

    The discrete momenta at the start equal the given ones (Marsden and West's discrete Legendre
    transform). The position at the end follows, and from it the rates at the end.
    """
    sys, blocks = problem.sys, problem.plan.blocks
    still = jnp.zeros_like(motion.qd)
    start = smooth(sys, problem.links, blocks, motion.q, still)
    # The mass matrix at the start is the Jacobian of the momenta to first order in dt. It is
    # factored once and serves all corrections: a quasi-Newton method.
    pivots = frontal.factor(blocks, start.mass)
    wanted = frontal.multiply(blocks, start.mass, frontal.to_blocks(blocks, motion.qd))
    start_frames = _principal_frames(problem, start.pos, start.rot)

    def correct(_: int, rates: jax.Array) -> jax.Array:
        # The unknowns are the mean rates over the step, so that quaternions stay unit quaternions.
        q = fusion_barrier(integrate(sys, motion.q, rates, dt))
        momenta = fusion_barrier(_momenta(problem, start_frames, _at(problem, q), dt))
        missing = wanted - _along_dofs(problem, start, start_frames.centre, momenta, rates)
        return rates + frontal.to_model(
            blocks, frontal.solve(blocks, pivots, fusion_barrier(missing))
        )

    rates = jax.lax.fori_loop(0, QUASI_NEWTON_STEPS, correct, motion.qd)
    q = fusion_barrier(integrate(sys, motion.q, rates, dt))
    # The same link momenta, projected on the motion subspaces at the end, are the conjugate momenta
    # there.
    end = smooth(sys, problem.links, blocks, q, still)
    end_frames = _principal_frames(problem, end.pos, end.rot)
    momenta = _momenta(problem, start_frames, end_frames, dt)
    # Rounding leaves a small rest of the momenta unsolved. It is carried to the end of the step, so
    # that these errors do not accumulate.
    missing = wanted - _along_dofs(problem, start, start_frames.centre, momenta, rates)
    found = fusion_barrier(_along_dofs(problem, end, end_frames.centre, momenta, rates) + missing)
    qd = frontal.to_model(blocks, frontal.solve(blocks, frontal.factor(blocks, end.mass), found))
    return motion._replace(q=q, qd=qd)


def _at(problem: GeneralizedProblem, q: jax.Array) -> PrincipalFrames:
    """Return the principal frames at coordinates."""
    sys, plan = problem.sys, problem.links
    still = jnp.zeros((sys.qd_size(), 1), q.dtype)
    stacks = [hung(sys, plan, group, q - sys.ref, still) for group in plan.stacks]
    return _principal_frames(problem, *fusion_barrier(poses(plan, stacks)))


def _principal_frames(problem: GeneralizedProblem, pos: Vec3, rot: Quat) -> PrincipalFrames:
    """Return the principal frames from the link frames."""
    frame = rows(problem.sys.link.inertia.transform, problem.links.order)
    return PrincipalFrames(pos + rot.rotate(vec3(frame.pos)), rot.mul(quat(frame.rot)))


def _momenta(
    problem: GeneralizedProblem, a: PrincipalFrames, b: PrincipalFrames, dt: jax.Array
) -> Spatial:
    """Return the discrete momenta of links that move from `a` to `b`.

    They are about the links' centres of mass, in world axes.
    """
    inertia = rows(problem.sys.link.inertia, problem.links.order)
    turn, moments = a.rot.inv_mul(b.rot), vec3(inertia.moments)
    # With the relative quaternion (w, u) the discrete angular momentum in principal axes is (2 /
    # dt) (w I u + u x I u): Manchester and Peck's discrete Euler equation. It is exact for constant
    # spin about a principal axis only in the limit dt -> 0, but conserved for all dt.
    half = Vec3(moments.x * turn.x, moments.y * turn.y, moments.z * turn.z)
    spin = (half * turn.w + turn.vec.cross(half)) * (2.0 / dt)
    # The centre of mass moves uniformly: m (b - a) / dt.
    return Spatial(a.rot.rotate(spin), (b.centre - a.centre) * (inertia.mass / dt))


def _along_dofs(
    problem: GeneralizedProblem,
    where: SmoothDynamics,
    centre: Vec3,
    momenta: Spatial,
    rates: jax.Array,
) -> jax.Array:
    """Return the momenta conjugate to the coordinates, armature included.

    They are in the order of elimination, (nv, batch).
    """
    # A rotor's momentum is its armature times its rate. It has no place in the links' momenta.
    blocks = problem.plan.blocks
    rotors = frontal.to_blocks(blocks, problem.sys.dof.armature * rates)
    if has_rotors(problem.sys):
        moving = frontal.to_blocks(blocks, rates)
        fronts = rotor_fronts(problem.sys, problem.links, blocks, where)
        rotors = rotors + frontal.multiply(blocks, fronts, moving)
    return rotors + on_dofs(problem.sys, problem.links, problem.plan.blocks, where, centre, momenta)
