"""The velocity update of the spring pipeline: forces, joints, limits and contacts."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import impulses
from brax.actuators.force_law import Command
from brax.base import System
from brax.colliders.interface import Touch
from brax.colliders.narrow_phase import contact_links, find_touches, frames_of
from brax.components import Quat, Sym3, Vec3, rows, total
from brax.impulses import Impulses
from brax.maximal import tendons as tendon_rows
from brax.maximal.actuation import Actuation, actuation, actuator_wrench, applied_forces
from brax.maximal.equality import (
    EqualityTargets,
    GroupedMotion,
    equality_momenta,
    equality_rates,
    equality_system,
    project_motion,
)
from brax.maximal.equality import equality_impulses as tied_impulses
from brax.maximal.equality_errors import equality_errors
from brax.maximal.links import Links, PerDof, Stack, about, by_group, by_link, by_stack, parents
from brax.maximal.step_impulses import step_impulses
from brax.maximal.tree_solve import GroupPivot, factor, mobility, solve, without_drives
from brax.spatial import Rigid, Spatial, rigid_inertia
from brax.spring import contacts as contact_rows
from brax.spring import limits as limit_rows
from brax.spring.bodies import SpringState, StepVelocities
from brax.spring.joints import ERP, MeasuredJoints, measure
from brax.spring.model import SpringProblem
from brax.spring.sweeps import Trees, sweep
from brax.tree import Layout, join, sum_rows

RELAXATION = 0.9
"""Share of the way that a sweep moves contacts of bodies without limits; below 1, since all move at
once. The last sweep goes it all, so that nothing is left where an impulse is alone."""


def velocity_update(problem: SpringProblem, bodies: SpringState, dt: jax.Array) -> SpringState:
    """Updates velocities for `dt` at fixed positions.

    All is solved for the change of velocity, which is small and so loses little to rounding: what
    nothing acts on keeps its velocity to the last bit. Trees that nothing holds fall as a whole,
    so that change is one from falling freely.
    """
    sys, plan, model = problem.sys, problem.plan, problem.model
    axes = bodies.rot.matrix()
    vel = _damped(bodies.vel, sys.vel_damping * dt)
    spin = _damped(bodies.spin, sys.ang_damping * dt)
    ang = axes.rotate(spin)
    links = Links(bodies.pos, bodies.rot, axes, vel, ang)
    fall = _gravity(sys, dt, _floats(plan))
    origin = common_points(plan, bodies.pos)
    arm = bodies.pos - origin
    measured = measure_joints(problem, bodies, links, origin, dt)
    joints = by_group(plan, measured)
    inertias = by_link(
        plan, rigid_inertia(model.links.mass, arm, Sym3.from_principal(axes, model.links.moments))
    )
    pivots = factor(
        plan,
        inertias,
        [() if m is None else m.subspace for m in joints],
        [None if m is None else m.drive for m in joints],
        by_group(plan, [_impedance(stack, dt) for stack in model.stacks]),
    )
    motors = _driven(problem, bodies, links, measured)
    pushes = without_drives(pivots, _outer_impulses(problem, links, arm, inertias, motors, dt))
    loads = by_group(plan, _joint_impulses(problem, bodies, measured, motors, dt))
    tied = _tied(problem, pivots, links, fall, origin, measured, dt)
    asked = bodies.acted is not None
    after, over, now = _resolve(
        problem, pivots, links, fall, joints, origin, pushes, loads, tied, dt, asked
    )

    def changed(changes: Sequence[Spatial], rates: Sequence[Any]) -> StepVelocities:
        change = join(changes)
        return StepVelocities(
            vel + fall + change.lin + change.ang.cross(arm),
            spin + axes.inv_rotate(change.ang),
            tuple(
                () if m is None else tuple(u + du for u, du in zip(m.rates, dr, strict=True))
                for m, dr in zip(measured, by_stack(plan, rates), strict=True)
            ),
        )

    return bodies._replace(
        **changed(*after)._asdict(),
        q=tuple(() if m is None else m.q for m in measured),
        step_velocities=None if over is None else changed(*over),
        acted=impulses.more(bodies.acted, now),
    )


def _outer_impulses(
    problem: SpringProblem,
    links: Links,
    arm: Vec3,
    inertias: Sequence[Rigid],
    motors: Actuation | None,
    dt: jax.Array,
) -> list[Spatial]:
    """Impulses of surroundings and motors on all links about the common points, and of gravity on
    those of trees that the world holds."""
    held = [~falls for falls in by_link(problem.plan, _floats(problem.plan))]
    weights = [_gravity(problem.sys, dt, mine) for mine in held]
    pushes = [
        Spatial(i.moment.cross(w), w * i.mass) for i, w in zip(inertias, weights, strict=True)
    ]
    wrench = problem.external.wrench(links.axes, Spatial(links.ang, links.vel))
    pushed = actuator_wrench(problem.sys, problem.plan, problem.model.links, links, motors)
    wrench = pushed if wrench is None else wrench if pushed is None else wrench + pushed
    if wrench is None:
        return pushes
    about = Spatial(wrench.ang + arm.cross(wrench.lin), wrench.lin) * dt
    return [a + b for a, b in zip(pushes, by_link(problem.plan, about), strict=True)]


def _floats(plan: Layout) -> np.ndarray:
    """Which links belong to trees that nothing holds."""
    free = [p for g in plan.groups if g.unconstrained for p in g.links]
    return np.isin(plan.root, free)


def _gravity(sys: System, dt: jax.Array, on: np.ndarray) -> Vec3:
    """Change of velocity by gravity in a step, (links, 1); zero where it is not on."""
    change = Vec3(*(sys.opt.gravity[i : i + 1] * dt for i in range(3)))
    return jax.tree.map(lambda x: jnp.where(on[:, None], x, jnp.zeros_like(x)), change)


def _damped(v: Vec3, rate: jax.Array) -> Vec3:
    # Not times exp(rate): near one that rounds the same way at every step.
    return v + v * jnp.expm1(rate)


def common_points(plan: Layout, pos: Vec3) -> Vec3:
    """Each link's tree's common point, its root's centre of mass; one row if there is one tree."""
    return rows(pos, [0] if set(plan.root) == {0} else plan.root)


