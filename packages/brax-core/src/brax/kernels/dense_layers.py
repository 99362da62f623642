"""Dense layers of many rows: on a CPU two kernels, one for the layers and one for their gradient.

XLA computes a network operation by operation, each over all rows. For small networks most of the
time goes into passing arrays between operations. Here all layers are computed for one block of
rows, which stays in the cache, then for the next block.
"""

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from brax.kernels.codegen import cpu, dense_layers, jax_internals
from brax.kernels.codegen.call import attempted, left_to_xla
from brax.kernels.codegen.dense_layers import BLOCK_ROWS, padded
from brax.kernels.codegen.dense_layers import Layers as Layers

Weights = Sequence[tuple[jax.Array, jax.Array]]
"""For each layer the weights (inputs, outputs) and the bias (outputs,)."""


def supported(layers: Layers, arrays: Sequence[jax.Array]) -> bool:
    """Return whether there are kernels for layers, for arrays of these types on the default device.

    Args:
        layers: the layers.
        arrays: the rows, and the weights.
    """
    # The kernels' loops test at their ends, so that an empty array would be written beyond its end.
    if not cpu.is_default() or not all(layers.sizes):
        return False
    kinds = [jax.typeof(x) for x in arrays]
    # In a `shard_map` over devices, XLA computes the layers.
    if any(k.dtype != jnp.float32 or k.manual_axis_type.varying for k in kinds):
        return False
    return _translated(layers)


@functools.lru_cache(maxsize=256)
def _translated(layers: Layers) -> bool:
    """Return whether the code generator translates the activation, on this processor."""
    _, outcome = attempted(_title(layers), lambda: dense_layers.forward_text(layers, keep=True))
    return outcome.native


def _title(layers: Layers) -> str:
    """Return the name of layers in messages."""
    return f"dense layers of {', '.join(map(str, layers.sizes))} numbers"


def apply(layers: Layers, data: jax.Array, weights: Weights) -> jax.Array:
    """Return the outputs of dense layers, (rows, outputs).

    Args:
        layers: the layers, which are `supported`.
        data: the rows, (rows, inputs).
        weights: the weights and the bias of each layer.
    """
    (out,) = _bind("forward", layers, _blocks(data), *_flat(weights), keep=False)
    return out.reshape(-1, layers.sizes[-1])[: len(data)]


def _flat(weights: Weights) -> list[jax.Array]:
    """Return the weights and biases one after another."""
    return [x for pair in weights for x in pair]


