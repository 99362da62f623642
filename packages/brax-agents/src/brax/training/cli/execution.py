"""Runs a trainer, with the loggers and the display of a run."""

import contextlib
from pathlib import Path
from typing import Any

import click

from brax import plugins
from brax.errors import ConfigError, PluginError
from brax.training.checkpoints import run_directory
from brax.training.cli.run_settings import parameters, with_randomization
from brax.training.distributed import hosts


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
    progress = Progress(title, int(run.config.get("num_timesteps", 0)), resumed=resumed)

    def report(step: int, metrics: Any) -> None:
        if problem := outputs.report_problem(metrics):
            raise PluginError(f"{plugins.specs('trainer')[run.trainer]}: {problem}")
        if loggers:
            loggers.write(step, metrics)
            progress.update(step, metrics)

    own = {"progress_fn": report, "save_checkpoint_path": folder / "checkpoints"}
    config = with_randomization(run.config, environment)
    named, anything = parameters(plugins.get("trainer", run.trainer))
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


def render_run(ctx: click.Context, folder: Path) -> None:
    """Call `brax render`, a command of brax-io."""
    if "render" not in plugins.names("command"):
        raise ConfigError("there is no command 'render': pip install brax-io, then brax render")
    ctx.invoke(plugins.get("command", "render"), run=folder)
