"""The position and velocity update of a step: sweeps over joints, limits and contacts together.

A step has two motions. The motion *over* the step moves the links, and meets the position level:
no penetration, no violated limit. The motion *after* the step is what the links keep, and meets the
velocity level: restitution, and rest at limits. Both are changes of the free motion by the same
impulses, which the sweeps first find for positions and then change for velocities.

A sweep is one pass of projected gradient descent over all contacts and limits, each scaled by its
effective mass. Joints and equality constraints hold exactly in every pass.

Source: Mueller et al. (2020), algorithm 2: SolvePositions and SolveVelocities. Departures: all
constraints of a pass are solved together (Jacobi), not one after another (Gauss-Seidel), with
Nesterov's momentum and an exact line search.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.base import System
from brax.components import stack, total
from brax.impacts import MAX_SPEED
from brax.impulses import Impulses
from brax.maximal.equality import (
    EqualitySystem,
    EqualityTargets,
    equality_momenta,
    project_motion,
)
from brax.maximal.limits import Limits, add_loads, has_limits, rates_of, tendon_loads
from brax.maximal.limits import prepare as limits_of
from brax.maximal.links import TreesAtState
from brax.maximal.step_impulses import step_impulses
from brax.maximal.tendons import GroupedLoads
from brax.positional import contacts as contact_rows
from brax.positional import limits as limit_rows
from brax.positional.implicit_differentiation import at, solved
from brax.spatial import Spatial
from brax.tree import PerDof
from brax.tree_solve import GroupPivot, mobility, solve

T = TypeVar("T")


class TreeMotion(NamedTuple):
    """A motion of all trees, by group."""

    links: list[Spatial]
    """Velocities of the links about their trees' common points, world axes."""
    rates: list[PerDof]
    """Rates of the degrees of freedom."""


class SweepLoads(NamedTuple):
    """One number for each row of contacts and limits: an impulse, or a velocity."""

    contact: Any
    """A `contact_rows.AlongAxes`; None if the model has no contacts."""
    couple: Any
    """The same of torques; None if no contact has torsional or rolling friction."""
    limit: Any
    """An array (limits, batch); None if the model has no limits and no dry friction."""


class SweepProblem(NamedTuple):
    """The constraints that the sweeps solve."""

    at: TreesAtState
    """The links and joint coordinates at the start of the step."""
    pivots: list[GroupPivot]
    """The factorization of the trees, which gives the response to impulses."""
    contact: contact_rows.CandidateContacts | None
    """The contacts; None if the model has none."""
    limits: Limits | None
    """The limits and dry friction; None if the model has none."""
    equality: EqualitySystem | None
    """The equality constraints; None if the model has none."""


class SweepState(NamedTuple):
    """The state between two sweeps."""

    loads: SweepLoads
    """The impulses."""
    last: SweepLoads
    """The impulses before the last sweep, for the momentum."""
    first: SweepLoads
    """The impulses at the end of the position level; until then the same as `loads`."""
    speeds: SweepLoads
    """The velocities of the rows under these impulses."""
    over: TreeMotion
    """Change of the motion over the step."""
    after: TreeMotion
    """Change of the motion after the step."""


class SweepResult(NamedTuple):
    """The result of the sweeps."""

    first: SweepLoads
    """The impulses of the position level."""
    last: SweepLoads
    """The impulses of the velocity level."""
    over: TreeMotion
    """Change of the motion over the step."""
    after: TreeMotion
    """Change of the motion after the step."""


_POWER_ITERATIONS = 4
"""Number of power iterations for the largest eigenvalue of a pass."""


