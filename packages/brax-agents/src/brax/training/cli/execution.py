"""Runs a trainer, with the loggers and the display of a run."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from brax import plugins
from brax.errors import ConfigError, PluginError
from brax.training.checkpoints import run_directory
from brax.training.cli.run_settings import parameters, with_randomization
from brax.training.distributed import hosts

NOTEWORTHY_ROUNDING = 1.1
"""Ratio of a run's steps to those asked for above which a note says so."""


def train_run(run: run_directory.Run, folder: Path, environment: Any, **more: object) -> None:
    """Run the trainer, with loggers, display and checkpoints in the run's folder.

    Args:
        run: the run's settings.
        folder: the run's folder.
        environment: the environment.
        **more: further settings of the trainer, which are not recorded and take precedence.
    """
    from brax.plugins.outputs import trainer as outputs
    from brax.training.loggers import MetricLoggers
    from brax.training.runner.progress import Progress

    with hosts.together():
        # Only the first process writes.
        loggers = MetricLoggers(folder) if hosts.first() else None
    title = f"{run.trainer} on {run.environment}, {folder}"
    resumed = bool({**run.config, **more}.get("restore_checkpoint_path"))
    config = with_randomization(run.config, environment)
    trainer = plugins.get("trainer", run.trainer)
    progress = Progress(title, total_steps(trainer, config), resumed=resumed)

    def report(step: int, metrics: Any) -> None:
        if problem := outputs.report_problem(metrics):
            raise PluginError(f"{plugins.specs('trainer')[run.trainer]}: {problem}")
        if loggers:
            loggers.write(step, metrics)
            progress.update(step, metrics)

    own = {"progress_fn": report, "save_checkpoint_path": folder / "checkpoints"}
    named, anything = parameters(trainer)
    # A third-party trainer gets only those of these settings that its `train` takes.
    taken = {name: value for name, value in own.items() if anything or name in named}
    taken |= {"run_dir": folder} if "run_dir" in named else {}
    try:
        with progress if loggers else contextlib.nullcontext():
            outputs.train(run.trainer, environment, **{**config, **taken, **more})
    except (KeyboardInterrupt, SystemExit):
        click.echo(f"interrupted; continue with: brax resume {folder}", err=True)
        raise
    finally:
        if loggers:
            loggers.close()
    if loggers:
        click.echo(f"run: {folder}")


def total_steps(trainer: object, config: Mapping[str, Any]) -> int:
    """Return the environment steps of a run, and say so if they are many more than asked for."""
    from brax.training.agent import Agent

    asked = int(config.get("num_timesteps", 0))
    if not isinstance(trainer, Agent):
        return asked
    settings, _ = trainer.check(config)
    each = settings.env_steps_per_training_step
    total = each * settings.training_steps
    if total > NOTEWORTHY_ROUNDING * asked and hosts.first():
        formula = settings.step_formula
        click.echo(
            f"{asked:,} steps are rounded up to {total:,}: a training step takes "
            f"{formula} = {each:,} environment steps; choose smaller ones by --set",
            err=True,
        )
    return total


def render_run(ctx: click.Context, folder: Path) -> None:
    """Call `brax render`, a command of brax-io."""
    if "render" not in plugins.names("command"):
        raise ConfigError("there is no command 'render': pip install brax-io, then brax render")
    ctx.invoke(plugins.get("command", "render"), run=folder)
