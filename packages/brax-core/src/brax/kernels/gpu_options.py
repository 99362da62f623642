"""XLA's compiler options for programs of many steps on a GPU."""

import functools
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding

_OPTIONS: dict[str, Any] = {
    # Two rounds of a loop become one, so that what a round hands to the next is not copied: half of
    # the kernels of a positional step were such copies.
    "xla_gpu_enable_while_loop_unrolling": "WHILE_LOOP_UNROLLING_DOUBLE_BUFFER",
    # The kernels of whole loops are launched as one CUDA graph, which takes less time for each than
    # a launch from the host. The names before WHILE are XLA's default; the option takes no "+".
    "xla_gpu_enable_command_buffer": ("FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE,CONDITIONAL"),
    "xla_gpu_command_buffer_unroll_loops": True,
}


def gpu_options(device: jax.Device | None = None) -> dict[str, Any] | None:
    """Return the `compiler_options` for `jax.jit` of a rollout or of a training step.

    They are none, except on a GPU: double-buffered loops, and command buffers for loops. Only an
    outermost `jax.jit` takes them.

    Args:
        device: a device that runs the program; None is JAX's default.
    """
    device = device or jax.devices()[0]
    return _accepted(device) if device.platform == "gpu" else None


@functools.cache
def _accepted(device: jax.Device) -> dict[str, Any] | None:
    """Return the options, or none if the installed XLA has not all of them."""
    # XLA rejects a program with an option that it does not know, and its options may change.
    place = SingleDeviceSharding(device)
    probe = jax.jit(jax.numpy.negative, in_shardings=place, out_shardings=place)
    try:
        probe.lower(jax.ShapeDtypeStruct((), "float32")).compile(compiler_options=_OPTIONS)
    except jax.errors.JaxRuntimeError:
        return None
    return _OPTIONS
