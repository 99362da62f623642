"""Kernels as JAX operations: traced once, translated and compiled where a program needs them.

`Kernel` holds the jaxpr of a kernel. When a program that calls it is lowered for a CPU, the kernel
chooses how it is compiled (unrolled or with loops, quickly or optimized), has `translate` turn the
jaxpr into LLVM, `target` compile it, and registers the function with XLA by a name.
"""

import contextlib
import ctypes
import gc
import hashlib
import itertools
import logging
import math
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from brax.kernels.codegen import dump, explain, ffi, jax_internals, target
from brax.kernels.codegen.emitter import TooLong, Unsupported, code_of
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.lowering.arrays import BATCH_MARK
from brax.kernels.codegen.translate import translate
from brax.kernels.compaction import FLAGGED

# The measurements behind these thresholds are in docs/performance-model.md.
MAX_UNROLLED_ELEMENTS = 100_000
"""Largest number of elements that a kernel may compute for each environment if every one of them
has instructions of its own. In a longer kernel, operations on large arrays are loops."""

MIN_LOOPED_ELEMENTS = 32, 8
"""Smallest number of elements of an array that is kept in memory in a long kernel. The second value
is tried if the first needs too much stack."""

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

_LOG = logging.getLogger("brax")


def trace(fun: Any, shapes: Sequence[tuple[tuple[int, ...], Any]]) -> Any:
    """Return the closed jaxpr of a kernel.

    Args:
        fun: the function of arrays whose last axis is the batch.
        shapes: the shape without the batch, and the dtype, of each operand.
    """
    with _without_garbage_collection():
        return jax.make_jaxpr(fun)(*(jax.ShapeDtypeStruct((*s, BATCH_MARK), d) for s, d in shapes))


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause Python's garbage collector while a kernel is made.

    Almost nothing that is allocated meanwhile is garbage, but the many objects would have the
    collector visit all of JAX's again and again: a tenth of the time to trace a step.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _devices() -> Any:
    """Return a jaxpr that makes JAX decide on devices before it lowers what contains it.

    JAX looks for partitioned operations in the parameters of every operation. With this jaxpr as a
    parameter, the kernel's operation is taken for one that calls a partitioned function.
    """

    def partition(mesh: Any, operands: Any, result: Any) -> Any:
        return mesh, lambda x: x, result.sharding, (operands[0].sharding,)

    same = custom_partitioning(lambda x: x)
    same.def_partition(partition=partition, sharding_rule="a -> a")
    return jax.make_jaxpr(same)(np.zeros(1, np.float32))


DEVICES = _devices()
"""The parameter of the kernel's operation that `_devices` describes."""


