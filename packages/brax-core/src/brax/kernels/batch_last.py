"""The boundary behind which arrays have their batch on the last axis.

`batch_last(fun)` takes a function written for arrays whose trailing axis is the batch and gives one
that users call per environment and transform as they like. It is a JAX primitive whose
differentiation, transposition and batching rules bind the same primitive again with the derived
function, so it is closed under every transformation, and the function always sees exactly one
trailing axis: of size one, or of the size of all the vmapped axes together.

Reverse mode keeps the operands and recomputes the function, so the memory of a rollout grows with
its states and not with the step's intermediates.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import AbstractMesh, get_abstract_mesh, use_abstract_mesh
from jax.sharding import PartitionSpec as P

from brax.kernels.codegen.call import DEVICES, Kernel, trace
from brax.kernels.codegen.jax_internals import placement
from brax.kernels.tiling import batch_size, by_tiles, merge, split

FlatFunction = Callable[..., tuple[jax.Array, ...]]
"""A function of arrays with a trailing batch axis, to a tuple of such arrays."""

_primitive = Primitive("batch_last")
_primitive.multiple_results = True


def _boundary(*operands: Any, fun: FlatFunction) -> list[jax.Array]:
    """The function of flat operands, as one operation."""
    return list(_primitive.bind(*operands, fun=fun, devices=DEVICES))


def batch_last(fun: Callable[..., Any], full: Sequence[int] = ()) -> Callable[..., Any]:
    """Puts a function that has its batch on the last axis behind the boundary.

    Args:
        fun: takes and returns pytrees of arrays with one trailing batch axis. What no `vmap` maps
            arrives with that axis of size one and broadcasts; constants are shaped (n, 1). It must
            be hashable and must not close over traced values.
        full: positions of arguments that always arrive at the full batch size, such as loop
            carries.

    Returns:
        A function of the same pytrees without the trailing axis, for use under any transformation.
    """

    @functools.wraps(fun)
    def per_environment(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        owners = [i for i, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
        widen = tuple(owner in full for owner in owners)
        flat, out_tree = _flat_function(fun, tree, widen)
        columns = _align([jnp.asarray(leaf)[..., None] for leaf in leaves])
        out = _boundary(*columns, fun=flat)
        return jax.tree.unflatten(out_tree(), [x[..., 0] for x in out])

    return per_environment


@functools.lru_cache(maxsize=1024)
def _flat_function(
    fun: Callable[..., Any], tree: Any, widen: tuple[bool, ...]
) -> tuple[FlatFunction, Callable[[], Any]]:
    """The function on flat operands, and its result's structure, known once it was traced."""
    structure: list[Any] = []

    def flat(*operands: jax.Array) -> tuple[jax.Array, ...]:
        given = [_widen(x, operands) if w else x for x, w in zip(operands, widen, strict=True)]
        leaves, out_tree = jax.tree.flatten(fun(*jax.tree.unflatten(tree, given)))
        structure[:] = [out_tree]
        return tuple(_widen(jnp.asarray(x), operands) for x in leaves)

    flat.__name__ = _title(fun)
    return flat, lambda: structure[0]


def _widen(x: jax.Array, beside: Sequence[jax.Array]) -> jax.Array:
    """Broadcasts to the batch of the operands it stands beside, and shards it as theirs."""
    size = batch_size(beside)
    if x.shape[-1] == size:
        return x
    aval = _beside([jax.typeof(a) for a in beside], (*x.shape[:-1], size), x.dtype)
    sharded = aval.sharding.spec[-1] is not None
    return jnp.broadcast_to(x, aval.shape, out_sharding=aval.sharding if sharded else None)


def _align(operands: Sequence[jax.Array]) -> list[jax.Array]:
    """Gives operands inside a `shard_map` the same varying axes."""
    varying = frozenset().union(*(_varying(x) for x in operands)) if operands else frozenset()
    if not varying:
        return list(operands)
    return [
        jax.lax.pcast(x, tuple(varying - _varying(x)), to="varying") if varying - _varying(x) else x
        for x in operands
    ]


def _varying(x: Any) -> frozenset[str]:
    return jax.typeof(x).manual_axis_type.varying


@functools.lru_cache(maxsize=4096)
def _kernel(fun: FlatFunction, *operands: tuple[tuple[int, ...], Any]) -> Kernel:
    """The function's operations, from the shapes without batch and types of its operands."""
    with use_abstract_mesh(AbstractMesh((), ())):
        return Kernel(trace(fun, operands), _title(fun))


def _title(fun: Any) -> str:
    """Return a function's name, with its class's if it is a method."""
    if isinstance(fun, _Linearized):
        return f"the derivative of {_title(fun.fun)}"
    if isinstance(fun, _Transposed):
        return f"the transpose of {_title(fun.fun)}"
    inner = getattr(fun, "func", fun)  # a partial function's
    owner = getattr(inner, "__self__", None)
    name = getattr(inner, "__name__", type(inner).__name__).strip("_")
    return name if owner is None else f"{type(owner).__name__}.{name}"


