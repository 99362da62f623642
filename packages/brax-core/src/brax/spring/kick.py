"""The velocity update of the spring pipeline: forces, joints, limits and contacts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.drive import actuator_forces
from brax.base import System
from brax.colliders.pairs import contacts
from brax.components import Quat, Sym3, Vec3, rows
from brax.fusion import fence
from brax.spatial import Spatial, Sym6, rigid_inertia
from brax.spring import contacts as touching
from brax.spring.bodies import Bodies
from brax.spring.joints import Measured, measure
from brax.spring.model import GroupModel
from brax.spring.solve import Pivot, factor, mobility, solve
from brax.tree import Group, Layout, down, join, sum_rows

SWEEPS = 5
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
    measured = [
        None
        if group.unconstrained
        else fence(
            measure(
                models[i],
                group.types,
                down(damped, group, plan),
                down(models, group, plan),
                damped[i],
                origins[i],
                dt,
            )
        )
        for i, group in enumerate(plan.groups)
    ]
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
) -> tuple[list[Sym6], list[Spatial], list[Spatial]]:
    """Spatial inertias, velocities, and momenta with gravity, about the common points."""
    gravity = Vec3(*(problem.sys.opt.gravity[i : i + 1] for i in range(3)))
    inertias, velocities, momenta = [], [], []
    for model, body, origin in zip(problem.models, bodies, origins, strict=True):
        arm = body.pos - origin
        moments = Sym3.from_principal(body.rot, model.moments)
        linear = (body.vel + gravity * dt) * model.mass
        velocities.append(Spatial(body.ang, body.vel - body.ang.cross(arm)))
        momenta.append(Spatial(moments.mul(body.ang) + arm.cross(linear), linear))
        inertias.append(rigid_inertia(model.mass + 0 * arm.x, arm, moments))
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
    out, used = [], 0
    for kind in group.types:
        mine = q[used : used + kind.q_width]
        used += kind.q_width
        same = kind.q_width == kind.qd_width  # type: ignore[attr-defined]
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
    velocities, rates = solve(plan, pivots, momenta, impulses)
    limited = [
        any(sys.joint_limited[j] for stack_ in g.joints for j in stack_) for g in plan.groups
    ]
    if not sys.collisions and not any(limited):
        return velocities, rates
    link_mobility, dof_mobility = mobility(plan, pivots)
    origin = join(list(origins))
    touching_rows = _contact_rows(
        problem, bodies, join(link_mobility), origin, join(list(before)), join(velocities), dt
    )
    bounds = [
        _bounds(problem, m, p, dt) if lim and m is not None else ()
        for m, p, lim in zip(measured, problem.models, limited, strict=True)
    ]

    def sweep(_: int, carry: Any) -> Any:
        contact_impulses, limit_impulses, velocities, rates = carry
        if touching_rows:
            every = join(velocities)
            contact_impulses = [
                touching.update(row, old, touching.relative_velocity(row, every, origin))
                for row, old in zip(touching_rows, contact_impulses, strict=True)
            ]
        limit_impulses = [
            tuple(
                _limit(*b, step=touching.RELAXATION / w, old=old, rate=u)
                for b, w, old, u in zip(bound, mobile, olds, rate, strict=False)
            )
            for bound, mobile, olds, rate in zip(
                bounds, dof_mobility, limit_impulses, rates, strict=True
            )
        ]
        pushed = momenta
        if touching_rows:
            added = fence(
                touching.link_impulses(touching_rows, contact_impulses, origin, len(plan.order))
            )
            pushed = [m + rows(added, g.links) for m, g in zip(momenta, plan.groups, strict=True)]
        loads = [
            tuple(i + x for i, x in zip(mine, extra, strict=True)) if extra else mine
            for mine, extra in zip(impulses, limit_impulses, strict=True)
        ]
        return contact_impulses, limit_impulses, *solve(plan, pivots, pushed, loads)

    start = (
        [touching.Impulse(*[jnp.zeros_like(row.target)] * 3) for row in touching_rows],
        [
            tuple(jnp.zeros_like(u) for u in rate) if bound else ()
            for rate, bound in zip(rates, bounds, strict=True)
        ],
        velocities,
        rates,
    )
    carry = jax.lax.fori_loop(0, SWEEPS, sweep, start)
    return carry[2], carry[3]


def _bounds(
    problem: Problem, joints: Measured, model: GroupModel, dt: jax.Array
) -> tuple[tuple[jax.Array, jax.Array], ...]:
    """Least and greatest rate of each degree of freedom that keeps, or restores, its limits."""
    erp, far = problem.sys.baumgarte_erp, 1e10
    out = []
    for q, lower, upper in zip(joints.q, model.lower, model.upper, strict=False):
        low = (jnp.maximum(lower, -far) - q) / dt
        high = (jnp.minimum(upper, far) - q) / dt
        out.append((jnp.where(low > 0, erp * low, low), jnp.where(high < 0, erp * high, high)))
    return tuple(out)


def _limit(
    low: jax.Array, high: jax.Array, *, step: jax.Array, old: jax.Array, rate: jax.Array
) -> jax.Array:
    """Moves a limit's impulse: it only pushes back into the range."""
    return jnp.maximum(old + step * (low - rate), 0.0) + jnp.minimum(
        old + step * (high - rate), 0.0
    )


def _contact_rows(
    problem: Problem,
    bodies: Sequence[Bodies],
    mobile: Sym6,
    origin: Vec3,
    before: Spatial,
    free: Spatial,
    dt: jax.Array,
) -> list[touching.Row]:
    sys, plan = problem.sys, problem.plan
    if not sys.collisions:
        return []
    pos, rot = link_poses(problem.models, bodies)
    pos, rot = rows(join(pos), plan.position), rows(join(rot), plan.position)
    found = contacts(sys, pos, rot)
    place = (*plan.position, -1)
    prepared = [
        touching.prepare(
            c,
            tuple(tuple(place[i] for i in side) for side in (c.link1, c.link2)),
            mobile,
            origin,
            before,
            free,
            sys.baumgarte_erp,
            dt,
        )
        for c in found
    ]
    ready = touching.share([r for r, _ in prepared], [h for _, h in prepared], len(plan.order))
    return fence(ready)


def link_poses(
    models: Sequence[GroupModel], bodies: Sequence[Bodies]
) -> tuple[list[Vec3], list[Quat]]:
    """Link frames in the world, by group."""
    return (
        [b.pos + b.rot.rotate(m.link_pos) for m, b in zip(models, bodies, strict=True)],
        [b.rot.mul(m.link_rot) for m, b in zip(models, bodies, strict=True)],
    )


def _moved(
    body: Bodies,
    joints: Measured | None,
    velocity: Spatial,
    rates: tuple[jax.Array, ...],
    origin: Vec3,
) -> Bodies:
    vel = velocity.lin + velocity.ang.cross(body.pos - origin)
    q = body.q if joints is None else joints.q
    return body._replace(vel=vel, ang=velocity.ang, q=q, rates=tuple(rates))
