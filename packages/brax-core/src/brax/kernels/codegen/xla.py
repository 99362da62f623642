"""XLA's backend: the kernel's own operations become part of the program, which supports all."""

import jax

from brax.kernels.codegen.call import Form, Kernel, Local
from brax.kernels.codegen.explain import Outcome
from brax.kernels.tiling import by_tiles


def supports(kernel: Kernel, form: Form) -> Outcome:
    """Return an outcome without a reason."""
    return Outcome(kernel.title)


def compile(kernel: Kernel, form: Form) -> Local:
    """Return a function of all operands that computes the results, on a CPU in tiles."""

    def call(*operands: jax.Array) -> list[jax.Array]:
        if form.platform != "cpu":
            return list(kernel.fun(*operands))
        return by_tiles(kernel.fun, operands, form.devices, form.sharded)

    return call
