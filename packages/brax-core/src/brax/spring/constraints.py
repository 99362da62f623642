"""Contacts and limits of a step, of all groups together, and their impulses.

The rows of contacts are in `contacts`, those of limits and dry friction in `limits`. This module
treats all of them as one vector of impulses, which is what `sweeps` iterates on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.interface import Touch
from brax.colliders.narrow_phase import Contacts, find_touches, frames_of
from brax.components import Quat, Vec3, rows, total
from brax.maximal.contacts import sides_by_group
from brax.maximal.equality import GroupedMotion
from brax.maximal.limits import Limits, add_loads, asked, by_part, rates_of
from brax.maximal.limits import prepare as limits_of
from brax.maximal.links import Links, TreesAtState, about, by_link
from brax.maximal.tendons import GroupedLoads
from brax.spatial import Spatial
from brax.spring import contacts as contact_rows
from brax.spring import limits as limit_rows
from brax.spring.model import SpringProblem
from brax.spring.sweeps import Trees
from brax.tree import PerDof
from brax.tree_solve import GroupPivot, mobility

RELAXATION = 0.9
"""Share of the full step by which a sweep moves contacts of bodies without limits. It is below 1
because all contacts move at once. The last sweep takes the full step, so that a contact which is
alone is solved exactly."""


class ConstraintImpulses(NamedTuple):
    """One impulse for each row, or a change of them; arrays with a trailing batch axis."""

    contacts: list[contact_rows.ContactImpulse]
    """By collision group."""
    limits: jax.Array | None
    """Limits and dry friction, (limits, batch); None if the model has none."""


@dataclass(frozen=True)
class ConstraintRows:
    """The constraints of a step that act in one direction only."""

    at: TreesAtState
    trees: Trees
    follows: Sequence[np.ndarray]
    """True for pairs that follow conjugate directions, by collision group, (pairs, 1)."""
    contacts: Sequence[contact_rows.ContactRows]
    limits: Limits | None

    def no_impulses(self) -> ConstraintImpulses:
        """Return the zero impulses at which the sweeps start."""
        return ConstraintImpulses(
            [contact_rows.no_impulse(c) for c in self.contacts],
            None if self.limits is None else jnp.zeros_like(self.limits.low),
        )

    def add(self, loads: GroupedLoads, impulses: ConstraintImpulses) -> GroupedLoads:
        """Return the loads with those of the constraints' impulses added."""
        # J^T f by kind of row: contacts act on links, limits along degrees of freedom, those of
        # tendons on both.
        links = contact_rows.add_impulses(loads.links, self.contacts, impulses.contacts)
        loads = GroupedLoads(links, loads.dofs)
        if self.limits is None or impulses.limits is None:
            return loads
        return add_loads(self.limits, impulses.limits, self.at, loads)

    def ask(
        self, last: jax.Array, impulses: ConstraintImpulses, motion: GroupedMotion
    ) -> ConstraintImpulses:
        """Return the impulses that one Jacobi sweep asks for.

        Args:
            last: whether the sweep is the last one.
            impulses: the impulses so far.
            motion: the change of velocities and rates that they cause, by group.
        """
        limits = impulses.limits
        if self.limits is not None and limits is not None:
            rate = rates_of(self.limits, self.at, *motion)
            _, limits = asked(self.limits, limits, rate, self.limits.low, self.limits.high)
        relaxed = jnp.where(last, 1.0, RELAXATION).astype(self.at.sys.init_q.dtype)
        contacts = []
        for c, old, follows in zip(self.contacts, impulses.contacts, self.follows, strict=True):
            # Conjugate directions correct an overshoot, so that those contacts are not relaxed.
            gain = (
                jnp.where(follows, 1.0, relaxed),
                jnp.where(follows, contact_rows.TANGENT_RELAXATION, relaxed),
            )
            contacts.append(contact_rows.update(c, old, motion[0], gain))
        return ConstraintImpulses(contacts, limits)

    def project(
        self, asked: ConstraintImpulses, impulses: ConstraintImpulses
    ) -> ConstraintImpulses:
        """Return the impulses within their bounds that are nearest to given ones.

        Args:
            asked: the impulses that the sweep asked for; a limit's sign is taken from them.
            impulses: the given ones.
        """
        limits = impulses.limits
        if self.limits is not None and limits is not None and asked.limits is not None:
            limits = limit_rows.project(self.limits, asked.limits, limits)
        contacts = [
            contact_rows.project(c, t)
            for c, t in zip(self.contacts, impulses.contacts, strict=True)
        ]
        return ConstraintImpulses(contacts, limits)

    def squared_norm(self, change: ConstraintImpulses) -> jax.Array:
        """Return the squared norm of a change for each tree, (trees, batch).

        The metric is that of the rows' steps, in which all impulses have one scale.
        """
        # A contact between two trees counts in both, so that both restart when it overshoots.
        contacts = [
            self.trees.between(contact_rows.squared_norm(c, t), c.place.sides)
            for c, t in zip(self.contacts, change.contacts, strict=True)
        ]
        return total([*contacts, *self._squared_norms_of_limits(change.limits)])

    def _squared_norms_of_limits(self, change: jax.Array | None) -> list[jax.Array]:
        """Return the squared norms of parts of the limits' rows for each tree, (trees, batch)."""
        limits, plan = self.limits, self.at.plan
        if limits is None or change is None:
            return []
        # The mobility is the diagonal of J M^-1 J^T.
        norm = change * change * limits.mobility
        out = [
            self.trees.along(mine, plan.groups[part.group].links)
            for part, mine in zip(limits.parts, by_part(limits, norm, plan), strict=True)
        ]
        # Tendons join all trees to one, see `Trees.of`. Their limits come first, then friction.
        limited = len(norm) - len(limits.which) + sum(self.at.sys.tendon_limited)
        ends = (len(norm) - len(limits.which), limited, len(norm))
        return out + [jnp.sum(norm[a:b], axis=0, keepdims=True) for a, b in pairwise(ends) if a < b]

    def scale(self, change: ConstraintImpulses, factor: jax.Array) -> ConstraintImpulses:
        """Return a change with each row multiplied by its tree's factor, (trees, batch)."""
        # A contact between two trees follows the more careful of them.
        limits = change.limits
        if self.limits is not None and limits is not None:
            groups = [self.at.plan.groups[part.group] for part in self.limits.parts]
            limits = limits * self.trees.pick(factor, [k for g in groups for k in g.links])
        shares = [self.trees.least(factor, c.place.sides) for c in self.contacts]
        contacts = [
            jax.tree.map(lambda x, s=share: x * s, t)
            for t, share in zip(change.contacts, shares, strict=True)
        ]
        return ConstraintImpulses(contacts, limits)


