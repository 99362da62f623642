"""Kernels and their calls: what every backend is given.

`Kernel` holds the jaxpr of a kernel, traced once. A `Form` is what the code of a call may depend on
besides: which operands have the batch, its size, and the devices of the program. `native_call` adds
a call of native code to a program, for each device if there are several.
"""

import contextlib
import gc
import itertools
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AbstractMesh, NamedSharding, use_abstract_mesh
from jax.sharding import PartitionSpec as P

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.emitter import Unsupported, code_of
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.lowering.arrays import BATCH_MARK
from brax.kernels.codegen.operations import elements, named, operation
from brax.kernels.compaction import FLAGGED
from brax.kernels.tiling import joint_size

T = TypeVar("T")

_LOG = logging.getLogger("brax")


def trace(fun: Any, shapes: Sequence[tuple[tuple[int, ...], Any]]) -> Any:
    """Return the closed jaxpr of a kernel.

    Args:
        fun: the function of arrays whose last axis is the batch.
        shapes: the shape without the batch, and the dtype, of each operand.
    """
    with without_garbage_collection():
        return jax.make_jaxpr(fun)(*(jax.ShapeDtypeStruct((*s, BATCH_MARK), d) for s, d in shapes))


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
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


MAX_KNOWN_ELEMENTS = 4096
"""Largest number of elements of an operand whose numbers a kernel may depend on."""


class Known:
    """A shared operand whose numbers are known while a program is lowered, such as a model's.

    Two are equal only if they are the same array, so that comparing programs reads no numbers.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        """Keep the array, without the axis of the batch."""
        self.array = array

    def __hash__(self) -> int:
        """Return a hash of the array's identity."""
        return hash(id(self.array))

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same array."""
        return isinstance(other, Known) and self.array is other.array


class Form(NamedTuple):
    """The form of a kernel's call in a program."""

    platform: str
    """The kind of device that the program is for, such as `cpu`; empty if it may be any."""
    sizes: tuple[int, ...]
    """The size of the last axis of each operand: the batch, or one if all environments share it."""
    sharded: bool = False
    """True if the batch is split over devices by its sharding."""
    devices: int = 1
    """The number of devices that the program is for."""
    per_device: bool = True
    """True if each device has a program of its own, for its part of the batch."""
    known: tuple[Known | None, ...] = ()
    """The operands whose numbers are known while the program is lowered; empty if none are."""
    exported: bool = False
    """True if the program is for `jax.export`, which takes XLA's own operations only."""

    @property
    def size(self) -> int:
        """The size of the batch."""
        return joint_size(self.sizes)


class Kernel:
    """The jaxpr of a kernel, and what backends have made of it."""

    def __init__(self, closed: Any, title: str = "(unnamed)", fun: Any = None) -> None:
        """Keep the jaxpr, without what no result needs.

        Args:
            closed: the closed jaxpr from `trace`.
            title: the kernel's name in messages.
            fun: the function that was traced, for a backend that traces it into a program.
        """
        self.closed, self._used = jax_internals.needed(closed)
        self.title, self.fun = title, fun
        self.made: dict[Any, Any] = {}
        """The code that backends keep, by the backend's name and what the code depends on."""
        self.elements = element_count(self.closed.jaxpr)
        """The number of elements that are computed for each environment."""
        self.operations = operation_names(self.closed.jaxpr)
        """The names of its operations and of the functions that it calls."""
        parts = list(called_kernels(self.closed.jaxpr))
        found = [named(name) for name in self.operations]
        # Lists of flagged rows have a rule for arrays in memory only.
        self.needs_memory: bool = (
            FLAGGED in self.operations
            or any(x.in_memory and not x.rule for x in found)
            or any(part.needs_memory for part in parts)
        )
        """True if it cannot be unrolled."""
        self.calls_kernels = bool(parts)
        """True if it has other kernels as parts."""

    def check(self, form: Form) -> None:
        """Check what native code of every kind requires.

        Raises:
            Unsupported: if a call has nothing to compute, or numbers of a type without code.
        """
        jaxpr = self.closed.jaxpr
        if not form.size or not any(self._used) or not jaxpr.outvars:
            raise Unsupported("nothing to compute")
        for v in (*jaxpr.invars, *jaxpr.outvars):
            code_of(v.aval.dtype)

    def used(self, operands: Sequence[Any]) -> list[Any]:
        """Return what belongs to the operands that are read."""
        return [x for x, used in zip(operands, self._used, strict=True) if used]

    def batched(self, form: Form) -> tuple[bool, ...]:
        """Return whether each operand that is read has the batch; one of them has it always."""
        mine = [size == form.size for size in self.used(form.sizes)]
        # Native code reads the size of the batch from an operand, so at least one needs it.
        return tuple(mine) if any(mine) else tuple([True, *mine[1:]][: len(mine)])

    def known(self, form: Form) -> tuple[Known | None, ...]:
        """Return the known operands of those that are read, if all environments share them."""
        found = self.used(form.known or (None,) * len(form.sizes))
        return tuple(
            k if k is not None and not mine and np.size(k.array) <= MAX_KNOWN_ELEMENTS else None
            for k, mine in zip(found, self.batched(form), strict=True)
        )

    def itemsize(self) -> int:
        """Return the size of the widest element type, in bytes."""
        # Truth values take no part: in registers they are masks of the numbers' lanes.
        avals = [*self.closed.in_avals, *self.closed.out_avals]
        return max((np.dtype(a.dtype).itemsize for a in avals if a.dtype != bool), default=4)


