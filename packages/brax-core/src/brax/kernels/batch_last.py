"""The kernel boundary: users' arrays outside, arrays with the batch on the last axis inside.

`batch_last(fun)` takes a function of arrays whose last axis is the batch. It returns a function
that users call for one environment and transform as they like. Behind it is a JAX primitive whose
rules for differentiation, transposition and batching bind the same primitive again, with a derived
function. So it is closed under every transformation, and the function always sees exactly one
batch axis: of size one, or of the size of all vmapped axes together.

In reverse mode, the operands are kept and the function is computed again. So the memory of a
rollout grows with the number of states, not with the intermediate values of a step.

When a program is lowered, the first of the platform's `BACKENDS` that supports the call compiles
it, on a CPU to native code. On other devices, and for kernels that are left to XLA, the function is
traced into the program.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import AbstractMesh, get_abstract_mesh, use_abstract_mesh
from jax.sharding import PartitionSpec as P

from brax.kernels.codegen import cpu, cuda, xla
from brax.kernels.codegen.backend import Backend, compiled
from brax.kernels.codegen.call import DEVICES, Form, Kernel, Known, trace
from brax.kernels.codegen.jax_internals import Placement, exported, placement
from brax.kernels.codegen.lowering.control_flow import register_kernel
from brax.kernels.tiling import batch_size, joint_size, merge, split

FlatFunction = Callable[..., tuple[jax.Array, ...]]
"""A function from arrays whose last axis is the batch to a tuple of such arrays."""

_primitive = Primitive("batch_last")
_primitive.multiple_results = True


Knowns = Sequence[Known | None]
"""For each operand, its numbers if they are known while a program is traced."""


def _boundary(*operands: Any, fun: FlatFunction, known: Knowns = ()) -> list[jax.Array]:
    """Bind the primitive: the function of flat operands, as one operation."""
    known = tuple(known) if any(known) else ()
    # `DEVICES` has JAX decide on the devices before this operation is lowered.
    return list(_primitive.bind(*operands, fun=fun, devices=DEVICES, known=known))


def _all(known: Knowns, count: int) -> Knowns:
    """Return an entry for each of so many operands."""
    return known or (None,) * count


def batch_last(fun: Callable[..., Any], full: Sequence[int] = ()) -> Callable[..., Any]:
    """Make a kernel of a function that has the batch on the last axis of its arrays.

    Args:
        fun: takes and returns pytrees of arrays whose last axis is the batch. An array that no
            `vmap` maps arrives with a batch of size one, and broadcasts; constants have the shape
            (n, 1). The function must be hashable and must not close over traced values.
        full: positions of arguments that always arrive with the whole batch, such as the carry of
            a loop.

    Returns:
        A function of the same pytrees without the batch axis, for use under any transformation.
    """

    @functools.wraps(fun)
    def per_environment(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        # For each leaf, the position of the argument that it belongs to.
        owners = [i for i, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
        widen = tuple(owner in full for owner in owners)
        flat, out_tree = _flat_function(fun, tree, widen, _promotion())
        # A batch of size one, which `_batch` widens for each `vmap` around the call.
        columns = _align([jnp.asarray(leaf)[..., None] for leaf in leaves])
        known = [
            None if wide or isinstance(leaf, jax.core.Tracer) else Known(leaf)
            for leaf, wide in zip(leaves, widen, strict=True)
        ]
        out = _boundary(*columns, fun=flat, known=known)
        return jax.tree.unflatten(out_tree(columns), [x[..., 0] for x in out])

    return per_environment


def map_step(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return `jax.vmap(fun)`, which is one kernel on a GPU with all the kernels that it calls.

    Where an operation is not translated, those kernels stay kernels of their own. On other devices
    and outside of `jit` this is `jax.vmap`.

    Args:
        fun: takes and returns pytrees of arrays of one environment.
    """

    def mapped(*args: Any) -> Any:
        # The function is new for each call, so that a call outside of `jit` would compile it again.
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(args))
        whole = _columns(fun) if traced and cuda.fuses_steps() else None
        if whole is not None and _is_pure(whole, *args):
            return jax.vmap(batch_last(whole))(*args)
        return jax.vmap(fun)(*args)

    return mapped


