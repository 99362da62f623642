"""The CPU's backend: chooses how a kernel is compiled, has LLVM compile it, and calls it.

A kernel is unrolled or has loops, and is compiled quickly or optimized. `translate` turns the jaxpr
into LLVM, `target` compiles that, and XLA knows the function by a name.
"""

import contextlib
import ctypes
import hashlib
import math
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.kernels.codegen import dump, explain, ffi, target
from brax.kernels.codegen.call import (
    Form,
    Kernel,
    Local,
    attempted,
    left_to_xla,
    native_call,
    without_garbage_collection,
)
from brax.kernels.codegen.emitter import TooLong, Unsupported
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.folding import Pattern, pattern
from brax.kernels.codegen.single_precision import MARK
from brax.kernels.codegen.translate import translate

# The measurements behind these thresholds are in docs/performance-model.md.
MAX_UNROLLED_ELEMENTS = 50_000
"""Largest number of elements that a kernel may compute for each environment if every one of them
has instructions of its own. In a longer kernel, operations on large arrays are loops."""

MIN_LOOPED_ELEMENTS = 8
"""Smallest number of elements of an array that is kept in memory in a long kernel."""

MAX_INSTRUCTIONS = 500_000
"""Largest number of instructions of a kernel: LLVM's time grows with it."""

MAX_SPILLED_SHARES = (1.0, 0.5), (0.5, 0.25)
"""Largest share of a kernel's values that is taken to be on the stack at the same time: unrolled
and in loops, of a kernel that is compiled quickly, and of one that is compiled with optimization.
The shares measured in steps and their derivatives are up to 0.19 and 0.10, 0.38 and 0.17."""

MIN_OPTIMIZED_BATCH = 64
"""Smallest batch for which a kernel is compiled with optimization, not quickly."""

MIN_OPTIMIZED_ELEMENTS = 50_000
"""Number of elements beyond which a kernel is compiled with optimization for every batch. Without
it, LLVM keeps each value on the stack."""


Patterns = tuple[Pattern | None, ...]
"""The known numbers of each operand; None if none are known."""


def supports(kernel: Kernel, form: Form) -> Outcome:
    """Return the outcome of a kernel's translation; its reason is empty if there is a function."""
    _, outcome = attempted(kernel.title, lambda: kernel.check(form))
    if outcome.native:
        _, outcome = _function(
            kernel, kernel.batched(form), _patterns(kernel, form), form.size, form.devices == 1
        )
    explain.note(outcome)
    return outcome


def compile(kernel: Kernel, form: Form) -> Local:
    """Return a function of all operands that adds a call of the native function to a program."""
    patterns = _patterns(kernel, form)

    def local(*operands: jax.Array) -> list[jax.Array]:
        size = max(x.shape[-1] for x in operands)
        batched = tuple(x.shape[-1] == size for x in operands)
        name, _ = _function(kernel, batched, patterns, size, form.devices == 1)
        assert name is not None
        results = [
            jax.ShapeDtypeStruct((size, *a.shape[:-1]), a.dtype) for a in kernel.closed.out_avals
        ]
        # XLA removes these transposes together with those of `vmap`; the handler transposes parts
        # of the batch, which stay in the cache.
        batch_first = [
            jnp.moveaxis(x, -1, 0) if mine else x for x, mine in zip(operands, batched, strict=True)
        ]
        return [jnp.moveaxis(x, 0, -1) for x in jax.ffi.ffi_call(name, results)(*batch_first)]

    return native_call(kernel, form, local)


