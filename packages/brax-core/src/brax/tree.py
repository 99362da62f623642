"""The layout of a model's links in kernels: ordered by depth, links with equal joints together.

Two partitions of the links exist. *Groups* are links of one depth with the same joint types, for
recursions along the tree. *Stacks* are links of all depths with the same joint types, for what does
not recurse. Both make operations on many links at once, (links, batch), since the cost of a kernel
that is left to XLA is the number of its operations.
"""

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import rows, sum_first
from brax.joints import JointType
from brax.kernels.fusion_barrier import fusion_barrier

T = TypeVar("T")

PerDof = tuple[jax.Array, ...]
"""One number for each degree of freedom, or coordinate, of a stack of joints, (links, batch)."""

MIN_COLUMN_SUM_OWNERS = 24
"""Number of owners above which `sum_rows` sums by columns, in a few operations."""

MIN_CHAIN_DEPTHS = 16
"""Number of depths from which on a chain of equal links is one group, a loop of recursions."""


class Group(NamedTuple):
    """Links of one depth whose joints have the same types in the same order.

    Chains are an exception. If each link of a depth carries exactly one link of the next, with the
    same joint types, for at least `MIN_CHAIN_DEPTHS` depths, then the links of all these depths are
    one group.
    """

    links: tuple[int, ...]
    """Positions in the layout's order, consecutive in a group."""
    parents: tuple[int, ...] | None
    """Positions of the parents; None if the parent is the world."""
    types: tuple[JointType, ...]
    """Joint types of each link."""
    joints: tuple[tuple[int, ...], ...]
    """For each place in the stack, the joint of each link."""
    q: tuple[tuple[tuple[int, ...], ...], ...]
    """For each place in the stack and each coordinate, the index in `q` for each link."""
    qd: tuple[tuple[int, ...], ...]
    """For each degree of freedom of the stack, the index in `qd` for each link."""
    stack: tuple[int, tuple[int, ...]] = (0, ())
    """The index of the layout's stack that contains the links, and their places in it."""
    depths: int = 1
    """Number of depths of the links, the same number of links at each, the root's side first."""

    @property
    def first(self) -> "Group":
        """The links of the first depth."""
        n = len(self.links) // self.depths
        parents = None if self.parents is None else self.parents[:n]
        return self._replace(links=self.links[:n], parents=parents)

    def of(self, links: Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
        """Return which of `links` are in the group, and the place of each in it.

        Args:
            links: positions in the layout.

        Returns:
            Indices into `links`, and the places in the group.
        """
        place = {link: i for i, link in enumerate(self.links)}
        mine = [k for k, link in enumerate(links) if link in place]
        return mine, tuple(place[links[k]] for k in mine)

    @property
    def unconstrained(self) -> bool:
        """True if the links have a free joint."""
        return len(self.types) == 1 and len(self.qd) == 6


class Layout(NamedTuple):
    """The order of links in the kernels."""

    order: tuple[int, ...]
    """Link at each position."""
    position: tuple[int, ...]
    """Position of each link."""
    root: tuple[int, ...]
    """Position of the root of each position's tree."""
    groups: tuple[Group, ...]
    """The groups, parents before children."""
    stacks: tuple[Group, ...]
    """The stacks: links with equal joints of all depths."""
    jumps: tuple[tuple[int, ...], ...]
    """Positions of the 1st, 2nd, 4th, 8th ... ancestors of the links that have one. These links are
    the last ones in the order, since it is by depth."""


@functools.lru_cache(maxsize=256)
def _layout(
    parents: tuple[int, ...], joint_link: tuple[int, ...], joint_types: tuple[JointType, ...]
) -> Layout:
    """Compute the layout from the static structure of a system."""
    n = len(parents)
    stacks = [tuple(j for j, link in enumerate(joint_link) if link == i) for i in range(n)]
    # Parents come before children, so one pass finds all depths.
    depth: list[int] = []
    for p in parents:
        depth.append(0 if p < 0 else depth[p] + 1)
    key = {
        i: (depth[i], parents[i] < 0, tuple(joint_types[j] for j in stacks[i])) for i in range(n)
    }
    # Links are ordered by depth and, within a depth, by their joint types: each group is then a
    # slice, and the links with an ancestor some levels up are the last ones.
    kinds = list(dict.fromkeys(sorted(key.values(), key=lambda k: (k[0], not k[1]))))
    members = [[i for i in range(n) if key[i] == kind] for kind in kinds]
    order = tuple(i for group in members for i in group)
    position = tuple(int(p) for p in np.argsort(order))
    root: list[int] = []
    for i in order:
        root.append(len(root) if parents[i] < 0 else root[position[parents[i]]])
    q_start = list(accumulate((t.q_width for t in joint_types), initial=0))
    qd_start = list(accumulate((t.qd_width for t in joint_types), initial=0))

    def gather(is_root: bool, types: tuple[JointType, ...], group: list[int]) -> Group:
        """Return the group or stack of some links."""
        joints = tuple(tuple(stacks[i][k] for i in group) for k in range(len(types)))
        return Group(
            links=tuple(position[i] for i in group),
            parents=None if is_root else tuple(position[parents[i]] for i in group),
            types=types,
            joints=joints,
            q=tuple(
                tuple(tuple(int(q_start[j]) + c for j in joints[k]) for c in range(t.q_width))
                for k, t in enumerate(types)
            ),
            qd=tuple(
                tuple(int(qd_start[j]) + c for j in joints[k])
                for k, t in enumerate(types)
                for c in range(t.qd_width)
            ),
        )

    # A stack is what groups of all depths have in common: the key without the depth.
    flat = list(dict.fromkeys(kind[1:] for kind in kinds))
    alike = [[i for i in order if key[i][1:] == kind] for kind in flat]
    groups = []
    for run in _runs([kind[1:] for kind in kinds], members, parents):
        kind, group = kinds[run[0]][1:], [i for k in run for i in members[k]]
        index = flat.index(kind)
        here = (index, tuple(alike[index].index(i) for i in group))
        groups.append(gather(*kind, group)._replace(stack=here, depths=len(run)))
    together = tuple(gather(*kind, group) for kind, group in zip(flat, alike, strict=True))
    above = tuple(position[parents[i]] if parents[i] >= 0 else -1 for i in order)
    return Layout(order, position, tuple(root), tuple(groups), together, _jumps(above))


def _jumps(above: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the ancestors for each round of doubling.

    Args:
        above: position of the parent of each position, -1 for the world.
    """
    out = []
    while max(above, default=-1) >= 0:
        out.append(tuple(p for p in above if p >= 0))
        above = tuple(above[p] if p >= 0 else -1 for p in above)
    return tuple(out)


def _runs(
    kinds: Sequence[object], members: Sequence[Sequence[int]], parents: Sequence[int]
) -> list[list[int]]:
    """Partition the groups by depth into runs: long chains together, others separately.

    Args:
        kinds: the joint types of each group.
        members: the links of each group.
        parents: the parent of each link.
    """
    carried = [[i for i, p in enumerate(parents) if p in mine] for mine in members]
    runs: list[list[int]] = []
    for k, mine in enumerate(members):
        last = runs[-1][-1] if runs else k
        follows = (
            last == k - 1
            and kinds[last] == kinds[k]
            and [parents[i] for i in mine] == list(members[last])
            and set(carried[last]) == set(mine)
        )
        if follows:
            runs[-1].append(k)
        else:
            runs.append([k])
    return [
        part
        for run in runs
        for part in ([run] if len(run) >= MIN_CHAIN_DEPTHS else [[k] for k in run])
    ]


def layout(sys: System) -> Layout:
    """Return the layout of a system's links, which is computed once for each structure."""
    return _layout(sys.link_parents, sys.joint_link, sys.joint_types)


def down(values: Sequence[object], group: Group, plan: Layout) -> Any:
    """Return the parents' rows for each link of a group; None if the parent is the world.

    Args:
        values: rows of the groups so far, None for those to come.
        group: the group.
        plan: the layout.
    """
    if group.parents is None:
        return None
    # If one group has all parents, the groups need not be joined.
    for value, target in zip(values, plan.groups, strict=True):
        if all(p in target.links for p in group.parents):
            return rows(value, [p - target.links[0] for p in group.parents])
    return rows(join([v for v in values if v is not None]), group.parents)


def up(values: T, group: Group, plan: Layout) -> list[tuple[int, T]]:
    """Sum the rows of a group over the children of each parent.

    Args:
        values: rows of the group.
        group: the group.
        plan: the layout.

    Returns:
        The index of each group with parents, and the sums for its links.
    """
    out = []
    for index, target in enumerate(plan.groups):
        mine = [k for k, p in enumerate(group.parents or ()) if p in target.links]
        if mine:
            owner = tuple((group.parents or ())[k] - target.links[0] for k in mine)
            n = len(target.links)

            def add(x: jax.Array, m: Any = mine, o: Any = owner, n: int = n) -> jax.Array:
                return sum_rows(rows(x, m), o, n)

            out.append((index, jax.tree.map(add, values)))
    return out


def from_roots(values: T, plan: Layout, compose: Callable[[T, T], T]) -> T:
    """Compose the values of each link and all its ancestors, the root first.

    The method is doubling (a parallel prefix sum), in as many rounds as the depth of the tree has
    binary digits.

    Args:
        values: rows of the links, in the layout's order.
        plan: the layout.
        compose: an associative operation on rows, the link nearer to the root first.

    Source: Hillis, Steele (1986), Data parallel algorithms, Communications of the ACM 29 (12).
    """
    n, values = len(plan.order), fusion_barrier(values)
    # After a round each link has composed twice as many of its ancestors. The barrier keeps XLA
    # from computing earlier rounds again for each use.
    for above in plan.jumps:
        first = n - len(above)
        below = rows(values, range(first, n))
        values = fusion_barrier(
            join([rows(values, range(first)), compose(rows(values, above), below)])
        )
    return values


def over_subtrees(values: T, plan: Layout) -> T:
    """Sum the values of each link and all its descendants, rows in the layout's order."""
    n, values = len(plan.order), fusion_barrier(values)
    # The transpose of `from_roots` for sums: a link passes what it has to ancestors twice as far
    # up.
    for above in plan.jumps:
        first, stop = n - len(above), max(above) + 1

        def add(x: jax.Array, a: Any = above, first: int = first, stop: int = stop) -> jax.Array:
            more = sum_rows(rows(x, range(first, n)), a, stop)
            return jnp.concatenate([x[:stop] + more, x[stop:]])

        values = fusion_barrier(jax.tree.map(add, values))
    return values


def in_order(plan: Layout, values: Sequence[T]) -> T:
    """Put rows that are given by stack into the layout's order."""
    found = [p for stack in plan.stacks for p in stack.links]
    return rows(join(values), [int(k) for k in np.argsort(found)])


def join(groups: Sequence[T]) -> T:
    """Concatenate the rows of groups, leaf by leaf; leaves without a batch are broadcast."""
    size = max(leaf.shape[-1] for g in groups for leaf in jax.tree.leaves(g))

    def concatenate(*parts: jax.Array) -> jax.Array:
        if len(parts) == 1:
            return parts[0]
        return jnp.concatenate([jnp.broadcast_to(p, (*p.shape[:-1], size)) for p in parts], axis=0)

    return jax.tree.map(concatenate, *groups)


def sum_rows(values: jax.Array, owner: tuple[int, ...], n: int) -> jax.Array:
    """Sum the rows of each owner; an owner without rows gets zero.

    Args:
        values: rows (k, batch).
        owner: the owner of each row.
        n: number of owners.
    """
    # One row for each owner, in order: nothing to sum.
    if tuple(owner) == tuple(range(n)):
        return values
    if not owner:
        return jnp.zeros((n, *values.shape[1:]), values.dtype)
    if set(owner) == {0} and n == 1:
        return jnp.sum(values, axis=0, keepdims=True)
    if n > MIN_COLUMN_SUM_OWNERS:
        return _sum_columns(values, tuple(owner), n)
    out = []
    for i in range(n):
        mine = [k for k, o in enumerate(owner) if o == i]
        if not mine:
            out.append(jnp.zeros((1, *values.shape[1:]), values.dtype))
        else:
            out.append(sum_first(rows(values, mine)))
    return jnp.concatenate(out, axis=0)


def _sum_columns(values: jax.Array, owner: tuple[int, ...], n: int) -> jax.Array:
    """Do the same as `sum_rows` in a number of operations that does not depend on the owners."""
    # Each owner is a column of indices into the rows; the row of zeros fills the columns up.
    padded = jnp.concatenate([values, jnp.zeros_like(values[:1])])
    table = _columns(owner, n)
    taken = padded.at[table.ravel()].get(mode="promise_in_bounds")
    return sum_first(taken.reshape(*table.shape, *values.shape[1:]))[0]


@functools.lru_cache(maxsize=256)
def _columns(owner: tuple[int, ...], n: int) -> np.ndarray:
    """Return a table with the rows of each owner as a column, filled up with the number of rows."""
    mine: list[list[int]] = [[] for _ in range(n)]
    for k, o in enumerate(owner):
        mine[o].append(k)
    table = np.full((max(map(len, mine)), n), len(owner))
    for o, column in enumerate(mine):
        table[: len(column), o] = column
    return table
