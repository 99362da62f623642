"""Dense layers of many rows: on a CPU two kernels, one for the layers and one for their gradient.

XLA computes a network operation by operation, each over all rows. For small networks most of the
time goes into passing arrays between operations. Here all layers are computed for one block of
rows, which stays in the cache, then for the next block.
"""

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from brax.kernels.codegen import cpu, dense_layers, jax_internals
from brax.kernels.codegen.dense_layers import BLOCK_ROWS, padded
from brax.kernels.codegen.dense_layers import Layers as Layers
from brax.kernels.codegen.emitter import Unsupported

Weights = Sequence[tuple[jax.Array, jax.Array]]
"""For each layer the weights (inputs, outputs) and the bias (outputs,)."""


def supported(layers: Layers, arrays: Sequence[jax.Array]) -> bool:
    """Return whether there are kernels for layers, for arrays of these types on the default device.

    Args:
        layers: the layers.
        arrays: the rows, and the weights.
    """
    if jax.default_backend() != "cpu" or os.environ.get("BRAX_NATIVE") == "0":
        return False
    kinds = [jax.typeof(x) for x in arrays]
    # In a `shard_map` over devices, XLA computes the layers.
    if any(k.dtype != jnp.float32 or k.manual_axis_type.varying for k in kinds):
        return False
    return _translated(layers)


@functools.lru_cache(maxsize=256)
def _translated(layers: Layers) -> bool:
    """Return whether the code generator translates the activation, on this processor."""
    try:
        dense_layers.forward_text(layers, keep=True)
    except (Unsupported, jax_internals.UnknownForm):
        return False
    return True


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def apply(layers: Layers, data: jax.Array, weights: Weights) -> jax.Array:
    """Return the outputs of dense layers, (rows, outputs).

    It can be differentiated in reverse mode, once.

    Args:
        layers: the layers, which are `supported`.
        data: the rows, (rows, inputs).
        weights: the weights and the bias of each layer.
    """
    (out,) = _bind("forward", layers, _blocks(data), *_flat(weights), keep=False)
    return _rows(out, len(data))


def _apply_forward(layers: Layers, data: Any, weights: Any) -> tuple[jax.Array, Any]:
    """Return the outputs, and the function that maps their cotangents to those of the operands."""
    needed = data.perturbed, any(x.perturbed for pair in weights for x in pair)
    rows, values = data.value, [(kernel.value, bias.value) for kernel, bias in weights]
    blocks = _blocks(rows)
    out, *kept = _bind("forward", layers, blocks, *_flat(values), keep=True)
    pull = functools.partial(_pulled_back, layers, needed, len(rows))
    kernels = [kernel for kernel, _ in values]
    return _rows(out, len(rows)), jax.tree_util.Partial(pull, blocks, kernels, kept)


def _pulled_back(
    layers: Layers,
    needed: tuple[bool, bool],
    rows: int,
    blocks: jax.Array,
    kernels: Sequence[jax.Array],
    kept: Sequence[jax.Array],
    cotangents: jax.Array,
) -> tuple[jax.Array | None, Any]:
    """Return the cotangents of rows and weights, from those of the outputs; None if not needed.

    Args:
        layers: the layers.
        needed: whether the cotangents of the rows are needed, and those of the weights.
        rows: the number of rows.
        blocks: the rows, in blocks.
        kernels: the weights of each layer.
        kept: what the kernel of the layers has kept.
        cotangents: the cotangents of the outputs.
    """
    operands = blocks, *kernels, *kept, _blocks(cotangents)
    found = list(_bind("backward", layers, *operands, needed=needed))
    of_rows = _rows(found.pop(0), rows) if needed[0] else None
    if not needed[1]:
        return of_rows, [(None, None)] * len(kernels)
    # XLA's own sum along this axis is in an order that depends on the number of threads.
    total, of_weights, end = functools.reduce(jnp.add, found[0]), [], 0
    for inputs, outputs in layers.pairs:
        begin, middle = end, end + inputs * outputs
        end = middle + outputs
        kernel = total[begin:middle].reshape(inputs, outputs)
        of_weights.append((kernel, total[middle:end]))
    return of_rows, of_weights


def _apply_backward(layers: Layers, pull: Any, cotangents: Any) -> tuple[Any, Any]:
    """Return the cotangents of rows and weights."""
    if isinstance(cotangents, jax.custom_derivatives.SymbolicZero):
        cotangents = jnp.zeros(cotangents.shape, cotangents.dtype)
    return pull(cotangents)


apply.defvjp(_apply_forward, _apply_backward, symbolic_zeros=True)


def _flat(weights: Weights) -> list[jax.Array]:
    """Return the weights and biases one after another."""
    return [x for pair in weights for x in pair]


def _blocks(data: jax.Array) -> jax.Array:
    """Return rows (rows, n) as (blocks, `BLOCK_ROWS`, n), the last block filled up with zeros."""
    missing = -len(data) % BLOCK_ROWS
    whole = jnp.pad(data, [(0, missing), (0, 0)]) if missing else data
    return whole.reshape(-1, BLOCK_ROWS, data.shape[1])


def _rows(blocks: jax.Array, count: int) -> jax.Array:
    """Return the first `count` rows of blocks."""
    return blocks.reshape(-1, blocks.shape[-1])[:count]


_primitive = Primitive("dense_layers")
_primitive.multiple_results = True


def _bind(kind: str, layers: Layers, *operands: jax.Array, **options: Any) -> list[jax.Array]:
    """Bind the primitive: the layers (`forward`) or their gradient (`backward`)."""
    return _primitive.bind(*operands, kind=kind, layers=layers, options=tuple(options.items()))


def _by_xla(*operands: jax.Array, kind: str, layers: Layers, options: Any) -> list[jax.Array]:
    """Compute what a kernel computes by operations of XLA, with padding of zeros."""
    return (_forward if kind == "forward" else _backward)(layers, operands, **dict(options))


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
    count = len(layers.pairs)
    data, kernels, kept = operands[0], operands[1 : 1 + count], operands[1 + count : -1]
    values = [x[..., :size] for x, size in zip(kept[::2], layers.activated, strict=True)]
    slopes = [x[..., :size] for x, size in zip(kept[1::2], layers.activated, strict=True)]
    cotangents = operands[-1]
    sums: list[jax.Array] = []
    for i in reversed(range(count)):
        if i < len(slopes):
            cotangents = cotangents * slopes[i]
        before = values[i - 1] if i else data
        of_kernel = jnp.einsum("bri,bro->bio", before, cotangents)
        sums = [of_kernel.reshape(len(data), -1), jnp.sum(cotangents, 1), *sums]
        cotangents = cotangents @ kernels[i].T
    both = cotangents, jnp.concatenate(sums, axis=1)
    return [x for x, n in zip(both, needed, strict=True) if n]


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


_primitive.def_impl(lambda *operands, **parameters: _compiled(**parameters)(*operands))


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


def _lower(ctx: Any, *operands: Any, kind: str, layers: Layers, options: Any) -> Any:
    """Lower the primitive on a CPU: call native code, if the program is for one device."""
    parameters = {"kind": kind, "layers": layers, "options": options}
    by_xla = functools.partial(_by_xla, **parameters)
    place = jax_internals.placement(ctx)
    # Another process knows no native functions, and JAX exports no calls of them.
    mine = place.devices == 1 and not jax_internals.exported(ctx)
    name = _function(kind, layers, options) if mine else None
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
    try:
        return _compiled_function(kind, layers, options)
    except Exception as error:
        jax_internals.warn(f"{type(error).__name__}: {error}")
        return None


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
