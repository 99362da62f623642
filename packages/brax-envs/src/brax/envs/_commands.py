"""`brax envs`: the environments, and what one of them consists of."""

import dataclasses
from typing import Any

import click
import jax
from rich.console import Console
from rich.table import Table

from brax import plugins
from brax.envs.observation import slices


@click.group(invoke_without_command=True)
@click.pass_context
def envs(context: click.Context) -> None:
    """Lists the environments; `brax envs show NAME` tells more of one."""
    if context.invoked_subcommand is not None:
        return
    table = Table("name", "distribution", "summary", box=None)
    for name, spec in plugins.specs("environment").items():
        table.add_row(name, f"{spec.distribution} {spec.version}".strip(), spec.summary)
    Console().print(table)


@envs.command()
@click.argument("name")
@click.option("--backend", help="Physics pipeline; by default the environment's own.")
def show(name: str, backend: str | None) -> None:
    """Shows what environment NAME observes, earns and takes, and how it is run and trained."""
    env = plugins.get("environment", name)(**({"backend": backend} if backend else {}))
    console = Console()
    tables = _sizes(env), _physics(env), _observation(env), _metrics(env), _parameters(env)
    for table in (*tables, _presets(name)):
        if table.row_count:
            console.print(table, "")


def _sizes(env: Any) -> Table:
    table = Table(show_header=False, box=None)
    table.add_row("observation", str(env.observation_size))
    table.add_row("action", str(env.action_size))
    if env.backend:
        table.add_row("backend", env.backend)
    if hasattr(env, "dt"):
        table.add_row("step", f"{float(env.dt):g} s")
    return table


def _physics(env: Any) -> Table:
    table = Table("pipeline", "physics step", "per step", "gear", box=None)
    for backend, physics in getattr(env, "physics", {}).items():
        gear = "the model's" if physics.gear is None else str(physics.gear)
        table.add_row(backend, f"{physics.timestep:g} s", str(physics.n_frames), gear)
    return table


def _metrics(env: Any) -> Table:
    table = Table("metric", "", box=None)
    for metric in jax.eval_shape(env.reset, jax.random.key(0)).metrics:
        table.add_row(metric, "term of the reward" if metric.startswith("reward_") else "")
    return table


def _presets(name: str) -> Table:
    table = Table("trainer", "presets", box=None)
    for trainer in plugins.names("trainer"):
        presets = getattr(plugins.get("trainer", trainer), "presets", {}).get(name, {})
        if presets:
            table.add_row(trainer, ", ".join(presets))
    return table


def _observation(env: Any) -> Table:
    table = Table("entries", "observation", "unit", box=None)
    for part, entry in slices(getattr(env, "observation_layout", ())):
        table.add_row(f"{part.start}:{part.stop}", entry.name, entry.unit)
    return table


def _parameters(env: Any) -> Table:
    table = Table("parameter", "value", box=None)
    parameters = getattr(env, "parameters", None)
    if dataclasses.is_dataclass(parameters):
        for field in dataclasses.fields(parameters):
            table.add_row(field.name, str(getattr(parameters, field.name)))
    return table
