"""A kernel as an operation of JAX."""

import contextlib
import ctypes
import gc
import hashlib
import itertools
import logging
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from brax.kernels.codegen import explain, ffi, jax_internals, target
from brax.kernels.codegen.emitter import TooLong, Unsupported, code_of
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.lowering.arrays import BATCH_MARK
from brax.kernels.codegen.translate import translate

MAX_UNROLLED_ELEMENTS = 100_000
"""Most numbers that a kernel may compute for each environment with instructions of their own. In a
longer one the operations on large arrays are loops."""

MIN_LOOPED_ELEMENTS = 32, 8
"""Elements of an array that is large there; the fewer, the less room it takes on the stack."""

MAX_INSTRUCTIONS = 500_000
"""Most instructions of a kernel: the time to compile it grows with them."""

MAX_SPILLED_SHARES = (1.0, 0.5), (0.5, 0.25)
"""How much of its values a kernel keeps on the stack at most, written out and in loops: of one that
is compiled soon, and of one that is compiled fast. Measured of steps and their derivatives: up to
0.19 and 0.10, 0.38 and 0.17."""

_LOG = logging.getLogger("brax")

MIN_OPTIMIZED_BATCH = 64
"""Least batch for which a kernel is compiled to be fast, and not to be ready soon."""

MIN_OPTIMIZED_ELEMENTS = 50_000
"""Elements from which it is compiled to be fast in any case: what is ready soon uses the stack for
each number that it computes."""


def trace(fun: Any, shapes: Sequence[tuple[tuple[int, ...], Any]]) -> Any:
    """The operations of a kernel, from the shapes without batch and types of its operands."""
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
    """A function of which JAX knows that its devices have to be known where it is lowered.

    An operation with this as a parameter is taken for one that calls it.
    """

    def partition(mesh: Any, given: Any, result: Any) -> Any:
        return mesh, lambda x: x, result.sharding, (given[0].sharding,)

    same = custom_partitioning(lambda x: x)
    same.def_partition(partition=partition, sharding_rule="a -> a")
    return jax.make_jaxpr(same)(np.zeros(1, np.float32))


DEVICES = _devices()


