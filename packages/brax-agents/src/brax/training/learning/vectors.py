"""Weights as one vector, for updates that follow each other without anything between them."""

from collections.abc import Callable
from typing import Any

import jax
from jax.flatten_util import ravel_pytree

from brax.kernels.codegen import cpu


class Vectors:
    """The vector of some weights, and of what an optimizer keeps for each of them.

    An optimizer takes a step of one array in a few operations, and of a tree in as many for each
    layer, which on a CPU cost more than what they compute where layers are small. A GPU launches
    fewer kernels for trees, so there everything stays as it is.
    """

    def __init__(self, weights: object) -> None:
        """Store the vector of a tree of weights, with more than one leaf."""
        self._structure: Any = jax.tree.structure(weights)
        self._joins = cpu.is_default()
        self.first = self.of(weights)
        """The vector of the weights, (number of weights,)."""
        self.restore: Callable[[Any], Any] = lambda x: x
        """Function from such a vector to the tree."""
        if self._joins:
            self.restore = ravel_pytree(weights)[1]

    def of(self, tree: object) -> Any:
        """Return the vector of a tree like the weights, such as their gradient."""
        return ravel_pytree(tree)[0] if self._joins else tree

    def flatten(self, optimizer_state: object) -> Any:
        """Return an optimizer's state with vectors in place of trees like the weights."""

        def flat(x: object) -> Any:
            return self.of(x) if self._is_one(x) else x

        return jax.tree.map(flat, optimizer_state, is_leaf=self._is_one)

    def unflatten(self, optimizer_state: object, like: object) -> Any:
        """Undo `flatten` of a state whose structure was that of `like`."""

        def tree(before: object, x: Any) -> Any:
            return self.restore(x) if self._is_one(before) else x

        return jax.tree.map(tree, like, optimizer_state, is_leaf=self._is_one)

    def _is_one(self, x: object) -> bool:
        """Return whether something is a tree like the weights."""
        return bool(jax.tree.structure(x) == self._structure)
