"""One physics step of the positional pipeline: predict, correct positions, then velocities."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax import impulses
from brax.actuators.force_law import Command
from brax.base import System
from brax.components import Sym3, Vec3, rows
from brax.impulses import Impulses
from brax.integrators import Moves
from brax.kernels.fusion_barrier import fusion_barrier
from brax.maximal.actuation import (
    Actuation,
    actuation,
    actuator_wrench,
    applied_forces,
    next_activation,
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
from brax.maximal.links import Links, PerDof, Stack, about, by_group, by_link, by_stack, parents
from brax.maximal.tree_solve import GroupPivot, factor
from brax.positional.bodies import drift, turn
from brax.positional.model import PositionalProblem
from brax.positional.position_update import TreeMotion, resolve
from brax.spatial import Rigid, Spatial, rigid_inertia
from brax.tree import Group, join


class PositionalState(NamedTuple):
    """The state inside a step."""

    bodies: Links
    q: tuple[PerDof, ...]
    """Coordinates, by stack; none for links that nothing holds."""
    rates: tuple[PerDof, ...]
    """Rates, those of the rotors, by stack."""
    activation: jax.Array | None
    """Of the actuators that are stateful, (na, batch); None if there are none."""
    acted: Impulses | None = None
    """The impulses so far of the step; None if nobody asks for them."""


class JointClosing(NamedTuple):
    """What the joints of a stack ask for, to be closed at the end of the step."""

    drive: Spatial | None
    """Change of the relative velocity beside the degrees of freedom, about the tree's common
    point."""
    rates: PerDof
    """Rates of links that move freely."""
    parting: PerDof
    """Rates at which these would move away from the coordinates that were expected."""
    expected: PerDof
    """These coordinates."""


class VelocityUpdate(NamedTuple):
    """The state between a kick and a drift."""

    state: PositionalState
    """Its velocities are those after the step."""
    vel: Vec3
    """Velocities of the centres of mass over the step, which move the links."""
    ang: Vec3
    speeds: tuple[PerDof, ...]
    """Rates of the coordinates over the step, by stack."""


def physics_step(
    problem: PositionalProblem, state: PositionalState, dt: jax.Array
) -> PositionalState:
    """Advances by one time step."""
    sys, told = problem.sys, Command(problem.act, state.activation)
    found: VelocityUpdate = sys.integrator.step(_PositionalMoves(problem), _unkicked(state), dt)
    activation = next_activation(
        sys, problem.plan, problem.model.links, told, state.bodies, state.q, state.rates, dt
    )
    return found.state._replace(activation=activation)


class _PositionalMoves(Moves[VelocityUpdate]):
    """Kicks and drifts."""

    def __init__(self, problem: PositionalProblem) -> None:
        self.problem = problem

    def kick(self, state: VelocityUpdate, dt: jax.Array) -> VelocityUpdate:
        return _kick(self.problem, state.state, dt)

    def drift(self, state: VelocityUpdate, dt: jax.Array) -> VelocityUpdate:
        return _drift(self.problem, state, dt)


def _unkicked(state: PositionalState) -> VelocityUpdate:
    return VelocityUpdate(state, state.bodies.vel, state.bodies.ang, state.rates)


def _kick(problem: PositionalProblem, state: PositionalState, dt: jax.Array) -> VelocityUpdate:
    """Finds the velocities over the next `dt`, and those after it."""
    plan, model = problem.plan, problem.model
    bodies = _damped(problem.sys, state.bodies, dt)
    origins = rows(bodies.pos, plan.root)
    joints = _measured(problem, bodies, state.q)
    free = bodies._replace(vel=bodies.vel + _gravity(problem.sys) * dt)
    turned = turn(model.links.moments, free.axes, free.ang, dt)
    ahead = drift(model.links.moments, free, free.vel * dt, turned)
    closing = _closing(problem, joints, free, ahead, origins, state, dt)
    told = Command(problem.act, state.activation)
    motors = actuation(problem.sys, plan, model.links, told, bodies, state.q, state.rates)
    pivots = fusion_barrier(
        factor(
            plan,
            by_link(plan, _inertias(problem, bodies, origins)),
            by_group(
                plan, [_subspace(*each, origins) for each in zip(plan.stacks, joints, strict=True)]
            ),
            by_group(plan, [c.drive for c in closing]),
            by_group(plan, [_impedance(s, dt) for s in model.stacks]),
        )
    )
    tied = _tied(problem, pivots, origins, state, free, ahead, closing, dt)
    rates = [c.rates for c in closing]
    found = fusion_barrier(
        resolve(
            problem.sys,
            plan,
            model,
            pivots,
            bodies,
            origins,
            state.q,
            TreeMotion(by_link(plan, about(free, origins)), by_group(plan, rates)),
            _outer_impulses(problem, bodies, origins, motors, dt),
            _joint_impulses(problem, state, closing, motors, dt),
            tied,
            dt,
            state.acted is not None,
        )
    )
    (over, over_rates), (after, after_rates) = (
        (join(m.links), by_stack(plan, m.rates)) for m in found[:2]
    )
    acted = impulses.more(state.acted, found[2])
    arm = bodies.pos - origins
    kept = free._replace(vel=free.vel + after.lin + after.ang.cross(arm), ang=free.ang + after.ang)
    return VelocityUpdate(
        PositionalState(kept, state.q, _plus(rates, after_rates), state.activation, acted),
        free.vel + over.lin + over.ang.cross(arm),
        free.ang + over.ang,
        _plus(_plus(state.rates, over_rates), [c.parting for c in closing]),
    )


def _drift(problem: PositionalProblem, kicked: VelocityUpdate, dt: jax.Array) -> VelocityUpdate:
    """Moves the links and the coordinates."""
    state, moments = kicked.state, problem.model.links.moments
    turned = turn(moments, state.bodies.axes, kicked.ang, dt)
    bodies = drift(moments, state.bodies, kicked.vel * dt, turned)
    q = tuple(
        mine if g.unconstrained else advance(g.types, mine, speeds, dt)
        for g, mine, speeds in zip(problem.plan.stacks, state.q, kicked.speeds, strict=True)
    )
    return _unkicked(state._replace(bodies=bodies, q=q))


def _plus(a: Sequence[PerDof], b: Sequence[PerDof]) -> tuple[PerDof, ...]:
    """Sums of numbers for each degree of freedom, by stack."""
    return tuple(
        tuple(x + y for x, y in zip(*pair, strict=True)) for pair in zip(a, b, strict=True)
    )


def _damped(sys: System, bodies: Links, dt: jax.Array) -> Links:
    # Only what is lost is rounded, so that single precision does not drift over many steps.
    return bodies._replace(
        vel=bodies.vel + bodies.vel * jnp.expm1(sys.vel_damping * dt),
        ang=bodies.ang + bodies.ang * jnp.expm1(sys.ang_damping * dt),
    )


def _joint_impulses(
    problem: PositionalProblem,
    state: PositionalState,
    closing: Sequence[JointClosing],
    motors: Actuation | None,
    dt: jax.Array,
) -> list[PerDof]:
    """Impulses along all degrees of freedom, on links that move freely, by stack.

    A rotor has kept the rate that it had, whatever the links' free motion made of the joint's.
    """
    stacks = problem.model.stacks
    forces = applied_forces(problem.sys, problem.plan, stacks, motors, state.q)
    return [
        tuple(
            dt * (f - c * u) + a * (old - u)
            for f, c, u, a, old in zip(
                mine, stack.damping, parting.rates, stack.armature, rates, strict=True
            )
        )
        if mine
        else ()
        for mine, stack, parting, rates in zip(forces, stacks, closing, state.rates, strict=True)
    ]


def _impedance(stack: Stack, dt: jax.Array) -> PerDof:
    return tuple(a + d * dt for a, d in zip(stack.armature, stack.damping, strict=True))


def _gravity(sys: System) -> Vec3:
    return Vec3(*(sys.opt.gravity[i : i + 1] for i in range(3)))


def _measured(
    problem: PositionalProblem, bodies: Links, q: Sequence[PerDof]
) -> list[Joints | None]:
    """The degrees of freedom of each stack as they stand; None for links that nothing holds."""
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
    """Asks the joints to undo what parts links that move freely for the step, from `free`."""
    out = []
    for i, (group, stack) in enumerate(zip(problem.plan.stacks, problem.model.stacks, strict=True)):
        mine = joints[i]
        if mine is None:
            out.append(JointClosing(None, (), (), ()))
            continue
        expected = advance(group.types, state.q[i], state.rates[i], dt)
        body, parent = rows(ahead, group.links), parents(ahead, group)
        parted = separation(stack, stack_pose(stack, group.types, expected), parent, body)
        moving = relative_velocity(mine.point, parents(free, group), rows(free, group.links))
        rates, *_ = project(mine, *moving)
        parting, ang, lin = project(mine, *(part * (1.0 / dt) for part in parted))
        arm = mine.point - rows(origins, group.links)
        drive = Spatial(ang, lin + arm.cross(ang)) * -1.0
        out.append(JointClosing(drive, rates, parting, expected))
    return out


def _tied(
    problem: PositionalProblem,
    pivots: list[GroupPivot],
    origins: Vec3,
    state: PositionalState,
    free: Links,
    ahead: Links,
    closing: Sequence[JointClosing],
    dt: jax.Array,
) -> EqualityTargets | None:
    """The ties, which are to undo what parts links that move freely, as joints do."""
    sys, plan, masses = problem.sys, problem.plan, problem.model.links
    if not sys.equality_names:
        return None
    now = equality_errors(sys, plan, masses, state.bodies, origins, state.q)
    held = equality_system(sys, plan, pivots, origins, now)
    parting = equality_errors(sys, plan, masses, ahead, origins, [c.expected for c in closing])
    still = jax.tree.map(jnp.zeros_like, by_link(plan, about(free, origins)))
    rates = equality_rates(sys, plan, held, (still, by_group(plan, [c.parting for c in closing])))
    return fusion_barrier(EqualityTargets(held, -rates - parting.apart * (1.0 / dt)))


def _inertias(problem: PositionalProblem, bodies: Links, origins: Vec3) -> Rigid:
    """Spatial inertias about the common points."""
    model = problem.model.links
    moments = Sym3.from_principal(bodies.axes, model.moments)
    return rigid_inertia(model.mass, bodies.pos - origins, moments)


def _outer_impulses(
    problem: PositionalProblem,
    bodies: Links,
    origins: Vec3,
    motors: Actuation | None,
    dt: jax.Array,
) -> list[Spatial]:
    """Impulses of surroundings and motors on the links, about the common points, by group."""
    plan, model = problem.plan, problem.model.links
    nothing = jax.tree.map(jnp.zeros_like, bodies.vel)
    force = Spatial(nothing, nothing)
    for push in (
        problem.external.wrench(bodies.axes, Spatial(bodies.ang, bodies.vel)),
        actuator_wrench(problem.sys, plan, model, bodies, motors),
    ):
        force = force if push is None else force + push
    arm = bodies.pos - origins
    return by_link(plan, Spatial(force.ang + arm.cross(force.lin), force.lin) * dt)
