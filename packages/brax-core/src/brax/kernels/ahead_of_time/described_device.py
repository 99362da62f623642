"""Compilation for a GPU that is described by a file, not present."""

import functools
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from brax.errors import ConfigError
from brax.kernels.codegen.cuda import TARGET as PTX_CALL

TARGETS = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.txtpb")))
"""The described devices, by the name of their compute capability."""


class Compiled(NamedTuple):
    """A program for a described device."""

    hlo: str
    """The optimized program, in XLA's text form: each operation outside of a fused computation is a
    kernel."""
    ptx: tuple[str, ...]
    """The kernels' code in NVIDIA's assembly language, module by module."""
    own_ptx: tuple[str, ...]
    """The code of those kernels that are not XLA's but ours."""
    temporary_bytes: int
    """Device memory that the program needs beside its operands and results."""
    seconds: float
    """Time of tracing and compiling, on this machine."""


def use_no_card() -> None:
    """Have JAX run on the CPU and its CUDA plugin do without a driver, before JAX's first use."""
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    jax.config.update("jax_platforms", "cpu")


@functools.cache
def device(target: str) -> Any:
    """Return a described device, as JAX's object. On a machine without a card see `use_no_card`.

    Args:
        target: one of `TARGETS`.

    Raises:
        ConfigError: if there is no such description, or no CUDA plugin.
    """
    if target not in TARGETS:
        allowed = ", ".join(TARGETS)
        raise ConfigError(
            f"the target must be one of the described devices ({allowed}): {target!r}"
        )
    text = (Path(__file__).parent / f"{target}.txtpb").read_text()
    try:
        topology = topologies.get_topology_desc(
            platform="cuda", topology_name=target, target_config=text, topology="1x1x1"
        )
    except (RuntimeError, ValueError, NotImplementedError) as error:
        raise ConfigError(
            f"JAX cannot compile for {target!r}: its CUDA plugin is missing or does not work. "
            'Install it by: pip install "jax[cuda12]".'
        ) from error
    return topology.devices[0]


def compile_for(
    target: str,
    function: Callable[..., object],
    *args: object,
    options: dict[str, Any] | None = None,
    **jit: Any,
) -> Compiled:
    """Compile a function for a described device.

    Args:
        target: one of `TARGETS`.
        function: the function; not compiled by `jax.jit` itself.
        args: pytrees of arrays, or of their shapes (`jax.ShapeDtypeStruct`).
        options: XLA's compiler options.
        jit: further keyword arguments of `jax.jit`.

    Raises:
        ConfigError: as `device` does.
    """
    place = SingleDeviceSharding(device(target))
    with tempfile.TemporaryDirectory() as folder:
        # XLA hands out the code of its kernels only as files.
        dump = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        start = time.perf_counter()
        program = jax.jit(
            function,
            in_shardings=place,
            out_shardings=place,
            compiler_options={**dump, **(options or {})},
            **jit,
        )
        compiled = program.trace(*args).lower(lowering_platforms=("cuda",)).compile()
        seconds = time.perf_counter() - start
        by_xla = tuple(path.read_text() for path in sorted(Path(folder).glob("*.ptx")))
    hlo, memory = compiled.as_text() or "", compiled.memory_analysis()
    own = tuple(sorted(_own_kernels(hlo)))
    return Compiled(hlo, (*by_xla, *own), own, int(memory.temp_size_in_bytes), seconds)


def _own_kernels(hlo: str) -> set[str]:
    """Return the PTX of the kernels that are no work of XLA's, from the calls that launch them."""
    texts = set(re.findall(r'kernel_data = "([^"]*)"', hlo)) if PTX_CALL in hlo else set()
    # MLIR writes what is no letter in a string by its hexadecimal code.
    return {re.sub(r"\\([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), t) for t in texts}
