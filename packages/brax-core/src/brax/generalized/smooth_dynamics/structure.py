"""Sparsity of the mass matrix, as blocks of degrees of freedom that are eliminated together.

The mass matrix is non-zero only between a degree of freedom and its ancestors in the tree
(branch-induced sparsity). Eliminated from the tips to the root it has no fill-in. Contacts and
equalities between branches couple more degrees of freedom. The elimination tree of the whole
pattern says where they cause fill-in. Chains of that tree without a branch are the blocks. Equal
chains, such as the legs of an ant, are copies within one block.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, sections 6.4 and 6.5; Liu (1992), The
multifrontal method for sparse matrix solution, SIAM Review 34(1).
"""

import functools
from typing import NamedTuple

import numpy as np

from brax.base import System

MAX_UNROLLED_DOFS = 24
"""Longest path, in degrees of freedom, of a block whose factorization is unrolled. A block with a
longer path is factorized by `linalg.blocked`, in loops. A model without constraints that has one
needs no factorization, see `articulated`."""

CoupledDofs = tuple[tuple[int, ...], ...]
"""For each contact or equality between branches, the degrees of freedom that it couples."""


class Block(NamedTuple):
    """Degrees of freedom that follow one another without a branch, in one or more copies."""

    dofs: tuple[tuple[int, ...], ...]
    """The degree of freedom of each copy, for each place along the chain."""
    start: int
    """First row of the block in the order of elimination. Rows run by place, then by copy."""
    parent: int | None
    """Index of the block that carries this one; None at a root."""
    owner: tuple[int, ...]
    """For each copy, the copy of the parent that carries it."""
    above: int
    """Number of degrees of freedom between a copy and the root."""
    path: tuple[tuple[int, ...], ...]
    """For each copy, the degrees of freedom from the root to its tip: first the `above` ancestors,
    then its own places."""
    chain: np.ndarray
    """True where a place of the path is an ancestor of one of the block's own places, shape
    (places, path, copies). The mass matrix is zero elsewhere."""

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
        """True if the block is factorized in loops, with its front as one array."""
        return len(self.path[0]) > MAX_UNROLLED_DOFS


class Structure(NamedTuple):
    """The blocks of a model and the order in which its degrees of freedom are eliminated."""

    blocks: tuple[Block, ...]
    """The blocks, parents before children."""
    order: tuple[int, ...]
    """The degree of freedom at each row of the order of elimination."""
    position: tuple[int, ...]
    """The row of each degree of freedom in the order of elimination."""
    ancestors: tuple[frozenset[int], ...]
    """For each degree of freedom, itself and those that carry it in the model's tree."""


def dof_parents(sys: System) -> tuple[int, ...]:
    """Return the degree of freedom that carries each one, -1 for none.

    This is Featherstone's expanded parent array: a joint of several degrees of freedom counts as a
    chain of joints with one each (section 6.5).
    """
    tip = [-1] * sys.num_links()
    parents = []
    owners = sys.dof_link()
    for link, parent in enumerate(sys.link_parents):
        tip[link] = tip[parent] if parent >= 0 else -1
        # A joint of several degrees of freedom is a chain: each one is carried by the one before.
        for _ in range(owners.count(link)):
            parents.append(tip[link])
            tip[link] = len(parents) - 1
    return tuple(parents)


def link_dofs(sys: System, link: int) -> frozenset[int]:
    """Return the degrees of freedom that move a link."""
    owners, out = sys.dof_link(), []
    while link >= 0:
        out += [d for d, owner in enumerate(owners) if owner == link]
        link = sys.link_parents[link]
    return frozenset(out)


@functools.lru_cache(maxsize=256)
def structure(parents: tuple[int, ...], couplings: CoupledDofs = ()) -> Structure:
    """Return the blocks of a tree.

    Args:
        parents: for each degree of freedom the one that carries it, which comes before it; -1 for
            none.
        couplings: sets of degrees of freedom that a constraint couples.
    """
    ancestors: list[frozenset[int]] = []
    for i, p in enumerate(parents):
        ancestors.append((ancestors[p] if p >= 0 else frozenset()) | {i})
    tree = _elimination_tree(ancestors, couplings)
    blocks = _blocks(tree, ancestors)
    # Rows run by place, then by copy, so that one place of all copies is one slice.
    order = tuple(d for b in blocks for place in b.dofs for d in place)
    return Structure(blocks, order, tuple(int(i) for i in np.argsort(order)), tuple(ancestors))


def _elimination_tree(ancestors: list[frozenset[int]], couplings: CoupledDofs) -> list[int]:
    """Return the parent of each unknown in the elimination tree, when the last is eliminated first.

    Source: Liu (1992), section 3.
    """
    # The columns of row i that come before it and are not zero: its ancestors, and what it is
    # coupled to.
    below = [set(a) - {i} for i, a in enumerate(ancestors)]
    for clique in couplings:
        for i in clique:
            below[i] |= {j for j in clique if j < i}
    tree = [-1] * len(ancestors)
    for i in reversed(range(len(tree))):
        if below[i]:
            # The next unknown to be eliminated of those that row i reaches is its parent.
            # Eliminating i couples all the others with that parent: this is the fill-in.
            tree[i] = max(below[i])
            below[tree[i]] |= below[i] - {tree[i]}
    return tree


def _blocks(tree: list[int], ancestors: list[frozenset[int]]) -> tuple[Block, ...]:
    """Return the blocks of an elimination tree, equal chains of one parent block as copies."""
    runs = _runs(tree)
    kinds: dict[tuple[int, int], list[list[int]]] = {}
    home: dict[int, tuple[int, int]] = {-1: (-1, 0)}
    path: dict[int, tuple[int, ...]] = {-1: ()}
    for run in runs:
        # Chains are copies of one block if they have one length and hang on copies of one block:
        # then their paths are as long, and one array holds all their fronts.
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
        # A path of the elimination tree may pass through degrees of freedom that are no ancestors
        # in the model's tree. Between those the mass matrix is zero.
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
    """Return the chains without a branch, each after the one that carries it, by depth."""
    children = [tree.count(i) for i in range(len(tree))]
    runs: list[list[int]] = []
    at: dict[int, list[int]] = {}
    depth: list[int] = []
    for i, p in enumerate(tree):
        # An only child continues the chain of its parent.
        if p >= 0 and children[p] == 1:
            at[i] = at[p]
        else:
            at[i] = []
            runs.append(at[i])
            depth.append(0 if p < 0 else depth[runs.index(at[p])] + 1)
        at[i].append(i)
    # The sort is stable, so that parents stay before children and copies keep the model's order.
    return [run for _, run in sorted(zip(depth, runs, strict=True), key=lambda pair: pair[0])]
