"""The commands `brax train` and `brax resume`."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from brax import plugins
from brax.errors import ConfigError
from brax.training import presets, runs

_render_option = click.option(
    "--render", is_flag=True, help="Write rollout.html at the end, a page that shows the result."
)


@click.command()
@click.argument("env")
@click.option("--preset", default="default", show_default=True, help="Named settings, such as cpu.")
@click.option("--trainer", default="ppo", show_default=True, help="The agent.")
@click.option("--steps", type=click.IntRange(min=0), help="Environment steps to train for.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random.")
@click.option("--name", default="", help="Name of the run; by default environment and time.")
@click.option(
    "--runs",
    "runs_dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Where runs are kept.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the trainer; env.KEY=VALUE one of the environment. Repeatable.",
)
@_render_option
@click.pass_context
def train(
    ctx: click.Context,
    env: str,
    preset: str,
    trainer: str,
    steps: int | None,
    seed: int | None,
    name: str,
    runs_dir: Path,
    changes: tuple[str, ...],
    render: bool,
) -> None:
    """Trains an agent in the environment ENV.

    The run is kept in RUNS/NAME: run.json, metrics.jsonl, checkpoints. Ctrl-C saves it; brax resume
    goes on with it.
    """
    settings = parse_changes(changes)
    env_settings = settings.pop("env", {})
    environment = _environment(env, env_settings)
    agent = plugins.get("trainer", trainer)
    config = _merge(presets.choose(agent, environment, env, preset), settings)
    config |= {k: v for k, v in {"num_timesteps": steps, "seed": seed}.items() if v is not None}
    if hasattr(agent, "check"):
        agent.check(config)  # before the run's folder is made
    run = runs.Run(env, env_settings, trainer, config)
    folder = run.create(runs_dir, name)
    _train(ctx, run, folder, environment, render)


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--steps", type=click.IntRange(min=1), help="Total environment steps to go to.")
@_render_option
@click.pass_context
def resume(ctx: click.Context, run: Path, steps: int | None, render: bool) -> None:
    """Goes on with the training of RUN from its newest checkpoint.

    The result is the same, bit for bit on a CPU, as if the run had never stopped.
    """
    from brax.training import checkpoint

    record = runs.read(run)
    if steps is not None:
        record = record.with_config(num_timesteps=steps)
        record.write(run)
    behind = checkpoint.available(run / "checkpoints")
    if behind and behind[-1] >= record.config.get("num_timesteps", 0):
        raise ConfigError(
            f"run '{run}' is complete, with {behind[-1]} steps: ask for more with --steps."
        )
    environment = _environment(record.environment, record.environment_kwargs)
    _train(ctx, record, run, environment, render, restore_checkpoint_path=run / "checkpoints")


def _train(
    ctx: click.Context, run: runs.Run, folder: Path, environment: Any, render: bool, **more: Any
) -> None:
    """Runs the trainer with everything that watches it."""
    from brax.training.loggers import MetricLoggers
    from brax.training.progress import Progress

    loggers = MetricLoggers(folder)
    title = f"{run.trainer} on {run.environment}, {folder}"
    progress = Progress(title, int(run.config.get("num_timesteps", 0)))

    def report(step: int, metrics: Any) -> None:
        loggers.write(step, metrics)
        progress.update(step, metrics)

    try:
        with progress:
            plugins.get("trainer", run.trainer).train(
                environment,
                **run.config,
                progress_fn=report,
                save_checkpoint_path=folder / "checkpoints",
                **more,
            )
    except KeyboardInterrupt:
        click.echo(f"interrupted; go on with: brax resume {folder}", err=True)
        raise
    finally:
        loggers.close()
    click.echo(f"run: {folder}")
    if render:
        _render(ctx, folder)


def _render(ctx: click.Context, folder: Path) -> None:
    """Calls `brax render`, which another package brings."""
    if "render" not in plugins.names("command"):
        raise ConfigError("there is no command 'render': pip install brax-io, then brax render")
    ctx.invoke(plugins.get("command", "render"), run=folder)


def _environment(name: str, settings: Any) -> Any:
    """Makes an environment by name.

    Raises:
        ConfigError: if it does not take these settings.
    """
    factory = plugins.get("environment", name)
    try:
        return factory(**settings)
    except TypeError as error:
        raise ConfigError(f"environment '{name}': {error}") from error


def parse_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Reads `key=value` and `table.key=value` as TOML; a value that is none is text.

    Raises:
        ConfigError: if there is no `=`.
    """
    settings: dict[str, Any] = {}
    for change in changes:
        key, found, text = change.partition("=")
        if not found or not key:
            raise ConfigError(f"--set {change}: expected KEY=VALUE, such as learning_rate=1e-3")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        for part in reversed(key.split(".")):
            value = {part: value}
        settings = _merge(settings, value)
    return settings


def _merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Both, the second where they differ, table by table."""
    merged = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            merged[key] = _merge(first[key], second[key])
    return merged