def _blocks(data: jax.Array) -> jax.Array:
    """Return rows (rows, n) as (blocks, `BLOCK_ROWS`, n), the last block filled up with zeros.

    There is at least one block, which a kernel would compute in any case.
    """
    blocks = max(1, -(-len(data) // BLOCK_ROWS))
    missing = blocks * BLOCK_ROWS - len(data)
    whole = jnp.pad(data, [(0, missing), (0, 0)]) if missing else data
    return whole.reshape(-1, BLOCK_ROWS, data.shape[1])


_primitive = Primitive("dense_layers")
_primitive.multiple_results = True


def _bind(kind: str, layers: Layers, *operands: jax.Array, **options: Any) -> list[jax.Array]:
    """Bind the primitive, see `_FUNCTIONS`."""
    return _primitive.bind(*operands, kind=kind, layers=layers, options=tuple(options.items()))


def _by_xla(*operands: jax.Array, kind: str, layers: Layers, options: Any) -> list[jax.Array]:
    """Compute what a kernel computes by operations of XLA, with padding of zeros."""
    return _FUNCTIONS[kind](layers, operands, **dict(options))


def _forward(layers: Layers, operands: Sequence[jax.Array], keep: bool) -> list[jax.Array]:
    """Compute layers, see `codegen.dense_layers.forward_text`."""
    data, *weights = operands
    kept = []
    for i in range(len(layers.pairs)):
        data = data @ weights[2 * i] + weights[2 * i + 1]
        if i < len(layers.activated):
            data, slope = jax.jvp(layers.activation, (data,), (jnp.ones_like(data),))
            kept += [_filled(data), _filled(slope)]
    return [data, *(kept if keep else [])]


def _filled(x: jax.Array) -> jax.Array:
    """Return an array whose last axis is filled up with zeros to the length in a kernel."""
    width = [(0, 0)] * (x.ndim - 1)
    return jnp.pad(x, [*width, (0, padded(x.shape[-1]) - x.shape[-1])])


def _backward(
    layers: Layers, operands: Sequence[jax.Array], needed: tuple[bool, bool]
) -> list[jax.Array]:
    """Compute the gradient of layers, see `codegen.dense_layers.backward_text`."""
    kernels, before, slopes, (cotangents,) = _kept(layers, operands)
    sums: list[jax.Array] = []
    for i in reversed(range(len(kernels))):
        if i < len(slopes):
            cotangents = cotangents * slopes[i]
        of_kernel = jnp.einsum("bri,bro->bio", before[i], cotangents)
        sums = [of_kernel.reshape(len(cotangents), -1), jnp.sum(cotangents, 1), *sums]
        cotangents = cotangents @ kernels[i].T
    both = cotangents, jnp.concatenate(sums, axis=1)
    return [x for x, n in zip(both, needed, strict=True) if n]


def _tangent(
    layers: Layers, operands: Sequence[jax.Array], moving: tuple[bool, bool]
) -> list[jax.Array]:
    """Compute the tangents of the results.

    Operands are the rows, each layer's weights, what the kernel of the layers keeps, and tangents:
    of the rows and of the weights and biases, as far as they are moving.
    """
    kernels, before, slopes, given = _kept(layers, operands)
    tangents = given.pop(0) if moving[0] else jnp.zeros_like(before[0])
    for i, kernel in enumerate(kernels):
        tangents = tangents @ kernel
        if moving[1]:
            tangents = tangents + before[i] @ given[2 * i] + given[2 * i + 1]
        if i < len(slopes):
            tangents = tangents * slopes[i]
    return [tangents]


def _kept(
    layers: Layers, operands: Sequence[jax.Array]
) -> tuple[list[jax.Array], list[jax.Array], list[jax.Array], list[jax.Array]]:
    """Return weights, the inputs of each layer, derivatives of activations, and further operands.

    Args:
        layers: the layers.
        operands: the rows, each layer's weights, what `forward` keeps, and others.
    """
    number, active = len(layers.pairs), layers.activated
    data, *rest = operands
    kernels, kept = rest[:number], rest[number : number + 2 * len(active)]
    values, slopes = (
        [x[..., :size] for x, size in zip(kept[k::2], active, strict=True)] for k in range(2)
    )
    return kernels, [data, *values][:number], slopes, rest[number + 2 * len(active) :]


_FUNCTIONS: dict[str, Callable[..., list[jax.Array]]] = {
    "forward": _forward,
    "backward": _backward,
    "tangent": _tangent,
}
"""The functions that the primitive stands for, by its kind. The first two have kernels."""


def _abstract(*operands: Any, kind: str, layers: Layers, options: Any) -> list[Any]:
    """Return the abstract values of the results."""
    shapes = jax.eval_shape(
        functools.partial(_by_xla, kind=kind, layers=layers, options=options),
        *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands),
    )
    return [jax.core.ShapedArray(x.shape, x.dtype) for x in shapes]


_primitive.def_abstract_eval(_abstract)


@functools.lru_cache(maxsize=256)
def _compiled(**parameters: Any) -> Callable[..., list[jax.Array]]:
    """Return the primitive as a compiled function, for calls outside of `jit`."""
    return jax.jit(functools.partial(_primitive.bind, **parameters))


def _run(*operands: jax.Array, **parameters: Any) -> list[jax.Array]:
    """Compute the results on arrays, outside of any transformation."""
    # Who disables `jit` debugs, and wants to step through the operations.
    if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
        return _by_xla(*operands, **parameters)
    return _compiled(**parameters)(*operands)


_primitive.def_impl(_run)


def _batch(operands: Sequence[Any], dims: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
    """Batch the primitive: call it for one after another, such as for each of several seeds."""
    mapped = [d is not None for d in dims]
    given = [jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True) if d is not None]

    def one(mine: Sequence[jax.Array]) -> list[jax.Array]:
        rest = iter(mine)
        both = zip(operands, mapped, strict=True)
        return _primitive.bind(*(next(rest) if m else x for x, m in both), **parameters)

    out = jax.lax.map(one, given)
    return out, [0] * len(out)


batching.primitive_batchers[_primitive] = _batch


def _jvp(
    operands: Sequence[jax.Array],
    tangents: Sequence[Any],
    *,
    kind: str,
    layers: Layers,
    options: Any,
) -> tuple[list[jax.Array], list[Any]]:
    """Differentiate the primitive.

    The tangents of layers are linear in those of the operands, so that reverse mode can transpose
    them. Derivatives of derivatives are left to XLA.
    """
    options = dict(options)
    if kind != "forward" or options["keep"]:
        by_xla = functools.partial(_FUNCTIONS[kind], layers, **options)
        dense = [ad.instantiate_zeros(t) for t in tangents]
        return jax.jvp(lambda *x: by_xla(x), tuple(operands), tuple(dense))
    data, *weights = operands
    out, *kept = _bind("forward", layers, *operands, keep=True)
    of_data, of_weights = tangents[:1], tangents[1:]
    moving = tuple(any(not isinstance(t, ad.Zero) for t in x) for x in (of_data, of_weights))
    moved = [*(of_data if moving[0] else ()), *(of_weights if moving[1] else ())]
    moved = [ad.instantiate_zeros(t) for t in moved]
    return [out], _bind("tangent", layers, data, *weights[::2], *kept, *moved, moving=moving)


ad.primitive_jvps[_primitive] = _jvp


def _transpose(
    cotangents: Sequence[Any], *operands: Any, kind: str, layers: Layers, options: Any
) -> list[Any]:
    """Transpose the tangents: bind the gradient, and sum it over the blocks of rows."""
    assert kind == "tangent", f"{kind} of dense layers is not linear"
    number, moving = 1 + len(layers.pairs) + 2 * len(layers.activated), dict(options)["moving"]
    kept, tangents = operands[:number], operands[number:]
    given = ad.instantiate_zeros(cotangents[0])
    found = _bind("backward", layers, *kept, given, needed=moving)
    if moving[1]:
        found[-1:] = _summed(layers, found[-1])
    # Known tangents are the zeros of a weight that does not move.
    both = zip(tangents, found, strict=True)
    return [None] * number + [x if ad.is_undefined_primal(t) else None for t, x in both]


ad.primitive_transposes[_primitive] = _transpose


def _summed(layers: Layers, shares: jax.Array) -> list[jax.Array]:
    """Return the cotangents of the weights and biases, from those by each block of rows."""
    # One after another: the last bits of XLA's own sum along this axis depend on the number of
    # threads.
    total = functools.reduce(jnp.add, shares)
    found, end = [], 0
    for inputs, outputs in layers.pairs:
        begin, middle = end, end + inputs * outputs
        end = middle + outputs
        found += [total[begin:middle].reshape(inputs, outputs), total[middle:end]]
    return found


def _lower(ctx: Any, *operands: Any, kind: str, layers: Layers, options: Any) -> Any:
    """Lower the primitive on a CPU: call native code, if the program is for one device."""
    parameters = {"kind": kind, "layers": layers, "options": options}
    by_xla = functools.partial(_by_xla, **parameters)
    place = jax_internals.placement(ctx)
    # Another process knows no native functions, and JAX exports no calls of them.
    mine = place.devices == 1 and not jax_internals.exported(ctx) and not left_to_xla()
    name = _function(kind, layers, options) if mine and kind != "tangent" else None
    if name is None:
        return mlir.lower_fun(by_xla, multiple_results=True)(ctx, *operands)

    def call(*operands: jax.Array) -> list[jax.Array]:
        results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in ctx.avals_out]
        return list(jax.ffi.ffi_call(name, results)(*operands))

    return mlir.lower_fun(call, multiple_results=True)(ctx, *operands)


@functools.lru_cache(maxsize=256)
def _function(kind: str, layers: Layers, options: Any) -> str | None:
    """Return the name by which XLA knows the native function, which is compiled if it is new.

    It is None if LLVM fails, as a version that was not tested may; then there is a warning.
    """
    name, _ = attempted(_title(layers), lambda: _compiled_function(kind, layers, options))
    return name


def _compiled_function(kind: str, layers: Layers, options: Any) -> str:
    """Return the name of the native function, compiled."""
    if kind == "forward":
        text = dense_layers.forward_text(layers, **dict(options))
    else:
        text = dense_layers.backward_text(layers, **dict(options))
    name = "brax_" + hashlib.sha256(text.encode()).hexdigest()[:32]
    cpu.register(name, text, 1)
    return name


mlir.register_lowering(_primitive, mlir.lower_fun(_by_xla, multiple_results=True))
mlir.register_lowering(_primitive, _lower, platform="cpu")