class Kernel:
    """The jaxpr of a kernel, and the native functions that were made of it."""

    def __init__(self, closed: Any, title: str = "(unnamed)") -> None:
        """Keep the jaxpr, without what no result needs.

        Args:
            closed: the closed jaxpr from `trace`.
            title: the kernel's name in messages.
        """
        self.closed, self._used = jax_internals.needed(closed)
        self._title = title
        # By the arguments of `_compiled`. A failure is kept too, so that it is not tried again.
        self._names: dict[Any, tuple[str | None, Outcome]] = {}
        self._elements = element_count(self.closed.jaxpr)
        # Lists of flagged rows, and `top_k`, have a rule for arrays in memory only.
        self._long = self._elements > MAX_UNROLLED_ELEMENTS or bool(
            {"top_k", FLAGGED} & operation_names(self.closed.jaxpr)
        )

    def __call__(
        self, operands: Sequence[jax.Array], per_device: bool, single_device: bool
    ) -> list[jax.Array] | None:
        """Add a call of the kernel to the program that is traced.

        Args:
            operands: arrays with the batch on the last axis; those of size one there are shared by
                all environments.
            per_device: whether each device has a program of its own, for its part of the batch.
            single_device: whether there is one device, whose kernels may use several threads.

        Returns:
            The results, or None if the kernel cannot be translated.
        """
        size = max(x.shape[-1] for x in operands) if operands else 1
        # XLA would copy each operand for every call, even one that the kernel does not read.
        operands = [x for x, used in zip(operands, self._used, strict=True) if used]
        if not size or not operands:
            return None
        # The handler reads the size of the batch from an operand, so at least one needs it.
        if all(x.shape[-1] != size for x in operands):
            operands[0] = jnp.broadcast_to(operands[0], (*operands[0].shape[:-1], size))
        batched = tuple(x.shape[-1] == size for x in operands)
        if self.name(batched, size, single_device) is None:
            return None
        if per_device:
            return self._local(batched, *operands, threads=single_device)
        return list(self._partitioned(batched)(*operands))

    def _local(
        self, batched: tuple[bool, ...], *operands: jax.Array, threads: bool = False
    ) -> list[jax.Array]:
        """Return the results of the call on one device."""
        size = operands[batched.index(True)].shape[-1]
        results = [
            jax.ShapeDtypeStruct((size, *a.shape[:-1]), a.dtype) for a in self.closed.out_avals
        ]
        name = self.name(batched, size, threads)
        assert name is not None
        # XLA removes these transposes together with those of `vmap`; the handler transposes parts
        # of the batch, which stay in the cache.
        batch_first = [
            jnp.moveaxis(x, -1, 0) if mine else x for x, mine in zip(operands, batched, strict=True)
        ]
        return [jnp.moveaxis(x, 0, -1) for x in jax.ffi.ffi_call(name, results)(*batch_first)]

    def _partitioned(self, batched: tuple[bool, ...]) -> Any:
        """Return the call in a program for several devices, each with its part of the batch."""

        # The mesh axis that splits the batch of any operand splits all of them.
        def batch_axis(mesh: Any, shapes: Sequence[Any]) -> Any:
            specs = [s.sharding.spec for s, mine in zip(shapes, batched, strict=True) if mine]
            found = [p[-1] for p, s in zip(specs, shapes, strict=False) if len(p) == len(s.shape)]
            return next((axis for axis in found if axis is not None), None)

        def partition(mesh: Any, operands: Any, results: Any) -> Any:
            axis = batch_axis(mesh, operands)

            # Only the batch is split; operands without one are on every device.
            def split(shape: Any, mine: bool) -> NamedSharding:
                spec = P(*[None] * (len(shape.shape) - 1), axis) if mine else P()
                return NamedSharding(mesh, spec)

            def local(*operands: jax.Array) -> tuple[jax.Array, ...]:
                return tuple(self._local(batched, *operands))

            shardings = tuple(split(s, mine) for s, mine in zip(operands, batched, strict=True))
            return mesh, local, tuple(split(s, True) for s in results), shardings

        def whole(*operands: jax.Array) -> tuple[jax.Array, ...]:
            return tuple(self._local(batched, *operands))

        call = custom_partitioning(whole)
        call.def_partition(partition=partition, sharding_rule=self._sharding_rule(batched))
        return call

    def _sharding_rule(self, batched: tuple[bool, ...]) -> str:
        """Return a sharding rule: the last axes are the batch, and nothing else is split.

        An axis that has a name of its own is shared with no other array, as in einsum's notation.
        """
        count = itertools.count()

        def axes(aval: Any, mine: bool) -> str:
            names = [f"n{next(count)}" for _ in aval.shape[:-1]]
            return " ".join([*names, "batch" if mine else f"n{next(count)}"])

        operands = ", ".join(map(axes, self.closed.in_avals, batched))
        return f"{operands} -> {', '.join(axes(a, True) for a in self.closed.out_avals)}"

    def name(self, batched: tuple[bool, ...], size: int, threads: bool = False) -> str | None:
        """Return the name of the native function for a batch, compiled if it is new.

        Args:
            batched: whether each operand has a batch.
            size: the size of the batch.
            threads: whether the function may share the batch among threads.

        Returns:
            The name that XLA knows the function by, or None if the kernel cannot be translated.
        """
        try:
            if os.environ.get("BRAX_NATIVE") == "0":
                raise Unsupported("anything while BRAX_NATIVE is 0")
            max_lanes = target.vector_bytes() // self._itemsize()
        except Unsupported as reason:
            explain.note(Outcome(self._title, str(reason)))
            return None
        # A power of two, at most the batch: all batches that fill a register share one function.
        lanes = 1 << min(max_lanes, size).bit_length() - 1
        optimized = size >= MIN_OPTIMIZED_BATCH or self._elements > MIN_OPTIMIZED_ELEMENTS
        key = batched, lanes, int(optimized), threads
        if key not in self._names:
            self._names[key] = self._compiled(*key)
        name, outcome = self._names[key]
        explain.note(outcome)
        summaries = dump.explained.get()
        if summaries is not None and name is not None and name not in summaries:
            # The text is not kept: it may be as long as half a million instructions.
            text = self._translated(batched, lanes, int(optimized))
            made = dump.stages(self._title, self.closed, text, int(optimized))
            summaries[name] = made.summary
        return name

    def _itemsize(self) -> int:
        """Return the size of the widest element type, in bytes."""
        # Truth values take no part: in registers they are masks of the numbers' lanes.
        avals = [*self.closed.in_avals, *self.closed.out_avals]
        return max((np.dtype(a.dtype).itemsize for a in avals if a.dtype != bool), default=4)

    def _compiled(
        self, batched: tuple[bool, ...], lanes: int, opt_level: int, threads: bool
    ) -> tuple[str | None, Outcome]:
        """Compile the kernel; return its name and the outcome.

        Args:
            batched: whether each operand has a batch.
            lanes: environments that an instruction works on.
            opt_level: LLVM's optimization level, 0 or 1.
            threads: whether to share the batch among threads.
        """
        jaxpr = self.closed.jaxpr
        try:
            if not jaxpr.outvars:
                raise Unsupported("nothing to compute")
            # Types are checked first, so that the reason names a type and not an operation.
            for v in (*jaxpr.invars, *jaxpr.outvars):
                code_of(v.aval.dtype)
            operands = [
                _layout(v.aval, mine) for v, mine in zip(jaxpr.invars, batched, strict=True)
            ]
            results = [_layout(v.aval, True) for v in jaxpr.outvars]
            handler = ffi.ffi_handler(operands, results, lanes, threads)
            kernel = self._translated(batched, lanes, opt_level)
            text = f"{kernel}\n{handler}"
            # Equal kernels share a function, and its file in the cache, by a hash of their text.
            name = "brax_" + hashlib.sha256(f"{opt_level} {text}".encode()).hexdigest()[:32]
            _register(name, text, opt_level)
            dump.write(self._title, name, self.closed, kernel, opt_level)
        except Unsupported as reason:
            _LOG.info("a kernel of %d numbers is left to XLA: %s", self._elements, reason)
            return None, Outcome(self._title, str(reason), reason.where)
        except jax_internals.UnknownForm as reason:
            jax_internals.warn(str(reason))
            return None, Outcome(self._title, str(reason))
        # Any other error may come from a version of JAX or LLVM that was not tested. XLA can always
        # take over, so the user's program goes on with a warning.
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            jax_internals.warn(text)
            return None, Outcome(self._title, text)
        return name, Outcome(self._title)

    def _translated(self, batched: tuple[bool, ...], lanes: int, opt_level: int) -> str:
        """Return the kernel's LLVM text, with as many loops as it takes to fit on the stack.

        Raises:
            Unsupported: if it does not fit.
        """
        # The number of values of the widest type that the stack holds.
        room = target.stack_bytes() / (lanes * self._itemsize())
        for min_elements in MIN_LOOPED_ELEMENTS if self._long else (0, *MIN_LOOPED_ELEMENTS):
            # First unrolled, which runs fastest; then with more and more arrays in memory.
            share = MAX_SPILLED_SHARES[opt_level][bool(min_elements)]
            max_values = min(MAX_INSTRUCTIONS, int(room / share))
            with contextlib.suppress(TooLong), _without_garbage_collection():
                return translate(
                    self.closed, batched, lanes, min_elements, max_values, MAX_INSTRUCTIONS
                )
        raise Unsupported("too many instructions")


