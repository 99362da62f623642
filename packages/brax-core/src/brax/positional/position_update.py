"""The velocities over a step and after it: joints, limits and contacts together."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.narrow_phase import frames_of
from brax.components import Vec3, rows, stack, total
from brax.impacts import MAX_SPEED
from brax.impulses import Impulses
from brax.maximal import tendons as tendon_rows
from brax.maximal.coordinates import link_poses
from brax.maximal.equality import (
    EqualitySystem,
    EqualityTargets,
    equality_impulses,
    equality_momenta,
    project_motion,
)
from brax.maximal.links import Links, PerDof, about, by_group, by_link
from brax.maximal.step_impulses import step_impulses
from brax.maximal.tree_solve import GroupPivot, mobility, solve, without_drives
from brax.positional import contacts as contact_rows
from brax.positional import limits as limit_rows
from brax.positional.implicit_differentiation import at, solved
from brax.positional.model import PositionalModel
from brax.spatial import Spatial, Sym6
from brax.tree import Layout

T = TypeVar("T")


class TreeMotion(NamedTuple):
    """Velocities of the links about their trees' common points, and rates, by group."""

    links: list[Spatial]
    rates: list[PerDof]


class SweepLoads(NamedTuple):
    """What belongs to contacts and limits: impulses, or velocities."""

    contact: Any
    """A `contact_rows.AxisImpulse`; None if nothing can touch."""
    couple: Any
    """A `contact_rows.AxisTorque`; None if nothing hinders turning where it touches."""
    limit: Any
    """An array (limits, batch); None if there are none."""


class SweepProblem(NamedTuple):
    """What the sweeps know."""

    sys: System
    plan: Layout
    pivots: list[GroupPivot]
    contact: contact_rows.CandidateContacts | None
    limits: limit_rows.Limits | None
    held: EqualitySystem | None
    """What is tied; None if nothing is."""


class SweepState(NamedTuple):
    """Where the sweeps are."""

    loads: SweepLoads
    last: SweepLoads
    """What the loads were before."""
    first: SweepLoads
    """What the loads were when the positions had been seen to."""
    speeds: SweepLoads
    """Velocities that belong to the loads."""
    over: TreeMotion
    """Change of the motion over the step."""
    after: TreeMotion
    """Change of the motion after it."""


class SweepResult(NamedTuple):
    """What the sweeps find."""

    first: SweepLoads
    """The loads that see to the positions."""
    last: SweepLoads
    """Those that see to the velocities too."""
    over: TreeMotion
    """Change of the motion over the step."""
    after: TreeMotion
    """Change of the motion after it."""


_POWER_ITERATIONS = 4
"""Of power iteration."""


def resolve(
    sys: System,
    plan: Layout,
    model: PositionalModel,
    pivots: list[GroupPivot],
    bodies: Links,
    origins: Vec3,
    q: Sequence[PerDof],
    free: TreeMotion,
    pushes: Sequence[Spatial],
    loads: Sequence[PerDof],
    tied: EqualityTargets | None,
    dt: jax.Array,
    asked: bool,
) -> tuple[TreeMotion, TreeMotion, Impulses | None]:
    """Finds how the motion over the step, which moves the links, and that after it change.

    Without contacts and limits they are the same. Where bodies touch, the impulses that keep
    them from sinking in are found first; then the same impulses are changed to what restitution
    asks for, so that what was pushed out of another body does not fly off.

    Changes are small, and lose little to rounding: what nothing acts on keeps its velocity.

    Args:
        sys: the model.
        plan: the layout.
        model: constants.
        pivots: the joints, from `factor`.
        bodies: the links at the start of the step.
        origins: the common point of each link's tree.
        q: coordinates, by stack.
        free: the motion if gravity alone acted, on links without joints.
        pushes: impulses on the links about the common points, by group.
        loads: impulses along the degrees of freedom, by stack.
        tied: what is tied; None if nothing is.
        dt: time step.
        asked: whether the impulses are asked for.

    Returns:
        The change over the step, that after it, and the impulses of contacts and ties.
    """
    pushed = without_drives(pivots, pushes)
    change = TreeMotion(*solve(plan, pivots, pushed, by_group(plan, loads), driven=True))
    ties: list[Any] = []
    if tied is not None:
        if asked:
            ties = [_momenta_of_ties(sys, plan, tied.held, change, tied.wanted)]
        change = TreeMotion(*project_motion(sys, plan, tied.held, change, tied.wanted))
    ropes = any(sys.tendon_limited) or any(sys.tendon_dry)
    if not (sys.collisions or any(sys.joint_limited) or any(sys.joint_dry) or ropes):
        none = jnp.zeros((0, 3, bodies.pos.x.shape[-1]), dt.dtype)
        return change, change, step_impulses(plan, origins, none, *ties) if asked else None
    mobile, freedom = mobility(plan, pivots)
    was = by_link(plan, about(bodies, origins))
    centres = by_link(plan, origins)
    contact = _contacts(sys, plan, model, bodies, mobile, centres, was, dt)
    tendons = (
        tendon_rows.tendon_jacobian(sys, plan, model.links, bodies, origins, q) if ropes else None
    )
    limits = limit_rows.prepare(sys, plan, model.stacks, q, freedom, tendons, pivots, dt)
    setting = SweepProblem(sys, plan, pivots, contact, limits, tied and tied.held)
    speeds = _speeds(setting, _plus(free, change, 1.0))
    if contact is not None:
        if sys.integrator.drifts_last:
            contact = contact_rows.in_time(contact, speeds.contact.normal, dt)
        contact = contact_rows.leave_late(contact, speeds.contact.normal, dt)
        setting = setting._replace(contact=contact)
    end = solved(_searched, _refined, (setting, speeds, change))
    acts = _acted(setting, origins, end.last, ties, dt) if asked else None
    return _plus(change, end.over, 1.0), _plus(change, end.after, 1.0), acts


