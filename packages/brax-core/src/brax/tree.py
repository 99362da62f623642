"""How a model's links are laid out in kernels: by depth, links with equal joints together."""

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

MIN_COLUMN_SUM_OWNERS = 24
"""Owners from which on rows are summed by columns."""

MIN_CHAIN_DEPTHS = 16
"""Depths from which on equal links, each on the one before, are one group."""


class Group(NamedTuple):
    """Links of one depth whose joints are of the same types, in the same order.

    Where as many such links of a next depth hang on them, each on its own, and nothing else does,
    and so on for `MIN_CHAIN_DEPTHS` depths, the links of all these depths are one group.
    """

    links: tuple[int, ...]
    """Positions in the layout's order: consecutive."""
    parents: tuple[int, ...] | None
    """Positions of the parents; None if the world is the parent."""
    types: tuple[JointType, ...]
    """Joint types of each link."""
    joints: tuple[tuple[int, ...], ...]
    """For each place in the stack, the joint of each link."""
    q: tuple[tuple[tuple[int, ...], ...], ...]
    """For each place in the stack and each coordinate, its index of each link."""
    qd: tuple[tuple[int, ...], ...]
    """For each degree of freedom of the stack, its index of each link."""
    stack: tuple[int, tuple[int, ...]] = (0, ())
    """Which of the layout's stacks its links belong to, and where they are in it."""
    depths: int = 1
    """Of how many depths the links are, as many of each, the nearest to the root first."""

    @property
    def first(self) -> "Group":
        """The links of the first depth."""
        n = len(self.links) // self.depths
        parents = None if self.parents is None else self.parents[:n]
        return self._replace(links=self.links[:n], parents=parents)

    def of(self, links: Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
        """Which of `links` are in the group, and for each the place of the link there."""
        place = {link: i for i, link in enumerate(self.links)}
        mine = [k for k, link in enumerate(links) if link in place]
        return mine, tuple(place[links[k]] for k in mine)

    @property
    def unconstrained(self) -> bool:
        """True if one joint leaves the links free."""
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
    """Groups, parents before children."""
    stacks: tuple[Group, ...]
    """Links with equal joints over all depths, for what does not recurse."""
    jumps: tuple[tuple[int, ...], ...]
    """Positions of the 1st, 2nd, 4th, 8th ... ancestors of the links that have one: the last ones
    in the order."""


@functools.lru_cache(maxsize=256)
def _layout(
    parents: tuple[int, ...], joint_link: tuple[int, ...], joint_types: tuple[JointType, ...]
) -> Layout:
    n = len(parents)
    stacks = [tuple(j for j, link in enumerate(joint_link) if link == i) for i in range(n)]
    depth: list[int] = []
    for p in parents:
        depth.append(0 if p < 0 else depth[p] + 1)
    key = {
        i: (depth[i], parents[i] < 0, tuple(joint_types[j] for j in stacks[i])) for i in range(n)
    }
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
    """Each round goes twice as far up as the one before; `above` has the parents, -1 the world."""
    out = []
    while max(above, default=-1) >= 0:
        out.append(tuple(p for p in above if p >= 0))
        above = tuple(above[p] if p >= 0 else -1 for p in above)
    return tuple(out)


def _runs(
    kinds: Sequence[Any], members: Sequence[Sequence[int]], parents: Sequence[int]
) -> list[list[int]]:
    """Puts long runs of depths together of which each carries the next and nothing else."""
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
    """The layout of a system's links; computed once per structure."""
    return _layout(sys.link_parents, sys.joint_link, sys.joint_types)


def down(values: Sequence[Any], group: Group, plan: Layout) -> Any:
    """Takes the parents' rows for each link of a group; None where the world is the parent.

    Args:
        values: rows of the groups so far, None for those to come.
        group: the group whose parents are asked for.
        plan: the layout.
    """
    if group.parents is None:
        return None
    for value, target in zip(values, plan.groups, strict=True):
        if all(p in target.links for p in group.parents):
            return rows(value, [p - target.links[0] for p in group.parents])
    return rows(join([v for v in values if v is not None]), group.parents)


def up(values: T, group: Group, plan: Layout) -> list[tuple[int, T]]:
    """Sums rows of a group over the children of each parent, for each group of parents."""
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
    """Composes what each link has, and all links that carry it, the root first.

    By doubling, in as many rounds as the depth has binary digits.

    Args:
        values: rows of the links, in the layout's order.
        plan: the layout.
        compose: an associative operation on rows, the link nearer to the root first.

    Source: Hillis, Steele (1986), Data parallel algorithms, Communications of the ACM 29 (12).
    """
    n, values = len(plan.order), fusion_barrier(values)
    for above in plan.jumps:
        first = n - len(above)
        below = rows(values, range(first, n))
        values = fusion_barrier(
            join([rows(values, range(first)), compose(rows(values, above), below)])
        )
    return values


def over_subtrees(values: T, plan: Layout) -> T:
    """Sums what each link has and all links that it carries, rows in the layout's order."""
    n, values = len(plan.order), fusion_barrier(values)
    for above in plan.jumps:
        first, stop = n - len(above), max(above) + 1

        def add(x: jax.Array, a: Any = above, first: int = first, stop: int = stop) -> jax.Array:
            more = sum_rows(rows(x, range(first, n)), a, stop)
            return jnp.concatenate([x[:stop] + more, x[stop:]])

        values = fusion_barrier(jax.tree.map(add, values))
    return values


def in_order(plan: Layout, values: Sequence[T]) -> T:
    """Rows kept by stack, in the layout's order."""
    found = [p for stack in plan.stacks for p in stack.links]
    return rows(join(values), [int(k) for k in np.argsort(found)])


def join(groups: Sequence[T]) -> T:
    """Concatenates the groups' rows."""
    size = max(leaf.shape[-1] for g in groups for leaf in jax.tree.leaves(g))

    def concatenate(*parts: jax.Array) -> jax.Array:
        if len(parts) == 1:
            return parts[0]
        return jnp.concatenate([jnp.broadcast_to(p, (*p.shape[:-1], size)) for p in parts], axis=0)

    return jax.tree.map(concatenate, *groups)


def sum_rows(values: jax.Array, owner: tuple[int, ...], n: int) -> jax.Array:
    """Sums rows (k, batch) that belong to the same of `n` owners; an owner of none gets zero."""
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
    """As `sum_rows`, in a few operations however many owners: one column for each."""
    padded = jnp.concatenate([values, jnp.zeros_like(values[:1])])
    table = _columns(owner, n)
    taken = padded.at[table.ravel()].get(mode="promise_in_bounds")
    return sum_first(taken.reshape(*table.shape, *values.shape[1:]))[0]


@functools.lru_cache(maxsize=256)
def _columns(owner: tuple[int, ...], n: int) -> np.ndarray:
    """The rows of each owner, from the top of its column; below them the number of all rows."""
    mine: list[list[int]] = [[] for _ in range(n)]
    for k, o in enumerate(owner):
        mine[o].append(k)
    table = np.full((max(map(len, mine)), n), len(owner))
    for o, column in enumerate(mine):
        table[: len(column), o] = column
    return table