def resolve(
    at: TreesAtState,
    pivots: list[GroupPivot],
    free: TreeMotion,
    loads: GroupedLoads,
    targets: EqualityTargets | None,
    dt: jax.Array,
    reported: Sequence[Spatial | None] | None,
) -> tuple[TreeMotion, TreeMotion, Impulses | None]:
    """Find the changes of the motion over the step, which moves the links, and of that after it.

    Without contacts and limits both are the same. Changes are small and lose little to rounding: a
    link that nothing acts on keeps its velocity to the last bit.

    Args:
        at: the links and joint coordinates at the start of the step.
        pivots: the factorization of the trees, from `factor`.
        free: the motion of links without joints, under gravity only.
        loads: impulses on the links about the common points, from `without_drives`, and along the
            degrees of freedom, by group.
        targets: the equality constraints and their target rates; None if the model has none.
        dt: time step [s].
        reported: impulses on the links by group, which those returned are to include; None if none
            are to be returned.

    Returns:
        The change over the step, the change after it, and the impulses of contacts, equality
        constraints and tendons, or None.
    """
    # Joints and equality constraints first: their closing is linear and needs no sweeps.
    sys, plan, origins = at.sys, at.plan, at.origins
    change, closing = _without_contacts(at, pivots, loads, targets, reported is not None)
    momenta = None if reported is None else [reported, *closing]
    if not (sys.collisions or has_limits(sys)):
        none = jnp.zeros((0, 3, at.links.pos.x.shape[-1]), dt.dtype)
        acted = None if momenta is None else step_impulses(plan, origins, none, *momenta)
        return change, change, acted
    problem = _sweep_problem(at, pivots, targets, dt)
    speeds = _speeds(problem, _plus(free, change, 1.0))
    problem = _with_impacts(problem, speeds, dt)
    # The sweeps start from the motion without contacts and limits. The derivative of the result is
    # that of the solution (`implicit_differentiation`).
    end = solved(_swept, _refined, (problem, speeds, change))
    acted = None if momenta is None else _reported(problem, end.last, momenta, dt)
    return _plus(change, end.over, 1.0), _plus(change, end.after, 1.0), acted


def _without_contacts(
    at: TreesAtState,
    pivots: list[GroupPivot],
    loads: GroupedLoads,
    targets: EqualityTargets | None,
    reports: bool,
) -> tuple[TreeMotion, list[Any]]:
    """Solve joints and equality constraints; the arguments are those of `resolve`.

    Returns:
        The change of the motion, and the momenta that equality constraints add, if asked for.
    """
    change = TreeMotion(*solve(at.plan, pivots, *loads, driven=True))
    momenta: list[Any] = []
    if targets is not None:
        if reports:
            momenta = [equality_momenta(at, targets.held, change, targets.wanted)]
        change = TreeMotion(*project_motion(at, targets.held, change, targets.wanted))
    return change, momenta


def _sweep_problem(
    at: TreesAtState, pivots: list[GroupPivot], targets: EqualityTargets | None, dt: jax.Array
) -> SweepProblem:
    """Prepare contacts and limits; the arguments are those of `resolve`."""
    inverse_inertia, dof_mobility = mobility(at.plan, pivots)
    contact = contact_rows.prepare(at, inverse_inertia, dt) if at.sys.collisions else None
    limits = limits_of(at, pivots, dof_mobility, dt)
    return SweepProblem(at, pivots, contact, limits, targets and targets.held)


def _with_impacts(problem: SweepProblem, speeds: SweepLoads, dt: jax.Array) -> SweepProblem:
    """Resolve impacts at their time within the step, where the integrator allows it."""
    contact = problem.contact
    if contact is None:
        return problem
    # The time of an impact follows from one straight motion over the step. Integrators that are not
    # one kick and one drift have several.
    in_time = problem.at.sys.integrator.drifts_last
    contact = contact_rows.with_impacts(contact, speeds.contact.normal, dt, in_time)
    return problem._replace(contact=contact)


def _for_velocities(sys: System) -> int:
    """Return the number of passes at the velocity level; those at the position level come first."""
    return sys.opt.sweeps // 3


def _plus(x: T, y: T, scale: jax.Array | float) -> T:
    """Return x + scale y, leaf by leaf."""
    return jax.tree.map(lambda a, b: a + scale * b, x, y)


