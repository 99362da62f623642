"""`brax bench --explain`: counts of a rollout on a GPU that is not there, by compiling it."""

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import click
import jax
from rich.console import Console
from rich.table import Table

from brax.kernels.ahead_of_time.assembler import registers
from brax.kernels.ahead_of_time.described_device import compile_for, device
from brax.kernels.ahead_of_time.executed import executed
from brax.kernels.ahead_of_time.program_size import program_size
from brax.kernels.gpu_options import gpu_options

KERNEL_SECONDS = 1.9e-6
"""Time of a kernel that has little to do, launched as part of a CUDA graph: the published 1.44 ms
of a physics step of MJX on an H200, divided by the 759 kernels that were counted for it."""

CYCLES_PER_INSTRUCTION = 4.0
"""Cycles of a scheduler for each PTX instruction of a warp, in a kernel with a thread for each
environment. A model of the H100 plays ptxas' own scheduling of such kernels, with their spills in a
cache of 240 kB, for the eight warps that fit a multiprocessor. It gives 2.0 to 5.3 for eight
kernels (ant, half-cheetah and humanoid), and 4.0 in the mean; for four warps 3.0 to 8.2."""


class Speed(NamedTuple):
    """Published figures of a GPU."""

    bytes_per_second: float
    """Memory bandwidth."""
    schedulers: int
    """Schedulers of warps, of which a multiprocessor has four."""
    clock: float
    """Clock rate under load [Hz]."""


SPEEDS = {"sm_90": Speed(3.35e12, 132 * 4, 1.755e9)}
"""The speeds of the described devices."""

WARP = 32
"""Threads that one instruction is for."""

ASSUMPTIONS = (
    "The estimate takes the slowest of three: "
    f"the kernels, {KERNEL_SECONDS * 1e6:.1f} us each; the traffic at the full memory bandwidth; "
    "and where Brax has kernels of its own, with a thread for each environment, the instructions "
    f"of PTX that a step executes, {CYCLES_PER_INSTRUCTION} cycles each for a warp of {WARP}. Work "
    "that may be skipped counts in full. Instruction fetch is left out. Nothing ran on a GPU; "
    "believe it within a factor of two."
)


def random_rollout(env: Any, batch_size: int, length: int) -> Callable[[Any, jax.Array], Any]:
    """Return a function from a batch of states and a key to the states after random actions."""

    def rollout(state: Any, key: jax.Array) -> Any:
        def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
            action = jax.random.uniform(key, (batch_size, env.action_size), minval=-1, maxval=1)
            return jax.vmap(env.step)(carry, action), None

        return jax.lax.scan(step, state, jax.random.split(key, length))[0]

    return rollout


def estimate(name: str, env: Any, batch_size: int, length: int, target: str) -> dict[str, Any]:
    """Compile a rollout for a described GPU and count what it launches and moves.

    Args:
        name: the environment's name, for the report.
        env: the environment, without wrappers.
        batch_size: number of environments in the batch.
        length: environment steps of the rollout.
        target: the device, one of `described_device.TARGETS`.

    Raises:
        ConfigError: if JAX cannot compile for it here.
    """
    options = gpu_options(device(target))
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = jax.eval_shape(jax.vmap(env.reset), jax.ShapeDtypeStruct((batch_size,), key.dtype))
    program = compile_for(
        target, random_rollout(env, batch_size, length), state, key, options=options
    )
    size, kernel = program_size(program.hlo), registers(target, program.ptx)
    kernels, traffic = size.kernels / length, size.bytes / length
    # A step launches each of the program's own kernels once.
    work, speed = sum(map(executed, program.own_ptx)), SPEEDS[target]
    warps = math.ceil(batch_size / WARP / speed.schedulers)
    seconds = max(
        kernels * KERNEL_SECONDS,
        traffic / speed.bytes_per_second,
        warps * work * CYCLES_PER_INSTRUCTION / speed.clock,
    )
    return {
        "environment": name,
        "backend": getattr(env, "backend", ""),
        "target": target,
        "batch_size": batch_size,
        "kernels_per_step": kernels,
        "bytes_per_environment_step": traffic / batch_size,
        "instructions_per_environment_step": work,
        "own_kernels": bool(program.own_ptx),
        "temporary_bytes": program.temporary_bytes,
        "instructions": kernel.instructions,
        "registers": kernel.most,
        "spilled_bytes": kernel.spilled_bytes,
        "compile_seconds": program.seconds,
        "host_synchronizations": size.syncs,
        "estimated_steps_per_second": batch_size / seconds,
        "assumptions": ASSUMPTIONS,
    }


def print_estimates(found: list[dict[str, Any]], as_json: bool) -> None:
    """Print estimates as a table or as JSON."""
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{found[0]['target']}, not present; JAX {jax.__version__}")
    for row in found:
        table = Table(box=None, show_header=False)
        lines = {
            "kernels a step": f"{row['kernels_per_step']:,.1f}",
            "kB an environment step": f"{row['bytes_per_environment_step'] / 1e3:,.1f}",
            "instructions (executed)": f"{row['instructions_per_environment_step']:,}",
            "temporary MiB": f"{row['temporary_bytes'] / 2**20:,.1f}",
            "host synchronizations": str(row["host_synchronizations"]),
            "instructions (static)": f"{row['instructions']:,}",
            "registers (most)": str(row["registers"]),
            "spilled bytes": str(row["spilled_bytes"]),
            "compile seconds": f"{row['compile_seconds']:.1f}",
            "estimated steps/s": f"{row['estimated_steps_per_second']:,.0f}",
        }
        for line in lines.items():
            table.add_row(*line)
        click.echo(f"{row['environment']} {row['backend']}, {row['batch_size']} environments:")
        Console().print(table)
    click.echo(ASSUMPTIONS)