class Kernel:
    """A kernel's operations, and the functions they became."""

    def __init__(self, closed: Any, title: str = "(unnamed)") -> None:
        """Keeps the operations.

        Args:
            closed: from `trace`.
            title: the kernel's name in messages.
        """
        self.closed, self._used = jax_internals.needed(closed)
        self._title = title
        self._names: dict[Any, tuple[str | None, Outcome]] = {}
        self._elements = elements(self.closed.jaxpr)
        self._long = self._elements > MAX_UNROLLED_ELEMENTS or "top_k" in names(self.closed.jaxpr)

    def __call__(
        self, operands: Sequence[jax.Array], apart: bool, alone: bool
    ) -> list[jax.Array] | None:
        """Adds a call to a program that is traced, or gives None if there is no such function.

        Args:
            operands: with the batch on the last axis; those of size one there are shared.
            apart: whether all devices have a program of their own, for their share of the batch.
            alone: whether there is one device, whose kernels may share the batch among threads.
        """
        size = max(x.shape[-1] for x in operands) if operands else 1
        # XLA would make each operand anew for every call, also one that the kernel does not read.
        operands = [x for x, used in zip(operands, self._used, strict=True) if used]
        if not size or not operands:
            return None
        if all(x.shape[-1] != size for x in operands):
            operands[0] = jnp.broadcast_to(operands[0], (*operands[0].shape[:-1], size))
        own = tuple(x.shape[-1] == size for x in operands)
        if self.name(own, size, alone) is None:
            return None
        if apart:
            return self._local(own, *operands, threads=alone)
        return list(self._partitioned(own)(*operands))

    def _local(
        self, own: tuple[bool, ...], *operands: jax.Array, threads: bool = False
    ) -> list[jax.Array]:
        """The call on one device."""
        size = operands[own.index(True)].shape[-1]
        results = [
            jax.ShapeDtypeStruct((size, *a.shape[:-1]), a.dtype) for a in self.closed.out_avals
        ]
        name = self.name(own, size, threads)
        assert name is not None
        # Their transposes cancel with those of `vmap`.
        given = [
            jnp.moveaxis(x, -1, 0) if mine else x for x, mine in zip(operands, own, strict=True)
        ]
        return [jnp.moveaxis(x, 0, -1) for x in jax.ffi.ffi_call(name, results)(*given)]

    def _partitioned(self, own: tuple[bool, ...]) -> Any:
        """The call in a program for several devices, each of which works on its environments."""

        def batch_of(mesh: Any, shapes: Sequence[Any]) -> Any:
            specs = [s.sharding.spec for s, mine in zip(shapes, own, strict=True) if mine]
            found = [p[-1] for p, s in zip(specs, shapes, strict=False) if len(p) == len(s.shape)]
            return next((axis for axis in found if axis is not None), None)

        def partition(mesh: Any, given: Any, results: Any) -> Any:
            axis = batch_of(mesh, given)

            def split(shape: Any, mine: bool) -> NamedSharding:
                spec = P(*[None] * (len(shape.shape) - 1), axis) if mine else P()
                return NamedSharding(mesh, spec)

            def local(*operands: jax.Array) -> tuple[jax.Array, ...]:
                return tuple(self._local(own, *operands))

            places = tuple(split(s, mine) for s, mine in zip(given, own, strict=True))
            return mesh, local, tuple(split(s, True) for s in results), places

        def whole(*operands: jax.Array) -> tuple[jax.Array, ...]:
            return tuple(self._local(own, *operands))

        call = custom_partitioning(whole)
        call.def_partition(partition=partition, sharding_rule=self._rule(own))
        return call

    def _rule(self, own: tuple[bool, ...]) -> str:
        """Says that the last axes are the batch, and that nothing else is split."""
        count = itertools.count()

        def axes(aval: Any, mine: bool) -> str:
            names = [f"n{next(count)}" for _ in aval.shape[:-1]]
            return " ".join([*names, "batch" if mine else f"n{next(count)}"])

        given = ", ".join(map(axes, self.closed.in_avals, own))
        return f"{given} -> {', '.join(axes(a, True) for a in self.closed.out_avals)}"

    def name(self, own: tuple[bool, ...], size: int, threads: bool = False) -> str | None:
        """The name of its function for a batch, or None if it cannot be translated."""
        try:
            most = target.vector_bytes() // self._bytes()
        except Unsupported as reason:
            explain.note(Outcome(self._title, str(reason)))
            return None
        lanes = 1 << min(most, size).bit_length() - 1
        key = (
            own,
            lanes,
            int(size >= MIN_OPTIMIZED_BATCH or self._elements > MIN_OPTIMIZED_ELEMENTS),
            threads,
        )
        if key not in self._names:
            self._names[key] = self._compiled(*key)
        name, outcome = self._names[key]
        explain.note(outcome)
        return name

    def _bytes(self) -> int:
        """Return the size of the widest element type, in bytes."""
        avals = [*self.closed.in_avals, *self.closed.out_avals]
        return max((np.dtype(a.dtype).itemsize for a in avals if a.dtype != bool), default=4)

    def _compiled(
        self, own: tuple[bool, ...], lanes: int, effort: int, threads: bool
    ) -> tuple[str | None, Outcome]:
        jaxpr = self.closed.jaxpr
        try:
            if not jaxpr.outvars:
                raise Unsupported("nothing to compute")
            for v in (*jaxpr.invars, *jaxpr.outvars):
                code_of(v.aval.dtype)
            operands = [_array(v.aval, mine) for v, mine in zip(jaxpr.invars, own, strict=True)]
            results = [_array(v.aval, True) for v in jaxpr.outvars]
            entry = ffi.ffi_handler(operands, results, lanes, threads)
            kernel = self._translated(own, lanes, effort)
            text = f"{kernel}\n{entry}"
            name = "brax_" + hashlib.sha256(f"{effort} {text}".encode()).hexdigest()[:32]
            _register(name, text, effort)
        except Unsupported as reason:
            _LOG.info("a kernel of %d numbers is left to XLA: %s", self._elements, reason)
            return None, Outcome(self._title, str(reason), reason.where)
        except jax_internals.UnknownForm as reason:
            jax_internals.warn(str(reason))
            return None, Outcome(self._title, str(reason))
        except Exception as error:  # what another version of JAX or LLVM does otherwise
            text = f"{type(error).__name__}: {error}"
            jax_internals.warn(text)
            return None, Outcome(self._title, text)
        return name, Outcome(self._title)

    def _translated(self, own: tuple[bool, ...], lanes: int, effort: int) -> str:
        """The kernel, with as many loops as it takes to find room on the stack.

        Raises:
            Unsupported: if there is not enough.
        """
        room = target.stack_bytes() / (lanes * self._bytes())
        for least in MIN_LOOPED_ELEMENTS if self._long else (0, *MIN_LOOPED_ELEMENTS):
            share = MAX_SPILLED_SHARES[effort][bool(least)]
            most = min(MAX_INSTRUCTIONS, int(room / share))
            try:
                with _without_garbage_collection():
                    kernel = translate(self.closed, own, lanes, least, most)
            except TooLong:
                continue
            if kernel.count("\n") <= MAX_INSTRUCTIONS:
                return kernel
        raise Unsupported("too many instructions")


def _array(aval: Any, own: bool) -> ffi.Array:
    """Return what a handler has to know of an operand or a result."""
    return ffi.Array(own, math.prod(aval.shape[:-1]), np.dtype(aval.dtype).itemsize)


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


_REGISTERING = threading.Lock()
_REGISTERED: set[str] = set()


def _register(name: str, text: str, effort: int) -> None:
    """Compiles a kernel and tells XLA its name, once, also where several threads trace it."""
    with _REGISTERING:
        if name not in _REGISTERED:
            address = target.compile_module(name, text, effort)
            jax.ffi.register_ffi_target(name, _capsule(address, None, None), platform="cpu")
            _REGISTERED.add(name)


def names(jaxpr: Any) -> set[str]:
    """Those of all operations."""
    here = {eqn.primitive.name for eqn in jaxpr.eqns}
    return here.union(*(names(j) for eqn in jaxpr.eqns for j in jax_internals.inner(eqn)))


def elements(jaxpr: Any) -> int:
    """How many numbers some operations compute, each with one environment; loops count once."""
    count = 0
    for eqn in jaxpr.eqns:
        inner = jax_internals.inner(eqn)
        if inner:
            count += sum(map(elements, inner))
        elif eqn.primitive.name not in _FREE:
            avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
            sizes = (math.prod(n for n in a.shape if n != BATCH_MARK) for a in avals)
            count += max(sizes, default=0)
    return count


_FREE = {
    *("slice", "squeeze", "broadcast_in_dim", "concatenate", "reshape", "transpose", "stack"),
    *("unstack", "split", "pad", "gather", "iota", "rev", "optimization_barrier"),
    "tile",
}
"""Operations that make no instructions."""
