"""The velocity update of the spring pipeline: forces, joints, limits and contacts.

The update solves for the change of velocity at fixed positions. Joints and equality constraints
are solved exactly over the trees (`brax.tree_solve`); contacts and limits by sweeps around
them (`sweeps`). Each contact's friction cone is enforced in `contacts.project`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax import impulses
from brax.actuators.force_law import Command
from brax.base import System
from brax.components import Vec3, rows
from brax.impulses import Impulses
from brax.maximal.actuation import (
    Actuation,
    actuation,
    joint_impedance,
    joint_impulses,
    outer_impulses,
    tendon_momenta,
)
from brax.maximal.equality import (
    EqualityTargets,
    GroupedMotion,
    equality_momenta,
    equality_rates,
    equality_system,
    project_motion,
)
from brax.maximal.limits import has_limits, tendon_loads
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
from brax.maximal.step_impulses import step_impulses
from brax.maximal.tendons import GroupedLoads
from brax.spatial import Rigid, Spatial
from brax.spring import contacts as contact_rows
from brax.spring.bodies import SpringState, StepVelocities
from brax.spring.constraints import (
    ConstraintImpulses,
    ConstraintRows,
    constraint_rows,
)
from brax.spring.joints import ERP, MeasuredJoints, measure
from brax.spring.model import SpringProblem
from brax.spring.sweeps import sweep
from brax.tree import Layout, PerDof, join
from brax.tree_solve import GroupPivot, factor, solve, without_drives


def velocity_update(problem: SpringProblem, bodies: SpringState, dt: jax.Array) -> SpringState:
    """Update velocities over a step of `dt` [s] at fixed positions.

    The unknown is the change of velocity, which is small and so loses little to rounding: a body on
    which nothing acts keeps its velocity to the last bit. In trees without a joint to the world the
    unknown is the change relative to free fall.
    """
    sys, plan, model = problem.sys, problem.plan, problem.model
    axes = bodies.rot.matrix()
    vel = _damped(bodies.vel, sys.vel_damping * dt)
    spin = _damped(bodies.spin, sys.ang_damping * dt)
    links = Links(bodies.pos, bodies.rot, axes, vel, axes.rotate(spin))
    gravity_change = _gravity_change(sys, dt, _falls_freely(plan))
    # All spatial vectors of a tree are about one point; `arm` is from there to the centre of mass.
    origins = common_points(plan, bodies.pos)
    arm = bodies.pos - origins
    measured = measure_joints(problem, bodies, links, origins, dt)
    joints = by_group(plan, measured)
    inertias = by_link(plan, link_inertias(model.links, links, origins))
    # One factorization of the tree's inertia serves all solves of the step, as in Featherstone's
    # articulated-body algorithm (2008, chapter 7); armature and implicit damping are in it.
    pivots = factor(
        plan,
        inertias,
        [() if m is None else m.subspace for m in joints],
        [None if m is None else m.drive for m in joints],
        by_group(plan, [joint_impedance(stack, dt) for stack in model.stacks]),
    )
    # Actuators and springs are explicit: they see the state at the start of the step.
    q = [() if m is None else m.q for m in measured]
    at = TreesAtState(sys, plan, model.links, model.stacks, links, origins, q)
    motors = _actuation(problem, bodies, links, measured)
    momenta = without_drives(pivots, _link_impulses(problem, at, inertias, motors, dt))
    free = [() if m is None else m.rates for m in measured]
    dofs = joint_impulses(at, motors, free, bodies.rates, dt)
    loads = GroupedLoads(momenta, by_group(plan, dofs))
    rates = [() if m is None else m.rates for m in joints]
    equality = _equality(at, pivots, rates, gravity_change, dt)
    trees = TreeResponse(at, pivots, equality)
    solved = _solve(problem, trees, rates, gravity_change, loads, dt)
    acted = bodies.acted and impulses.more(bodies.acted, _acted(trees, solved, motors, dt))

    def changed(motion: GroupedMotion) -> StepVelocities:
        change = join(motion[0])
        return StepVelocities(
            # A tree's velocities are about its common point; a link's is that of its own centre.
            vel + gravity_change + change.lin + change.ang.cross(arm),
            spin + axes.inv_rotate(change.ang),
            tuple(
                () if m is None else tuple(u + du for u, du in zip(m.rates, dr, strict=True))
                for m, dr in zip(measured, by_stack(plan, motion[1]), strict=True)
            ),
        )

    return bodies._replace(
        **changed(solved.motion)._asdict(),
        q=tuple(q),
        step_velocities=None if solved.over_step is None else changed(solved.over_step),
        acted=acted,
    )


class TreeResponse(NamedTuple):
    """The response of the trees to impulses, with all joints and equality constraints in place."""

    at: TreesAtState
    pivots: list[GroupPivot]
    equality: EqualityTargets | None

    def motion(self, loads: GroupedLoads) -> GroupedMotion:
        """Return the changes of velocity, relative to free fall, that loads cause."""
        found = self._free(loads)
        if self.equality is None:
            return found
        return project_motion(self.at, self.equality.held, found, self.equality.wanted)

    def equality_momenta(self, loads: GroupedLoads) -> list[Spatial | None] | None:
        """Return the momenta that equality constraints add to the links, by group."""
        if self.equality is None:
            return None
        held, wanted = self.equality
        return equality_momenta(self.at, held, self._free(loads), wanted)

    def _free(self, loads: GroupedLoads) -> GroupedMotion:
        return solve(self.at.plan, self.pivots, *loads, driven=True)


class SolvedMotion(NamedTuple):
    """Changes of velocity in a step, relative to free fall."""

    motion: GroupedMotion
    """At the end of the step."""
    over_step: GroupedMotion | None
    """Changes that move the links during the step; None where they are the same. They differ where
    an impact is resolved in time: its impulse acts for a share of the step."""
    loads: GroupedLoads
    """All impulses at the end of the step."""
    constraints: ConstraintRows | None
    """The rows of contacts and limits; None if the model has none."""
    found: ConstraintImpulses | None
    """Their impulses."""


def _solve(
    problem: SpringProblem,
    trees: TreeResponse,
    rates: Sequence[PerDof],
    gravity_change: Vec3,
    loads: GroupedLoads,
    dt: jax.Array,
) -> SolvedMotion:
    """Solve for the motion with contacts and limits, by sweeps that start from no impulses."""
    sys = problem.sys
    if not (sys.collisions or has_limits(sys)):
        return SolvedMotion(trees.motion(loads), None, loads, None, None)
    in_time = bool(sys.collisions) and sys.opt.time_of_impact
    # The time of an impact needs the velocity with which the bodies would meet.
    free = trees.motion(loads)[0] if in_time else None
    constraints = constraint_rows(problem, trees.at, trees.pivots, rates, gravity_change, free, dt)

    def ask(i: jax.Array, found: ConstraintImpulses) -> ConstraintImpulses:
        # Every sweep solves the trees anew, in O(n), so that J M^-1 J^T is never formed.
        motion = trees.motion(constraints.add(loads, found))
        return constraints.ask(i == sys.opt.sweeps - 1, found, motion)

    found = sweep(sys.opt.sweeps, constraints, ask)
    loaded = constraints.add(loads, found)
    motion, over_step = trees.motion(loaded), None
    if in_time:
        shares = [
            contact_rows.over_step(c, t)
            for c, t in zip(constraints.contacts, found.contacts, strict=True)
        ]
        # Joints and equality constraints must hold in the motion over the step too: solve once
        # more.
        over_step = trees.motion(constraints.add(loads, found._replace(contacts=shares)))
    return SolvedMotion(motion, over_step, loaded, constraints, found)


def _acted(
    trees: TreeResponse, solved: SolvedMotion, motors: Actuation | None, dt: jax.Array
) -> Impulses:
    """Return the impulses of contacts, equalities and tendons, as sensors of forces read them."""
    at, plan = trees.at, trees.at.plan
    contacts: Sequence[contact_rows.ContactRows] = []
    touch: Sequence[contact_rows.ContactImpulse] = []
    limits = limit_impulses = None
    if solved.constraints is not None and solved.found is not None:
        contacts, touch = solved.constraints.contacts, solved.found.contacts
        limits, limit_impulses = solved.constraints.limits, solved.found.limits
    x = at.links.pos.x
    force = contact_rows.on_second(contacts, touch, x.dtype, x.shape[-1])
    none: list[Any] = [None] * len(plan.groups)
    momenta: list[Sequence[Spatial | None]] = [
        contact_rows.add_impulses(none, contacts, touch),
        tendon_momenta(at, motors, dt),
    ]
    # Impulses of joints are internal to a tree and not asked for; those of equalities are.
    if (equality := trees.equality_momenta(solved.loads)) is not None:
        momenta.append(equality)
    if limits is not None and limits.tendons is not None and limit_impulses is not None:
        momenta.append(tendon_loads(limits, limit_impulses, at).links)
    return step_impulses(plan, at.origins, force, *momenta)


def _link_impulses(
    problem: SpringProblem,
    at: TreesAtState,
    inertias: Sequence[Rigid],
    motors: Actuation | None,
    dt: jax.Array,
) -> list[Spatial]:
    """Return the impulses on all links about the common points, by group.

    They are external forces, actuators, and gravity on trees with a joint to the world.
    """
    # A tree that falls freely has gravity in its free fall; weight on it would count twice.
    held = [~falls for falls in by_link(problem.plan, _falls_freely(problem.plan))]
    weights = [_gravity_change(problem.sys, dt, mine) for mine in held]
    momenta = [
        Spatial(i.moment.cross(w), w * i.mass) for i, w in zip(inertias, weights, strict=True)
    ]
    outer = outer_impulses(at, problem.external, motors, dt)
    if outer is None:
        return momenta
    return [a + b for a, b in zip(momenta, outer, strict=True)]


def _falls_freely(plan: Layout) -> np.ndarray:
    """Return for each link whether its tree's root has no joint."""
    free = [p for g in plan.groups if g.unconstrained for p in g.links]
    return np.isin(plan.root, free)


