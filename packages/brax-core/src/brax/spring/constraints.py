"""Contacts and limits of a step, of all groups together, and their impulses.

The rows of contacts are in `contacts`, those of limits and dry friction in `limits`. This module
treats all of them as one vector of impulses, which is what `sweeps` iterates on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.interface import Touch
from brax.colliders.narrow_phase import contact_links, find_touches, frames_of
from brax.components import Quat, Vec3, rows, total
from brax.maximal import tendons as tendon_rows
from brax.maximal.equality import GroupedMotion
from brax.maximal.links import Links, PerDof, about, by_group, by_link, by_stack
from brax.maximal.tendons import GroupedLoads
from brax.maximal.tree_solve import GroupPivot, mobility
from brax.spatial import Spatial
from brax.spring import contacts as contact_rows
from brax.spring import limits as limit_rows
from brax.spring.joints import MeasuredJoints
from brax.spring.model import SpringProblem
from brax.spring.sweeps import Trees
from brax.tree import Layout, sum_rows

RELAXATION = 0.9
"""Share of the full step by which a sweep moves contacts of bodies without limits. It is below 1
because all contacts move at once. The last sweep takes the full step, so that a contact which is
alone is solved exactly."""

TendonLimits = list[tuple[tuple[int, ...], limit_rows.LimitRows]]
"""Rows of tendons, each with the tendons that it bounds."""


class ConstraintImpulses(NamedTuple):
    """One impulse for each row, or a change of them; arrays with a trailing batch axis."""

    contacts: list[contact_rows.ContactImpulse]
    """By collision group."""
    limits: list[list[jax.Array]]
    """Joint limits and dry friction, by group of links."""
    tendons: list[jax.Array]
    """Tendon limits and dry friction."""


@dataclass(frozen=True)
class ConstraintRows:
    """The constraints of a step that act in one direction only."""

    sys: System
    plan: Layout
    sides: Sequence[contact_rows.Sides]
    trees: Trees
    follows: Sequence[np.ndarray]
    """True for pairs that follow conjugate directions, by collision group, (pairs, 1)."""
    contacts: Sequence[contact_rows.ContactRows]
    limits: Sequence[Sequence[limit_rows.LimitRows]]
    tendons: TendonLimits
    tendon_jacobian: tendon_rows.TendonJacobian | None

    def no_impulses(self) -> ConstraintImpulses:
        """Return the zero impulses at which the sweeps start."""
        return ConstraintImpulses(
            [contact_rows.no_impulse(c) for c in self.contacts],
            [[jnp.zeros_like(b.step) for b in mine] for mine in self.limits],
            # The shapes of bounds and steps broadcast: a step may not depend on the batch.
            [jnp.zeros_like(b.low - b.step) for _, b in self.tendons],
        )

    def add(self, loads: GroupedLoads, impulses: ConstraintImpulses) -> GroupedLoads:
        """Return the loads with those of the constraints' impulses added."""
        # J^T f by kind of row: contacts act on links, limits along degrees of freedom, tendons on
        # both.
        links = contact_rows.add_impulses(
            loads.links, self.contacts, impulses.contacts, self.sides, self.plan
        )
        dofs = [
            limit_rows.add_impulses(*each)
            for each in zip(loads.dofs, self.limits, impulses.limits, strict=True)
        ]
        if self.tendon_jacobian is None:
            return GroupedLoads(links, dofs)
        along = total(
            sum_rows(x, which, len(self.sys.tendon_names))
            for (which, _), x in zip(self.tendons, impulses.tendons, strict=True)
        )
        # Groups that nothing loads have an empty tuple; the sum wants an entry for each dof.
        each: Any = [x or (None,) * len(g.qd) for x, g in zip(dofs, self.plan.groups, strict=True)]
        pulled = tendon_rows.loads(self.sys, self.plan, self.tendon_jacobian, along)
        return tendon_rows.summed(GroupedLoads(links, each), pulled)

    def ask(
        self, last: jax.Array, impulses: ConstraintImpulses, motion: GroupedMotion
    ) -> ConstraintImpulses:
        """Return the impulses that one Jacobi sweep asks for.

        Args:
            last: whether the sweep is the last one.
            impulses: the impulses so far.
            motion: the change of velocities and rates that they cause, by group.
        """
        links, rates = motion
        return ConstraintImpulses(
            self._ask_contacts(last, impulses.contacts, links),
            [
                [limit_rows.update(b, old, rate) for b, old in zip(mine, olds, strict=True)]
                for mine, olds, rate in zip(self.limits, impulses.limits, rates, strict=True)
            ],
            self._ask_tendons(impulses.tendons, links, rates),
        )

    def _ask_contacts(
        self,
        last: jax.Array,
        impulses: Sequence[contact_rows.ContactImpulse],
        changes: Sequence[Spatial],
    ) -> list[contact_rows.ContactImpulse]:
        relaxed = jnp.where(last, 1.0, RELAXATION).astype(self.sys.init_q.dtype)
        out = []
        for c, old, side, follows in zip(
            self.contacts, impulses, self.sides, self.follows, strict=True
        ):
            # Conjugate directions correct an overshoot, so that those contacts are not relaxed.
            gain = (
                jnp.where(follows, 1.0, relaxed),
                jnp.where(follows, contact_rows.TANGENT_RELAXATION, relaxed),
            )
            velocity = contact_rows.change(c.arms, changes, side, self.plan)
            spin = None
            if c.torsion is not None:
                spin = contact_rows.angular_change(changes, side, self.plan)
            out.append(contact_rows.update(c, old, velocity, spin, gain))
        return out

    def _ask_tendons(
        self, impulses: Sequence[jax.Array], links: Sequence[Spatial], rates: Sequence[PerDof]
    ) -> list[jax.Array]:
        if self.tendon_jacobian is None:
            return []
        speeds = tendon_rows.rates(self.sys, self.plan, self.tendon_jacobian, links, rates)
        return [
            limit_rows.update(b, old, (rows(speeds, which),))
            for (which, b), old in zip(self.tendons, impulses, strict=True)
        ]

    def project(
        self, asked: ConstraintImpulses, impulses: ConstraintImpulses
    ) -> ConstraintImpulses:
        """Return the impulses within their bounds that are nearest to given ones.

        Args:
            asked: the impulses that the sweep asked for; a limit's sign is taken from them.
            impulses: the given ones.
        """
        return ConstraintImpulses(
            [
                contact_rows.project(c, t)
                for c, t in zip(self.contacts, impulses.contacts, strict=True)
            ],
            [
                [limit_rows.project(*each) for each in zip(*mine, strict=True)]
                for mine in zip(self.limits, asked.limits, impulses.limits, strict=True)
            ],
            [
                limit_rows.project(b, *each)
                for (_, b), *each in zip(self.tendons, asked.tendons, impulses.tendons, strict=True)
            ],
        )

    def squared_norm(self, change: ConstraintImpulses) -> jax.Array:
        """Return the squared norm of a change for each tree, (trees, batch).

        The metric is that of the rows' steps, in which all impulses have one scale.
        """
        # A contact between two trees counts in both, so that both restart when it overshoots.
        contacts = [
            self.trees.between(contact_rows.squared_norm(c, t), side)
            for c, t, side in zip(self.contacts, change.contacts, self.sides, strict=True)
        ]
        limits = [
            self.trees.along(limit_rows.squared_norm(b, x), group.links)
            for group, mine, each in zip(self.plan.groups, self.limits, change.limits, strict=True)
            for b, x in zip(mine, each, strict=True)
        ]
        # Tendons join all trees to one, see `Trees.of`.
        tendons = [
            jnp.sum(limit_rows.squared_norm(b, x), axis=0, keepdims=True)
            for (_, b), x in zip(self.tendons, change.tendons, strict=True)
        ]
        return total([*contacts, *limits, *tendons])

    def scale(self, change: ConstraintImpulses, factor: jax.Array) -> ConstraintImpulses:
        """Return a change with each row multiplied by its tree's factor, (trees, batch)."""
        # A contact between two trees follows the more careful of them.
        shares = [self.trees.least(factor, side) for side in self.sides]
        return ConstraintImpulses(
            [
                jax.tree.map(lambda x, s=share: x * s, t)
                for t, share in zip(change.contacts, shares, strict=True)
            ],
            [
                [x * self.trees.pick(factor, group.links) for x in each]
                for group, each in zip(self.plan.groups, change.limits, strict=True)
            ],
            [x * factor for x in change.tendons],
        )


