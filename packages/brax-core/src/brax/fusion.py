"""Keeping XLA's CPU compiler from computing the same thing again and again."""

from typing import TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

T = TypeVar("T")


def _identity(x: T) -> T:
    return x


_call = jax.jit(_identity)


def fence(tree: T) -> T:
    """Returns `tree`, computed once.

    XLA's fusion on CPU clones cheap producers into every consumer, so that a recursion over a tree
    of links is recomputed at each level. A call that may not be inlined stops it.
    """
    with set_xla_metadata(inlineable="false"):
        return _call(tree)
