"""Fusion barriers: keep XLA's CPU compiler from computing values again for each use."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

T = TypeVar("T")


def _identity(x: T) -> T:
    """Return the argument."""
    return x


# One compiled function for all barriers: JAX traces it once for each tree of types.
_call = jax.jit(_identity)

BARRIER_NAME = _identity.__name__
"""The name of the calls that `fusion_barrier` makes, by which `materialize` recognizes them."""


def fusion_barrier(tree: T) -> T:
    """Return `tree`, with each of its arrays computed once.

    XLA's fusion on a CPU clones cheap producers into every consumer, or computes them again for
    each slice of them. In a substitution each unknown needs all before it, so that the work grows
    exponentially. A call that XLA may not inline stops it. A solve for an ant takes 28 µs instead
    of 390 µs; the derivative of a positional step of two links takes 3 ms instead of more than ten
    minutes.
    """
    with set_xla_metadata(inlineable="false"):
        return _call(tree)


def compiled_apart(function: Callable[..., T], *args: Any) -> T:
    """Call a function that XLA compiles on its own, without fusing it with the rest.

    XLA's fusion emitter aborts ("Number of dimensions of this map must match") on some gathers that
    are fused with another result. The call can go once a kernel left to XLA compiles without it.
    """
    with set_xla_metadata(inlineable="false"):
        return jax.jit(function)(*args)
