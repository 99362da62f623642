"""The command `brax envs`, which lists the environments and describes one of them."""

from pathlib import Path
from typing import Any

import click
import jax
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from brax import plugins
from brax.envs.describe import describe, presets
from brax.errors import ConfigError
from brax.plugins.outputs.environment import make


@click.group(invoke_without_command=True)
@click.pass_context
def envs(context: click.Context) -> None:
    """List the environments; `brax envs show NAME` describes one."""
    if context.invoked_subcommand is not None:
        return
    table = Table("name", "distribution", "summary", box=None)
    for name, spec in plugins.specs("environment").items():
        row = name, f"{spec.distribution} {spec.version}".strip(), spec.summary
        table.add_row(*map(escape, row))
    Console().print(table)


@envs.command()
@click.argument("name")
@click.option("--backend", help="Physics pipeline; by default the environment's own.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write a page that shows the initial state.",
)
def show(name: str, backend: str | None, picture: Path | None) -> None:
    """Show the observation, reward, parameters and presets of environment NAME."""
    env = make(name, **({"backend": backend} if backend else {}))
    console = Console()
    recipes = presets(name)
    for headers, rows in [*describe(env), *([recipes] if recipes.rows else [])]:
        table = Table(*headers, show_header=bool(headers), box=None)
        for row in rows:
            # Rich would take a unit such as [m] for markup and print nothing.
            table.add_row(*map(escape, row))
        console.print(table, "")
    if picture is not None:
        _draw(name, env, picture)


def _draw(name: str, env: Any, path: Path) -> None:
    """Write a page with the initial state of an episode."""
    from brax.io import html

    if not hasattr(env, "sys"):
        raise ConfigError(f"cannot draw '{name}': it has no model")
    start = jax.jit(env.reset)(jax.random.key(0)).pipeline_state
    html.save(path, env.sys, [start], title=name)
    click.echo(path)
