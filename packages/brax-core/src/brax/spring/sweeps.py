"""Sweeps over all limits and contacts at once, along conjugate directions.

A Jacobi sweep moves each impulse by what its own row needs. Impulses that act on the same bodies,
such as a foot's contact and the limits of its leg's joints, then move too far together. With light
legs the overshoot grows from sweep to sweep and adds energy: for a body on four legs of a finger's
length the iteration matrix has an eigenvalue of 2.7, and above 2.2 relaxed sweeps diverge. Adding a
share of the last sweep's direction corrects that.

Source: Silcowitz-Hansen, Niebe and Erleben (2010), A nonsmooth nonlinear conjugate gradient method
for interactive contact force problems, The Visual Computer 26. Departure: they take the direction
from a projected Gauss-Seidel sweep. Ours is a Jacobi sweep, which has no order among the rows and
so fills vector registers.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import rows
from brax.maximal.contacts import Sides
from brax.tree import Layout, sum_rows

Vector = TypeVar("Vector")
"""Impulses of limits and contacts, or a change of them: a tree of arrays."""


class Rows(Protocol[Vector]):
    """The operations on vectors of impulses that a sweep needs, see `ConstraintRows`."""

    def no_impulses(self) -> Vector:
        """Return zero impulses."""

    def project(self, asked: Vector, impulses: Vector) -> Vector:
        """Return the nearest impulses within the bounds."""

    def squared_norm(self, change: Vector) -> jax.Array:
        """Return the squared norm for each tree of links, (trees, batch)."""

    def scale(self, change: Vector, factor: jax.Array) -> Vector:
        """Return a change scaled by a factor for each tree."""


def sweep(number: int, rows: Rows[Vector], ask: Callable[[jax.Array, Vector], Vector]) -> Vector:
    """Return the impulses after a number of sweeps that start from zero.

    Norms and factors are of each tree of links, so that no tree disturbs another.

    Args:
        number: number of sweeps, at least 1.
        rows: bounds and metric of the impulses.
        ask: returns the impulses that the sweep of an index asks for, from given impulses.
    """

    def move(
        i: jax.Array, at: tuple[Vector, Vector, jax.Array]
    ) -> tuple[Vector, Vector, jax.Array]:
        impulses, direction, before = at
        asked = ask(i, impulses)
        # The change that a sweep asks for stands for the negative gradient, as in the paper.
        change = jax.tree.map(lambda a, b: a - b, asked, impulses)
        norm = rows.squared_norm(change)
        # Fletcher and Reeves's beta. A sweep that grew has overshot: there the method restarts.
        nearer = norm < before
        beta = jnp.where(nearer, norm, 0.0) / jnp.where(nearer, before, 1.0)
        old = rows.scale(direction, beta)
        # The sum may leave the bounds, which the sweep itself respects: project once more.
        ahead = rows.project(asked, jax.tree.map(lambda a, d: a + d, asked, old))
        return ahead, jax.tree.map(lambda c, d: c + d, change, old), norm

    # The first sweep has no earlier direction to follow.
    start = rows.no_impulses()
    first = ask(jnp.zeros((), int), start)
    direction = jax.tree.map(lambda a, b: a - b, first, start)
    return jax.lax.fori_loop(1, number, move, (first, direction, rows.squared_norm(direction)))[0]


class Trees(NamedTuple):
    """Trees of links, by which changes of impulses are summed and scaled."""

    tree: tuple[int, ...]
    """The tree of each position of the layout."""
    bounded: frozenset[int]
    """Trees with limits or dry friction, whose contacts follow conjugate directions. Contacts of
    other trees only overshoot each other, which relaxation corrects."""

    @staticmethod
    def of(sys: System, plan: Layout) -> "Trees":
        """Return the trees of a model.

        Trees that equality constraints connect count as one. Tendons join all trees.
        """
        root = list(plan.root)
        for kind, pair in zip(sys.equality_types, sys.equality_pair, strict=True):
            links = [sys.joint_link[j] for j in pair if j >= 0] if kind == "joint" else pair
            if kind != "tendon":
                connected = {root[plan.position[link]] for link in links if link >= 0}
                root = [min(connected) if r in connected else r for r in root]
        if any(sys.tendon_limited) or any(sys.tendon_dry) or "tendon" in sys.equality_types:
            root = [0] * len(root)
        index = tuple(sorted(set(root)).index(r) for r in root)
        # A joint belongs to the link that it moves.
        held = [
            index[plan.position[link]]
            for link, limited, dry in zip(
                sys.joint_link, sys.joint_limited, sys.joint_dry, strict=True
            )
            if limited or dry
        ]
        return Trees(index, frozenset(held))

    def follows(self, sides: Sides) -> np.ndarray:
        """Return for each pair whether all its moving links are in bounded trees, (pairs, 1)."""
        return np.array(
            [
                all(self.tree[link] in self.bounded for link in pair if link >= 0)
                for pair in zip(*_links(sides), strict=True)
            ]
        )[:, None]

    def along(self, values: jax.Array, links: Sequence[int]) -> jax.Array:
        """Return the sums over each tree of values at links, (trees, batch)."""
        return sum_rows(values, tuple(self.tree[k] for k in links), 1 + max(self.tree))

    def between(self, values: jax.Array, sides: Sides) -> jax.Array:
        """Return the sums over each tree of values of pairs of links, of which -1 is the world."""
        sums = []
        for side in _links(sides):
            moving = [k for k, link in enumerate(side) if link >= 0]
            if moving:
                sums.append(self.along(rows(values, moving), [side[k] for k in moving]))
        return sums[0] if len(sums) == 1 else sums[0] + sums[1]

    def pick(self, factors: jax.Array, links: Sequence[int]) -> jax.Array:
        """Return the factor of each link's tree."""
        return factors if max(self.tree) == 0 else rows(factors, [self.tree[k] for k in links])

    def least(self, factors: jax.Array, sides: Sides) -> jax.Array:
        """Return the smaller factor of the two trees of each pair."""
        follows = self.follows(sides)
        if not follows.all():
            factors = factors * jnp.array([[k in self.bounded] for k in range(len(factors))])
        # A pair with the world has one tree.
        first = [a if a >= 0 else b for a, b in zip(*_links(sides), strict=True)]
        second = [b if b >= 0 else a for a, b in zip(*_links(sides), strict=True)]
        if all(self.tree[a] == self.tree[b] for a, b in zip(first, second, strict=True)):
            return self.pick(factors, first)
        return jnp.minimum(self.pick(factors, first), self.pick(factors, second))


def _links(sides: Sides) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the links on both sides."""
    return sides[0].links, sides[1].links
