"""Conditional work: skipped on a CPU if no environment of a register needs it."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from brax.kernels.codegen.jax_internals import pruned, register_dead_code_rule
from brax.kernels.recognized import PREFIX, recognized

T = TypeVar("T")

WHERE_NEEDED = "where_needed"
"""The name of the primitive for such work."""

_primitive = Primitive(WHERE_NEEDED)
_primitive.multiple_results = True

UNREAD = f"{PREFIX}unread"
"""The name of the function that marks what nobody reads."""


def unread(tree: T) -> T:
    """Return arrays for `otherwise` of `map_needed` that nobody reads: a CPU does not write them.

    Whoever reads the results must pass over the same chunks.
    """

    def same(tree: T) -> T:
        return tree

    return recognized(UNREAD, same)(tree)


def where_needed(
    needed: jax.Array,
    function: Callable[[T], T],
    tree: T,
    kept: object = False,
    place: jax.Array | None = None,
) -> T:
    """Return `function(tree)` in the environments that need it, and `tree` in the others.

    On a CPU, the work is skipped if none of the environments in the lanes of a register needs it.
    The result is the same.

    Args:
        needed: truth values, shape (1, batch); or with a place, numbers of iterations, int32.
        function: takes and returns a pytree of arrays whose last axis is the batch; the shapes of
            the results are those of the operands.
        tree: the operands.
        kept: for parts of the operands, or each of them, whether the function itself keeps what
            belongs to environments that do not need it; a pytree prefix of `tree`.
        place: the number of the iteration of a loop that does nothing else, of which each
            environment needs the first `needed` iterations.
    """
    leaves, structure = jax.tree.flatten(tree)
    same = jax.tree.leaves(jax.tree.map(lambda k, t: jax.tree.map(lambda _: k, t), kept, tree))

    places = [] if place is None else [place]

    def chosen(needed: jax.Array, *given: jax.Array) -> list[jax.Array]:
        leaves = given[len(places) :]
        if places:
            needed = given[0] < needed
        new = jax.tree.leaves(function(jax.tree.unflatten(structure, leaves)))
        both = zip(same, new, leaves, strict=True)
        return [x if k else jnp.where(needed, x, old) for k, x, old in both]

    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]  # there would be no one call
        return jax.tree.unflatten(structure, chosen(needed, *places, *leaves))
    # `jit` gives the function one jaxpr, with all that it closes over among the operands.
    operands = [needed, *places, *leaves]
    closed = jax.make_jaxpr(jax.jit(chosen))(*operands)
    (call,) = closed.eqns
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    values |= dict(zip(closed.jaxpr.invars, operands, strict=True))
    given = [v.val if isinstance(v, Literal) else values[v] for v in call.invars]
    where, *old = (call.invars.index(v) for v in closed.jaxpr.invars)
    of_place = old.pop(0) if places else None
    out = _primitive.bind(
        *given, jaxpr=call.params["jaxpr"], needed=where, old=tuple(old), place=of_place
    )
    return jax.tree.unflatten(structure, out)


# The parameters of the primitive are `jaxpr`, the function of all operands that computes new values
# and selects among them and the old ones; and the positions among the operands of `needed`, of
# `place`, which may be None, and of the old value of each result, `old`. But for the code generator
# it is that function: an ordinary selection.


def _selected(*operands: object, jaxpr: object, **_: object) -> list[Any]:
    """Return the results of the primitive without a branch."""
    return list(jaxpr_as_fun(jaxpr)(*operands))


def _abstract(*_: object, jaxpr: Any, **__: object) -> list[Any]:
    """Return the abstract values of the results."""
    return [v.aval for v in jaxpr.jaxpr.outvars]


def _batch(operands: Sequence[object], dims: Sequence[object], **params: object) -> tuple[Any, Any]:
    """Batch the selection: with another axis of truth values, no work is skipped."""
    out = jax.vmap(functools.partial(_selected, **params), in_axes=tuple(dims))(*operands)
    return out, [0] * len(out)


def _jvp(primals: Sequence[object], tangents: Sequence[object], *, jaxpr: Any, **_: object) -> Any:
    """Differentiate the selection."""
    moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    # Of a result that depends on none of these, the tangent is zero by its type.
    count = len(jaxpr.jaxpr.outvars)
    reached = []
    for k in range(count):
        _, reads = pruned(jaxpr, [i == k for i in range(count)], [False] * len(primals))
        reached.append(any(reads[i] for i in moving))

    def of_moving(*given: jax.Array) -> list[jax.Array]:
        mine = dict(zip(moving, given, strict=True))
        return _selected(*(mine.get(i, x) for i, x in enumerate(primals)), jaxpr=jaxpr)

    out, change = jax.jvp(of_moving, [primals[i] for i in moving], [tangents[i] for i in moving])
    changes = zip(out, change, reached, strict=True)
    return out, [t if r else ad.Zero(jax.typeof(x).to_tangent_aval()) for x, t, r in changes]


def _transpose(
    cotangents: Sequence[object], *operands: Any, jaxpr: object, **_: object
) -> list[Any]:
    """Transpose a selection that is linear in some of its operands."""
    linear = [i for i, x in enumerate(operands) if ad.is_undefined_primal(x)]

    def of_linear(*given: jax.Array) -> list[jax.Array]:
        mine = dict(zip(linear, given, strict=True))
        return _selected(*(mine.get(i, x) for i, x in enumerate(operands)), jaxpr=jaxpr)

    shapes = [operands[i].aval for i in linear]
    found = jax.linear_transpose(of_linear, *shapes)(list(map(ad.instantiate_zeros, cotangents)))
    of_operand = dict(zip(linear, found, strict=True))
    return [of_operand.get(i) for i in range(len(operands))]


def _without_unused(used: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    """Drop the results that nobody uses, and the operands that are then not read."""
    if not any(used):
        return [False] * len(eqn.invars), None
    old = [i for i, u in zip(eqn.params["old"], used, strict=True) if u]
    needed, place = eqn.params["needed"], eqn.params["place"]
    kept = [i in (needed, place, *old) for i in range(len(eqn.invars))]
    jaxpr, read = pruned(eqn.params["jaxpr"], used, kept)
    position = list(itertools.accumulate(read, initial=0))
    return list(read), eqn.replace(
        invars=[v for v, r in zip(eqn.invars, read, strict=True) if r],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        params={
            **{"jaxpr": jaxpr, "needed": position[needed]},
            "old": tuple(position[i] for i in old),
            "place": None if place is None else position[place],
        },
    )


_primitive.def_impl(jax.jit(_selected, static_argnames=("jaxpr", "needed", "old", "place")))
_primitive.def_abstract_eval(_abstract)
mlir.register_lowering(_primitive, mlir.lower_fun(_selected, multiple_results=True))
batching.primitive_batchers[_primitive] = _batch
ad.primitive_jvps[_primitive] = _jvp
ad.primitive_transposes[_primitive] = _transpose
register_dead_code_rule(_primitive, _without_unused)


def rows_needed(count: jax.Array, rows: int) -> jax.Array:
    """Return whether each of some rows is one of the first `count`, (rows, batch)."""
    return jnp.arange(rows)[:, None] < count


def empty(function: Callable[[Any], T], chunk: object) -> T:
    """Return zeros shaped as a function's result for a chunk, as `otherwise` of `map_needed`."""
    # Here and in `map_needed` by `jit`, which traces the function once for both.
    shapes = jax.eval_shape(jax.jit(function), chunk)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def in_chunks(tree: T, count: int) -> T:
    """Return rows (rows, ..., batch) as so many chunks, (count, rows of a chunk, ..., batch)."""
    return jax.tree.map(lambda x: x.reshape(count, -1, *x.shape[1:]), tree)


