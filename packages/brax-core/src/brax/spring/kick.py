"""The velocity update of the spring pipeline: forces, joints, limits and contacts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.drive import actuator_forces
from brax.base import System
from brax.colliders.pairs import Contacts, contact_links, contacts, frames_of
from brax.components import Quat, Sym3, Vec3, rows
from brax.fusion import fence
from brax.spatial import Rigid, Spatial, rigid_inertia
from brax.spring import contacts as touching
from brax.spring.bodies import Bodies
from brax.spring.joints import Measured, measure
from brax.spring.model import GroupModel
from brax.spring.solve import Pivot, factor, mobility, solve
from brax.tree import Group, Layout, down, join, sum_rows

SWEEPS = 4
"""Passes over contacts and limits in one step."""


class Problem(NamedTuple):
    """All that the velocity update of one step knows."""

    sys: System
    plan: Layout
    models: tuple[GroupModel, ...]
    act: jax.Array


def kick(problem: Problem, bodies: Sequence[Bodies], dt: jax.Array) -> list[Bodies]:
    """Updates velocities for `dt` at fixed positions."""
    plan, models = problem.plan, problem.models
    origins = origin_points(plan, bodies)
    damped = [_damp(problem.sys, b, dt) for b in bodies]
    measured = measure_joints(problem, damped, origins, dt)
    inertias, before, momenta = _momenta(problem, damped, origins, dt)
    impulses = _joint_impulses(problem, measured, dt)
    impedance = [
        tuple(a + d * dt for a, d in zip(m.armature, m.damping, strict=True)) for m in models
    ]
    pivots = factor(
        plan,
        inertias,
        [() if m is None else m.subspace for m in measured],
        [None if m is None else m.drive for m in measured],
        impedance,
    )
    velocities, rates = _resolve(
        problem, pivots, damped, measured, origins, before, momenta, impulses, dt
    )
    return [
        _moved(body, m, v, r, o)
        for body, m, v, r, o in zip(damped, measured, velocities, rates, origins, strict=True)
    ]


def measure_joints(
    problem: Problem, bodies: Sequence[Bodies], origins: Sequence[Vec3], dt: jax.Array
) -> list[Measured | None]:
    """Measures the joints of all groups; None for links that nothing holds."""
    plan, models = problem.plan, problem.models
    return [
        None
        if group.unconstrained
        else fence(
            measure(
                models[i],
                group.types,
                down(bodies, group, plan),
                bodies[i],
                origins[i],
                dt,
            )
        )
        for i, group in enumerate(plan.groups)
    ]


def origin_points(plan: Layout, bodies: Sequence[Bodies]) -> list[Vec3]:
    """For each link, its tree's common point: the root's centre of mass."""
    positions = [b.pos for b in bodies]
    every = join(positions) if len(set(plan.root)) > 1 else None
    out = []
    for group, pos in zip(plan.groups, positions, strict=True):
        roots = [plan.root[p] for p in group.links]
        if group.parents is None:
            out.append(pos)
        else:
            out.append(rows(positions[0] if every is None else every, roots))
    return out


def _damp(sys: System, body: Bodies, dt: jax.Array) -> Bodies:
    return body._replace(
        vel=body.vel * jnp.exp(sys.vel_damping * dt), ang=body.ang * jnp.exp(sys.ang_damping * dt)
    )


def _momenta(
    problem: Problem, bodies: Sequence[Bodies], origins: Sequence[Vec3], dt: jax.Array
) -> tuple[list[Rigid], list[Spatial], list[Spatial]]:
    """Spatial inertias, velocities, and momenta with gravity, about the common points."""
    gravity = Vec3(*(problem.sys.opt.gravity[i : i + 1] for i in range(3)))
    inertias, velocities, momenta = [], [], []
    for model, body, origin in zip(problem.models, bodies, origins, strict=True):
        arm = fence(body.pos - origin)
        moments = fence(Sym3.from_principal(body.axes, model.moments))
        linear = fence((body.vel + gravity * dt) * model.mass)
        velocities.append(Spatial(body.ang, body.vel - body.ang.cross(arm)))
        momenta.append(Spatial(moments.mul(body.ang) + arm.cross(linear), linear))
        inertias.append(rigid_inertia(model.mass, arm, moments))
    return fence((inertias, velocities, momenta))


def _joint_impulses(
    problem: Problem, measured: Sequence[Measured | None], dt: jax.Array
) -> list[tuple[jax.Array, ...]]:
    """Impulses along the degrees of freedom: motors, springs, and the rotor's momentum."""
    drive = motor_forces(
        problem,
        [() if m is None else m.q for m in measured],
        [() if m is None else m.rates for m in measured],
    )
    out: list[tuple[jax.Array, ...]] = []
    for group, model, joints in zip(problem.plan.groups, problem.models, measured, strict=True):
        if joints is None:
            out.append(())
            continue
        coordinates = per_dof(group, joints.q)
        out.append(
            tuple(
                dt * (motor - k * (q - ref)) + a * u
                for motor, k, q, ref, a, u in zip(
                    _motors(drive, group, joints.rates),
                    model.stiffness,
                    coordinates,
                    model.springref,
                    model.armature,
                    joints.rates,
                    strict=True,
                )
            )
        )
    return out