def _for_velocities(sys: System) -> int:
    """How many of the passes ask for velocities; the first ones ask for positions."""
    return sys.opt.sweeps // 3


def _plus(x: T, y: T, scale: jax.Array | float) -> T:
    return jax.tree.map(lambda a, b: a + scale * b, x, y)


def _acted(
    setting: SweepProblem, origins: Vec3, loads: SweepLoads, ties: list[Any], dt: jax.Array
) -> Impulses:
    """The impulses of contacts and ties; `ties` are the momenta by those without contacts."""
    plan, contact, force = setting.plan, setting.contact, jnp.zeros((0, 3, origins.x.shape[-1]))
    if contact is not None:
        force = stack(contact_rows.in_space(contact, loads.contact))
        ties = [*ties, contact_rows.as_momenta(contact, loads.contact, loads.couple, plan)]
    if setting.held is not None:
        found = _unheld(setting, loads)
        ties = [*ties, _momenta_of_ties(setting.sys, plan, setting.held, found, None)]
    return step_impulses(plan, origins, force.astype(dt.dtype), *ties)


def _momenta_of_ties(
    sys: System, plan: Layout, held: EqualitySystem, motion: TreeMotion, wanted: jax.Array | None
) -> list[Spatial | None]:
    """What ties add to the momenta of the links to keep a motion; args as of `project_motion`."""
    return equality_momenta(sys, plan, held, equality_impulses(sys, plan, held, motion, wanted))


def _response(setting: SweepProblem, loads: SweepLoads) -> TreeMotion:
    """The change of motion by impulses of contacts and limits."""
    found, held = _unheld(setting, loads), setting.held
    return TreeMotion(*(project_motion(setting.sys, setting.plan, held, found) if held else found))


def _unheld(setting: SweepProblem, loads: SweepLoads) -> TreeMotion:
    """The change of motion by impulses of contacts and limits if nothing were tied."""
    plan = setting.plan
    pushed: list[Spatial | None] = [None] * len(plan.groups)
    pushes: list[tuple[jax.Array | None, ...]] = [(None,) * len(g.qd) for g in plan.groups]
    if setting.contact is not None and loads.contact is not None:
        pushed = contact_rows.as_momenta(setting.contact, loads.contact, loads.couple, plan)
    if setting.limits is not None and loads.limit is not None:
        limited = limit_rows.as_loads(setting.limits, loads.limit, setting.sys, plan)
        pushed, pushes = tendon_rows.summed((pushed, pushes), limited)
    return TreeMotion(*solve(plan, setting.pivots, pushed, pushes, driven=False))


def _speeds(setting: SweepProblem, motion: TreeMotion) -> SweepLoads:
    """Velocities at the contacts and limits."""
    contact, limits, plan = setting.contact, setting.limits, setting.plan
    return SweepLoads(
        None
        if contact is None
        else contact_rows.AxisImpulse(*contact_rows.relative_velocity(contact, motion.links, plan)),
        None if contact is None else contact_rows.relative_spin(contact, motion.links, plan),
        None if limits is None else limit_rows.rates_of(limits, setting.sys, plan, *motion),
    )


