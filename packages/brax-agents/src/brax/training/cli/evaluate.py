"""The commands `brax eval` and `brax compare`."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from brax.errors import ConfigError, closest
from brax.training.analysis import comparison, curves
from brax.training.checkpoints import run_directory
from brax.training.cli.train import make_environment

_folder = click.Path(exists=True, file_okay=False, path_type=Path)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command("eval")
@click.argument("run", type=_folder)
@click.option("--step", type=click.IntRange(min=0), help="Checkpoint; by default the newest.")
@click.option("--episodes", type=click.IntRange(min=1), default=128, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--stochastic", is_flag=True, help="Draw actions instead of taking the mean.")
@_json_option
def evaluate(
    run: Path, step: int | None, episodes: int, seed: int, stochastic: bool, as_json: bool
) -> None:
    """Plays episodes with the policy of RUN, each from a fresh reset, and prints what they earn."""
    import jax

    from brax.env import wrap
    from brax.plugins.outputs.trainer import load_policy
    from brax.training.checkpoints import checkpoint
    from brax.training.runner.acting import Evaluator, over_batch

    record = run_directory.read(run)
    path = run / "checkpoints" / f"{step:012d}" if step is not None else run
    if step is not None and not path.is_dir():
        there = checkpoint.available(run / "checkpoints")
        raise ConfigError(
            f"run '{run}' has no checkpoint of step {step}. It has: {', '.join(map(str, there))}."
        )
    environment = make_environment(record.environment, record.environment_kwargs)
    policy = load_policy(record.trainer, path, environment, deterministic=not stochastic)
    length = int(record.config.get("episode_length", 1000))
    repeat = int(record.config.get("action_repeat", 1))
    evaluator = Evaluator(
        wrap(environment, episode_length=length, action_repeat=repeat),
        lambda _: over_batch(policy),
        episodes,
        length,
        repeat,
        jax.random.key(seed),
    )
    metrics = evaluator.run_evaluation((), {}, aggregate_episodes=False)
    found = summary(metrics)
    if as_json:
        click.echo(json.dumps({"run": str(run), "episodes": episodes, **found}))
        return
    click.echo(f"{record.trainer} on {record.environment}, {path}: {episodes} episodes")
    for name, value in found.items():
        click.echo(f"{name:>32}  {value:.4g}")


def summary(metrics: dict[str, Any]) -> dict[str, float]:
    """Means and deviations over episodes of what an evaluation found in each."""
    found = {}
    for name, values in metrics.items():
        name = name.removeprefix("eval/")
        if np.ndim(values):
            found[name] = float(np.mean(values))
            found[f"{name}_std"] = float(np.std(values))
        elif name in ("avg_episode_length", "std_episode_length"):
            found[name] = float(values)
    return found


@click.command()
@click.argument("groups", nargs=-1, required=True, type=_folder, metavar="RUN...")
@click.option("--metric", default="eval/episode_reward", show_default=True)
@_json_option
def compare(groups: tuple[Path, ...], metric: str, as_json: bool) -> None:
    """Compares runs by the last value of a metric.

    Each RUN is a run, or a folder of runs that differ in their seeds only. Printed are the
    interquartile mean of each, its 95 % bootstrap interval, and, beside the first, the difference
    and the probability that a run of it is better.
    """
    table = rows(groups, metric)
    if as_json:
        click.echo(json.dumps([_plain(entry) for entry in table], allow_nan=False))
        return
    show(table, metric)


def rows(groups: Sequence[Path], metric: str) -> list[dict[str, Any]]:
    """One entry for each group of runs.

    Raises:
        ConfigError: if a folder has no runs, a run no such metric, or environments differ.
    """
    found = {group: _runs_in(group) for group in groups}
    environments = {
        (run.environment, json.dumps(run.environment_kwargs, sort_keys=True)): folder
        for folders in found.values()
        for folder, run in folders.items()
    }
    if len(environments) > 1:
        told = ", ".join(
            f"'{folder}' is of {name} {kw}" for (name, kw), folder in environments.items()
        )
        raise ConfigError(f"only runs of one environment can be compared: {told}.")
    scores = {
        group: np.array([_last(folder, metric) for folder in folders])
        for group, folders in found.items()
    }
    first = scores[groups[0]]
    table = []
    for i, group in enumerate(groups):
        entry = {"group": str(group), "runs": len(scores[group]), "scores": scores[group].tolist()}
        entry["iqm"] = comparison.estimate(scores[group])
        if i:
            entry["difference"] = comparison.difference(scores[group], first)
            entry["improvement"] = comparison.improvement(scores[group], first)
        table.append(entry)
    return table


def show(table: Sequence[dict[str, Any]], metric: str) -> None:
    """Prints what `rows` found."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    view = Table(title=f"{metric}: interquartile mean (95 %)", title_justify="left", box=None)
    view.add_column("runs", overflow="fold")
    for name in ("seeds", "mean", "above the first", "P(better)"):
        view.add_column(name, justify="right")
    for entry in table:
        cells = [
            _shown(entry[name]) if name in entry else "" for name in ("difference", "improvement")
        ]
        view.add_row(entry["group"], str(entry["runs"]), _shown(entry["iqm"]), *cells)
    console.print(view)


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON can say it: null where an interval is not known."""
    return {
        name: [None if math.isnan(v) else v for v in x] if isinstance(x, comparison.Estimate) else x
        for name, x in entry.items()
    }


def _shown(found: comparison.Estimate) -> str:
    if math.isnan(found.low):
        return f"{found.value:.4g}"
    return f"{found.value:.4g} ({found.low:.4g} to {found.high:.4g})"


def _runs_in(group: Path) -> dict[Path, run_directory.Run]:
    """The run that a folder is, or the runs in it, by folder."""
    if (group / run_directory.RECORD).is_file():
        return {group: run_directory.read(group)}
    found = {
        path.parent: run_directory.read(path.parent)
        for path in sorted(group.glob(f"*/{run_directory.RECORD}"))
    }
    if not found:
        raise ConfigError(
            f"'{group}' is no run and has none in it: there is no {run_directory.RECORD}."
        )
    told = [curves.settings(folder) for folder in found]
    differ = sorted({n for one in told for n in one if any(o.get(n) != one[n] for o in told)})
    if differ:
        raise ConfigError(
            f"the runs in '{group}' differ in {', '.join(differ)}, not in their seeds alone: name "
            "the folders of each kind, or the runs."
        )
    return found


def _last(folder: Path, metric: str) -> float:
    """The last value of a metric in a run."""
    told = curves.reports(folder / "metrics.jsonl")
    values = [report[metric] for report in told if metric in report]
    if not values:
        known = sorted({name for report in told for name in report} - {"step"})
        listed = f"It has: {', '.join(known)}.{closest(metric, known)}" if known else "It has none."
        raise ConfigError(f"run '{folder}' reported no '{metric}'. {listed}")
    if values[-1] is None:
        raise ConfigError(f"the last '{metric}' of run '{folder}' is not a finite number.")
    return float(values[-1])
