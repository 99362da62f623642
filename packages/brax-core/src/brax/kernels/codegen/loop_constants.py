"""Jaxprs whose loops hold the numbers of a known model, for a compiler that folds constants there.

XLA hands constants to a loop as it does other arrays. A kernel then writes each of them that a fill
would do for, and an operation on them alone is a kernel in each round of the loop.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal, Primitive
from jax.interpreters import mlir

from brax.kernels.codegen.call import Known
from brax.kernels.codegen.jax_internals import changed, scan
from brax.kernels.codegen.operations import operation
from brax.kernels.codegen.unrolling import operations_inside

MAX_HELD_ELEMENTS = 4096
"""Largest number of elements of an array that a loop holds."""

_constant = Primitive("constant")


def with_constants_in_loops(closed: Any, known: Sequence[Known | None]) -> Any:
    """Return a closed jaxpr in which each loop computes what follows from known numbers alone.

    Barriers that keep a compiler from folding such numbers are left out.

    Args:
        closed: the closed jaxpr.
        known: for each operand, its numbers without the axis of the batch, or None.
    """

    def change(jaxpr: Any) -> Any:
        pairs = [(v, k) for v, k in zip(jaxpr.invars, known, strict=True) if k is not None]
        # Keys of random numbers have a type of JAX's own, without constants.
        given = [_of_number(v, k) for v, k in pairs if isinstance(v.aval.dtype, np.dtype)]
        return _in_loops(_without_barriers(jaxpr), filter(_is_small, given))

    return changed(closed, change)


def _in_loops(jaxpr: Any, known: Iterable[Any]) -> Any:
    """Return an open jaxpr whose loops compute what follows from known numbers alone.

    Args:
        jaxpr: the open jaxpr.
        known: the equations outside of it whose results are known.
    """
    known, eqns = list(known), []
    results = {v for eqn in known for v in eqn.outvars}
    for eqn in jaxpr.eqns:
        if operation(eqn).parts is scan:
            eqns.append(_holding(eqn, known, results))
            continue
        if _is_small(eqn) and all(isinstance(v, Literal) or v in results for v in eqn.invars):
            known.append(eqn)
            results.update(eqn.outvars)
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def _holding(loop: Any, known: Sequence[Any], results: set[Any]) -> Any:
    """Return a loop with those equations inside whose results are constants of the loop.

    Args:
        loop: the loop's equation.
        known: the equations before it whose results are known.
        results: the results.
    """
    parts = scan(loop)
    pairs = zip(parts.body.jaxpr.invars[: parts.consts], loop.invars, strict=False)
    names = {mine: v for mine, v in pairs if not isinstance(v, Literal) and v in results}
    # From the last one back: what is read, and what that was computed from.
    read, held = set(names.values()), []
    for eqn in reversed(known):
        if not read.isdisjoint(eqn.outvars):
            held.append(eqn)
            read.update(v for v in eqn.invars if not isinstance(v, Literal))
    held.reverse()

    def change(body: Any) -> Any:
        body = _in_loops(_renamed(body, names), held)
        return body.replace(eqns=[*held, *body.eqns])

    # XLA drops the operands that the loop no longer reads.
    return loop.replace(params={**loop.params, "jaxpr": changed(loop.params["jaxpr"], change)})


def _without_barriers(jaxpr: Any) -> Any:
    """Return an open jaxpr that reads the operands of barriers in the place of their results."""
    names: dict[Any, Any] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is jax.lax.optimization_barrier_p:
            given = (_name(v, names) for v in eqn.invars)
            names |= zip(eqn.outvars, given, strict=True)
        else:
            eqns.append(eqn)
    return _renamed(jaxpr.replace(eqns=eqns), names)


def _renamed(jaxpr: Any, names: dict[Any, Any]) -> Any:
    """Return an open jaxpr that reads other variables in the place of some."""
    eqns = [eqn.replace(invars=[_name(v, names) for v in eqn.invars]) for eqn in jaxpr.eqns]
    return jaxpr.replace(eqns=eqns, outvars=[_name(v, names) for v in jaxpr.outvars])


def _name(v: Any, names: dict[Any, Any]) -> Any:
    """Return the variable in the place of another."""
    return v if isinstance(v, Literal) else names.get(v, v)


def _is_small(eqn: Any) -> bool:
    """Return whether an equation may be computed again in each loop that reads its results."""
    small = all(v.aval.size <= MAX_HELD_ELEMENTS for v in eqn.outvars)
    return small and not eqn.effects and operations_inside(eqn) is not None


def _of_number(v: Any, known: Known) -> Any:
    """Return the equation by which a variable has known numbers."""
    column = np.asarray(known.array, v.aval.dtype)[..., None]
    (eqn,) = jax.make_jaxpr(lambda: _constant.bind(value=Known(column)))().eqns
    return eqn.replace(outvars=[v])


_constant.def_abstract_eval(lambda value: jax.typeof(value.array))
mlir.register_lowering(_constant, lambda _, value: [mlir.ir_constant(value.array)])
