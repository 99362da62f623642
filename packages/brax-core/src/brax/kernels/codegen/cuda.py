"""CUDA's backend: a kernel becomes one PTX kernel, which XLA launches with its own.

PTX goes to XLA as text, in a custom call that XLA's CUDA plugin makes a launch of, in loops and
CUDA graphs too. So there is no code on the host, and nothing is linked. The call is internal to
XLA, which is why `_probe` tries it once, before the first kernel.
"""

import contextlib
import functools
import hashlib
import threading
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from brax.kernels.codegen import dump, explain, ptx
from brax.kernels.codegen.call import (
    Form,
    Kernel,
    Known,
    Local,
    attempted,
    native_call,
    trace,
    without_garbage_collection,
)
from brax.kernels.codegen.cpu import MAX_UNROLLED_ELEMENTS, MIN_LOOPED_ELEMENTS
from brax.kernels.codegen.emitter import TooLong, Unsupported
from brax.kernels.codegen.explain import Outcome

# The measurements behind these thresholds are in docs/performance-model.md.
BLOCK_THREADS = 64
"""Threads of a block. A thread needs all 255 registers, so that few fit a multiprocessor."""

MAX_LOCAL_BYTES = 2**14
"""Largest size of the arrays that a thread keeps in memory, in bytes. Beyond, they leave the cache,
and XLA's program moves no more bytes."""

MAX_UNROLLED_VALUES = 60_000
"""Largest number of values of a kernel without loops over arrays. In a longer kernel, operations on
large arrays are loops."""

MAX_VALUES = 120_000
"""Largest number of values of a kernel: the time to compile grows with it."""

TARGET = "__gpu$xla.gpu.ptx"
"""XLA's custom call that launches PTX."""

_LOCK = threading.Lock()


def supports(kernel: Kernel, form: Form) -> Outcome:
    """Return the outcome of a kernel's translation; its reason is empty if there is PTX."""
    _, outcome = attempted(kernel.title, lambda: _check(kernel, form))
    if outcome.native:
        batched, known = kernel.batched(form), kernel.known(form)
        _, outcome = _code(kernel, batched, known, form.size)
    # Of a step that does not become one kernel, the kernels that it calls are noted.
    if outcome.native or not kernel.calls_kernels:
        explain.note(outcome)
    return outcome


def _check(kernel: Kernel, form: Form) -> None:
    """Check that native code can run at all.

    Raises:
        Unsupported: if there is nothing to compute, or this installation launches no PTX.
    """
    kernel.check(form)
    if reason := _probe():
        raise Unsupported(reason)


def compile(kernel: Kernel, form: Form) -> Local:
    """Return a function of all operands that adds a launch of the kernel to a program."""
    known = kernel.known(form)

    def local(*operands: jax.Array) -> list[jax.Array]:
        size = max(x.shape[-1] for x in operands)
        batched = tuple(x.shape[-1] == size for x in operands)
        code, _ = _code(kernel, batched, known, size)
        assert code is not None
        results = [
            jax.ShapeDtypeStruct((*a.shape[:-1], size), a.dtype) for a in kernel.closed.out_avals
        ]
        given = [x for x, constant in zip(operands, known, strict=True) if constant is None]
        return _launch(code, given, results, size)

    return native_call(kernel, form, local)


def fuses_steps() -> bool:
    """Return whether a step becomes one kernel with all that it calls, which is traced for that."""
    # The program's platform is not known yet. On a CPU, tracing alone would take twice as long.
    return jax.default_backend() == "gpu"


