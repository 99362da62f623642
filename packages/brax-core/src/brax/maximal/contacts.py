"""Contacts between links in maximal coordinates: the links on both sides, and how impulses act.

`spring` keeps the contacts of each collision group apart, with a row of `sides` for each pair and
components (points, pairs, batch). `positional` has all contacts in one array, with a row of `sides`
for each contact and components (contacts, batch). What both compute of them is here; their rules
for impulses are in `spring.contacts` and `positional.contacts`.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.narrow_phase import Contacts, contact_links
from brax.components import Sym3, Vec3, rows, sum_first
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
                out.append((index, _summed(rows(value, mine), owner, len(group.links))))
        return out


def _summed(values: T, owner: tuple[int, ...], n: int) -> T:
    """Sum rows that have the same of `n` owners, leaf by leaf."""
    return jax.tree.map(lambda x: sum_rows(x, owner, n), values)


Sides = tuple[Side, Side]
"""The links on the first and on the second side."""


def sides_by_group(sys: System, plan: Layout) -> list[Sides]:
    """Return the links of all pairs, by collision group."""
    place = (*plan.position, -1)  # the world is link -1 there and here
    return [
        (Side(tuple(place[i] for i in first)), Side(tuple(place[i] for i in second)))
        for first, second in contact_links(sys)
    ]


def points_of_sides(found: Contacts, in_time: bool) -> tuple[Vec3, Vec3]:
    """Return the points of the two links at which contacts act on them [m].

    These are the contact itself, halfway between the surfaces. An elastic impact that is resolved
    at its time within the step acts when the surfaces have met, on the points that do: the arm of
    its friction does not depend on the gap at the start of the step.

    Args:
        found: the contacts.
        in_time: whether impacts are resolved at their time.
    """
    touch, surface = found.touch, found.surface
    if not in_time:
        return touch.pos, touch.pos
    bounces = surface.elasticity > 0
    gap = touch.normal * jnp.where(bounces, 0.5 * jnp.maximum(touch.dist, 0.0), 0.0)
    return touch.pos - gap, touch.pos + gap


def arms(points: tuple[Vec3, Vec3], sides: Sides, origins: Vec3) -> tuple[Vec3, Vec3]:
    """Return the vectors to contacts from the common point of each side's tree [m].

    About these points velocities and momenta are. The world has the origin.

    Args:
        points: the contacts on each side, see `points_of_sides`.
        sides: their links.
        origins: the common point of each link's tree, one row if there is one tree.
    """
    one = origins.x.shape[0] == 1
    first, second = (
        pos - (origins if one else side.of(origins)) if side.moves else pos
        for pos, side in zip(points, sides, strict=True)
    )
    return first, second


class ContactPoints(NamedTuple):
    """The places at which contacts act on links."""

    sides: Sides
    """The links."""
    arms: tuple[Vec3, Vec3]
    """The contact relative to the common point of each side's tree [m]."""

    @property
    def moving(self) -> list[tuple[float, Side, Vec3]]:
        """The sides that move, with -1 for the first and 1 for the second, and their arms."""
        every = zip((-1.0, 1.0), self.sides, self.arms, strict=True)
        return [each for each in every if each[1].moves]

    def relative_velocity(self, velocities: Sequence[Spatial], plan: Layout) -> Vec3:
        """Return the velocity of the second link relative to the first at the contacts.

        Args:
            velocities: velocities of the links about the common points, by group.
            plan: the layout.
        """
        at = [(sign, side.take(velocities, plan), arm) for sign, side, arm in self.moving]
        return relative([(sign, v.lin + v.ang.cross(arm)) for sign, v, arm in at])

    def relative_spin(self, velocities: Sequence[Spatial], plan: Layout) -> Vec3:
        """Return the angular velocity of the second link relative to the first."""
        # Angular velocities do not depend on the point, so no arms are needed.
        return relative([(sign, side.take(velocities, plan).ang) for sign, side, _ in self.moving])

    def inverse_inertias(
        self, mobility: Sequence[Sym6], plan: Layout
    ) -> tuple[list[Sym3], list[Sym3]]:
        """Return the inverse inertias that impulses, and torques, see on the sides that move.

        Args:
            mobility: inverse inertia of the links with all joints in place, by group.
            plan: the layout.
        """
        # `Sym6.at` is the 3x3 inverse inertia of a point: W = J W6 J^T with J = [-[r]x, 1].
        # A torque needs no arm: only the angular block counts.
        seen = [(side.take(mobility, plan), arm) for _, side, arm in self.moving]
        return [m.at(arm) for m, arm in seen], [m.a for m, _ in seen]

    def add_impulses(
        self, momenta: Sequence[Spatial | None], force: Vec3, couple: Vec3 | None, plan: Layout
    ) -> list[Spatial | None]:
        """Return momenta of the links, about the common points, with those of impulses added.

        Args:
            momenta: by group; None where nothing acts.
            force: impulses on the second links, world axes.
            couple: torque impulses on them; None if there are none.
            plan: the layout.
        """
        out = list(momenta)
        for sign, side, arm in self.moving:
            torque = arm.cross(force)
            wrench = Spatial(torque if couple is None else torque + couple, force)
            # The impulse is the one on the second link; the first takes the opposite. A group may
            # have links on both sides, such as two bodies that collide.
            for index, part in side.give(wrench if sign > 0 else wrench * sign, plan):
                before = out[index]
                out[index] = part if before is None else before + part
        return out


def relative(parts: Sequence[tuple[float, Vec3]]) -> Vec3:
    """Return the second side's velocity less the first's; the world does not move."""
    if len(parts) == 2:
        return parts[1][1] - parts[0][1]
    sign, v = parts[0]
    return v if sign > 0 else v * sign