def _reported(
    problem: SweepProblem, loads: SweepLoads, momenta: list[Any], dt: jax.Array
) -> Impulses:
    """Return the impulses of contacts, equality constraints and tendons that sensors read.

    Args:
        problem: the constraints.
        loads: the impulses of contacts and limits.
        momenta: the momenta that tendons' forces, and equality constraints without contacts, add.
        dt: time step [s].
    """
    at, contact = problem.at, problem.contact
    force = jnp.zeros((0, 3, at.origins.x.shape[-1]))
    if contact is not None:
        force = stack(contact_rows.in_space(contact, loads.contact))
        momenta = [*momenta, contact_rows.as_momenta(contact, loads.contact, loads.couple)]
    if problem.limits is not None and problem.limits.tendons is not None:
        momenta = [*momenta, tendon_loads(problem.limits, loads.limit, at).links]
    if problem.equality is not None:
        # Equality constraints also react to what contacts do.
        found = _without_equality(problem, loads)
        momenta = [*momenta, equality_momenta(at, problem.equality, found, None)]
    return step_impulses(at.plan, at.origins, force.astype(dt.dtype), *momenta)


def _response(problem: SweepProblem, loads: SweepLoads) -> TreeMotion:
    """Return the change of motion by impulses of contacts and limits, with all joints in place."""
    found, equality = _without_equality(problem, loads), problem.equality
    if not equality:
        return found
    return TreeMotion(*project_motion(problem.at, equality, found, None))


def _without_equality(problem: SweepProblem, loads: SweepLoads) -> TreeMotion:
    """Return the same as `_response`, but without equality constraints."""
    # One pass up and down the trees, linear in the impulses.
    plan = problem.at.plan
    pushed: list[Spatial | None] = [None] * len(plan.groups)
    if problem.contact is not None and loads.contact is not None:
        pushed = contact_rows.as_momenta(problem.contact, loads.contact, loads.couple)
    found = GroupedLoads(pushed, [(None,) * len(g.qd) for g in plan.groups])
    if problem.limits is not None and loads.limit is not None:
        found = add_loads(problem.limits, loads.limit, problem.at, found)
    return TreeMotion(*solve(plan, problem.pivots, *found, driven=False))


def _speeds(problem: SweepProblem, motion: TreeMotion) -> SweepLoads:
    """Return the velocities of the rows of contacts and limits in a motion."""
    contact, limits = problem.contact, problem.limits
    along, about = (None, None) if contact is None else contact_rows.speeds(contact, motion.links)
    rates = None if limits is None else rates_of(limits, problem.at, *motion)
    return SweepLoads(along, about, rates)


def _swept(known: tuple[SweepProblem, SweepLoads, TreeMotion]) -> SweepResult:
    """Find the impulses by sweeps, starting at zero."""
    problem, speeds, change = known
    still, nothing = (jax.tree.map(jnp.zeros_like, x) for x in (change, speeds))
    start = SweepState(nothing, nothing, nothing, speeds, still, still)
    # One more pass than sweeps: the one between the two levels.
    passes = problem.at.sys.opt.sweeps + 1
    end = jax.lax.fori_loop(0, passes, lambda i, at: _sweep(problem, speeds, at, i), start)
    return SweepResult(end.first, end.loads, end.over, end.after)


def _refined(known: tuple[SweepProblem, SweepLoads, TreeMotion], found: SweepResult) -> SweepResult:
    """Return the solution with the derivative of further passes from there.

    The line search of a sweep chooses a step length for the impulses at hand. In other directions
    that length is too large, and the derivative of the sweeps themselves grows from step to step
    without bound: for a box at rest on a plane it was 1e22 after 60 steps. Here every pass has a
    step length that contracts all directions.
    """
    problem, free, _ = known
    # The step length needs no derivative: any length that contracts gives the same fixed point.
    share = _safe_share(problem, found.first)

    def passes(base: SweepLoads, loads: SweepLoads, first: SweepLoads, over: bool) -> SweepLoads:
        """Make as many passes as sweeps at one level, with the values of `base`."""

        def again(_: jax.Array, loads: SweepLoads) -> SweepLoads:
            speeds = _plus(free, _speeds(problem, _response(problem, loads)), 1.0)
            change = _changes(problem, loads, first, loads, speeds, over)[0]
            return at(base, _plus(loads, change, share))

        return jax.lax.fori_loop(0, problem.at.sys.opt.sweeps, again, loads)

    # Passes of the position level, the share that remains, and passes of the velocity level, as in
    # the sweeps. Values stay those found; only derivatives follow the passes.
    still = jax.lax.stop_gradient(found.first)
    first = passes(found.first, still, still, True)
    physical = jax.tree.map(jnp.multiply, _physical(problem, first, free), first)
    last = passes(found.last, at(found.last, physical), first, False)
    return SweepResult(first, last, _response(problem, first), _response(problem, last))


