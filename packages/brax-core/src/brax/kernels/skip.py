"""Work that only some environments have left to do."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")

WHERE_NEEDED = "where_needed"
"""Of the function that holds such work, by which a translated kernel knows it."""


def where_needed(needed: jax.Array, function: Callable[[T], T], tree: T) -> T:
    """`function(tree)` in the environments that need it, `tree` in the others.

    On a CPU the work is left out where none of the environments that are worked on together needs
    it. What comes out is the same.

    Args:
        needed: truth values (1, batch).
        function: of arrays with a trailing batch axis; gives as many of the same shapes.
        tree: the arrays.
    """

    def chosen(needed: jax.Array, tree: Any) -> Any:
        return jax.tree.map(lambda new, old: jnp.where(needed, new, old), function(tree), tree)

    chosen.__name__ = WHERE_NEEDED
    return jax.jit(chosen)(needed, tree)