def has_constraints(sys: System) -> bool:
    """Return whether a model has contacts, limits or dry friction."""
    return bool(sys.collisions or any(sys.joint_limited) or any(sys.joint_dry)) or _bounds_tendons(
        sys
    )


def _bounds_tendons(sys: System) -> bool:
    return any(sys.tendon_limited) or any(sys.tendon_dry)


def constraint_rows(
    problem: SpringProblem,
    pivots: Sequence[GroupPivot],
    links: Links,
    joints: Sequence[MeasuredJoints | None],
    origins: Vec3,
    gravity_change: Vec3,
    free: Sequence[Spatial] | None,
    dt: jax.Array,
) -> ConstraintRows:
    """Set up the rows of a step.

    Args:
        problem: the model.
        pivots: from `brax.maximal.tree_solve.factor`.
        links: the links at the start of the step.
        joints: the measured joints by group; None for links without joints.
        origins: the common point of each link's tree, one row if there is one tree.
        gravity_change: change of velocity by gravity of trees that fall freely, (links, 1).
        free: changes of velocity without constraints by group, if impacts are resolved in time.
        dt: time step [s].
    """
    sys, plan = problem.sys, problem.plan
    # Diagonal blocks of the inverse inertia of the whole tree: the Jacobi steps are their inverses.
    link_mobility, dof_mobility = mobility(plan, pivots)
    limits = [
        [] if m is None else limit_rows.bounds(sys, group, stack, m.q, m.rates, w, dt)
        for group, stack, m, w in zip(
            plan.groups, by_group(plan, problem.model.stacks), joints, dof_mobility, strict=True
        )
    ]
    jacobian, tendons = _tendon_limits(problem, pivots, links, joints, origins, gravity_change, dt)
    # Static for a model: which pairs follow is decided when the step is traced.
    sides, trees = _sides(problem), Trees.of(sys, plan)
    follows = [trees.follows(side) for side in sides]
    contacts = []
    if sys.collisions:
        contacts = contact_rows.prepare(
            _touches(problem, links),
            sides,
            problem,
            link_mobility,
            origins,
            links,
            gravity_change,
            free,
            follows,
            dt,
        )
    return ConstraintRows(sys, plan, sides, trees, follows, contacts, limits, tendons, jacobian)