def map_needed(count: jax.Array, function: Callable[[Any], T], chunks: object, otherwise: T) -> T:
    """Return `function` of the first chunks, which an environment needs, and `otherwise` of others.

    On a CPU, the loop ends at the first chunk that no environment of a register needs.

    Args:
        count: the number of chunks that each environment needs, int32, (1, batch).
        function: takes a chunk, returns a pytree shaped as `otherwise`.
        chunks: a pytree whose leaves are (chunks, ..., batch).
        otherwise: the result where a chunk is not needed; the last axis of its leaves is the batch.

    Returns:
        A pytree of the results, leaves (chunks, ..., batch).
    """

    def step(_: None, given: tuple[jax.Array, object]) -> tuple[None, T]:
        place, chunk = given
        once = jax.jit(function)
        return None, where_needed(count, lambda _: once(chunk), otherwise, place=place)

    # The code generator knows a loop whose body is `where_needed` alone.
    return jax.lax.scan(step, None, (_places(chunks), chunks))[1]


def _places(chunks: object) -> jax.Array:
    """Return the numbers of chunks."""
    return jnp.arange(len(jax.tree.leaves(chunks)[0]), dtype=jnp.int32)


def update_needed(
    count: jax.Array, function: Callable[[T, Any], T], chunks: T, others: object
) -> T:
    """Return chunks of which the first, which an environment needs, are replaced by a function.

    On a CPU they are changed in place if nobody reads the old ones afterwards.

    Args:
        count: the number of chunks that each environment needs, int32, (1, batch).
        function: takes a chunk and one of the others, returns what the chunk becomes.
        chunks: a pytree whose leaves are (chunks, ..., batch).
        others: a pytree of the same kind, which is only read.
    """

    def step(_: None, given: tuple[jax.Array, T, object]) -> tuple[None, T]:
        place, chunk, other = given
        return None, where_needed(count, lambda c: function(c, other), chunk, place=place)

    return jax.lax.scan(step, None, (_places(chunks), chunks, others))[1]


def fold_needed(count: jax.Array, function: Callable[[T, Any], T], start: T, chunks: object) -> T:
    """Return `function(... function(start, chunk 0) ..., chunk n)` over the first chunks.

    Args:
        count: the number of chunks that each environment needs, int32, (1, batch).
        function: takes what is carried and a chunk, returns what is carried next.
        start: the first carry, a pytree whose leaves have the batch as last axis.
        chunks: a pytree whose leaves are (chunks, ..., batch).
    """

    def step(carry: T, given: tuple[jax.Array, object]) -> tuple[T, None]:
        place, chunk = given
        new = where_needed(count, lambda carry: function(carry, chunk), carry, place=place)
        return new, None

    return jax.lax.scan(step, start, (_places(chunks), chunks))[0]