def _gravity_change(sys: System, dt: jax.Array, on: np.ndarray) -> Vec3:
    """Return the change of velocity by gravity in a step, (links, 1); zero where `on` is false."""
    # `on` is static, so that an all-false mask costs nothing.
    change = Vec3(*(sys.opt.gravity[i : i + 1] * dt for i in range(3)))
    return jax.tree.map(lambda x: jnp.where(on[:, None], x, jnp.zeros_like(x)), change)


def _damped(v: Vec3, rate: jax.Array) -> Vec3:
    # Not v * exp(rate): a factor near one rounds the same way at every step.
    return v + v * jnp.expm1(rate)


def common_points(plan: Layout, pos: Vec3) -> Vec3:
    """Return the common point of each link's tree, its root's centre of mass.

    With one tree that is one row. Spatial quantities of a tree are about this point, so that they
    add without a shift from link to link, and stay small where a tree is far from the origin.
    """
    return rows(pos, [0] if set(plan.root) == {0} else plan.root)


def measure_joints(
    problem: SpringProblem, bodies: SpringState, links: Links, origins: Vec3, dt: jax.Array
) -> list[MeasuredJoints | None]:
    """Measure the joints of all stacks; None for links without joints."""
    out: list[MeasuredJoints | None] = []
    for stack, model, q in zip(problem.plan.stacks, problem.model.stacks, bodies.q, strict=True):
        if stack.unconstrained:  # free joints: the frame is the coordinate, nothing to measure
            out.append(None)
            continue
        mine = rows(links, stack.links)
        points = origins if origins.x.shape[0] == 1 else rows(origins, stack.links)
        out.append(measure(model, stack.types, q, parents(links, stack), mine, points, dt))
    return out


