"""Contacts between links in maximal coordinates: the links on both sides, and how impulses act.

`spring` keeps the contacts of each collision group apart, with a row of `sides` for each pair and
components (points, pairs, batch). `positional` has all contacts in one array, with a row of `sides`
for each contact and components (contacts, batch). What both compute of them is here; their rules
for impulses are in `spring.contacts` and `positional.contacts`.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.narrow_phase import Contacts, contact_links
from brax.components import Sym3, Vec3, rows, sum_first
from brax.maximal.links import TreesAtState
from brax.spatial import Spatial, Sym6
from brax.tree import Layout, join, sum_rows

T = TypeVar("T")


class Side(NamedTuple):
    """The links on the first or on the second side of contacts."""

    links: tuple[int, ...]
    """The position of each row's link in the layout, -1 for the world."""

    @property
    def moves(self) -> bool:
        """True if any of the links is not the world."""
        return any(link >= 0 for link in self.links)

    def of(self, values: T) -> T:
        """Return the links' rows of values of all links; the world's rows are zero."""
        if min(self.links) >= 0:
            return rows(values, self.links)
        # The world, link -1, gets a row of zeros in front.
        table = jax.tree.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a]), values)
        return rows(table, [link + 1 for link in self.links])

    def take(self, values: Sequence[T], plan: Layout) -> T:
        """Return the links' rows of values given by group; the world's rows are zero."""
        # If one group has all links of the contacts, it is not joined with the others.
        for value, group in zip(values, plan.groups, strict=True):
            if set(self.links) <= set(group.links):
                return rows(value, [link - group.links[0] for link in self.links])
        return self.of(join(list(values)))

    def give(self, value: T, plan: Layout) -> list[tuple[int, T]]:
        """Sum values of contacts over the links of each group that has contacts.

        Args:
            value: values of the contacts.
            plan: the layout.

        Returns:
            The index of each such group, and the sums for its links.
        """
        # The points of a pair act on the same link: their sum comes first.
        value = jax.tree.map(lambda x: sum_first(x)[0] if x.ndim == 3 else x, value)
        out = []
        for index, group in enumerate(plan.groups):
            mine, owner = group.of(self.links)
            if mine:
                summed = functools.partial(sum_rows, owner=owner, n=len(group.links))
                out.append((index, jax.tree.map(summed, rows(value, mine))))
        return out


Sides = tuple[Side, Side]
"""The links on the first and on the second side."""


def sides_by_group(sys: System, plan: Layout) -> list[Sides]:
    """Return the links of all pairs, by collision group."""
    place = (*plan.position, -1)  # the world is link -1 there and here
    return [
        (Side(tuple(place[i] for i in first)), Side(tuple(place[i] for i in second)))
        for first, second in contact_links(sys)
    ]


class ContactPoints(NamedTuple):
    """The places at which contacts act on links."""

    plan: Layout
    """The layout."""
    sides: Sides
    """The links."""
    points: list[Vec3]
    """The point on each side [m]."""
    arms: list[Vec3]
    """The same relative to the common point of each side's tree, about which velocities and momenta
    are; the world has the origin."""

    @classmethod
    def of(cls, at: TreesAtState, sides: Sides, found: Contacts, in_time: bool) -> "ContactPoints":
        """Return the places of contacts: halfway between the surfaces.

        An elastic impact that is resolved at its time within the step acts when the surfaces have
        met, on the points that do: the arm of its friction does not depend on the gap at the start
        of the step.

        Args:
            at: the links at the start of the step.
            sides: the links of the contacts.
            found: the contacts.
            in_time: whether impacts are resolved at their time.
        """
        touch, points = found.touch, [found.touch.pos] * 2
        if in_time:
            bounces = found.surface.elasticity > 0
            gap = touch.normal * jnp.where(bounces, 0.5 * jnp.maximum(touch.dist, 0.0), 0.0)
            points = [touch.pos - gap, touch.pos + gap]
        one = at.origins.x.shape[0] == 1
        arms = [
            pos - (at.origins if one else side.of(at.origins)) if side.moves else pos
            for pos, side in zip(points, sides, strict=True)
        ]
        return cls(at.plan, sides, points, arms)

    @property
    def moving(self) -> list[tuple[float, Side, Vec3]]:
        """The sides that move, with -1 for the first and 1 for the second, and their arms."""
        every = zip((-1.0, 1.0), self.sides, self.arms, strict=True)
        return [each for each in every if each[1].moves]

    def relative_velocity(self, velocities: Sequence[Spatial]) -> Vec3:
        """Return the velocity of the second link relative to the first at the contacts.

        Args:
            velocities: velocities of the links about the common points, by group.
        """
        at = [(sign, side.take(velocities, self.plan), arm) for sign, side, arm in self.moving]
        return relative([(sign, v.lin + v.ang.cross(arm)) for sign, v, arm in at])

    def relative_spin(self, velocities: Sequence[Spatial]) -> Vec3:
        """Return the angular velocity of the second link relative to the first."""
        # Angular velocities do not depend on the point, so no arms are needed.
        at = [(sign, side.take(velocities, self.plan)) for sign, side, _ in self.moving]
        return relative([(sign, v.ang) for sign, v in at])

    def inverse_inertias(self, mobility: Sequence[Sym6]) -> tuple[list[Sym3], list[Sym3]]:
        """Return the inverse inertias that impulses, and torques, see on the sides that move.

        Args:
            mobility: inverse inertia of the links with all joints in place, by group.
        """
        # `Sym6.at` is the 3x3 inverse inertia of a point: W = J W6 J^T with J = [-[r]x, 1].
        # A torque needs no arm: only the angular block counts.
        seen = [(side.take(mobility, self.plan), arm) for _, side, arm in self.moving]
        return [m.at(arm) for m, arm in seen], [m.a for m, _ in seen]

    def add_impulses(
        self, momenta: Sequence[Spatial | None], force: Vec3, couple: Vec3 | None
    ) -> list[Spatial | None]:
        """Return momenta of the links, about the common points, with those of impulses added.

        Args:
            momenta: by group; None where nothing acts.
            force: impulses on the second links, world axes.
            couple: torque impulses on them; None if there are none.
        """
        out = list(momenta)
        for sign, side, arm in self.moving:
            torque = arm.cross(force)
            wrench = Spatial(torque if couple is None else torque + couple, force)
            # The impulse is the one on the second link; the first takes the opposite. A group may
            # have links on both sides, such as two bodies that collide.
            for index, part in side.give(wrench if sign > 0 else wrench * sign, self.plan):
                before = out[index]
                out[index] = part if before is None else before + part
        return out


def relative(parts: Sequence[tuple[float, Vec3]]) -> Vec3:
    """Return the second side's velocity less the first's; the world does not move."""
    if len(parts) == 2:
        return parts[1][1] - parts[0][1]
    sign, v = parts[0]
    return v if sign > 0 else v * sign