def _safe_share(problem: SweepProblem, loads: SweepLoads) -> jax.Array:
    """Return the step length that is stable in every direction, (1, batch).

    It is one over the largest eigenvalue of D A, where A maps impulses to velocities and D holds
    the effective masses. For a single row D A is one. Power iteration finds the eigenvalue.
    """
    # Rows without an impulse are inactive: they are no directions of the solution.
    acts = jax.tree.map(lambda x: (x != 0.0).astype(x.dtype), loads)
    steps: list[Any] = [None, None, problem.limits and problem.limits.effective_mass]
    if problem.contact is not None and acts.contact is not None:
        # A contact that pushes is active along its tangents and in torsion too, even where friction
        # happens to be zero.
        pushes = acts.contact.normal
        acts = acts._replace(contact=contact_rows.AlongAxes(pushes, pushes, pushes))
        steps[0] = contact_rows.AlongAxes(*problem.contact.effective_mass)
        if problem.contact.torsion is not None:
            acts = acts._replace(couple=contact_rows.AlongAxes(pushes, pushes, pushes))
            steps[1] = contact_rows.AlongAxes(*problem.contact.torsion.effective_inertia)
    scaled = jax.tree.map(jnp.multiply, acts, SweepLoads(*steps))
    # The start has a different number in each row, so that it is not perpendicular to the largest
    # eigenvector by symmetry.
    start = jax.tree.map(lambda x: x * (1.0 + 0.5 * jnp.sin(jnp.arange(len(x)))[:, None]), acts)

    def iterate(_: jax.Array, at: tuple[SweepLoads, jax.Array]) -> tuple[SweepLoads, jax.Array]:
        """Multiply by D A and normalize; the factor converges to the eigenvalue."""
        old, _ = at
        new = jax.tree.map(jnp.multiply, scaled, _speeds(problem, _response(problem, old)))
        most = jnp.sqrt(_squares(new) / _squares(old))
        return jax.tree.map(lambda x: x / most, new), most

    one = jnp.ones_like(_squares(start))
    _, most = jax.lax.fori_loop(0, _POWER_ITERATIONS, iterate, (start, one))
    # At most one: an estimate below one comes from few iterations, and no row needs a longer step.
    return jax.lax.stop_gradient(1.0 / jnp.maximum(most, 1.0))


def _squares(loads: SweepLoads) -> jax.Array:
    """Return the sum of the squares of all rows, (1, batch), never zero."""
    squares = jax.tree.map(lambda x: jnp.sum(x * x, axis=0, keepdims=True), loads)
    return total(jax.tree.leaves(squares)) + 1e-30


