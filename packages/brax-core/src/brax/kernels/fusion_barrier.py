"""Fusion barriers: keep XLA's CPU compiler from computing values again for each use.

A barrier is a JAX primitive, so that only programs for a CPU contain it. On a GPU, which fuses
operations into as few kernels as it can, barriers double the number of kernels; there, and on a
TPU, the operands are the results.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from brax.kernels.codegen.jax_internals import register_dead_code_rule

T = TypeVar("T")

BARRIER_NAME = "fusion_barrier"
"""The name of the primitive, by which `materialize` and the code generator recognize it."""

_primitive = Primitive(BARRIER_NAME)
_primitive.multiple_results = True


def fusion_barrier(tree: T) -> T:
    """Return `tree`, with each of its arrays computed once.

    XLA's fusion on a CPU clones cheap producers into every consumer, or computes them again for
    each slice of them. In a substitution each unknown needs all before it, so that the work grows
    exponentially. A call that XLA may not inline stops it. A solve for an ant takes 28 µs instead
    of 390 µs; the derivative of a positional step of two links takes 3 ms instead of more than ten
    minutes.
    """
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, _primitive.bind(*leaves)) if leaves else tree


def compiled_apart(function: Callable[..., T], *args: object) -> T:
    """Call a function that XLA's CPU compiler does not fuse with the rest.

    XLA's fusion emitter aborts ("Number of dimensions of this map must match") on some gathers that
    are fused with another result. The barriers can go once a kernel left to XLA compiles without
    them.
    """
    return fusion_barrier(function(*fusion_barrier(args)))


def _same(*operands: object) -> list[Any]:
    """Return the operands."""
    return list(operands)


# One compiled function for all barriers: JAX traces it once for each list of types.
_call = jax.jit(_same)


def _call_apart(*operands: jax.Array) -> list[jax.Array]:
    """Return the operands, by a call that XLA may not inline."""
    with set_xla_metadata(inlineable="false"):
        return _call(*operands)


_primitive.def_impl(_same)
_primitive.def_abstract_eval(_same)
mlir.register_lowering(_primitive, lambda _, *operands: operands)
mlir.register_lowering(
    _primitive, mlir.lower_fun(_call_apart, multiple_results=True), platform="cpu"
)


def _batch(operands: Sequence[object], dims: Sequence[object]) -> tuple[list[Any], Sequence[Any]]:
    """Batch a barrier: each result has the axis of its operand."""
    return _primitive.bind(*operands), dims


def _given(values: Sequence[object]) -> list[Any]:
    """Bind a barrier for those tangents, or cotangents, that are not zero by their type."""
    given = iter(_primitive.bind(*(x for x in values if type(x) is not ad.Zero)))
    return [x if type(x) is ad.Zero else next(given) for x in values]


def _jvp(primals: Sequence[object], tangents: Sequence[object]) -> tuple[list[Any], list[Any]]:
    """Differentiate a barrier: the tangents have a barrier of their own."""
    return _primitive.bind(*primals), _given(tangents)


def _transpose(cotangents: Sequence[object], *_: object) -> list[Any]:
    """Transpose a barrier: the cotangents have a barrier too."""
    return _given(cotangents)


def _without_unused(used: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    """Drop the results that nobody uses, with their operands."""
    if not any(used):
        return used, None
    operands, results = (
        [v for v, u in zip(variables, used, strict=True) if u]
        for variables in (eqn.invars, eqn.outvars)
    )
    return used, eqn.replace(invars=operands, outvars=results)


batching.primitive_batchers[_primitive] = _batch
ad.primitive_jvps[_primitive] = _jvp
ad.primitive_transposes[_primitive] = _transpose
register_dead_code_rule(_primitive, _without_unused)