def constraint_rows(
    problem: SpringProblem,
    at: TreesAtState,
    pivots: Sequence[GroupPivot],
    rates: Sequence[PerDof],
    gravity_change: Vec3,
    free: Sequence[Spatial] | None,
    dt: jax.Array,
) -> ConstraintRows:
    """Set up the rows of a step.

    Args:
        problem: the model.
        at: the links and measured joints at the start of the step.
        pivots: from `brax.tree_solve.factor`.
        rates: rates of the degrees of freedom, by group.
        gravity_change: change of velocity by gravity of trees that fall freely, (links, 1).
        free: changes of velocity without constraints by group, if impacts are resolved in time.
        dt: time step [s].
    """
    sys, plan, links = problem.sys, problem.plan, at.links
    # Diagonal blocks of the inverse inertia of the whole tree: the Jacobi steps are their inverses.
    link_mobility, dof_mobility = mobility(plan, pivots)
    limits = limits_of(at, pivots, dof_mobility, dt)
    if limits is not None:
        # Rates include free fall, because the unknown is the change relative to it.
        falling = about(links._replace(vel=links.vel + gravity_change), at.origins)
        rate = rates_of(limits, at, by_link(plan, falling), rates)
        limits = limit_rows.with_targets(limits, rate, sys.baumgarte_erp)
    # Static for a model: which pairs follow is decided when the step is traced.
    sides, trees = sides_by_group(sys, plan), Trees.of(sys, plan)
    follows = [trees.follows(side) for side in sides]
    contacts = []
    if sys.collisions:
        step = contact_rows.ContactStep(problem, at, link_mobility, gravity_change, free, dt)
        touches = zip(_touches(problem, links), problem.model.surfaces, strict=True)
        found = [Contacts(*each) for each in touches]
        contacts = contact_rows.prepare(step, found, sides, follows)
    return ConstraintRows(at, trees, follows, contacts, limits)


def _touches(problem: SpringProblem, links: Links) -> list[Touch]:
    """Run the narrow phase; the model's shapes are in the links' principal frames."""
    position = problem.plan.position

    def frames(asked: Sequence[int]) -> tuple[Vec3, Quat]:
        if min(asked) < 0:
            return frames_of(*rows((links.pos, links.rot), position))(asked)
        return rows((links.pos, links.rot), [position[link] for link in asked])

    return find_touches(problem.sys, problem.model.shapes, frames)
