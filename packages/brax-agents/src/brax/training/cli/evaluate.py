"""The command `brax eval`."""

import json
from pathlib import Path

import click

from brax.errors import ConfigError
from brax.training.checkpoints import run_directory
from brax.training.cli.options import json_option, run_folder
from brax.training.cli.run_settings import make_environment


@click.command("eval")
@click.argument("run", type=run_folder)
@click.option("--step", type=click.IntRange(min=0), help="Step of the checkpoint; default: newest.")
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    default=128,
    show_default=True,
    help="Number of episodes.",
)
@click.option(
    "--seed",
    # Keys of larger seeds repeat those of smaller ones.
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of resets and random actions.",
)
@click.option("--stochastic", is_flag=True, help="Draw actions instead of taking the mean.")
@json_option
def evaluate(
    run: Path, step: int | None, episodes: int, seed: int, stochastic: bool, as_json: bool
) -> None:
    """Play episodes with the policy of RUN, each from a fresh reset, and print their returns."""
    import jax

    from brax.env import wrap
    from brax.plugins.outputs.trainer import load_policy
    from brax.training.checkpoints import checkpoint
    from brax.training.config import evaluated_steps
    from brax.training.runner.acting import over_batch
    from brax.training.runner.evaluator import Evaluator

    record = run_directory.read(run)
    path = run / "checkpoints" / f"{step:012d}" if step is not None else run
    if step is not None and not path.is_dir():
        there = checkpoint.available(run / "checkpoints")
        raise ConfigError(
            f"run '{run}' has no checkpoint of step {step}. It has: {', '.join(map(str, there))}."
        )
    environment = make_environment(record.environment, record.environment_kwargs)
    policy = load_policy(record.trainer, path, environment, deterministic=not stochastic)
    length = evaluated_steps(record.config)
    repeat = int(record.config.get("action_repeat", 1))
    evaluator = Evaluator(
        wrap(environment, episode_length=length, action_repeat=repeat),
        lambda _: over_batch(policy),
        episodes,
        length,
        repeat,
        jax.random.key(seed),
    )
    metrics = evaluator.run_evaluation((), {})
    # Not the times that it took.
    found = {n.removeprefix("eval/"): value for n, value in metrics.items() if "episode" in n}
    if as_json:
        click.echo(json.dumps({"run": str(run), "episodes": episodes, **found}))
        return
    click.echo(f"{record.trainer} on {record.environment}, {path}: {episodes} episodes")
    for name, value in found.items():
        click.echo(f"{name:>32}  {value:.4g}")
