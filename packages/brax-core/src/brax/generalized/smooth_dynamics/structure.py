"""Which degrees of freedom are eliminated together: the sparsity of the mass matrix, as blocks.

The mass matrix couples a degree of freedom with those between it and the root. Eliminated from the
tips inwards it fills nothing in. Contacts between branches couple more; the elimination tree of
the whole pattern says what they fill in. Runs of that tree without branches are the blocks, and
equal runs (the legs of an ant) are copies within one block.

Source: Liu (1992), The multifrontal method for sparse matrix solution, SIAM Review 34(1).
"""

import functools
from typing import NamedTuple

import numpy as np

from brax.base import System

MAX_UNROLLED_DOFS = 24
"""Length of a path from which on a block is large: worked through by loops, not written out."""

CoupledDofs = tuple[tuple[int, ...], ...]
"""Degrees of freedom that one contact moves, for each contact whose links share no chain."""


class Block(NamedTuple):
    """Degrees of freedom that follow one another without a branch, in several copies."""

    dofs: tuple[tuple[int, ...], ...]
    """For each place, the degree of freedom of each copy."""
    start: int
    """Where the block begins in the order of elimination: by place, then by copy."""
    parent: int | None
    """Block that carries this one."""
    owner: tuple[int, ...]
    """The parent's copy that carries each copy."""
    above: int
    """How many degrees of freedom lie between a copy and the root."""
    path: tuple[tuple[int, ...], ...]
    """For each copy, its degrees of freedom from the root to its tip."""
    chain: np.ndarray
    """True if a place of the path (above + places) carries an own place, (places, path, copies);
    what is false the mass matrix does not couple."""

    @property
    def copies(self) -> int:
        """Number of copies."""
        return len(self.dofs[0])

    @property
    def places(self) -> int:
        """Number of degrees of freedom of one copy."""
        return len(self.dofs)

    @property
    def large(self) -> bool:
        """True if its front is one array."""
        return len(self.path[0]) > MAX_UNROLLED_DOFS


class Structure(NamedTuple):
    """The blocks of a model."""

    blocks: tuple[Block, ...]
    """Parents before children."""
    order: tuple[int, ...]
    """Degree of freedom at each position."""
    position: tuple[int, ...]
    """Position of each degree of freedom."""
    ancestors: tuple[frozenset[int], ...]
    """Degrees of freedom that carry each one in the model's tree, itself among them."""


def dof_parents(sys: System) -> tuple[int, ...]:
    """The degree of freedom that carries each one, -1 for none."""
    tip = [-1] * sys.num_links()
    parents = []
    owners = sys.dof_link()
    for link, parent in enumerate(sys.link_parents):
        tip[link] = tip[parent] if parent >= 0 else -1
        for _ in range(owners.count(link)):
            parents.append(tip[link])
            tip[link] = len(parents) - 1
    return tuple(parents)


def link_dofs(sys: System, link: int) -> frozenset[int]:
    """The degrees of freedom that move a link."""
    owners, out = sys.dof_link(), []
    while link >= 0:
        out += [d for d, owner in enumerate(owners) if owner == link]
        link = sys.link_parents[link]
    return frozenset(out)


@functools.lru_cache(maxsize=256)
def structure(parents: tuple[int, ...], couplings: CoupledDofs = ()) -> Structure:
    """Finds the blocks.

    Args:
        parents: the degree of freedom that carries each one, before it, -1 for none.
        couplings: sets of degrees of freedom that something else couples.
    """
    ancestors: list[frozenset[int]] = []
    for i, p in enumerate(parents):
        ancestors.append((ancestors[p] if p >= 0 else frozenset()) | {i})
    tree = _elimination_tree(ancestors, couplings)
    blocks = _blocks(tree, ancestors)
    order = tuple(d for b in blocks for place in b.dofs for d in place)
    return Structure(blocks, order, tuple(int(i) for i in np.argsort(order)), tuple(ancestors))


def _elimination_tree(ancestors: list[frozenset[int]], couplings: CoupledDofs) -> list[int]:
    """Parent of each unknown when the last is eliminated first."""
    below = [set(a) - {i} for i, a in enumerate(ancestors)]
    for clique in couplings:
        for i in clique:
            below[i] |= {j for j in clique if j < i}
    tree = [-1] * len(ancestors)
    for i in reversed(range(len(tree))):
        if below[i]:
            tree[i] = max(below[i])
            below[tree[i]] |= below[i] - {tree[i]}
    return tree


def _blocks(tree: list[int], ancestors: list[frozenset[int]]) -> tuple[Block, ...]:
    runs = _runs(tree)
    kinds: dict[tuple[int, int], list[list[int]]] = {}
    home: dict[int, tuple[int, int]] = {-1: (-1, 0)}
    path: dict[int, tuple[int, ...]] = {-1: ()}
    for run in runs:
        key = (home[tree[run[0]]][0], len(run))
        copies = kinds.setdefault(key, [])
        index = list(kinds).index(key)
        path[run[-1]] = (*path[tree[run[0]]], *run)
        home[run[-1]] = (index, len(copies))
        copies.append(run)
    out: list[Block] = []
    start = 0
    for (parent, places), copies in kinds.items():
        paths = tuple(path[run[-1]] for run in copies)
        above = len(paths[0]) - places
        chain = [[[c in ancestors[d] for c in p] for d in p[above:]] for p in paths]
        out.append(
            Block(
                dofs=tuple(zip(*copies, strict=True)),
                start=start,
                parent=None if parent < 0 else parent,
                owner=tuple(home[tree[run[0]]][1] for run in copies),
                above=above,
                path=paths,
                chain=np.moveaxis(np.asarray(chain), 0, -1),
            )
        )
        start += places * len(copies)
    return tuple(out)


def _runs(tree: list[int]) -> list[list[int]]:
    """Runs without branches, each after the one that carries it, the shallow ones first."""
    children = [tree.count(i) for i in range(len(tree))]
    runs: list[list[int]] = []
    at: dict[int, list[int]] = {}
    depth: list[int] = []
    for i, p in enumerate(tree):
        if p >= 0 and children[p] == 1:
            at[i] = at[p]
        else:
            at[i] = []
            runs.append(at[i])
            depth.append(0 if p < 0 else depth[runs.index(at[p])] + 1)
        at[i].append(i)
    return [run for _, run in sorted(zip(depth, runs, strict=True), key=lambda pair: pair[0])]