def measure_joints(
    problem: SpringProblem, bodies: SpringState, links: Links, origin: Vec3, dt: jax.Array
) -> list[MeasuredJoints | None]:
    """Measures the joints of all stacks; None for links that nothing holds."""
    out: list[MeasuredJoints | None] = []
    for stack, model, q in zip(problem.plan.stacks, problem.model.stacks, bodies.q, strict=True):
        if stack.unconstrained:
            out.append(None)
            continue
        mine = rows(links, stack.links)
        about = origin if origin.x.shape[0] == 1 else rows(origin, stack.links)
        out.append(measure(model, stack.types, q, parents(links, stack), mine, about, dt))
    return out


def _impedance(stack: Stack, dt: jax.Array) -> PerDof:
    return tuple(a + d * dt for a, d in zip(stack.armature, stack.damping, strict=True))


def _driven(
    problem: SpringProblem,
    bodies: SpringState,
    links: Links,
    measured: Sequence[MeasuredJoints | None],
) -> Actuation | None:
    """The actuators and tendons, as the joints are measured."""
    return actuation(
        problem.sys,
        problem.plan,
        problem.model.links,
        Command(problem.act, bodies.activation),
        links,
        [() if m is None else m.q for m in measured],
        [() if m is None else m.rates for m in measured],
    )


def _joint_impulses(
    problem: SpringProblem,
    bodies: SpringState,
    measured: Sequence[MeasuredJoints | None],
    motors: Actuation | None,
    dt: jax.Array,
) -> list[PerDof]:
    """Impulses along the degrees of freedom: motors, springs, damping and rotors, by stack.

    A rotor has kept the rate that it had, whatever the links' free motion made of the joint's.
    """
    forces = applied_forces(
        problem.sys,
        problem.plan,
        problem.model.stacks,
        motors,
        [() if m is None else m.q for m in measured],
    )
    return [
        ()
        if joints is None
        else tuple(
            dt * (f - c * u) + a * (old - u)
            for f, c, u, a, old in zip(
                mine, stack.damping, joints.rates, stack.armature, kept, strict=True
            )
        )
        for mine, stack, joints, kept in zip(
            forces, problem.model.stacks, measured, bodies.rates, strict=True
        )
    ]


