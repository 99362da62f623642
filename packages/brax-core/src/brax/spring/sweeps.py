"""Sweeps over all limits and contacts at once, whose steps follow conjugate directions.

A sweep moves each impulse by what it needs alone. Impulses that act on the same bodies, such as a
foot's contact and the limits of its leg's joints, then move too far together: of a light leg they
would overshoot more at every sweep, and add energy. The directions of earlier sweeps correct that.

Source: Silcowitz-Hansen, Niebe and Erleben (2010), A nonsmooth nonlinear conjugate gradient method
for interactive contact force problems, The Visual Computer 26. Departure: the sweep is Jacobi's.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import rows
from brax.tree import Layout, sum_rows

Tree = Any
"""Impulses of limits and contacts, or a change of them; arrays with a trailing batch axis."""


def sweep(
    number: int,
    start: Tree,
    asked: Callable[[jax.Array, Tree], Tree],
    within: Callable[[Tree, Tree], Tree],
    square: Callable[[Tree], jax.Array],
    scaled: Callable[[Tree, jax.Array], Tree],
) -> Tree:
    """Moves impulses towards the solution.

    Args:
        number: of the sweeps.
        start: impulses to begin with.
        asked: what the sweep of a number, from given impulses, asks for.
        within: impulses as close to given ones as their bounds allow; the first argument is what
            the sweep asked for.
        square: a change's square for each tree of links, (trees, batch), in a metric in which all
            impulses have one scale. Trees are apart so that none disturbs another.
        scaled: a change, scaled by a factor for each tree.
    """

    def move(i: jax.Array, at: tuple[Tree, Tree, jax.Array]) -> tuple[Tree, Tree, jax.Array]:
        impulses, direction, before = at
        wanted = asked(i, impulses)
        change = jax.tree.map(lambda a, b: a - b, wanted, impulses)
        size = square(change)
        # Fletcher and Reeves's share of the old direction; none where the last sweep overshot.
        nearer = size < before
        share = jnp.where(nearer, size, 0.0) / jnp.where(nearer, before, 1.0)
        old = scaled(direction, share)
        ahead = within(wanted, jax.tree.map(lambda a, d: a + d, wanted, old))
        return ahead, jax.tree.map(lambda c, d: c + d, change, old), size

    # The first sweep has no earlier direction to follow.
    first = asked(jnp.zeros((), int), start)
    direction = jax.tree.map(lambda a, b: a - b, first, start)
    return jax.lax.fori_loop(1, number, move, (first, direction, square(direction)))[0]


class Trees(NamedTuple):
    """Trees of links, by which changes of impulses are summed and scaled."""

    tree: tuple[int, ...]
    """The tree of each position of the layout."""
    bounded: frozenset[int]
    """Trees with limits or dry friction, whose contacts follow conjugate directions."""

    @staticmethod
    def of(sys: System, plan: Layout) -> "Trees":
        """Return the trees of a model; what equalities tie counts as one, and tendons join all."""
        root = list(plan.root)
        for kind, pair in zip(sys.equality_types, sys.equality_pair, strict=True):
            links = [sys.joint_link[j] for j in pair if j >= 0] if kind == "joint" else pair
            if kind != "tendon":
                tied = {root[plan.position[link]] for link in links if link >= 0}
                root = [min(tied) if r in tied else r for r in root]
        if any(sys.tendon_limited) or any(sys.tendon_dry) or "tendon" in sys.equality_types:
            root = [0] * len(root)
        index = tuple(sorted(set(root)).index(r) for r in root)
        held = [
            index[plan.position[link]]
            for link, limited, dry in zip(
                sys.joint_link, sys.joint_limited, sys.joint_dry, strict=True
            )
            if limited or dry
        ]
        return Trees(index, frozenset(held))

    def follows(self, sides: tuple[Sequence[int], ...]) -> np.ndarray:
        """Return whether all that moves of each pair belongs to such trees, (pairs, 1)."""
        return np.array(
            [
                all(self.tree[link] in self.bounded for link in pair if link >= 0)
                for pair in zip(*sides, strict=True)
            ]
        )[:, None]

    def along(self, values: jax.Array, links: Sequence[int]) -> jax.Array:
        """Return the sums over each tree of values at links, (trees, batch)."""
        return sum_rows(values, tuple(self.tree[k] for k in links), 1 + max(self.tree))

    def between(self, values: jax.Array, sides: tuple[Sequence[int], ...]) -> jax.Array:
        """Return the sums over each tree of values of pairs of links, of which -1 is the world."""
        sums = []
        for side in sides:
            moving = [k for k, link in enumerate(side) if link >= 0]
            if moving:
                sums.append(self.along(rows(values, moving), [side[k] for k in moving]))
        return sums[0] if len(sums) == 1 else sums[0] + sums[1]

    def pick(self, factors: jax.Array, links: Sequence[int]) -> jax.Array:
        """Return the factor of each link's tree."""
        return factors if max(self.tree) == 0 else rows(factors, [self.tree[k] for k in links])

    def least(self, factors: jax.Array, sides: tuple[Sequence[int], ...]) -> jax.Array:
        """Return the smaller factor of the two trees of each pair."""
        follows = self.follows(sides)
        if not follows.all():
            factors = factors * jnp.array([[k in self.bounded] for k in range(len(factors))])
        first = [a if a >= 0 else b for a, b in zip(*sides, strict=True)]
        second = [b if b >= 0 else a for a, b in zip(*sides, strict=True)]
        if all(self.tree[a] == self.tree[b] for a, b in zip(first, second, strict=True)):
            return self.pick(factors, first)
        return jnp.minimum(self.pick(factors, first), self.pick(factors, second))