def _actuation(
    problem: SpringProblem,
    bodies: SpringState,
    links: Links,
    measured: Sequence[MeasuredJoints | None],
) -> Actuation | None:
    """Return the forces of actuators and tendons at the measured joints."""
    return actuation(
        problem.sys,
        problem.plan,
        problem.model.links,
        Command(problem.act, bodies.activation),
        links,
        [() if m is None else m.q for m in measured],
        [() if m is None else m.rates for m in measured],
    )


def _equality(
    at: TreesAtState,
    pivots: list[GroupPivot],
    rates: list[PerDof],
    gravity_change: Vec3,
    dt: jax.Array,
) -> EqualityTargets | None:
    """Set up the equality constraints; None if the model has none.

    As joints do, they stop the relative velocity, close the separation, and follow the curvature of
    the motion, which is why the target has half a step of it.
    """
    sys, plan, links = at.sys, at.plan, at.links
    if not sys.equality_names:
        return None
    # One matrix J M^-1 J^T of all equality constraints, inverted once a step.
    held = equality_system(at, pivots)
    errors = held.errors
    falling = about(links._replace(vel=links.vel + gravity_change), at.origins)
    now = equality_rates(at, held, (by_link(plan, falling), rates))
    wanted = errors.position * (-ERP / dt) - errors.acceleration * (0.5 * dt) - now
    return EqualityTargets(held, wanted)