def _kernel_of(fun: FlatFunction, avals: Sequence[Any]) -> Kernel:
    return _kernel(fun, *((a.shape[:-1], a.dtype) for a in avals))


def _abstract(*avals: Any, fun: FlatFunction, devices: Any) -> list[Any]:
    size = batch_size(avals)
    results = _kernel_of(fun, avals).closed.out_avals
    return [_beside(avals, (*x.shape[:-1], size), x.dtype) for x in results]


def _beside(avals: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """The type of an array that is sharded along the batch, and varying, as `avals` are."""
    like = next((a for a in avals if a.sharding.spec[-1] is not None), avals[0])
    return like.update(
        shape=shape,
        dtype=dtype,
        weak_type=False,
        sharding=like.sharding.update(spec=P(*[None] * (len(shape) - 1), like.sharding.spec[-1])),
        manual_axis_type=max((a.manual_axis_type for a in avals), key=lambda m: len(m.varying)),
    )


_primitive.def_abstract_eval(_abstract)


def _placed(
    fun: FlatFunction, operands: Sequence[jax.Array], run: Callable[..., Any]
) -> list[jax.Array]:
    """Calls `run`, which gives what `fun` gives, with arrays that the compiler places.

    On a mesh whose axes are `Explicit` every operation would have to say where its result is; as
    much is known of the whole function.
    """
    avals = [jax.typeof(x) for x in operands]
    mesh = get_abstract_mesh()
    if not mesh.explicit_axes:
        return list(run(*operands))
    out = tuple(a.sharding.spec for a in _abstract(*avals, fun=fun, devices=DEVICES))
    return list(jax.sharding.auto_axes(run, axes=mesh.explicit_axes, out_sharding=out)(*operands))


@functools.lru_cache(maxsize=1024)
def _compiled(fun: FlatFunction) -> FlatFunction:
    return jax.jit(functools.partial(_boundary, fun=fun))


def _run(*operands: jax.Array, fun: FlatFunction, devices: Any) -> list[jax.Array]:
    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
        return list(fun(*operands))
    return list(_compiled(fun)(*operands))


_primitive.def_impl(_run)
mlir.register_lowering(
    _primitive,
    mlir.lower_fun(
        lambda *x, fun, devices: _placed(fun, x, lambda *x: fun(*x)), multiple_results=True
    ),
)


def _lower_on_cpu(ctx: Any, *operands: Any, fun: FlatFunction, devices: Any) -> Any:
    count, apart = placement(ctx)
    kernel = _kernel_of(fun, ctx.avals_in)

    def tiled(*operands: jax.Array) -> list[jax.Array]:
        sharded = any(jax.typeof(x).sharding.spec[-1] is not None for x in operands)

        def run(*operands: jax.Array) -> tuple[jax.Array, ...]:
            out = kernel(operands, apart, count == 1)
            return tuple(by_tiles(fun, operands, count, sharded) if out is None else out)

        return _placed(fun, operands, run)

    return mlir.lower_fun(tiled, multiple_results=True)(ctx, *operands)


mlir.register_lowering(_primitive, _lower_on_cpu, platform="cpu")


def _batch(
    operands: Sequence[Any], dims: Sequence[Any], *, fun: FlatFunction, devices: Any
) -> tuple[Any, Any]:
    """Folds a vmapped axis into the trailing one, outermost."""
    mapped = [(x, d) for x, d in zip(operands, dims, strict=True) if d is not None]
    new = mapped[0][0].shape[mapped[0][1]]
    old = max(
        x.shape[-1] if d is None else jnp.moveaxis(x, d, 0).shape[-1]
        for x, d in zip(operands, dims, strict=True)
    )
    folded = [_fold(x, d, new, old) for x, d in zip(operands, dims, strict=True)]
    out = _boundary(*_align(folded), fun=fun)
    return [_unfold(x, new, old) for x in out], [0] * len(out)


def _fold(x: jax.Array, dim: Any, new: int, old: int) -> jax.Array:
    """Return an operand with the axis `dim` folded into the last."""
    if dim is None:
        if x.shape[-1] == 1:
            return x
        x = jnp.broadcast_to(x[..., None, :], (*x.shape[:-1], new, old))
    elif old == 1:
        # XLA removes this transpose together with the one of the kernel's call.
        return jnp.moveaxis(x[..., 0], dim, -1)
    else:
        x = jnp.moveaxis(x, dim, x.ndim - 2)
        x = jnp.broadcast_to(x, (*x.shape[:-2], new, old))
    return x.reshape(*x.shape[:-2], new * old)


def _unfold(x: jax.Array, new: int, old: int) -> jax.Array:
    """Return a result with the outer part of its last axis as the first."""
    if old == 1:
        return jnp.moveaxis(x, -1, 0)[..., None]
    return jnp.moveaxis(x.reshape(*x.shape[:-1], new, old), -2, 0)


batching.primitive_batchers[_primitive] = _batch


def _zero_tangent(x: jax.Array) -> ad.Zero:
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def _is_zero(t: Any) -> bool:
    return isinstance(t, ad.Zero) or getattr(t, "dtype", None) == jax.dtypes.float0


def _jvp(
    primals: Sequence[jax.Array], tangents: Sequence[Any], *, fun: FlatFunction, devices: Any
) -> tuple[list[jax.Array], list[Any]]:
    """Binds the function, and apart from it the derivative, which is linear in the tangents."""
    out = _boundary(*primals, fun=fun)
    moving = tuple(not _is_zero(t) for t in tangents)
    smooth = tuple(jnp.issubdtype(x.dtype, jnp.inexact) for x in out)
    if not any(moving) or not any(smooth):
        return out, [_zero_tangent(x) for x in out]
    given = [t for t, m in zip(tangents, moving, strict=True) if m]
    d_out = iter(_boundary(*_align([*primals, *given]), fun=_linearized(fun, moving, smooth)))
    return out, [next(d_out) if s else _zero_tangent(x) for x, s in zip(out, smooth, strict=True)]


ad.primitive_jvps[_primitive] = _jvp


class _Linearized:
    """A function's derivative: of its operands and of the tangents of those that move."""

    def __init__(
        self, fun: FlatFunction, moving: tuple[bool, ...], smooth: tuple[bool, ...]
    ) -> None:
        self.fun, self.moving, self.smooth = fun, moving, smooth

    def __call__(self, *operands: jax.Array) -> tuple[jax.Array, ...]:
        n = len(self.moving)
        still, moved = split(operands[:n], self.moving)
        moved = [_widen(x, operands) for x in moved]
        given = [_widen(t, operands) for t in operands[n:]]

        def smooth_part(*moved: jax.Array) -> list[jax.Array]:
            out = self.fun(*merge(still, moved, self.moving))
            return [x for x, s in zip(out, self.smooth, strict=True) if s]

        return tuple(jax.jvp(smooth_part, tuple(moved), tuple(given))[1])


@functools.lru_cache(maxsize=4096)
def _linearized(
    fun: FlatFunction, moving: tuple[bool, ...], smooth: tuple[bool, ...]
) -> FlatFunction:
    return _Linearized(fun, moving, smooth)


def _transpose(
    cotangents: Sequence[Any], *operands: Any, fun: FlatFunction, devices: Any
) -> list[Any]:
    """Binds the transpose, which gives each environment's share; shared operands sum them."""
    linear = tuple(ad.is_undefined_primal(x) for x in operands)
    present = tuple(not _is_zero(c) for c in cotangents)
    known, unknown = split(operands, linear)
    avals = [x.aval for x in unknown]
    if not any(present):
        return merge([None] * len(known), [ad.Zero(a) for a in avals], linear)
    given = [c for c, p in zip(cotangents, present, strict=True) if p]
    shapes = tuple((a.shape[:-1], a.dtype) for a in avals)
    shares = _boundary(*_align([*known, *given]), fun=_transposed(fun, linear, present, shapes))
    summed = [
        x if x.shape[-1] == a.shape[-1] else jnp.sum(x, axis=-1, keepdims=True)
        for x, a in zip(shares, avals, strict=True)
    ]
    return merge([None] * len(known), summed, linear)


ad.primitive_transposes[_primitive] = _transpose


class _Transposed:
    """The transpose of a function in its linear operands."""

    def __init__(
        self, fun: FlatFunction, linear: tuple[bool, ...], present: tuple[bool, ...], shapes: Any
    ) -> None:
        self.fun, self.linear, self.present, self.shapes = fun, linear, present, shapes

    def __call__(self, *operands: jax.Array) -> tuple[jax.Array, ...]:
        n = len(self.linear) - sum(self.linear)
        known, given = operands[:n], [_widen(c, operands) for c in operands[n:]]

        def linear_part(*unknown: jax.Array) -> list[jax.Array]:
            out = self.fun(*merge(known, unknown, self.linear))
            return [x for x, p in zip(out, self.present, strict=True) if p]

        avals = [jax.typeof(c) for c in given]
        size = batch_size(operands)
        wide = [_beside(avals, (*shape, size), dtype) for shape, dtype in self.shapes]
        return tuple(jax.linear_transpose(linear_part, *wide)(given))


@functools.lru_cache(maxsize=4096)
def _transposed(
    fun: FlatFunction, linear: tuple[bool, ...], present: tuple[bool, ...], shapes: Any
) -> FlatFunction:
    return _Transposed(fun, linear, present, shapes)