def _layout(aval: Any, batched: bool) -> ffi.ArrayLayout:
    """Return the layout of an operand or a result."""
    return ffi.ArrayLayout(batched, math.prod(aval.shape[:-1]), np.dtype(aval.dtype).itemsize)


# JAX takes the address of a function as a Python capsule.
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


_REGISTRATION_LOCK = threading.Lock()
_REGISTERED: set[str] = set()
"""The names of native functions that XLA knows."""


def _register(name: str, text: str, opt_level: int) -> None:
    """Compile a module and register its handler with XLA, once, whichever threads trace it."""
    # LLVM's target machine and XLA's registry are shared by all threads.
    with _REGISTRATION_LOCK:
        if name not in _REGISTERED:
            address = target.compile_module(name, text, opt_level)
            jax.ffi.register_ffi_target(name, _capsule(address, None, None), platform="cpu")
            _REGISTERED.add(name)


def operation_names(jaxpr: Any) -> set[str]:
    """Return the names of all primitives in a jaxpr and of the functions that it calls."""
    # Loops and calls hold jaxprs of their own.
    here = {eqn.primitive.name for eqn in jaxpr.eqns}
    here |= {str(eqn.params.get("name", "")) for eqn in jaxpr.eqns}
    return here.union(*(operation_names(j) for eqn in jaxpr.eqns for j in jax_internals.inner(eqn)))


def element_count(jaxpr: Any) -> int:
    """Return how many elements a jaxpr computes for each environment; loop bodies count once."""
    count = 0
    for eqn in jaxpr.eqns:
        inner = jax_internals.inner(eqn)
        if inner:
            count += sum(map(element_count, inner))
        elif eqn.primitive.name not in _FREE:
            # A reduction costs its operand's elements, a broadcasting operation its result's.
            avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
            sizes = (math.prod(n for n in a.shape if n != BATCH_MARK) for a in avals)
            count += max(sizes, default=0)
    return count


_FREE = {
    *("slice", "squeeze", "broadcast_in_dim", "concatenate", "reshape", "transpose", "stack"),
    *("unstack", "split", "pad", "gather", "iota", "rev", "optimization_barrier"),
    "tile",
}
"""Operations that make no instructions, since they only move elements or are known."""
