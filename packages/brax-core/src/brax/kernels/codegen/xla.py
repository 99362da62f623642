"""XLA's backend: the kernel's own operations become part of the program, which supports all."""

import jax
from jax.experimental.layout import Layout, with_layout_constraint
from jax.extend.core import jaxpr_as_fun

from brax.kernels.codegen.call import Form, Kernel, Local
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.loop_constants import with_constants_in_loops
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

    On a CPU it works in tiles. On other platforms it has no short loops, and the others hold the
    model's numbers.
    """

    def call(*operands: jax.Array) -> list[jax.Array]:
        if form.platform == "cpu":
            return by_tiles(kernel.fun, operands, form.devices, form.sharded)
        closed = unrolled(jax.make_jaxpr(kernel.fun)(*operands), MAX_UNROLLED_OPERATIONS)
        if form.known:
            closed = with_constants_in_loops(closed, form.known)
        results = list(jaxpr_as_fun(closed)(*operands))
        # How the compiler splits an array of a given layout over devices was not tried.
        plain = form.platform == "cuda" and form.devices == 1 and not form.exported
        return [_batch_innermost(x) for x in results] if plain else results

    return call


def _batch_innermost(x: jax.Array) -> jax.Array:
    """Return a result whose layout in memory has the batch innermost, as inside of the kernel.

    Outside, the batch is the first axis. XLA would give the layout that is best there to what the
    result is computed from, too. Most of those operations then are kernels of their own: after the
    last loop of a half-cheetah's step 37 instead of 14.
    """
    return with_layout_constraint(x, Layout(tuple(range(x.ndim))))