Local = Callable[..., list[jax.Array]]
"""A function of the operands that are read, on one device, which returns the results."""


def native_call(kernel: Kernel, form: Form, local: Local) -> Local:
    """Return a function of all operands that adds a call of native code to a program.

    Args:
        kernel: the kernel.
        form: the form of the call.
        local: adds the call to the program of one device.
    """
    batched = kernel.batched(form)

    def call(*operands: jax.Array) -> list[jax.Array]:
        # XLA would copy each operand for every call, even one that the kernel does not read.
        given = kernel.used(operands)
        if batched[0] and given[0].shape[-1] != form.size:
            given[0] = jnp.broadcast_to(given[0], (*given[0].shape[:-1], form.size))
        if form.per_device:
            return local(*given)
        return list(_partitioned(kernel, batched, local)(*given))

    return call


def left_to_xla() -> bool:
    """Return whether the user leaves all kernels to XLA."""
    return os.environ.get("BRAX_NATIVE") == "0"


def attempted(title: str, make: Callable[[], T]) -> tuple[T | None, Outcome]:
    """Return native code of a kernel and the outcome; no code if XLA has to compile it.

    Args:
        title: the kernel's name in messages.
        make: makes the code.
    """
    try:
        if left_to_xla():
            raise Unsupported("anything while BRAX_NATIVE is 0")
        return make(), Outcome(title)
    except Unsupported as reason:
        _LOG.info("the kernel %s is left to XLA: %s", title, reason)
        return None, Outcome(title, str(reason), reason.where)
    except jax_internals.UnknownForm as reason:
        text = str(reason)
    # Any other error is a fault of ours, or comes from a version of JAX or LLVM that was not
    # tested. XLA can always take over, so the user's program continues with a warning.
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    jax_internals.warn(title, text)
    return None, Outcome(title, text)


def _partitioned(kernel: Kernel, batched: tuple[bool, ...], local: Local) -> Any:
    """Return the call in a program for several devices, each with its part of the batch."""

    # The mesh axis that splits the batch of any operand splits all of them.
    def batch_axis(mesh: Any, shapes: Sequence[Any]) -> Any:
        specs = [
            s.sharding.spec
            for s, mine in zip(shapes, batched, strict=True)
            # A shorter specification leaves the last axes whole.
            if mine and len(s.sharding.spec) == len(s.shape)
        ]
        return next((spec[-1] for spec in specs if spec[-1] is not None), None)

    def partition(mesh: Any, operands: Any, results: Any) -> Any:
        axis = batch_axis(mesh, operands)

        # Only the batch is split; operands without one are on every device.
        def split(shape: Any, mine: bool) -> NamedSharding:
            spec = P(*[None] * (len(shape.shape) - 1), axis) if mine else P()
            return NamedSharding(mesh, spec)

        def part(*operands: jax.Array) -> tuple[jax.Array, ...]:
            # A part is on one device. From JAX 0.12 on it is traced on the program's mesh, on whose
            # explicit axes each operation would state a sharding that nobody implements there.
            with use_abstract_mesh(AbstractMesh((), ())):
                return tuple(local(*operands))

        shardings = tuple(split(s, mine) for s, mine in zip(operands, batched, strict=True))
        return mesh, part, tuple(split(s, True) for s in results), shardings

    def whole(*operands: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(local(*operands))

    call = custom_partitioning(whole)
    call.def_partition(partition=partition, sharding_rule=_sharding_rule(kernel.closed, batched))
    return call


def _sharding_rule(closed: Any, batched: tuple[bool, ...]) -> str:
    """Return a sharding rule: the last axes are the batch, and nothing else is split.

    An axis that has a name of its own is shared with no other array, as in einsum's notation.
    """
    count = itertools.count()

    def axes(aval: Any, mine: bool) -> str:
        names = [f"n{next(count)}" for _ in aval.shape[:-1]]
        return " ".join([*names, "batch" if mine else f"n{next(count)}"])

    operands = ", ".join(map(axes, closed.in_avals, batched))
    return f"{operands} -> {', '.join(axes(a, True) for a in closed.out_avals)}"


def operation_names(jaxpr: Any) -> set[str]:
    """Return the names of all primitives in a jaxpr and of the functions that it calls."""
    # Loops and calls hold jaxprs of their own.
    here = {eqn.primitive.name for eqn in jaxpr.eqns}
    here |= {str(eqn.params.get("name", "")) for eqn in jaxpr.eqns}
    return here.union(*(operation_names(j) for eqn in jaxpr.eqns for j in jax_internals.inner(eqn)))


def called_kernels(jaxpr: Any) -> Iterator[Kernel]:
    """Yield the kernels that a jaxpr calls."""
    for eqn in jaxpr.eqns:
        if kernel_of := operation(eqn).kernel:
            yield kernel_of(eqn)
        for inner in jax_internals.inner(eqn):
            yield from called_kernels(inner)


def element_count(jaxpr: Any) -> int:
    """Return how many elements a jaxpr computes for each environment; loop bodies count once."""
    count = 0
    for eqn in jaxpr.eqns:
        inner = jax_internals.inner(eqn)
        if inner:
            count += sum(map(element_count, inner))
        elif not operation(eqn).free:
            count += elements(eqn, BATCH_MARK)
    return count
