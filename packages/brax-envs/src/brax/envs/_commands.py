"""`brax envs`: the environments, and what one of them consists of."""

from pathlib import Path
from typing import Any

import click
import jax
from rich.console import Console
from rich.table import Table

from brax import plugins
from brax.envs.describe import describe, presets
from brax.errors import ConfigError
from brax.plugins.outputs.environment import make


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
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write a page that shows how it starts.",
)
def show(name: str, backend: str | None, picture: Path | None) -> None:
    """Shows what environment NAME observes, earns and takes, and how it is run and trained."""
    env = make(name, **({"backend": backend} if backend else {}))
    console = Console()
    recipes = presets(name)
    for headers, rows in [*describe(env), *([recipes] if recipes.rows else [])]:
        table = Table(*headers, show_header=bool(headers), box=None)
        for row in rows:
            table.add_row(*row)
        console.print(table, "")
    if picture is not None:
        _draw(name, env, picture)


def _draw(name: str, env: Any, path: Path) -> None:
    """Writes a page with the start of an episode."""
    from brax.io import html

    if not hasattr(env, "sys"):
        raise ConfigError(f"cannot draw '{name}': it has no model")
    start = jax.jit(env.reset)(jax.random.key(0)).pipeline_state
    html.save(path, env.sys, [start], title=name)
    click.echo(path)
