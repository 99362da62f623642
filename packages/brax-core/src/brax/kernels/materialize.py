"""Materialization: chooses which intermediate values of a kernel XLA's CPU compiler stores.

XLA fuses an operation into each operation that uses its result, and so computes it again for each
use. In a kernel on components, where most values depend on most others, the copies multiply. A
fusion barrier is put after a value whose repetition would cost more than storing it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Literal

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.operations import operation
from brax.kernels.fusion_barrier import fusion_barrier

MAX_RECOMPUTED = 40
"""Largest number of operations, for each element, that XLA may repeat for other uses of a value."""


def materialized(fun: Callable[..., Sequence[jax.Array]]) -> Callable[..., tuple[jax.Array, ...]]:
    """Return a function that stores the values that XLA would compute again and again."""

    def stored(*operands: jax.Array) -> tuple[jax.Array, ...]:
        closed = jax.make_jaxpr(fun)(*operands)
        try:
            return tuple(_arrays(jax_internals.Body(closed.jaxpr, tuple(closed.consts)), operands))
        # `brax.kernels.codegen` has warned of it already. The function is right without barriers.
        except jax_internals.UnknownForm:
            return tuple(fun(*operands))

    return stored


def _arrays(body: jax_internals.Body, given: Sequence[jax.Array]) -> list[jax.Array]:
    """Return the results of a function whose operands are stored."""
    uses = [1] * len(body.jaxpr.outvars)
    return [x for x, _ in _evaluated(body, [(x, 0) for x in given], uses)]


def _evaluated(
    body: jax_internals.Body, given: Sequence[tuple[object, int]], result_uses: Sequence[int]
) -> list[tuple[Any, int]]:
    """Return the results of a function with their costs.

    The cost of a value is the number of operations, for each of its elements, that compute it from
    stored values.

    Args:
        body: the function.
        given: the operands with their costs.
        result_uses: how often the caller uses each result.
    """
    uses = _uses(body.jaxpr)
    # A result is used where the caller uses it.
    for var, count in zip(body.jaxpr.outvars, result_uses, strict=True):
        if not isinstance(var, Literal):
            uses[var] += count
    values: dict[Any, tuple[Any, int]] = {}

    def read(var: object) -> tuple[Any, int]:
        return (var.val, 0) if isinstance(var, Literal) else values[var]

    values.update(zip(body.jaxpr.constvars, ((c, 0) for c in body.consts), strict=True))
    values.update(zip(body.jaxpr.invars, given, strict=True))
    for eqn in body.jaxpr.eqns:
        found = _results(eqn, [read(v) for v in eqn.invars], [uses[v] for v in eqn.outvars])
        for var, (x, cost) in zip(eqn.outvars, found, strict=True):
            # One use computes the value; each of the others would repeat it.
            if uses[var] > 1 and cost * (uses[var] - 1) > MAX_RECOMPUTED:
                x, cost = fusion_barrier(x), 0
            values[var] = x, cost
    return [read(v) for v in body.jaxpr.outvars]


def _uses(jaxpr: Any) -> Counter[Any]:
    """Return how many operations use each variable, including those of called functions."""
    found: Counter[Any] = Counter()
    for eqn in jaxpr.eqns:
        each = [1] * len(eqn.invars)
        # XLA inlines calls, so a use inside counts as one here.
        if operation(eqn).parts is jax_internals.called:
            inner = jax_internals.called(eqn).jaxpr
            within = _uses(inner)
            within.update(v for v in inner.outvars if not isinstance(v, Literal))
            each = [within[v] for v in inner.invars]
        for var, count in zip(eqn.invars, each, strict=True):
            if not isinstance(var, Literal):
                found[var] += count
    return found


def _results(eqn: Any, given: list[tuple[Any, int]], uses: Sequence[int]) -> list[tuple[Any, int]]:
    """Return the results of an equation with their costs, see `_evaluated`."""
    found, arrays = operation(eqn), [x for x, _ in given]
    if found.parts:
        parts = found.parts(eqn)
        if isinstance(parts, jax_internals.Body):
            return _evaluated(parts, given, uses)
        # XLA stores what a loop or branch takes and returns.
        return [(x, 0) for x in _LOOPS[type(parts)](eqn, parts, arrays)]
    # The operation itself, unchanged, on the values so far.
    out = eqn.primitive.bind(*arrays, **eqn.params)
    results = out if eqn.primitive.multiple_results else [out]
    if found.stored:
        return [(x, 0) for x in results]
    # Fused, the operands are computed again together with the operation.
    cost = found.cost + sum(c for _, c in given)
    if found.reduces:
        # An element of a reduction's result needs many elements of the operand.
        cost *= max(arrays[0].size // max(results[0].size, 1), 1)
    return [(x, cost) for x in results]


def _scan(eqn: Any, loop: jax_internals.Scan, given: Sequence[Any]) -> list[Any]:
    """Return the results of a `scan`, with barriers in its body."""
    consts, carry = given[: loop.consts], given[loop.consts : loop.consts + loop.carry]

    def body(carry: Any, xs: Any) -> tuple[list[Any], list[Any]]:
        out = _arrays(loop.body, [*consts, *carry, *xs])
        return out[: loop.carry], out[loop.carry :]

    xs = list(given[loop.consts + loop.carry :])
    last, ys = jax.lax.scan(body, list(carry), xs, loop.length, loop.reverse)
    return [*last, *ys]


def _while(eqn: object, loop: jax_internals.While, given: Sequence[Any]) -> list[Any]:
    """Return the results of a `while`, with barriers in its test and its body."""
    start = loop.test_consts + loop.body_consts
    tested, used = given[: loop.test_consts], given[loop.test_consts : start]
    return list(
        jax.lax.while_loop(
            lambda carry: _arrays(loop.test, [*tested, *carry])[0],
            lambda carry: _arrays(loop.body, [*used, *carry]),
            list(given[start:]),
        )
    )


def _cond(eqn: object, found: jax_internals.Branches, given: Sequence[Any]) -> list[Any]:
    """Return the results of a `cond`, with barriers in its branches."""
    branches = [lambda operands, branch=branch: _arrays(branch, operands) for branch in found.all]
    return list(jax.lax.switch(given[0].astype(int), branches, list(given[1:])))


_LOOPS: dict[type, Callable[..., list[Any]]] = {
    jax_internals.Scan: _scan,
    jax_internals.While: _while,
    jax_internals.Branches: _cond,
}
"""Operations whose functions stay functions, so that the operands of each are stored."""
