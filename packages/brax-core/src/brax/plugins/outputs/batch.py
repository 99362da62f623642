"""Tracing of a plugin's function with a batch axis that differs from every other axis."""

from collections.abc import Iterator
from typing import Any

import jax

from brax.kernels.codegen.jax_internals import inner, source, while_loop
from brax.kernels.codegen.operations import operation

CHECK_BATCH_MARK = 257
"""Number of environments in a trace: a prime number that is the size of no other axis.

It is small enough that a function with a Python loop over environments is still traced quickly."""


def marked(value: Any) -> Any:
    """Return a stand-in for an array with `CHECK_BATCH_MARK` environments."""
    return jax.ShapeDtypeStruct((*value.shape[:-1], CHECK_BATCH_MARK), value.dtype)


def unmarked(aval: Any, environments: int) -> Any:
    """Return a stand-in for a traced array, with the given number of environments."""
    # An axis whose size is a multiple of the mark is the batch axis joined with another one.
    shape = (
        n // CHECK_BATCH_MARK * environments if n % CHECK_BATCH_MARK == 0 else n for n in aval.shape
    )
    return jax.ShapeDtypeStruct(tuple(shape), aval.dtype)


def mixing(jaxpr: object) -> str:
    """Return the operation that mixes environments, with its line; empty if there is none.

    Such an operation has the batch axis among its operands' axes and not among its results', as a
    sum over all elements has. Only the condition of a loop may look at all environments.
    """
    eqn = next((eqn for eqn in _equations(jaxpr) if _loses_batch(eqn)), None)
    return "" if eqn is None else f"'{eqn.primitive.name}' ({source(eqn)})"


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of those inside it, but for the conditions of loops."""
    for eqn in jaxpr.eqns:
        loop = operation(eqn).parts is while_loop
        bodies = [while_loop(eqn).body.jaxpr] if loop else inner(eqn)
        for body in bodies:
            yield from _equations(body)
        if not bodies:
            yield eqn


def _loses_batch(eqn: Any) -> bool:
    """Return whether an equation has the batch axis in its operands and not in its results."""
    taken, given = (
        any(n and n % CHECK_BATCH_MARK == 0 for v in variables for n in v.aval.shape)
        for variables in (eqn.invars, eqn.outvars)
    )
    return taken and not given and bool(eqn.outvars)
