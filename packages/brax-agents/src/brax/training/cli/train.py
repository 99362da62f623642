"""The command `brax train`."""

from pathlib import Path

import click

from brax.training.checkpoints import run_directory
from brax.training.cli.execution import render_run, train_run
from brax.training.cli.options import (
    distributed_options,
    env_argument,
    preset_option,
    randomize_option,
    render_option,
    runs_option,
    set_option,
    steps_option,
    trainer_option,
)
from brax.training.cli.run_settings import prepare_run
from brax.training.distributed import hosts
from brax.training.runner import presets


@click.command()
@env_argument
@preset_option
@trainer_option
@steps_option
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")
@click.option("--name", default="", help="Name of the run; by default environment and time.")
@runs_option
@set_option
@randomize_option
@render_option
@distributed_options
@click.pass_context
def train(
    ctx: click.Context,
    env: str,
    preset: str,
    trainer: str | None,
    steps: int | None,
    seed: int | None,
    name: str,
    runs_dir: Path,
    changes: tuple[str, ...],
    randomize: str | None,
    render: bool,
) -> None:
    """Train an agent in the environment ENV.

    The run is stored in RUNS/NAME: run.json, metrics.jsonl, checkpoints. Ctrl-C saves it; brax
    resume continues it.
    """
    with hosts.together():
        more = {"num_timesteps": steps, "seed": seed, "randomization_fn": randomize}
        run, environment = prepare_run(env, trainer, preset, changes, **more)
        folder = run.create(runs_dir, name) if hosts.first() else runs_dir / name
    # Only the first process made a folder; without a name others would name the folder of all runs.
    with run_directory.removed_unless_started([folder] if hosts.first() else []):
        train_run(run, folder, environment)
    stored = presets.stored_returns(run.trainer, env, preset)
    # Other settings of the environment may earn other rewards.
    if stored and not run.environment_kwargs and hosts.first():
        ends = f"{min(stored):,.1f} to {max(stored):,.1f}"
        changed = changes or randomize or steps is not None
        own = ", without your changes" if changed else ""
        click.echo(f"stored runs of this preset{own}: return {ends} over {len(stored)} seeds")
    with hosts.together():
        if render and hosts.first():
            render_run(ctx, folder)
