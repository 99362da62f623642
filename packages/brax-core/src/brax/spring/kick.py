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
from brax.maximal import tendons as roped
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
from brax.spring import contacts as touching
from brax.spring import limits as bounded
from brax.spring.bodies import Bodies, Way
from brax.spring.joints import ERP, Measured, measure
from brax.spring.model import Problem
from brax.tree import Layout, join, sum_rows

RELAXATION = 0.9
"""Share of the way that a pass moves an impulse; below 1, since all move at once. The last one
goes it all, so that nothing is left where an impulse is alone."""


def kick(problem: Problem, bodies: Bodies, dt: jax.Array) -> Bodies:
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

    def changed(changes: Sequence[Spatial], rates: Sequence[Any]) -> Way:
        change = join(changes)
        return Way(
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
        way=None if over is None else changed(*over),
        acted=impulses.more(bodies.acted, now),
    )


def _outer_impulses(
    problem: Problem,
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
    wrench = problem.surroundings.wrench(links.axes, Spatial(links.ang, links.vel))
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
    problem: Problem, bodies: Bodies, links: Links, origin: Vec3, dt: jax.Array
) -> list[Measured | None]:
    """Measures the joints of all stacks; None for links that nothing holds."""
    out: list[Measured | None] = []
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
    problem: Problem, bodies: Bodies, links: Links, measured: Sequence[Measured | None]
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
    problem: Problem,
    bodies: Bodies,
    measured: Sequence[Measured | None],
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
    problem: Problem,
    pivots: list[GroupPivot],
    links: Links,
    fall: Vec3,
    joints: Sequence[Measured | None],
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

    contact: list[touching.Rows] = []
    sides = _sides(problem)

    def acting(pushed: Any, loaded: Any, touch: Any) -> Impulses:
        still: list[Any] = [None] * len(plan.groups)
        force = touching.on_second(contact, touch, dt.dtype, links.pos.x.shape[-1])
        touched = touching.add_impulses(still, contact, touch, sides, plan)
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
        [] if m is None else bounded.bounds(sys, group, stack, m.q, m.rates, w, dt)
        for group, stack, m, w in zip(
            plan.groups, by_group(plan, problem.model.stacks), joints, dof_mobility, strict=True
        )
    ]
    stops: list[tuple[tuple[int, ...], bounded.Bound]] = []
    cord = None
    if ropes:
        q = by_stack(plan, [() if m is None else m.q for m in joints])
        cord = roped.tendon_jacobian(sys, plan, problem.model.links, links, origin, q)
    if cord is not None:
        stops = _stops(problem, pivots, cord, links, fall, joints, origin, dt)
    in_time = bool(sys.collisions) and sys.opt.time_of_impact
    if sys.collisions:
        free = changes_by(pushes, loads)[0] if in_time else None
        contact = touching.prepare(
            _touches(problem, links),
            sides,
            problem,
            link_mobility,
            origin,
            links,
            fall,
            free,
            dt,
        )

    def loaded_by(touch: Any, limit: Any, rope: Any) -> tuple[Any, Any]:
        pushed = touching.add_impulses(pushes, contact, touch, sides, plan)
        loaded = [bounded.add_impulses(*each) for each in zip(loads, bounds, limit, strict=True)]
        if cord is None:
            return pushed, loaded
        whole = total(
            sum_rows(x, which, len(sys.tendon_names))
            for (which, _), x in zip(stops, rope, strict=True)
        )
        each: Any = [x or (None,) * len(g.qd) for x, g in zip(loaded, plan.groups, strict=True)]
        pulled = roped.loads(sys, plan, cord, whole)
        return roped.summed(([*pushed], each), pulled)

    def respond(touch: Any, limit: Any, rope: Any) -> tuple[Any, Any]:
        return changes_by(*loaded_by(touch, limit, rope))

    def sweep(i: jax.Array, impulses: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        changes, rates = respond(*impulses)
        gain = jnp.where(i < sys.opt.sweeps - 1, RELAXATION, 1.0).astype(dt.dtype)
        touch = [
            touching.update(
                c,
                t,
                touching.change(c.arms, changes, side, plan),
                touching.turning(changes, side, plan) if c.twisting is not None else None,
                gain,
            )
            for c, t, side in zip(contact, impulses[0], sides, strict=True)
        ]
        limit = [
            [bounded.update(b, old, rate, gain) for b, old in zip(mine, olds, strict=True)]
            for mine, olds, rate in zip(bounds, impulses[1], rates, strict=True)
        ]
        if cord is None:
            return touch, limit, []
        pace = roped.rates(sys, plan, cord, changes, rates)
        rope = [
            bounded.update(b, old, (rows(pace, which),), gain)
            for (which, b), old in zip(stops, impulses[2], strict=True)
        ]
        return touch, limit, rope

    start = (
        [touching.no_impulse(c) for c in contact],
        [[jnp.zeros_like(b.step) for b in mine] for mine in bounds],
        [jnp.zeros_like(b.low - b.step) for _, b in stops],
    )
    touch, limit, rope = jax.lax.fori_loop(0, sys.opt.sweeps, sweep, start)
    after = respond(touch, limit, rope)
    acts = acting(*loaded_by(touch, limit, rope), touch) if asked else None
    if not in_time:
        return after, None, acts
    shares = [touching.over_step(c, t) for c, t in zip(contact, touch, strict=True)]
    return after, respond(shares, limit, rope), acts


def _stops(
    problem: Problem,
    pivots: list[GroupPivot],
    cord: roped.TendonJacobian,
    links: Links,
    fall: Vec3,
    joints: Sequence[Measured | None],
    origin: Vec3,
    dt: jax.Array,
) -> list[tuple[tuple[int, ...], bounded.Bound]]:
    """What bounds tendons."""
    sys, plan = problem.sys, problem.plan
    falling = about(links._replace(vel=links.vel + fall), origin)
    rates = [() if m is None else m.rates for m in joints]
    now = roped.rates(sys, plan, cord, by_link(plan, falling), rates)
    mobile = roped.mobility(sys, plan, pivots, cord)
    return bounded.cord_bounds(sys, cord.length, now, mobile, dt)


def _tied(
    problem: Problem,
    pivots: list[GroupPivot],
    links: Links,
    fall: Vec3,
    origin: Vec3,
    measured: Sequence[Measured | None],
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


def _sides(problem: Problem) -> list[touching.Sides]:
    place = (*problem.plan.position, -1)
    return [
        (tuple(place[i] for i in first), tuple(place[i] for i in second))
        for first, second in contact_links(problem.sys)
    ]


def _touches(problem: Problem, links: Links) -> list[Touch]:
    in_order = problem.plan.position

    def frames(asked: Sequence[int]) -> tuple[Vec3, Quat]:
        if min(asked) < 0:
            return frames_of(*rows((links.pos, links.rot), in_order))(asked)
        return rows((links.pos, links.rot), [in_order[link] for link in asked])

    return find_touches(problem.sys, problem.model.shapes, frames)