def _searched(known: tuple[SweepProblem, SweepLoads, TreeMotion]) -> SweepResult:
    """Finds the impulses by sweeps, from none."""
    setting, speeds, change = known
    still, nothing = (jax.tree.map(jnp.zeros_like, x) for x in (change, speeds))
    start = SweepState(nothing, nothing, nothing, speeds, still, still)
    turns = setting.sys.opt.sweeps + 1
    end = jax.lax.fori_loop(0, turns, lambda i, at: _sweep(setting, speeds, at, i), start)
    return SweepResult(end.first, end.loads, end.over, end.after)


def _refined(known: tuple[SweepProblem, SweepLoads, TreeMotion], found: SweepResult) -> SweepResult:
    """What was found, with the derivative of passes from there.

    A sweep goes as far as suits the impulses that it starts from. For other directions that is too
    far, so that the derivative of the sweeps themselves grows from step to step without bounds.
    Here every pass goes only as far as is safe for all directions.
    """
    setting, free, _ = known
    share = _safe(setting, found.first)

    def passes(base: SweepLoads, loads: SweepLoads, first: SweepLoads, over: bool) -> SweepLoads:
        def again(_: jax.Array, loads: SweepLoads) -> SweepLoads:
            speeds = _plus(free, _speeds(setting, _response(setting, loads)), 1.0)
            change = _wanted(setting, loads, first, loads, speeds, over)[0]
            return at(base, _plus(loads, change, share))

        return jax.lax.fori_loop(0, setting.sys.opt.sweeps, again, loads)

    still = jax.lax.stop_gradient(found.first)
    first = passes(found.first, still, still, True)
    physical = jax.tree.map(jnp.multiply, _physical(setting, first, free), first)
    last = passes(found.last, at(found.last, physical), first, False)
    return SweepResult(first, last, _response(setting, first), _response(setting, last))


def _safe(setting: SweepProblem, loads: SweepLoads) -> jax.Array:
    """How far a pass may go in every direction, (1, batch).

    That is one over the largest eigenvalue of what impulses do together, as a multiple of what each
    alone does; power iteration finds it. Of a single impulse it is one.
    """
    acts = jax.tree.map(lambda x: (x != 0.0).astype(x.dtype), loads)
    steps: list[Any] = [None, None, setting.limits and setting.limits.step]
    if setting.contact is not None and acts.contact is not None:
        pushes = acts.contact.normal
        acts = acts._replace(contact=contact_rows.AxisImpulse(pushes, pushes, pushes))
        steps[0] = contact_rows.AxisImpulse(*setting.contact.step)
        if setting.contact.turning is not None:
            acts = acts._replace(couple=contact_rows.AxisTorque(pushes, pushes, pushes))
            steps[1] = contact_rows.AxisTorque(*setting.contact.turning.step)
    alone = jax.tree.map(jnp.multiply, acts, SweepLoads(*steps))
    # Unlike numbers, so that no direction is left out.
    start = jax.tree.map(lambda x: x * (1.0 + 0.5 * jnp.sin(jnp.arange(len(x)))[:, None]), acts)

    def turn(_: jax.Array, at: tuple[SweepLoads, jax.Array]) -> tuple[SweepLoads, jax.Array]:
        old, _ = at
        new = jax.tree.map(jnp.multiply, alone, _speeds(setting, _response(setting, old)))
        most = jnp.sqrt(_squares(new) / _squares(old))
        return jax.tree.map(lambda x: x / most, new), most

    one = jnp.ones_like(_squares(start))
    _, most = jax.lax.fori_loop(0, _POWER_ITERATIONS, turn, (start, one))
    return jax.lax.stop_gradient(1.0 / jnp.maximum(most, 1.0))


def _squares(loads: SweepLoads) -> jax.Array:
    squares = jax.tree.map(lambda x: jnp.sum(x * x, axis=0, keepdims=True), loads)
    return total(jax.tree.leaves(squares)) + 1e-30