def _tendon_limits(
    problem: SpringProblem,
    pivots: Sequence[GroupPivot],
    links: Links,
    joints: Sequence[MeasuredJoints | None],
    origins: Vec3,
    gravity_change: Vec3,
    dt: jax.Array,
) -> tuple[tendon_rows.TendonJacobian | None, TendonLimits]:
    """Return the tendons' Jacobian and rows; none if no tendon has a limit or dry friction."""
    sys, plan = problem.sys, problem.plan
    if not _bounds_tendons(sys):
        return None, []
    q = by_stack(plan, [() if m is None else m.q for m in joints])
    tendon = tendon_rows.tendon_jacobian(sys, plan, problem.model.links, links, origins, q)
    assert tendon is not None
    # Rates include free fall, because the unknown is the change relative to it.
    falling = about(links._replace(vel=links.vel + gravity_change), origins)
    rates = [() if m is None else m.rates for m in joints]
    speeds = tendon_rows.rates(sys, plan, tendon, by_link(plan, falling), rates)
    mobile = tendon_rows.mobility(sys, plan, pivots, tendon)
    return tendon, limit_rows.tendon_bounds(sys, tendon.length, speeds, mobile, dt)


def _sides(problem: SpringProblem) -> list[contact_rows.Sides]:
    """Return the links of all pairs by their positions in the layout, by collision group."""
    place = (*problem.plan.position, -1)  # the world is link -1 there and here
    return [
        (tuple(place[i] for i in first), tuple(place[i] for i in second))
        for first, second in contact_links(problem.sys)
    ]


def _touches(problem: SpringProblem, links: Links) -> list[Touch]:
    """Run the narrow phase; the model's shapes are in the links' principal frames."""
    position = problem.plan.position

    def frames(asked: Sequence[int]) -> tuple[Vec3, Quat]:
        if min(asked) < 0:
            return frames_of(*rows((links.pos, links.rot), position))(asked)
        return rows((links.pos, links.rot), [position[link] for link in asked])

    return find_touches(problem.sys, problem.model.shapes, frames)
