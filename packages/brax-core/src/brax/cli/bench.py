"""`brax bench`: environment steps per second and compile time on the present device."""

import json
import platform
import statistics
import time
from dataclasses import asdict
from typing import Any

import click
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from rich.console import Console
from rich.table import Table

from brax import plugins
from brax.cli import gpu_estimate
from brax.cli.kernels import described
from brax.errors import ConfigError
from brax.kernels.ahead_of_time.described_device import TARGETS, use_no_card
from brax.kernels.codegen.explain import Outcome, collected
from brax.kernels.gpu_options import gpu_options
from brax.plugins.outputs.environment import make

_COUNT = click.IntRange(1)


@click.command("bench")
@click.argument("environment", required=False)
@click.option("--backend", help="Physics pipeline; by default the environment's own.")
@click.option("--batch-size", type=_COUNT, default=2048, show_default=True, help="Environments.")
@click.option("--length", type=_COUNT, default=100, show_default=True, help="Steps of a rollout.")
@click.option("--repeats", type=_COUNT, default=3, show_default=True, help="Timed rollouts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--explain", is_flag=True, help="Compile for --target and count, run nothing.")
@click.option("--target", type=click.Choice(TARGETS), default="sm_90", help="A described GPU.")
def command(
    environment: str | None,
    backend: str | None,
    batch_size: int,
    length: int,
    repeats: int,
    as_json: bool,
    explain: bool,
    target: str,
) -> None:
    """Measure ENVIRONMENT, or every registered environment, under random actions.

    With --explain nothing is run, and no GPU is needed: the rollout is compiled for a described one
    by JAX's CUDA plugin (pip install "jax[cuda12]"). The report has its kernels, memory traffic,
    registers and an estimated speed, with the assumptions of the estimate.
    """
    if explain:
        use_no_card()
    names = [environment] if environment else list(plugins.all_that_load("environment"))
    if not names:
        raise ConfigError("no environment is registered. pip install brax-envs")
    settings = {"backend": backend} if backend else {}
    made = {name: make(name, **settings) for name in names}
    jax.config.update("jax_enable_compilation_cache", False)  # compile time is what is measured
    if explain:
        found = [gpu_estimate.estimate(n, e, batch_size, length, target) for n, e in made.items()]
        gpu_estimate.print_estimates(found, as_json)
        return
    rows = [measure(name, env, batch_size, length, repeats) for name, env in made.items()]
    device = jax.devices()[0]
    report = {
        "device": f"{device.platform} {device.device_kind}",
        "devices": jax.device_count(),
        "machine": platform.processor() or platform.machine(),
        "jax": jax.__version__,
        "results": rows,
    }
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)


def measure(name: str, env: Any, batch_size: int, length: int, repeats: int) -> dict[str, Any]:
    """Compile and time a rollout of a batch of environments, split over all devices if possible.

    Args:
        name: the environment's name, for the report.
        env: the environment, without wrappers.
        batch_size: number of environments in the batch.
        length: environment steps of one rollout.
        repeats: number of timed runs of the compiled rollout, of which the median is taken.

    Returns:
        Steps per second of all environments together, seconds of compilation and of one rollout,
        and on a CPU the outcome of each kernel's translation.

    Raises:
        click.ClickException: if the rollout is not finite; its speed would mean nothing.
    """
    rollout = gpu_estimate.random_rollout(env, batch_size, length)
    key_reset, key_run = jax.random.split(jax.random.key(0))
    keys = jax.random.split(key_reset, batch_size)
    # A batch is sharded only in equal parts.
    if batch_size % jax.device_count() == 0:
        mesh = Mesh(jax.devices(), ("envs",))
        keys = jax.device_put(keys, NamedSharding(mesh, PartitionSpec("envs")))
    state = jax.jit(jax.vmap(env.reset))(keys)
    start = time.perf_counter()
    with collected() as kernels:
        program = jax.jit(rollout, compiler_options=gpu_options())
        compiled = program.lower(state, key_run).compile()
    compile_seconds = time.perf_counter() - start
    seconds = []
    for _ in range(repeats + 1):  # the first is a warm-up
        start = time.perf_counter()
        last = jax.block_until_ready(compiled(state, key_run))
        seconds.append(time.perf_counter() - start)
    _check_finite(name, last)
    run_seconds = statistics.median(seconds[1:])
    return {
        "environment": name,
        "backend": getattr(env, "backend", ""),
        "batch_size": batch_size,
        "length": length,
        "steps_per_second": batch_size * length / run_seconds,
        "compile_seconds": compile_seconds,
        "run_seconds": run_seconds,
        "kernels": [asdict(outcome) for outcome in kernels],
    }


def _check_finite(name: str, state: object) -> None:
    """Raise if the final state has numbers that are not finite."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not jnp.isfinite(leaf).all():
            where = jax.tree_util.keystr(path)
            raise click.ClickException(f"{name}: state{where} is not finite after the rollout")


def _print(report: dict[str, Any]) -> None:
    """Print the report as a table, and the kernels that are not native."""
    table = Table("environment", "backend", "batch", "steps/s", "compile s", "run s", box=None)
    for row in report["results"]:
        table.add_row(
            row["environment"],
            row["backend"],
            str(row["batch_size"]),
            f"{row['steps_per_second']:,.0f}",
            f"{row['compile_seconds']:.2f}",
            f"{row['run_seconds']:.3f}",
        )
    click.echo(
        f"{report['devices']} x {report['device']}, {report['machine']}, JAX {report['jax']}"
    )
    Console().print(table)
    for row in report["results"]:
        for line in described(Outcome(**kernel) for kernel in row["kernels"]):
            click.echo(f"{row['environment']}: {line}")
