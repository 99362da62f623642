"""Keeping XLA's CPU compiler from computing the links of a recursion again and again."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

T = TypeVar("T")


def _identity(x: T) -> T:
    return x


_call = jax.jit(_identity)

BARRIER_NAME = _identity.__name__
"""Name of the calls that `fusion_barrier` makes."""


def fusion_barrier(tree: T) -> T:
    """Returns `tree` with its arrays computed once.

    XLA's fusion on CPU clones cheap producers into every consumer, or computes them again for each
    slice that is taken of them; in a substitution, where each unknown needs all before it, that is
    exponential (a solve for an ant: 390 us, with this 28; the derivative of a positional step of
    two links: more than ten minutes, with this 3 ms). A call that may not be inlined stops it.
    """
    with set_xla_metadata(inlineable="false"):
        return _call(tree)


def compiled_apart(function: Callable[..., T], *args: Any) -> T:
    """Calls a function as a program of its own, of which nothing is fused with what is around it.

    XLA's fusion emitter aborts ("Number of dimensions of this map must match") on some gathers that
    share a loop with another result.
    """
    with set_xla_metadata(inlineable="false"):
        return jax.jit(function)(*args)
