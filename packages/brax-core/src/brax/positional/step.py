"""One physics step of the positional pipeline: predict, correct positions, then velocities.

`_kick` finds the velocities over the step and after it, and `_drift` moves the links. In `_kick`
the links first move freely, joints apart (the prediction). `_closing` measures how far each joint
would separate, and one elimination over the trees finds the impulses that close all joints at the
end of the step (`brax.tree_solve`). Then `position_update.resolve` sweeps over contacts and
limits, for positions and for velocities.

Everything is solved for the change from the free motion, in directions at the start of the step.
So momentum is conserved to rounding, and the energy does not drift to first order, as in SHAKE
(Ryckaert, Ciccotti, Berendsen 1977).

Source: Mueller et al. (2020), Detailed Rigid Body Simulation with Extended Position Based Dynamics,
algorithm 2. Departures: `docs/positional.md`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax import impulses
from brax.actuators.force_law import Command
from brax.base import System
from brax.components import Vec3, rows
from brax.impulses import Impulses
from brax.integrators import Moves
from brax.kernels.fusion_barrier import fusion_barrier
from brax.maximal.actuation import (
    actuation,
    joint_impedance,
    joint_impulses,
    next_activation,
    outer_impulses,
    tendon_momenta,
)
from brax.maximal.equality import EqualityTargets, equality_rates, equality_system
from brax.maximal.equality_errors import equality_errors
from brax.maximal.joint_errors import (
    Joints,
    advance,
    directions,
    project,
    relative_velocity,
    separation,
    spatial,
    stack_pose,
)
from brax.maximal.links import (
    Links,
    TreesAtState,
    about,
    by_group,
    by_link,
    by_stack,
    link_inertias,
    parents,
)
from brax.maximal.tendons import GroupedLoads
from brax.positional.bodies import drift, turn
from brax.positional.model import PositionalProblem
from brax.positional.position_update import TreeMotion, resolve
from brax.spatial import Spatial
from brax.tree import Group, PerDof, join
from brax.tree_solve import GroupPivot, factor, without_drives


class PositionalState(NamedTuple):
    """The state inside a step."""

    bodies: Links
    """Poses and velocities of the links, in the frames of their principal axes."""
    q: tuple[PerDof, ...]
    """Joint coordinates, by stack; none for links with a free joint."""
    rates: tuple[PerDof, ...]
    """Joint velocities, which are those of the rotors, by stack."""
    activation: jax.Array | None
    """Activations of the stateful actuators, (na, batch); None if there are none."""
    acted: Impulses | None = None
    """Impulses of the steps so far; None if they are not reported."""


class JointClosing(NamedTuple):
    """The velocities that close the joints of a stack at the end of the step."""

    drive: Spatial | None
    """Change of the relative velocity outside of the motion subspace, about the tree's common
    point; None for free joints."""
    rates: PerDof
    """Joint velocities of the free motion."""
    parting: PerDof
    """Rates at which the free motion departs from the expected coordinates."""
    expected: PerDof
    """Coordinates at the end of the step if the joint velocities were constant."""


class VelocityUpdate(NamedTuple):
    """The state between the velocity update (kick) and the position update (drift) of a step."""

    state: PositionalState
    """The state, with the velocities after the step."""
    vel: Vec3
    """Velocities of the centres of mass over the step, which move the links [m/s]."""
    ang: Vec3
    """Angular velocities over the step, world axes [rad/s]."""
    speeds: tuple[PerDof, ...]
    """Rates of the coordinates over the step, by stack."""


def physics_step(
    problem: PositionalProblem, state: PositionalState, dt: jax.Array
) -> PositionalState:
    """Advance a state by one time step.

    Args:
        problem: what does not change during a step.
        state: the state before it.
        dt: time step [s].
    """
    sys, command = problem.sys, Command(problem.act, state.activation)
    found: VelocityUpdate = sys.integrator.step(_PositionalMoves(problem), _unkicked(state), dt)
    joints = (state.q, state.rates)
    activation = next_activation(
        sys, problem.plan, problem.model.links, command, state.bodies, joints, dt
    )
    return found.state._replace(activation=activation)


class _PositionalMoves(Moves[VelocityUpdate]):
    """The two stages that integrators are made of, for this pipeline."""

    def __init__(self, problem: PositionalProblem) -> None:
        self.problem = problem

    def kick(self, state: VelocityUpdate, dt: jax.Array) -> VelocityUpdate:
        """Update the velocities by the forces and constraints of a time `dt`."""
        return _kick(self.problem, state.state, dt)

    def drift(self, state: VelocityUpdate, dt: jax.Array) -> VelocityUpdate:
        """Move the links for a time `dt`."""
        return _drift(self.problem, state, dt)


def _unkicked(state: PositionalState) -> VelocityUpdate:
    """Return a state whose velocities over the step are those that it has."""
    return VelocityUpdate(state, state.bodies.vel, state.bodies.ang, state.rates)


def _kick(problem: PositionalProblem, state: PositionalState, dt: jax.Array) -> VelocityUpdate:
    """Find the velocities over the next `dt`, and those after it."""
    # Predict: links move freely, under gravity and without joints.
    plan, model = problem.plan, problem.model
    bodies = _damped(problem.sys, state.bodies, dt)
    # The common point of a tree is its root's centre of mass. It moves with the tree, so that arms
    # stay short.
    origins = rows(bodies.pos, plan.root)
    # Directions of joints and contacts are those at the start of the step, not at the prediction.
    # Then impulses act along the same directions over the step and after it, which conserves
    # momentum.
    at = TreesAtState(problem.sys, plan, model.links, model.stacks, bodies, origins, state.q)
    joints = _measured(problem, bodies, state.q)
    free = bodies._replace(vel=bodies.vel + _gravity(problem.sys) * dt)
    turned = turn(model.links.moments, free.axes, free.ang, dt)
    ahead = drift(model.links.moments, free, free.vel * dt, turned)
    closing = _closing(problem, joints, free, ahead, origins, state, dt)
    command = Command(problem.act, state.activation)
    motors = actuation(problem.sys, plan, model.links, command, bodies, state.q, state.rates)
    pivots = _factored(problem, bodies, joints, closing, origins, dt)
    targets = _equality_targets(at, pivots, free, ahead, closing, dt)
    rates = [c.rates for c in closing]
    outer = outer_impulses(at, problem.external, motors, dt)
    if outer is None:
        outer = jax.tree.map(jnp.zeros_like, by_link(plan, Spatial(bodies.vel, bodies.vel)))
    found = fusion_barrier(
        resolve(
            at,
            pivots,
            TreeMotion(by_link(plan, about(free, origins)), by_group(plan, rates)),
            GroupedLoads(
                # The joints' drives act once, here. Responses to impulses of contacts are without
                # them.
                without_drives(pivots, outer),
                by_group(plan, joint_impulses(at, motors, rates, state.rates, dt)),
            ),
            targets,
            dt,
            None if state.acted is None else tendon_momenta(at, motors, dt),
        )
    )
    (over, over_rates), (after, after_rates) = (
        (join(m.links), by_stack(plan, m.rates)) for m in found[:2]
    )
    # Integrators may kick several times a step; sensors read the sum.
    acted = impulses.more(state.acted, found[2])
    # Changes about the common points become changes of the velocities of the centres of mass.
    arm = bodies.pos - origins
    kept = free._replace(vel=free.vel + after.lin + after.ang.cross(arm), ang=free.ang + after.ang)
    return VelocityUpdate(
        PositionalState(kept, state.q, _plus(rates, after_rates), state.activation, acted),
        free.vel + over.lin + over.ang.cross(arm),
        free.ang + over.ang,
        _plus(_plus(state.rates, over_rates), [c.parting for c in closing]),
    )


def _factored(
    problem: PositionalProblem,
    bodies: Links,
    joints: Sequence[Joints | None],
    closing: Sequence[JointClosing],
    origins: Vec3,
    dt: jax.Array,
) -> list[GroupPivot]:
    """Factorize the inertia of the trees with all joints in place.

    One factorization serves all solutions of a step. Armature and implicit damping are impedances
    along the degrees of freedom. The arguments are those of `_closing`.
    """
    plan, stacks = problem.plan, problem.model.stacks
    subspaces = [_subspace(*each, origins) for each in zip(plan.stacks, joints, strict=True)]
    # The barrier keeps XLA from computing the factorization again for each of its uses.
    return fusion_barrier(
        factor(
            plan,
            by_link(plan, link_inertias(problem.model.links, bodies, origins)),
            by_group(plan, subspaces),
            by_group(plan, [c.drive for c in closing]),
            by_group(plan, [joint_impedance(s, dt) for s in stacks]),
        )
    )


def _drift(problem: PositionalProblem, kicked: VelocityUpdate, dt: jax.Array) -> VelocityUpdate:
    """Move the links and the joint coordinates."""
    # Links move by the velocities over the step, and keep those after it.
    state, moments = kicked.state, problem.model.links.moments
    turned = turn(moments, state.bodies.axes, kicked.ang, dt)
    bodies = drift(moments, state.bodies, kicked.vel * dt, turned)
    # Free joints have no coordinates here: their links' poses are enough.
    q = tuple(
        mine if g.unconstrained else advance(g.types, mine, speeds, dt)
        for g, mine, speeds in zip(problem.plan.stacks, state.q, kicked.speeds, strict=True)
    )
    return _unkicked(state._replace(bodies=bodies, q=q))


def _plus(a: Sequence[PerDof], b: Sequence[PerDof]) -> tuple[PerDof, ...]:
    """Add numbers for each degree of freedom, by stack."""
    return tuple(
        tuple(x + y for x, y in zip(*pair, strict=True)) for pair in zip(a, b, strict=True)
    )


def _damped(sys: System, bodies: Links, dt: jax.Array) -> Links:
    """Apply the exponential damping of velocities, `vel_damping` and `ang_damping`."""
    # The loss, exp(-c dt) - 1, is computed and added. Multiplying by exp(-c dt) would round the
    # whole velocity in every step.
    return bodies._replace(
        vel=bodies.vel + bodies.vel * jnp.expm1(sys.vel_damping * dt),
        ang=bodies.ang + bodies.ang * jnp.expm1(sys.ang_damping * dt),
    )


def _gravity(sys: System) -> Vec3:
    """Return the gravitational acceleration as components (1, batch)."""
    return Vec3(*(sys.opt.gravity[i : i + 1] for i in range(3)))


def _measured(
    problem: PositionalProblem, bodies: Links, q: Sequence[PerDof]
) -> list[Joints | None]:
    """Return the motion subspaces of each stack in the current pose; None for free joints."""
    return [
        None
        if group.unconstrained
        else directions(
            stack,
            stack_pose(stack, group.types, mine),
            parents(bodies, group),
            rows(bodies, group.links),
        )
        for group, stack, mine in zip(problem.plan.stacks, problem.model.stacks, q, strict=True)
    ]


def _subspace(group: Group, joints: Joints | None, origins: Vec3) -> tuple[Spatial, ...]:
    """Return the motion subspace about the common points; it is empty for free joints."""
    return () if joints is None else spatial(joints, rows(origins, group.links))


def _closing(
    problem: PositionalProblem,
    joints: Sequence[Joints | None],
    free: Links,
    ahead: Links,
    origins: Vec3,
    state: PositionalState,
    dt: jax.Array,
) -> list[JointClosing]:
    """Return the velocities that undo the separation of joints by the free motion over the step.

    Args:
        problem: what does not change during a step.
        joints: the motion subspaces, from `_measured`.
        free: the links with their free velocities.
        ahead: the links after the free motion (the prediction).
        origins: the common point of each link's tree.
        state: the state at the start of the step.
        dt: time step [s].
    """
    out = []
    for i, (group, stack) in enumerate(zip(problem.plan.stacks, problem.model.stacks, strict=True)):
        mine = joints[i]
        if mine is None:
            out.append(JointClosing(None, (), (), ()))
            continue
        # The separation is measured against the pose that the joint has at coordinates that its
        # rate predicts. Its parts along the degrees of freedom are no error and only correct the
        # rates.
        expected = advance(group.types, state.q[i], state.rates[i], dt)
        body, parent = rows(ahead, group.links), parents(ahead, group)
        parted = separation(stack, stack_pose(stack, group.types, expected), parent, body)
        moving = relative_velocity(mine.point, parents(free, group), rows(free, group.links))
        # Joint velocities of the free motion, which the rotors do not have.
        rates, *_ = project(mine, *moving)
        parting, ang, lin = project(mine, *(part * (1.0 / dt) for part in parted))
        # The drive opposes the separation, as a velocity about the common point.
        arm = mine.point - rows(origins, group.links)
        drive = Spatial(ang, lin + arm.cross(ang)) * -1.0
        out.append(JointClosing(drive, rates, parting, expected))
    return out


def _equality_targets(
    at: TreesAtState,
    pivots: list[GroupPivot],
    free: Links,
    ahead: Links,
    closing: Sequence[JointClosing],
    dt: jax.Array,
) -> EqualityTargets | None:
    """Return the equality constraints, and the rates that undo their violation by the free motion.

    They are treated as joints are: the violation after the free motion, over the time step. The
    arguments are those of `_closing`. It is None if the model has no equality constraints.
    """
    # `now` gives the directions at the start of the step, `parting` the violation at its end.
    sys, plan, origins = at.sys, at.plan, at.origins
    if not sys.equality_names:
        return None
    system = equality_system(at, pivots)
    parting = equality_errors(at._replace(links=ahead, q=[c.expected for c in closing]))
    still = jax.tree.map(jnp.zeros_like, by_link(plan, about(free, origins)))
    # The joints' own corrections move coupled coordinates too, so their rates are taken off.
    rates = equality_rates(at, system, (still, by_group(plan, [c.parting for c in closing])))
    return fusion_barrier(EqualityTargets(system, -rates - parting.position * (1.0 / dt)))