def _sweep(setting: SweepProblem, free: SweepLoads, at: SweepState, i: jax.Array) -> SweepState:
    """Moves all impulses together, as far along as lessens what is missing most.

    Projected descent with Nesterov's momentum and an exact line search. Between the passes for
    positions and those for velocities one takes back what only pushed apart.
    """
    first = setting.sys.opt.sweeps - _for_velocities(setting.sys)
    turns, over = i == first, i < first
    k = jnp.where(over, i, i - first - 1)
    ahead = _plus(at.loads, jax.tree.map(jnp.subtract, at.loads, at.last), k / (k + 3.0))
    change, missing, decides = _wanted(setting, at.loads, at.first, ahead, at.speeds, over)
    kept = _physical(setting, at.loads, free)
    change = jax.tree.map(
        lambda c, x, share: jnp.where(turns, (share - 1.0) * x, c), change, at.loads, kept
    )
    moved = _response(setting, change)
    gains = _speeds(setting, moved)
    counted = jax.tree.map(jnp.multiply, change, decides)
    top, bottom = _dot(counted, missing), _dot(counted, gains)
    way = jnp.clip(top / jnp.where(bottom > 0.0, bottom, 1.0), 0.0, 1.0)
    share = jnp.where(jnp.logical_or(turns, bottom <= 0.0), 1.0, way)
    loads = _plus(at.loads, change, share)
    return SweepState(
        loads,
        jax.tree.map(lambda a, b: jnp.where(turns, a, b), loads, at.loads),
        jax.tree.map(lambda a, b: jnp.where(over, a, b), loads, at.first),
        _plus(at.speeds, gains, share),
        _plus(at.over, moved, jnp.where(over, share, 0.0)),
        _plus(at.after, moved, share),
    )


def _dot(a: SweepLoads, b: SweepLoads) -> jax.Array:
    products = jax.tree.map(lambda x, y: x * y, a, b)
    parts = [] if products.limit is None else [products.limit]
    parts += [total(x) for x in (products.contact, products.couple) if x is not None]
    return total(jnp.sum(x, axis=0, keepdims=True) for x in parts)


def _wanted(
    setting: SweepProblem,
    loads: SweepLoads,
    first: SweepLoads,
    ahead: SweepLoads,
    speeds: SweepLoads,
    over: Any,
) -> list[SweepLoads]:
    """The change of each impulse if it were the only one, what is missing, and where it decides."""
    touch: tuple[Any, ...] = (None, None, None)
    couple: tuple[Any, ...] = (None, None, None)
    limit: tuple[Any, ...] = (None, None, None)
    contact, limits = setting.contact, setting.limits
    if contact is not None and loads.contact is not None and first.contact is not None:
        leave = jnp.where(first.contact.normal > 0, contact.leave, -MAX_SPEED)
        target = jnp.where(over, contact.reach, leave)
        touch = contact_rows.wanted(contact, loads.contact, ahead.contact, speeds.contact, target)
        if contact.turning is not None:
            pressing = loads.contact.normal + touch[0].normal
            couple = contact_rows.wanted_couple(
                contact.turning, loads.couple, ahead.couple, speeds.couple, pressing
            )
    if limits is not None and first.limit is not None:
        low, high = limit_rows.at_rest(limits, first.limit)
        low, high = jnp.where(over, limits.low, low), jnp.where(over, limits.high, high)
        limit = limit_rows.wanted(limits, loads.limit, ahead.limit, speeds.limit, low, high)
    return [SweepLoads(*each) for each in zip(touch, couple, limit, strict=True)]


def _physical(setting: SweepProblem, loads: SweepLoads, free: SweepLoads) -> SweepLoads:
    """Which part of the impulses is not there to push apart what had already sunk in."""
    touch, couple, limit = None, None, None
    if setting.contact is not None and free.contact is not None:
        share = contact_rows.physical(setting.contact, free.contact.normal)
        touch = contact_rows.AxisImpulse(share, share, share)
        couple = (
            None
            if setting.contact.turning is None
            else contact_rows.AxisTorque(share, share, share)
        )
    if setting.limits is not None and loads.limit is not None:
        limit = limit_rows.physical(setting.limits, loads.limit, free.limit)
    return SweepLoads(touch, couple, limit)


def _contacts(
    sys: System,
    plan: Layout,
    model: PositionalModel,
    bodies: Links,
    mobile: Sequence[Sym6],
    origins: Sequence[Vec3],
    before: Sequence[Spatial],
    dt: jax.Array,
) -> contact_rows.CandidateContacts | None:
    if not sys.collisions:
        return None
    found = contact_rows.find(sys, frames_of(*rows(link_poses(model.links, bodies), plan.position)))
    gravity = jnp.sqrt(jnp.sum(sys.opt.gravity * sys.opt.gravity, axis=0, keepdims=True) + 1e-30)
    sides = contact_rows.sides_of(sys, plan)
    turns = any(group.condim > 3 for group in sys.collisions)
    return contact_rows.prepare(found, sides, plan, mobile, origins, before, gravity, dt, turns)