def _motors(drive: jax.Array | None, group: Group, rates: tuple[Any, ...]) -> tuple[Any, ...]:
    if drive is None:
        return tuple(jnp.zeros_like(r) for r in rates)
    return tuple(rows(drive, index) for index in group.qd)


def per_dof(group: Group, q: tuple[jax.Array, ...]) -> list[jax.Array]:
    """The coordinate that belongs to each degree of freedom; zero for types that have none."""
    out: list[jax.Array] = []
    used = 0
    for kind in group.types:
        mine = q[used : used + kind.q_width]
        used += kind.q_width
        same = kind.q_width == kind.qd_width
        out += mine if same else [jnp.zeros_like(mine[0])] * kind.qd_width
    return out


def motor_forces(
    problem: Problem, q: Sequence[tuple[jax.Array, ...]], rates: Sequence[tuple[jax.Array, ...]]
) -> jax.Array | None:
    """Actuator forces on all degrees of freedom, (nv, batch)."""
    sys, plan = problem.sys, problem.plan
    if not sys.actuator_names:
        return None
    zero = jnp.zeros_like(problem.act[:1])
    all_q = _by_index([g.q for g in plan.groups], q, sys.q_size(), zero)
    all_qd = _by_index([(g.qd,) for g in plan.groups], rates, sys.qd_size(), zero)
    force = actuator_forces(sys, problem.act, all_q, all_qd)
    starts = sys.joint_qd_start()
    return sum_rows(force, tuple(starts[j] for j in sys.actuator_joint), sys.qd_size())


def _by_index(
    places: Sequence[Any], values: Sequence[tuple[jax.Array, ...]], n: int, zero: jax.Array
) -> jax.Array:
    """Puts rows kept by group back in the model's order; what is not there is zero."""
    index: list[int] = []
    parts: list[jax.Array] = []
    for stack_, given in zip(places, values, strict=True):
        flat = [i for place in stack_ for i in place]
        for where, value in zip(flat, given, strict=False):
            index += list(where)
            parts.append(value)
    missing = [i for i in range(n) if i not in index]
    table = join([*parts, *([zero] * len(missing))])
    at = {i: k for k, i in enumerate([*index, *missing])}
    return rows(table, [at[i] for i in range(n)])