def _function(
    kernel: Kernel, batched: tuple[bool, ...], patterns: Patterns, size: int, threads: bool
) -> tuple[str | None, Outcome]:
    """Return the name of the native function for a batch, compiled if it is new, and the outcome.

    Args:
        kernel: the kernel.
        batched: whether each operand has a batch.
        patterns: what is known of each operand's numbers.
        size: the size of the batch.
        threads: whether the function may share the batch among threads.

    Returns:
        The name that XLA knows the function by, or None if the kernel cannot be translated.
    """
    max_bytes, outcome = attempted(kernel.title, target.vector_bytes)
    if max_bytes is None:
        return None, outcome
    # A power of two, at most the batch: all batches that fill a register share one function.
    lanes = 1 << min(max_bytes // kernel.itemsize(), size).bit_length() - 1
    opt_level = int(size >= MIN_OPTIMIZED_BATCH or kernel.elements > MIN_OPTIMIZED_ELEMENTS)
    key = "cpu", batched, patterns, lanes, opt_level, threads
    if key not in kernel.made:
        # A failure is kept too, so that it is not tried again.
        kernel.made[key] = attempted(
            kernel.title, lambda: _compiled(kernel, batched, patterns, lanes, opt_level, threads)
        )
    name, outcome = kernel.made[key]
    summaries = dump.explained.get()
    if summaries is not None and name is not None and name not in summaries:
        # The text is not kept: it may be as long as half a million instructions.
        text = _translated(kernel, batched, patterns, lanes, opt_level)
        summaries[name] = dump.stages(kernel.title, kernel.closed, text, opt_level).summary
    return name, outcome


def _compiled(
    kernel: Kernel,
    batched: tuple[bool, ...],
    patterns: Patterns,
    lanes: int,
    opt_level: int,
    threads: bool,
) -> str:
    """Compile a kernel; return the name of its function.

    Args:
        kernel: the kernel.
        batched: whether each operand has a batch.
        patterns: what is known of each operand's numbers.
        lanes: environments that an instruction works on.
        opt_level: LLVM's optimization level, 0 or 1.
        threads: whether to share the batch among threads.

    Raises:
        Unsupported: if it cannot be translated.
    """
    jaxpr = kernel.closed.jaxpr
    operands = [_layout(v.aval, mine) for v, mine in zip(jaxpr.invars, batched, strict=True)]
    results = [_layout(v.aval, True) for v in jaxpr.outvars]
    handler = ffi.ffi_handler(operands, results, lanes, threads)
    translated = _translated(kernel, batched, patterns, lanes, opt_level)
    text = f"{translated}\n{handler}"
    # Equal kernels share a function, and its file in the cache, by a hash of their text.
    name = "brax_" + hashlib.sha256(f"{opt_level} {text}".encode()).hexdigest()[:32]
    register(name, text, opt_level)
    dump.write(kernel.title, name, kernel.closed, translated, opt_level)
    return name


def _translated(
    kernel: Kernel,
    batched: tuple[bool, ...],
    patterns: Patterns,
    lanes: int,
    opt_level: int,
) -> str:
    """Return the kernel's LLVM text, with loops if it is long or if it would not fit on the stack.

    Raises:
        Unsupported: if it does not fit.
    """
    long = kernel.needs_memory or kernel.elements > MAX_UNROLLED_ELEMENTS
    # The number of values of the widest type that the stack holds.
    room = target.stack_bytes() / (lanes * kernel.itemsize())
    # First unrolled, which short kernels run fastest; then with arrays in memory.
    for min_elements in (MIN_LOOPED_ELEMENTS,) if long else (0, MIN_LOOPED_ELEMENTS):
        share = MAX_SPILLED_SHARES[opt_level][bool(min_elements)]
        max_values = min(MAX_INSTRUCTIONS, int(room / share))
        with contextlib.suppress(TooLong), without_garbage_collection():
            return translate(
                kernel.closed,
                batched,
                lanes,
                min_elements,
                max_values,
                MAX_INSTRUCTIONS,
                patterns,
                MARK in kernel.operations,
            )
    raise Unsupported("too many instructions")


def _patterns(kernel: Kernel, form: Form) -> Patterns:
    """Return what is known of the numbers of each operand that is read."""
    return tuple(None if k is None else pattern(k.array) for k in kernel.known(form))


def _layout(aval: Any, batched: bool) -> ffi.ArrayLayout:
    """Return the layout of an operand or a result."""
    return ffi.ArrayLayout(batched, math.prod(aval.shape[:-1]), np.dtype(aval.dtype).itemsize)


# JAX takes the address of a function as a Python capsule.
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


_REGISTRATION_LOCK = threading.Lock()


def is_default() -> bool:
    """Return whether a CPU is the default device, and its kernels are not left to XLA."""
    return jax.default_backend() == "cpu" and not left_to_xla()


_REGISTERED: set[str] = set()
"""The names of native functions that XLA knows."""


def register(name: str, text: str, opt_level: int) -> None:
    """Compile a module and register its handler with XLA, once, whichever threads trace it."""
    # LLVM's target machine and XLA's registry are shared by all threads.
    with _REGISTRATION_LOCK:
        if name not in _REGISTERED:
            address = target.compile_module(name, text, opt_level)
            jax.ffi.register_ffi_target(name, _capsule(address, None, None), platform="cpu")
            _REGISTERED.add(name)