def _launch(code: str, operands: list[jax.Array], results: list[Any], size: int) -> list[jax.Array]:
    """Add a launch of PTX to the program that is traced.

    Args:
        code: the PTX, with one kernel.
        operands: the operands that are parameters.
        results: the shapes and types of the results, which are the other parameters.
        size: the number of threads that work.
    """
    call = jax.ffi.ffi_call(TARGET, results)
    return list(
        call(
            *operands,
            name=_name(code),
            kernel_type="ptx",
            kernel_data=code,
            shared_mem_bytes=np.int32(0),
            grid_x=np.int32(-(-size // BLOCK_THREADS)),
            grid_y=np.int32(1),
            grid_z=np.int32(1),
            block_x=np.int32(BLOCK_THREADS),
            block_y=np.int32(1),
            block_z=np.int32(1),
        )
    )


def _name(code: str) -> str:
    """Return the name of the kernel in PTX."""
    return code.partition(".entry ")[2].partition("(")[0]


def _code(
    kernel: Kernel, batched: tuple[bool, ...], known: tuple[Known | None, ...], size: int
) -> tuple[str | None, Outcome]:
    """Return a kernel's PTX for a batch, compiled if it is new, and the outcome.

    Args:
        kernel: the kernel.
        batched: whether each operand has a batch.
        known: the operands that become constants.
        size: the size of the batch.
    """
    numbers = [None if k is None else np.asarray(k.array) for k in known]
    # By the numbers: another copy of a model, which a new environment has, needs no other code.
    bits = tuple(None if x is None else (x.dtype, x.shape, x.tobytes()) for x in numbers)
    key = "cuda", batched, bits, size
    # LLVM's targets are shared by all threads.
    with _LOCK:
        if key not in kernel.made:
            # A failure is kept too, so that it is not tried again.
            kernel.made[key] = attempted(
                kernel.title, lambda: _compiled(kernel, batched, numbers, size)
            )
    found: tuple[str | None, Outcome] = kernel.made[key]
    return found


def _compiled(
    kernel: Kernel,
    batched: tuple[bool, ...],
    numbers: Sequence[np.ndarray[Any, Any] | None],
    size: int,
) -> str:
    """Return a kernel's PTX.

    Args:
        kernel: the kernel.
        batched: whether each operand has a batch.
        numbers: the numbers of the operands that become constants.
        size: the size of the batch.

    Raises:
        Unsupported: if it cannot be translated, or needs too much memory.
    """
    # A loop over an array stores products that are fused with sums elsewhere. So that a GPU has the
    # CPU's bits, arrays are in memory in the same kernels.
    long = kernel.needs_memory or kernel.elements > MAX_UNROLLED_ELEMENTS
    limits = {} if long else {0: MAX_UNROLLED_VALUES}
    for min_elements, limit in (limits | {MIN_LOOPED_ELEMENTS: MAX_VALUES}).items():
        with contextlib.suppress(TooLong), without_garbage_collection():
            text = ptx.translate(
                kernel.closed, batched, numbers, size, "brax_kernel", min_elements, limit
            )
            break
    else:
        raise Unsupported("too many instructions")
    # XLA finds a kernel by its name, so that no other may have it.
    name = f"brax_kernel_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    text = text.replace("@brax_kernel(", f"@{name}(", 1)
    code = ptx.compiled(text)
    if (local := ptx.local_bytes(code)) > MAX_LOCAL_BYTES:
        raise Unsupported(f"arrays of {local} bytes in each thread, of at most {MAX_LOCAL_BYTES}")
    dump.write_ptx(kernel.title, name, kernel.closed, text, code)
    return code


@functools.cache
def _probe() -> str:
    """Return why this installation launches no PTX; empty if it does, as far as it can be tried.

    Where there is a GPU, a kernel that doubles three numbers is compiled and run. Where there is
    none, as when a program is compiled for another machine, LLVM alone is tried.
    """
    numbers = np.arange(3, dtype=np.float32)
    shape = jax.ShapeDtypeStruct(numbers.shape, numbers.dtype)
    try:
        # Not in the program that is being traced.
        with jax.ensure_compile_time_eval():
            kernel = Kernel(trace(lambda x: (x + x,), [((), np.float32)]), "probe")
            code = _compiled(kernel, (True,), (None,), numbers.size)
            if not (devices := _devices()):
                return ""
            run = jax.jit(lambda x: _launch(code, [x], [shape], numbers.size)[0])
            found = np.asarray(run(jax.device_put(numbers, devices[0])))
    # XLA and drivers raise errors of many kinds; without the probe, training would end here.
    except Exception as error:
        return f"PTX, which this installation does not run ({type(error).__name__}: {error})"
    return "" if (found == 2 * numbers).all() else "PTX, which gives wrong numbers here"


def _devices() -> list[Any]:
    """Return this machine's GPUs."""
    try:
        return list(jax.devices("cuda"))
    except RuntimeError:  # JAX has no such platform here.
        return []