def _resolve(
    problem: Problem,
    pivots: list[Pivot],
    bodies: Sequence[Bodies],
    measured: Sequence[Measured | None],
    origins: Sequence[Vec3],
    before: Sequence[Spatial],
    momenta: Sequence[Spatial],
    impulses: Sequence[tuple[jax.Array, ...]],
    dt: jax.Array,
) -> tuple[Sequence[Spatial], Sequence[tuple[jax.Array, ...]]]:
    """Velocities with limits and contacts, by sweeps from those without."""
    sys, plan = problem.sys, problem.plan
    limited = [any(sys.joint_limited[j] for place in g.joints for j in place) for g in plan.groups]
    if not sys.collisions and not any(limited):
        return solve(plan, pivots, momenta, impulses)
    link_mobility, dof_mobility = mobility(plan, pivots)
    bounds = [
        _bounds(problem, m, model, w, dt) if on and m is not None else ()
        for m, model, w, on in zip(measured, problem.models, dof_mobility, limited, strict=True)
    ]
    contact: list[touching.Rows] = []
    sides: list[touching.Sides] = []
    if sys.collisions:
        place = (*plan.position, -1)
        sides = [
            (tuple(place[i] for i in first), tuple(place[i] for i in second))
            for first, second in contact_links(sys)
        ]
        found = _contacts(problem, bodies)
        contact = touching.prepare(found, sides, plan, link_mobility, origins, before, sys, dt)

    def sweep(i: jax.Array, carry: Any) -> Any:
        touch, limit, velocities, rates = carry
        begun = (i > 0).astype(dt.dtype)
        limit = [
            tuple(_limit(b, old, u) * begun for b, old, u in zip(bound, olds, rate, strict=False))
            for bound, olds, rate in zip(bounds, limit, rates, strict=True)
        ]
        pushed = momenta
        if contact:
            touch = [
                touching.update(c, t, touching.relative_velocity(c, velocities, side, plan), begun)
                for c, t, side in zip(contact, touch, sides, strict=True)
            ]
            pushed = touching.add_impulses(momenta, contact, touch, sides, plan)
        loads = [
            tuple(i + x for i, x in zip(mine, extra, strict=True)) if extra else mine
            for mine, extra in zip(impulses, limit, strict=True)
        ]
        return touch, limit, *solve(plan, pivots, pushed, loads)

    still = [() if m is None else tuple(jnp.zeros_like(u) for u in m.rates) for m in measured]
    start = (
        [touching.Impulse(*[jnp.zeros_like(c.target)] * 3) for c in contact],
        [rate if bound else () for rate, bound in zip(still, bounds, strict=True)],
        list(before),
        still,
    )
    # The first pass finds the velocities without contacts and limits, the others mend them.
    _, _, velocities, rates = jax.lax.fori_loop(0, SWEEPS + 1, sweep, start)
    return velocities, rates


class Bound(NamedTuple):
    """A limited degree of freedom."""

    low: jax.Array
    """Least rate that keeps, or restores, the lower limit."""
    high: jax.Array
    step: jax.Array
    """Impulse per unit of excess rate."""


def _bounds(
    problem: Problem,
    joints: Measured,
    model: GroupModel,
    mobile: tuple[jax.Array, ...],
    dt: jax.Array,
) -> tuple[Bound, ...]:
    """The limits of a group's degrees of freedom."""
    erp, far = problem.sys.baumgarte_erp, 1e10
    out = []
    for q, lower, upper, w in zip(joints.q, model.lower, model.upper, mobile, strict=False):
        low = (jnp.maximum(lower, -far) - q) / dt
        high = (jnp.minimum(upper, far) - q) / dt
        out.append(
            Bound(
                jnp.where(low > 0, erp * low, low),
                jnp.where(high < 0, erp * high, high),
                touching.RELAXATION / w,
            )
        )
    return fence(tuple(out))


def _limit(bound: Bound, old: jax.Array, rate: jax.Array) -> jax.Array:
    """Moves a limit's impulse: it only pushes back into the range."""
    return jnp.maximum(old + bound.step * (bound.low - rate), 0.0) + jnp.minimum(
        old + bound.step * (bound.high - rate), 0.0
    )


def _contacts(problem: Problem, bodies: Sequence[Bodies]) -> list[Contacts]:
    plan = problem.plan
    pos, rot = fence(link_poses(problem.models, bodies))

    def frames(links: Sequence[int]) -> tuple[Vec3, Quat]:
        if min(links) < 0:
            in_order = rows(join(pos), plan.position), rows(join(rot), plan.position)
            return frames_of(*in_order)(links)
        side = tuple(plan.position[link] for link in links)
        return touching.pick(pos, side, plan), touching.pick(rot, side, plan)

    return fence(contacts(problem.sys, frames))


def link_poses(
    models: Sequence[GroupModel], bodies: Sequence[Bodies]
) -> tuple[list[Vec3], list[Quat]]:
    """Link frames in the world, by group."""
    return (
        [b.pos + b.axes.rotate(m.link_pos) for m, b in zip(models, bodies, strict=True)],
        [b.rot.mul(m.link_rot) for m, b in zip(models, bodies, strict=True)],
    )


def _moved(
    body: Bodies,
    joints: Measured | None,
    velocity: Spatial,
    rates: tuple[jax.Array, ...],
    origin: Vec3,
) -> Bodies:
    vel = fence(velocity.lin + velocity.ang.cross(body.pos - origin))
    q = body.q if joints is None else joints.q
    return body._replace(vel=vel, ang=velocity.ang, q=q, rates=tuple(rates))