def _resolve(
    problem: SpringProblem,
    pivots: list[GroupPivot],
    links: Links,
    fall: Vec3,
    joints: Sequence[MeasuredJoints | None],
    origin: Vec3,
    pushes: Sequence[Spatial],
    loads: Sequence[PerDof],
    tied: EqualityTargets | None,
    dt: jax.Array,
    asked: bool,
) -> tuple[GroupedMotion, GroupedMotion | None, Impulses | None]:
    """Motion of velocities and rates with limits and contacts, by sweeps from those without.

    Where impacts are resolved in time also those over the step, in which an impulse has its share.
    And the impulses of contacts and ties, where they are asked for.
    """
    sys, plan = problem.sys, problem.plan

    def changes_by(pushed: Any, loaded: Any) -> GroupedMotion:
        found = solve(plan, pivots, pushed, loaded, driven=True)
        return found if tied is None else project_motion(sys, plan, tied.held, found, tied.wanted)

    contact: list[contact_rows.ContactRows] = []
    sides = _sides(problem)
    trees = Trees.of(sys, plan)
    follows = [trees.follows(side) for side in sides]

    def acting(pushed: Any, loaded: Any, touch: Any) -> Impulses:
        still: list[Any] = [None] * len(plan.groups)
        force = contact_rows.on_second(contact, touch, dt.dtype, links.pos.x.shape[-1])
        touched = contact_rows.add_impulses(still, contact, touch, sides, plan)
        if tied is None:
            return step_impulses(plan, origin, force, touched)
        free = solve(plan, pivots, pushed, loaded, driven=True)
        held = tied_impulses(sys, plan, tied.held, free, tied.wanted)
        return step_impulses(
            plan, origin, force, touched, equality_momenta(sys, plan, tied.held, held)
        )

    ropes = any(sys.tendon_limited) or any(sys.tendon_dry)
    if not (sys.collisions or any(sys.joint_limited) or any(sys.joint_dry) or ropes):
        acts = acting(pushes, loads, []) if asked else None
        return changes_by(pushes, loads), None, acts
    link_mobility, dof_mobility = mobility(plan, pivots)
    bounds = [
        [] if m is None else limit_rows.bounds(sys, group, stack, m.q, m.rates, w, dt)
        for group, stack, m, w in zip(
            plan.groups, by_group(plan, problem.model.stacks), joints, dof_mobility, strict=True
        )
    ]
    stops: list[tuple[tuple[int, ...], limit_rows.LimitRows]] = []
    tendon = None
    if ropes:
        q = by_stack(plan, [() if m is None else m.q for m in joints])
        tendon = tendon_rows.tendon_jacobian(sys, plan, problem.model.links, links, origin, q)
    if tendon is not None:
        stops = _stops(problem, pivots, tendon, links, fall, joints, origin, dt)
    in_time = bool(sys.collisions) and sys.opt.time_of_impact
    if sys.collisions:
        free = changes_by(pushes, loads)[0] if in_time else None
        contact = contact_rows.prepare(
            _touches(problem, links),
            sides,
            problem,
            link_mobility,
            origin,
            links,
            fall,
            free,
            follows,
            dt,
        )

    def loaded_by(touch: Any, limit: Any, rope: Any) -> tuple[Any, Any]:
        pushed = contact_rows.add_impulses(pushes, contact, touch, sides, plan)
        loaded = [limit_rows.add_impulses(*each) for each in zip(loads, bounds, limit, strict=True)]
        if tendon is None:
            return pushed, loaded
        whole = total(
            sum_rows(x, which, len(sys.tendon_names))
            for (which, _), x in zip(stops, rope, strict=True)
        )
        each: Any = [x or (None,) * len(g.qd) for x, g in zip(loaded, plan.groups, strict=True)]
        pulled = tendon_rows.loads(sys, plan, tendon, whole)
        return tendon_rows.summed(([*pushed], each), pulled)

    def respond(touch: Any, limit: Any, rope: Any) -> tuple[Any, Any]:
        return changes_by(*loaded_by(touch, limit, rope))

    def asked_for(i: jax.Array, impulses: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        changes, rates = respond(*impulses)
        apart = jnp.where(i < sys.opt.sweeps - 1, RELAXATION, 1.0).astype(dt.dtype)
        gains = [
            (jnp.where(mine, 1.0, apart), jnp.where(mine, contact_rows.ACROSS, apart))
            for mine in follows
        ]
        touch = [
            contact_rows.update(
                c,
                t,
                contact_rows.change(c.arms, changes, side, plan),
                contact_rows.turning(changes, side, plan) if c.torsion is not None else None,
                gain,
            )
            for c, t, side, gain in zip(contact, impulses[0], sides, gains, strict=True)
        ]
        limit = [
            [limit_rows.update(b, old, rate) for b, old in zip(mine, olds, strict=True)]
            for mine, olds, rate in zip(bounds, impulses[1], rates, strict=True)
        ]
        if tendon is None:
            return touch, limit, []
        pace = tendon_rows.rates(sys, plan, tendon, changes, rates)
        rope = [
            limit_rows.update(b, old, (rows(pace, which),))
            for (which, b), old in zip(stops, impulses[2], strict=True)
        ]
        return touch, limit, rope

    def within(wanted: tuple[Any, Any, Any], impulses: tuple[Any, Any, Any]) -> Any:
        touch = [contact_rows.within(c, t) for c, t in zip(contact, impulses[0], strict=True)]
        limit = [
            [limit_rows.within(*each) for each in zip(*mine, strict=True)]
            for mine in zip(bounds, wanted[1], impulses[1], strict=True)
        ]
        rope = [
            limit_rows.within(b, *each)
            for (_, b), *each in zip(stops, wanted[2], impulses[2], strict=True)
        ]
        return touch, limit, rope

    def square(change: tuple[Any, Any, Any]) -> jax.Array:
        touch = [
            trees.between(contact_rows.square(c, t), side)
            for c, t, side in zip(contact, change[0], sides, strict=True)
        ]
        limit = [
            trees.along(limit_rows.square(b, x), group.links)
            for group, mine, each in zip(plan.groups, bounds, change[1], strict=True)
            for b, x in zip(mine, each, strict=True)
        ]
        rope = [
            jnp.sum(limit_rows.square(b, x), axis=0, keepdims=True)
            for (_, b), x in zip(stops, change[2], strict=True)
        ]
        return total([*touch, *limit, *rope])

    def scaled(change: tuple[Any, Any, Any], factor: jax.Array) -> Any:
        shares = [trees.least(factor, side) for side in sides]
        touch = [
            jax.tree.map(lambda x, s=share: x * s, t)
            for t, share in zip(change[0], shares, strict=True)
        ]
        limit = [
            [x * trees.pick(factor, group.links) for x in each]
            for group, each in zip(plan.groups, change[1], strict=True)
        ]
        return touch, limit, [x * factor for x in change[2]]

    start = (
        [contact_rows.no_impulse(c) for c in contact],
        [[jnp.zeros_like(b.step) for b in mine] for mine in bounds],
        [jnp.zeros_like(b.low - b.step) for _, b in stops],
    )
    touch, limit, rope = sweep(sys.opt.sweeps, start, asked_for, within, square, scaled)
    after = respond(touch, limit, rope)
    acts = acting(*loaded_by(touch, limit, rope), touch) if asked else None
    if not in_time:
        return after, None, acts
    shares = [contact_rows.over_step(c, t) for c, t in zip(contact, touch, strict=True)]
    return after, respond(shares, limit, rope), acts


def _stops(
    problem: SpringProblem,
    pivots: list[GroupPivot],
    tendon: tendon_rows.TendonJacobian,
    links: Links,
    fall: Vec3,
    joints: Sequence[MeasuredJoints | None],
    origin: Vec3,
    dt: jax.Array,
) -> list[tuple[tuple[int, ...], limit_rows.LimitRows]]:
    """What bounds tendons."""
    sys, plan = problem.sys, problem.plan
    falling = about(links._replace(vel=links.vel + fall), origin)
    rates = [() if m is None else m.rates for m in joints]
    now = tendon_rows.rates(sys, plan, tendon, by_link(plan, falling), rates)
    mobile = tendon_rows.mobility(sys, plan, pivots, tendon)
    return limit_rows.tendon_bounds(sys, tendon.length, now, mobile, dt)


def _tied(
    problem: SpringProblem,
    pivots: list[GroupPivot],
    links: Links,
    fall: Vec3,
    origin: Vec3,
    measured: Sequence[MeasuredJoints | None],
    dt: jax.Array,
) -> EqualityTargets | None:
    """The ties, which stop what parts links, close what is open, and follow the motion's curvature,
    as joints do."""
    sys, plan = problem.sys, problem.plan
    if not sys.equality_names:
        return None
    at = equality_errors(
        *(sys, plan, problem.model.links, links, origin),
        [() if m is None else m.q for m in measured],
    )
    held = equality_system(sys, plan, pivots, origin, at)
    rates = by_group(plan, [() if m is None else m.rates for m in measured])
    falling = about(links._replace(vel=links.vel + fall), origin)
    now = equality_rates(sys, plan, held, (by_link(plan, falling), rates))
    return EqualityTargets(held, at.apart * (-ERP / dt) - at.bend * (0.5 * dt) - now)


def _sides(problem: SpringProblem) -> list[contact_rows.Sides]:
    place = (*problem.plan.position, -1)
    return [
        (tuple(place[i] for i in first), tuple(place[i] for i in second))
        for first, second in contact_links(problem.sys)
    ]


def _touches(problem: SpringProblem, links: Links) -> list[Touch]:
    in_order = problem.plan.position

    def frames(asked: Sequence[int]) -> tuple[Vec3, Quat]:
        if min(asked) < 0:
            return frames_of(*rows((links.pos, links.rot), in_order))(asked)
        return rows((links.pos, links.rot), [in_order[link] for link in asked])

    return find_touches(problem.sys, problem.model.shapes, frames)
