"""Jaxprs without short loops, for programs in which each round of a loop has a cost."""

from typing import Any

import jax

from brax.kernels.codegen.jax_internals import changed, inner, scan, while_loop
from brax.kernels.codegen.operations import operation


def unrolled(jaxpr: Any, most: int) -> Any:
    """Return a jaxpr, open or closed, whose short loops are to be compiled as no loops.

    Args:
        jaxpr: the jaxpr.
        most: number of operations in all rounds of a loop together up to which it is short. A loop
            inside must be short, too.
    """
    return changed(jaxpr, lambda x: x.replace(eqns=[_written_out(eqn, most) for eqn in x.eqns]))


def _written_out(eqn: Any, most: int) -> Any:
    """Return an equation with the loops inside unrolled, and itself if it is a short loop."""

    def short(value: Any) -> Any:
        return unrolled(value, most) if _is_jaxpr(value) else value

    params = dict(eqn.params)
    for name, value in eqn.params.items():
        if any(map(_is_jaxpr, jax.tree.leaves(value, is_leaf=_is_jaxpr))):
            params[name] = jax.tree.map(short, value, is_leaf=_is_jaxpr)
    eqn = eqn.replace(params=params)
    if operation(eqn).parts is scan:
        rounds, size = params["length"], operations_inside(eqn)
        if size is not None and 0 < rounds * size <= most:
            return eqn.replace(params={**params, "unroll": rounds})
    return eqn


def operations_inside(eqn: Any) -> int | None:
    """Return the number of operations inside an equation; None if a loop remains there."""
    count = 0
    for body in inner(eqn):
        for each in body.eqns:
            kind, rounds, size = operation(each).parts, 1, operations_inside(each)
            if kind is scan and each.params["unroll"] == each.params["length"]:
                rounds = each.params["length"]
            elif kind is scan or kind is while_loop:
                return None
            if size is None:
                return None
            count += 1 + rounds * size
    return count


def _is_jaxpr(value: object) -> bool:
    """Return whether a parameter of an equation is a jaxpr, open or closed."""
    return hasattr(value, "eqns")