def _columns(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a new function of arrays with the batch last, from a function of one environment."""

    # New for each call, since what it closes over, such as an environment's model, may be replaced.
    @functools.wraps(fun)
    def columns(*args: Any) -> Any:
        return jax.vmap(fun, in_axes=-1, out_axes=-1)(*args)

    return columns


def _is_pure(whole: Callable[..., Any], *args: object) -> bool:
    """Return whether a function has no side effects and closes over no traced values."""
    last = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape[1:], x.shape[0]), x.dtype), args)
    closed = jax.make_jaxpr(whole)(*last)
    traced = any(isinstance(x, jax.core.Tracer) for x in closed.consts)
    return not closed.effects and not traced


class _Promotion(NamedTuple):
    """JAX's settings that the types of a function's numbers depend on."""

    x64: bool
    rules: str


def _promotion() -> _Promotion:
    """Return the settings of this thread."""
    config: Any = jax.config
    return _Promotion(config.jax_enable_x64, config.jax_numpy_dtype_promotion)


# Cached, so that calls of one function bind one flat function: JAX's caches and ours find programs
# and kernels by it.
@functools.lru_cache(maxsize=1024)
def _flat_function(
    fun: Callable[..., Any], tree: object, widen: tuple[bool, ...], promotion: _Promotion
) -> tuple[FlatFunction, Callable[[Sequence[Any]], Any]]:
    """Return the function of flat operands, and a function that returns the results' structure.

    The structure is known only after the function was traced for operands of the same shapes and
    types, which it may depend on.

    Args:
        fun: the function of pytrees.
        tree: the structure of its arguments.
        widen: for each leaf, whether it always arrives with the whole batch.
        promotion: JAX's settings, which a later trace for the same call has again.
    """
    structures: dict[Any, Any] = {}

    def form(operands: Sequence[Any]) -> Any:
        """Return the shapes without the batch, and the types."""
        return tuple((x.shape[:-1], x.dtype) for x in operands)

    def flat(*operands: jax.Array) -> tuple[jax.Array, ...]:
        given = [_widen(x, operands) if w else x for x, w in zip(operands, widen, strict=True)]
        # Otherwise a GPU rounds the factors of matrix products to TF32, ten bits of the mantissa.
        with (
            jax.default_matmul_precision("highest"),
            jax.enable_x64(promotion.x64),
            jax.numpy_dtype_promotion(promotion.rules),
        ):
            leaves, out_tree = jax.tree.flatten(fun(*jax.tree.unflatten(tree, given)))
        structures[form(operands)] = out_tree
        # A result that depends on no batched operand still gets the whole batch.
        return tuple(_widen(jnp.asarray(x), operands) for x in leaves)

    flat.__name__ = _title(fun)
    return flat, lambda operands: structures[form(operands)]


def _widen(x: jax.Array, beside: Sequence[jax.Array]) -> jax.Array:
    """Return an array broadcast to the batch of other arrays, and sharded as they are."""
    size = batch_size(beside)
    if x.shape[-1] == size:
        return x
    aval = _beside([jax.typeof(a) for a in beside], (*x.shape[:-1], size), x.dtype)
    sharded = aval.sharding.spec[-1] is not None
    return jnp.broadcast_to(x, aval.shape, out_sharding=aval.sharding if sharded else None)


def _align(operands: Sequence[jax.Array]) -> list[jax.Array]:
    """Return operands that, inside a `shard_map`, all vary along the same mesh axes."""
    varying = frozenset().union(*(_varying(x) for x in operands)) if operands else frozenset()
    if not varying:
        return list(operands)
    return [
        jax.lax.pcast(x, tuple(varying - _varying(x)), to="varying") if varying - _varying(x) else x
        for x in operands
    ]


def _varying(x: Any) -> frozenset[str]:
    """Return the mesh axes along which an array may differ between devices in a `shard_map`."""
    return jax.typeof(x).manual_axis_type.varying


# Tracing a step takes seconds, and each of JAX's transformations asks for the kernel again.
@functools.lru_cache(maxsize=4096)
def _kernel(fun: FlatFunction, *operands: tuple[tuple[int, ...], Any]) -> Kernel:
    """Return the kernel of a function, for the unbatched shape and the dtype of each operand."""
    # The kernel is the same on every mesh, so it is traced without one.
    with use_abstract_mesh(AbstractMesh((), ())):
        return Kernel(trace(fun, operands), _title(fun), fun)


def _title(fun: Any) -> str:
    """Return a function's name for messages, with the class's name if it is a method."""
    if isinstance(fun, _Linearized):
        return f"the derivative of {_title(fun.fun)}"
    if isinstance(fun, _Transposed):
        return f"the transpose of {_title(fun.fun)}"
    inner = getattr(fun, "func", fun)  # The function inside of a partial one.
    owner = getattr(inner, "__self__", None)
    name = getattr(inner, "__name__", type(inner).__name__).strip("_")
    return name if owner is None else f"{type(owner).__name__}.{name}"


def _kernel_of(fun: FlatFunction, avals: Sequence[Any]) -> Kernel:
    """Return the kernel of a function for operands of some abstract values."""
    return _kernel(fun, *((a.shape[:-1], a.dtype) for a in avals))


def _abstract(*avals: object, fun: FlatFunction, devices: Any, known: Knowns = ()) -> list[Any]:
    """Return the abstract values of the results, which all have the whole batch."""
    size = batch_size(avals)
    results = _kernel_of(fun, avals).closed.out_avals
    return [_beside(avals, (*x.shape[:-1], size), x.dtype) for x in results]


def _beside(avals: Sequence[Any], shape: tuple[int, ...], dtype: object) -> Any:
    """Return the abstract value of an array that is sharded and varies as some others do.

    Args:
        avals: the abstract values of the others.
        shape: the shape, with the batch last.
        dtype: the type.
    """
    # Only the batch is sharded: of the others' sharding the last axis counts.
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
    """Call `run`, which returns the results of `fun`, with arrays that the compiler shards.

    On a mesh whose axes are `Explicit`, every operation inside would have to state the sharding of
    its result. Here it is known for the function as a whole.
    """
    avals = [jax.typeof(x) for x in operands]
    mesh = get_abstract_mesh()
    if not mesh.explicit_axes:
        return list(run(*operands))
    out = tuple(a.sharding.spec for a in _abstract(*avals, fun=fun, devices=DEVICES))
    placed = jax.sharding.auto_axes(
        lambda *x: tuple(run(*x)), axes=mesh.explicit_axes, out_sharding=out
    )
    return list(placed(*operands))


@functools.lru_cache(maxsize=1024)
def _compiled(fun: FlatFunction) -> FlatFunction:
    """Return the primitive as a compiled function, for calls outside of `jit`."""
    return jax.jit(functools.partial(_boundary, fun=fun))


def _run(*operands: jax.Array, fun: FlatFunction, devices: Any, known: Knowns) -> list[jax.Array]:
    """Compute the results on arrays, outside of any transformation."""
    # Here every operand is known, but the next call has other numbers.
    # Who disables `jit` debugs, and wants to step through the function.
    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
        return list(fun(*operands))
    return list(_compiled(fun)(*operands))


_primitive.def_impl(_run)


def _lower(
    platform: str,
    backends: Sequence[Backend],
    ctx: Any,
    *operands: object,
    fun: Any,
    devices: object,
    known: tuple[Known | None, ...],
) -> Any:
    """Lower the primitive by the first backend that supports the call.

    Args:
        platform: the kind of device; empty for those without a list of backends.
        backends: its backends.
        ctx: JAX's context.
        *operands: the operands.
        fun: the function of flat operands.
        devices: see `_boundary`.
        known: the operands that are known.
    """
    # Only native code is called differently on several devices.
    place = placement(ctx) if platform else Placement(1, True)
    kernel = _kernel_of(fun, ctx.avals_in)

    def called(*operands: jax.Array) -> list[jax.Array]:
        sharded = any(jax.typeof(x).sharding.spec[-1] is not None for x in operands)
        sizes = tuple(x.shape[-1] for x in operands)
        export = exported(ctx)
        form = Form(platform, sizes, sharded, place.devices, place.per_device, known, export)
        # Another process knows no native functions, and JAX exports no calls of them.
        mine = (xla,) if export else backends
        return _placed(fun, operands, compiled(kernel, form, mine))

    return mlir.lower_fun(called, multiple_results=True)(ctx, *operands)


BACKENDS: dict[str, Sequence[Backend]] = {"": (xla,), "cpu": (cpu, xla), "cuda": (cuda, xla)}
"""The backends of each platform, in the order in which they are asked."""

for _platform, _backends in BACKENDS.items():
    mlir.register_lowering(
        _primitive, functools.partial(_lower, _platform, _backends), platform=_platform or None
    )


# A kernel within another one becomes a part of it.
register_kernel(
    _primitive.name, lambda eqn: _kernel_of(eqn.params["fun"], [v.aval for v in eqn.invars])
)


def _batch(
    operands: Sequence[Any],
    dims: Sequence[Any],
    *,
    fun: FlatFunction,
    devices: object,
    known: Knowns,
) -> tuple[Any, Any]:
    """Batch the primitive: fold the vmapped axis into the batch axis, as its outer part."""
    mapped = [(x, d) for x, d in zip(operands, dims, strict=True) if d is not None]
    new = mapped[0][0].shape[mapped[0][1]]
    # `new` is the size of the vmapped axis, `old` that of the batch so far.
    old = joint_size(
        x.shape[-1] if d is None else jnp.moveaxis(x, d, 0).shape[-1]
        for x, d in zip(operands, dims, strict=True)
    )
    folded = [_fold(x, d, new, old) for x, d in zip(operands, dims, strict=True)]
    known = [k if d is None else None for k, d in zip(_all(known, len(dims)), dims, strict=True)]
    out = _boundary(*_align(folded), fun=fun, known=known)
    return [_unfold(x, new, old) for x in out], [0] * len(out)


def _fold(x: jax.Array, dim: Any, new: int, old: int) -> jax.Array:
    """Return an operand with the axis `dim` folded into the last one.

    Args:
        x: the operand.
        dim: the vmapped axis, or None if the operand has none.
        new: the size of the vmapped axis.
        old: the size of the batch before.
    """
    if dim is None:
        # Shared by all environments, before and now.
        if x.shape[-1] == 1:
            return x
        x = jnp.broadcast_to(x[..., None, :], (*x.shape[:-1], new, old))
    elif old == 1:
        # XLA removes this transpose together with the one before the call, in `cpu.compile`.
        return jnp.moveaxis(x[..., 0], dim, -1)
    else:
        x = jnp.moveaxis(x, dim, x.ndim - 2)
        x = jnp.broadcast_to(x, (*x.shape[:-2], new, old))
    return x.reshape(*x.shape[:-2], new * old)


def _unfold(x: jax.Array, new: int, old: int) -> jax.Array:
    """Return a result with the outer part of its last axis as the first axis."""
    if old == 1:
        return jnp.moveaxis(x, -1, 0)[..., None]
    return jnp.moveaxis(x.reshape(*x.shape[:-1], new, old), -2, 0)


batching.primitive_batchers[_primitive] = _batch


def _zero_tangent(x: jax.Array) -> ad.Zero:
    """Return the symbolic zero tangent of an array."""
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def _is_zero(t: Any) -> bool:
    """Return whether a tangent or cotangent is zero by its type; integers have no others."""
    return isinstance(t, ad.Zero) or getattr(t, "dtype", None) == jax.dtypes.float0


def _jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[Any],
    *,
    fun: FlatFunction,
    devices: object,
    known: Knowns,
) -> tuple[list[jax.Array], list[Any]]:
    """Differentiate the primitive: bind the function, and its derivative on its own.

    The derivative is linear in the tangents, so that reverse mode can transpose it.
    """
    # Two operations, not one with all results: reverse mode computes the first and keeps the
    # operands of the second.
    out = _boundary(*primals, fun=fun, known=known)
    moving = tuple(not _is_zero(t) for t in tangents)
    # Integers and truth values have no tangents.
    smooth = tuple(jnp.issubdtype(x.dtype, jnp.inexact) for x in out)
    if not any(moving) or not any(smooth):
        return out, [_zero_tangent(x) for x in out]
    given = [t for t, m in zip(tangents, moving, strict=True) if m]
    d_fun = _linearized(fun, moving, smooth)
    d_known = [*_all(known, len(primals)), *(None for _ in given)]
    d_out = iter(_boundary(*_align([*primals, *given]), fun=d_fun, known=d_known))
    return out, [next(d_out) if s else _zero_tangent(x) for x, s in zip(out, smooth, strict=True)]


ad.primitive_jvps[_primitive] = _jvp


class _Linearized:
    """The derivative of a function: of its operands, and of the tangents that are not zero."""

    def __init__(
        self, fun: FlatFunction, moving: tuple[bool, ...], smooth: tuple[bool, ...]
    ) -> None:
        """Keep the function.

        Args:
            fun: the function.
            moving: for each operand, whether it has a tangent.
            smooth: for each result, whether it is a float.
        """
        self.fun, self.moving, self.smooth = fun, moving, smooth

    def __call__(self, *operands: jax.Array) -> tuple[jax.Array, ...]:
        """Return the tangents of the results that are floats."""
        n = len(self.moving)
        # Operands first, then the tangents of those that have one.
        still, moved = split(operands[:n], self.moving)
        moved = [_widen(x, operands) for x in moved]
        given = [_widen(t, operands) for t in operands[n:]]

        def smooth_part(*moved: jax.Array) -> list[jax.Array]:
            out = self.fun(*merge(still, moved, self.moving))
            return [x for x, s in zip(out, self.smooth, strict=True) if s]

        return tuple(jax.jvp(smooth_part, tuple(moved), tuple(given))[1])


# Cached for the same reason as `_flat_function`.
@functools.lru_cache(maxsize=4096)
def _linearized(
    fun: FlatFunction, moving: tuple[bool, ...], smooth: tuple[bool, ...]
) -> FlatFunction:
    """Return the derivative of a function, see `_Linearized`."""
    return _Linearized(fun, moving, smooth)


def _transpose(
    cotangents: Sequence[Any], *operands: object, fun: FlatFunction, devices: object, known: Knowns
) -> list[Any]:
    """Transpose the primitive: bind the transposed function, and sum over environments if needed.

    The transposed function returns the cotangents of each environment. Those of an operand that all
    environments share are summed outside of the kernel, in which environments do not mix.
    """
    linear = tuple(ad.is_undefined_primal(x) for x in operands)
    present = tuple(not _is_zero(c) for c in cotangents)
    residuals, unknown = split(operands, linear)
    avals = [x.aval for x in unknown]
    if not any(present):
        return merge([None] * len(residuals), [ad.Zero(a) for a in avals], linear)
    given = [c for c, p in zip(cotangents, present, strict=True) if p]
    shapes = tuple((a.shape[:-1], a.dtype) for a in avals)
    numbers, _ = split(_all(known, len(operands)), linear)
    shares = _boundary(
        *_align([*residuals, *given]),
        fun=_transposed(fun, linear, present, shapes),
        known=[*numbers, *(None for _ in given)],
    )
    # An operand of batch size one was broadcast, and the transpose of a broadcast is a sum.
    summed = [
        x if x.shape[-1] == a.shape[-1] else jnp.sum(x, axis=-1, keepdims=True)
        for x, a in zip(shares, avals, strict=True)
    ]
    return merge([None] * len(residuals), summed, linear)


ad.primitive_transposes[_primitive] = _transpose


class _Transposed:
    """The transpose of a function with respect to its linear operands."""

    def __init__(
        self, fun: FlatFunction, linear: tuple[bool, ...], present: tuple[bool, ...], shapes: Any
    ) -> None:
        """Keep the function.

        Args:
            fun: the function.
            linear: for each operand, whether the function is linear in it and it is unknown.
            present: for each result, whether it has a cotangent.
            shapes: the shape without the batch, and the dtype, of each linear operand.
        """
        self.fun, self.linear, self.present, self.shapes = fun, linear, present, shapes

    def __call__(self, *operands: jax.Array) -> tuple[jax.Array, ...]:
        """Return the cotangents of the linear operands, with the whole batch."""
        # Known operands first, then the cotangents that are present.
        n = len(self.linear) - sum(self.linear)
        known, given = operands[:n], [_widen(c, operands) for c in operands[n:]]

        def linear_part(*unknown: jax.Array) -> list[jax.Array]:
            out = self.fun(*merge(known, unknown, self.linear))
            return [x for x, p in zip(out, self.present, strict=True) if p]

        # Linear operands are made as wide as the batch, so that each environment has its cotangent.
        avals = [jax.typeof(c) for c in given]
        size = batch_size(operands)
        wide = [_beside(avals, (*shape, size), dtype) for shape, dtype in self.shapes]
        return tuple(jax.linear_transpose(linear_part, *wide)(given))


@functools.lru_cache(maxsize=4096)
def _transposed(
    fun: FlatFunction, linear: tuple[bool, ...], present: tuple[bool, ...], shapes: Any
) -> FlatFunction:
    """Return the transpose of a function, see `_Transposed`."""
    return _Transposed(fun, linear, present, shapes)