def _sweep(problem: SweepProblem, free: SweepLoads, at: SweepState, i: jax.Array) -> SweepState:
    """Change all impulses together: one pass of projected gradient descent.

    The passes of the position level come first. One pass between the levels takes back the impulses
    that only pushed bodies out of penetration. Then the passes of the velocity level follow.

    Args:
        problem: the constraints.
        free: velocities of the rows without contacts and limits.
        at: the state before the pass.
        i: index of the pass.
    """
    first = problem.at.sys.opt.sweeps - _for_velocities(problem.at.sys)
    between, over = i == first, i < first
    # Nesterov's momentum k / (k + 3), where k counts the passes of a level.
    k = jnp.where(over, i, i - first - 1)
    ahead = _plus(at.loads, jax.tree.map(jnp.subtract, at.loads, at.last), k / (k + 3.0))
    change, missing, decides = _changes(problem, at.loads, at.first, ahead, at.speeds, over)
    kept = _physical(problem, at.loads, free)
    change = jax.tree.map(
        lambda c, x, share: jnp.where(between, (share - 1.0) * x, c), change, at.loads, kept
    )
    moved = _response(problem, change)
    gains = _speeds(problem, moved)
    # The exact line search: the errors are minus the gradient of a quadratic in the impulses, whose
    # minimum along the change c is at c.error / c.A c, where A maps impulses to velocities. Only
    # rows whose error decides their impulse count. The errors of others, such as of a sliding
    # contact, are not to vanish.
    counted = jax.tree.map(jnp.multiply, change, decides)
    top, bottom = _dot(counted, missing), _dot(counted, gains)
    # At most one keeps the impulses within the friction cone, which is convex.
    length = jnp.clip(top / jnp.where(bottom > 0.0, bottom, 1.0), 0.0, 1.0)
    share = jnp.where(jnp.logical_or(between, bottom <= 0.0), 1.0, length)
    loads = _plus(at.loads, change, share)
    return SweepState(
        loads,
        # The velocity level starts without momentum from the position level.
        jax.tree.map(lambda a, b: jnp.where(between, a, b), loads, at.loads),
        jax.tree.map(lambda a, b: jnp.where(over, a, b), loads, at.first),
        _plus(at.speeds, gains, share),
        # The motion over the step keeps what the position level found.
        _plus(at.over, moved, jnp.where(over, share, 0.0)),
        _plus(at.after, moved, share),
    )


def _dot(a: SweepLoads, b: SweepLoads) -> jax.Array:
    """Return the scalar product over all rows, (1, batch)."""
    products = jax.tree.map(lambda x, y: x * y, a, b)
    parts = [] if products.limit is None else [products.limit]
    parts += [total(x) for x in (products.contact, products.couple) if x is not None]
    return total(jnp.sum(x, axis=0, keepdims=True) for x in parts)


def _changes(
    problem: SweepProblem,
    loads: SweepLoads,
    first: SweepLoads,
    ahead: SweepLoads,
    speeds: SweepLoads,
    over: Any,
) -> list[SweepLoads]:
    """Return the change that each row asks for by itself, the errors, and a mask of what decides.

    Args:
        problem: the constraints.
        loads: the impulses.
        first: the impulses of the position level.
        ahead: impulses extrapolated by momentum, from which the change starts.
        speeds: velocities of the rows.
        over: True at the position level, False at the velocity level.
    """
    touch: tuple[Any, ...] = (None, None, None)
    couple: tuple[Any, ...] = (None, None, None)
    limit: tuple[Any, ...] = (None, None, None)
    contact, limits = problem.contact, problem.limits
    if contact is not None and loads.contact is not None and first.contact is not None:
        # At the velocity level only contacts that have pushed ask for their velocity after the
        # step.
        leave = jnp.where(first.contact.normal > 0, contact.leave, -MAX_SPEED)
        target = jnp.where(over, contact.reach, leave)
        touch = contact_rows.change_within_cone(
            contact, loads.contact, ahead.contact, speeds.contact, target
        )
        if contact.torsion is not None:
            # Torques are bounded by the normal impulse after this change.
            pressing = loads.contact.normal + touch[0].normal
            couple = contact_rows.torque_change_within_bounds(
                contact.torsion, loads.couple, ahead.couple, speeds.couple, pressing
            )
    if limits is not None and first.limit is not None:
        limit = limit_rows.change_within_limits(
            limits, loads.limit, first.limit, ahead.limit, speeds.limit, over
        )
    return [SweepLoads(*each) for each in zip(touch, couple, limit, strict=True)]


def _physical(problem: SweepProblem, loads: SweepLoads, free: SweepLoads) -> SweepLoads:
    """Return the share of each impulse that remains without the push out of penetration."""
    touch, couple, limit = None, None, None
    if problem.contact is not None and free.contact is not None:
        share = contact_rows.physical(problem.contact, free.contact.normal)
        touch = contact_rows.AlongAxes(share, share, share)
        # Friction was proportional to the normal impulse and is taken back with it.
        couple = (
            None if problem.contact.torsion is None else contact_rows.AlongAxes(share, share, share)
        )
    if problem.limits is not None and loads.limit is not None:
        limit = limit_rows.physical(problem.limits, loads.limit, free.limit)
    return SweepLoads(touch, couple, limit)
