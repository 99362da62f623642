"""The command `brax resume`."""

import math
from pathlib import Path
from typing import Any

import click

from brax.errors import ConfigError
from brax.plugins.outputs import environment as env_outputs
from brax.training.checkpoints import run_directory
from brax.training.cli.execution import render_run, train_run
from brax.training.cli.options import distributed_options, render_option
from brax.training.cli.run_settings import check, construct, with_randomization
from brax.training.distributed import hosts


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--steps", type=click.IntRange(min=1), help="Environment steps of the whole run.")
@click.option(
    "--step",
    type=click.IntRange(min=0),
    help="Step of the checkpoint to continue from, if not the newest; later ones are removed.",
)
@render_option
@distributed_options
@click.pass_context
def resume(
    ctx: click.Context, run: Path, steps: int | None, step: int | None, render: bool
) -> None:
    """Continue the training of RUN from its newest checkpoint.

    On a CPU the result is bit-identical to that of a run that never stopped.
    """
    from brax.training.checkpoints import checkpoint

    with hosts.together():
        record = run_directory.read(run)
        if steps is not None:
            record = record.with_config(num_timesteps=steps)
        environment = construct(record.environment, record.environment_kwargs)
        # Everything is checked before `run.json` is changed: a rejected command changes nothing.
        check(record.trainer, with_randomization(record.config, environment))
        behind = checkpoint.available(run / "checkpoints")
        if step is not None and step not in behind:
            raise ConfigError(
                f"run '{run}' has no checkpoint of step {step}. It has: "
                f"{', '.join(map(str, behind))}."
            )
        newest = behind[-1] if step is None and behind else step
        # A third-party trainer may count its steps by another setting.
        if newest is not None and newest >= record.config.get("num_timesteps", math.inf):
            raise ConfigError(
                f"run '{run}' is complete, with {newest} steps: ask for more with --steps."
            )
        env_outputs.checked(record.environment, environment)
        if steps is not None and hosts.first():
            record.write(run)
    more: dict[str, Any] = {}
    if newest is not None:  # else it was stopped before it saved, and begins anew
        where = run / "checkpoints"
        more["restore_checkpoint_path"] = where if step is None else where / f"{step:012d}"
    if step is not None:
        more["overwrite_checkpoints"] = True
    train_run(record, run, environment, **more)
    with hosts.together():
        if render and hosts.first():
            render_run(ctx, run)
