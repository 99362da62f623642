"""A forest: many trees of a few degrees of freedom, such as objects that lie about.

Contacts may join any two of them, but join few at a time. So their constraint Hessian is not kept
as a whole, but as tiles of the trees and of the pairs that are joined now (`linalg.joined_trees`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from brax.generalized.smooth_dynamics.structure import Structure

MIN_TREES = 8
"""Trees of equal size from which on a model is a forest."""


class Forest(NamedTuple):
    """The trees of a model, each a chain of degrees of freedom.

    Trees that a lasting constraint joins, such as the limit of a tendon, count as one.
    """

    rows: np.ndarray
    """For each tree, the rows of its degrees of freedom in the order of elimination, from the root;
    -1 where it has fewer than others, (trees, places)."""
    tree: np.ndarray
    """The tree of each link, -1 for the world, which comes first, (n_links + 1,)."""
    moves: np.ndarray
    """True where a place of its tree moves a link, the world first, (n_links + 1, places)."""
    origins: int
    """The number of places of a tree with an origin of their own: 1, or all of them where
    constraints join trees, of which each has its own."""


def forest(blocks: Structure, links: Sequence[frozenset[int]]) -> Forest | None:
    """Return the trees of a model, or None if it has too few, or too large ones.

    Args:
        blocks: the blocks of its degrees of freedom, as they are without contacts.
        links: the degrees of freedom that move each link, the world first.
    """
    # A block that another one carries would be a branch.
    if any(block.parent is not None or block.large for block in blocks.blocks):
        return None
    paths = [path for block in blocks.blocks for path in block.path]
    places = max(map(len, paths), default=0)
    if not places or len(blocks.order) < MIN_TREES * places:
        return None
    home = {d: (i, p) for i, path in enumerate(paths) for p, d in enumerate(path)}
    rows = np.full((len(paths), places), -1)
    for d, at in home.items():
        rows[at] = blocks.position[d]
    tree, moves = np.full(len(links), -1), np.zeros((len(links), places), bool)
    for link, dofs in enumerate(links):
        for d in dofs:
            tree[link], place = home[d]
            moves[link, place] = True
    roots = ({min(blocks.ancestors[d]) for d in path} for path in paths)
    return Forest(rows, tree, moves, 1 if all(len(r) == 1 for r in roots) else places)
