"""Tracing a plugin's function with a batch axis that can be told from every other axis."""

from collections.abc import Iterator
from typing import Any

import jax

from brax.kernels.codegen.jax_internals import inner, source, while_loop

CHECK_BATCH_MARK = 257
"""Environments of a trace: a prime number that is the size of no other axis. A function that loops
over environments in Python is still traced in no time."""


def marked(value: Any) -> Any:
    """Returns a stand-in for an array with `CHECK_BATCH_MARK` environments instead of some."""
    return jax.ShapeDtypeStruct((*value.shape[:-1], CHECK_BATCH_MARK), value.dtype)


def unmarked(aval: Any, environments: int) -> Any:
    """Returns a stand-in for a traced array, with so many environments instead of the mark."""
    shape = (
        n // CHECK_BATCH_MARK * environments if n % CHECK_BATCH_MARK == 0 else n for n in aval.shape
    )
    return jax.ShapeDtypeStruct(tuple(shape), aval.dtype)


def mixing(jaxpr: Any) -> str:
    """Returns the operation that mixes environments, with its line; empty if there is none.

    It has the batch axis among its operands' axes and not among its results', as a sum over all
    elements has. Only the condition of a loop may look at all environments.
    """
    eqn = next((eqn for eqn in _equations(jaxpr) if _loses_batch(eqn)), None)
    return "" if eqn is None else f"'{eqn.primitive.name}' ({source(eqn)})"


def _equations(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        loop = eqn.primitive.name == "while"
        bodies = [while_loop(eqn).body.jaxpr] if loop else inner(eqn)
        for body in bodies:
            yield from _equations(body)
        if not bodies:
            yield eqn


def _loses_batch(eqn: Any) -> bool:
    taken, given = (
        any(n and n % CHECK_BATCH_MARK == 0 for v in variables for n in v.aval.shape)
        for variables in (eqn.invars, eqn.outvars)
    )
    return taken and not given and bool(eqn.outvars)
