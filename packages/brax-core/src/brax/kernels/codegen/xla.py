"""XLA's backend: the kernel's own operations become part of the program, which supports all."""

import jax
from jax.extend.core import jaxpr_as_fun

from brax.kernels.codegen.call import Form, Kernel, Local
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.unrolling import unrolled
from brax.kernels.tiling import by_tiles

MAX_UNROLLED_OPERATIONS = 6_000
"""Number of operations in all rounds of a loop up to which a GPU's program does not have it.

A loop's counter is a kernel in each round, and so are copies of what a round hands to the next.
Without the loop, operations of two rounds share kernels too. But compile time grows with the
rounds: with 10,900 operations the ant's step in `generalized` compiles in 73 s instead of 26 s,
for a sixth fewer kernels."""


def supports(kernel: Kernel, form: Form) -> Outcome:
    """Return an outcome without a reason."""
    return Outcome(kernel.title)


def compile(kernel: Kernel, form: Form) -> Local:
    """Return a function of all operands that computes the results.

    On a CPU it works in tiles. On other platforms it has no short loops.
    """

    def call(*operands: jax.Array) -> list[jax.Array]:
        if form.platform == "cpu":
            return by_tiles(kernel.fun, operands, form.devices, form.sharded)
        closed = jax.make_jaxpr(kernel.fun)(*operands)
        return list(jaxpr_as_fun(unrolled(closed, MAX_UNROLLED_OPERATIONS))(*operands))

    return call
