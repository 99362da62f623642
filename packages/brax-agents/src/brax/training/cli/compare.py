"""The command `brax compare`."""

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
from brax.training.cli.options import json_option, run_folder


@click.command()
@click.argument("groups", nargs=-1, required=True, type=run_folder, metavar="RUN...")
@click.option(
    "--metric", default="eval/episode_reward", show_default=True, help="Metric to compare."
)
@json_option
def compare(groups: tuple[Path, ...], metric: str, as_json: bool) -> None:
    """Compare runs by the last value of a metric.

    Each RUN is a run, or a folder of runs that differ only in their seeds. The command prints the
    interquartile mean of each, with its 95 % bootstrap interval. For all but the first it also
    prints the difference from the first, and the probability that one of its runs is better.
    """
    table = comparison_rows(groups, metric)
    if as_json:
        click.echo(json.dumps([_to_json(entry) for entry in table], allow_nan=False))
        return
    print_table(table, metric)


def comparison_rows(groups: Sequence[Path], metric: str) -> list[dict[str, Any]]:
    """Return one entry for each group of runs.

    Raises:
        ConfigError: if a folder has no runs, a run lacks the metric, or environments differ.
    """
    found = {group: _runs_in(group) for group in groups}
    # Returns of different environments, or of one with other settings, cannot be compared.
    environments = {
        (run.environment, json.dumps(run.environment_kwargs, sort_keys=True)): folder
        for folders in found.values()
        for folder, run in folders.items()
    }
    if len(environments) > 1:
        listed = ", ".join(
            f"'{folder}' is of {name} {kw}" for (name, kw), folder in environments.items()
        )
        raise ConfigError(f"only runs of one environment can be compared: {listed}.")
    scores = {
        group: np.array([_last_value(folder, metric) for folder in folders])
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


def print_table(table: Sequence[dict[str, Any]], metric: str) -> None:
    """Print the result of `comparison_rows`."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        # Without a terminal rich assumes 80 columns, which folds long names.
        console = Console(width=160)
    # In a string rich would read names in brackets as its markup, and leave them out.
    title = Text(f"{metric}: interquartile mean (95 %)", "table.title")
    view = Table(title=title, title_justify="left", box=None)
    view.add_column("runs", overflow="fold")
    for name in ("seeds", "mean", "above the first", "P(better)"):
        view.add_column(name, justify="right")
    for entry in table:
        cells = [
            _format(entry[name]) if name in entry else "" for name in ("difference", "improvement")
        ]
        view.add_row(Text(entry["group"]), str(entry["runs"]), _format(entry["iqm"]), *cells)
    console.print(view)


def _to_json(entry: Mapping[str, object]) -> dict[str, Any]:
    """Return a row in a form that JSON can represent: null where an interval is not known."""
    return {
        name: [None if math.isnan(v) else v for v in x] if isinstance(x, comparison.Estimate) else x
        for name, x in entry.items()
    }


def _format(found: comparison.Estimate) -> str:
    """Return an estimate as text, with its interval if it is known."""
    if math.isnan(found.low):
        return f"{found.value:.4g}"
    return f"{found.value:.4g} ({found.low:.4g} to {found.high:.4g})"


def _runs_in(group: Path) -> dict[Path, run_directory.Run]:
    """Return the runs of a group by folder: the group itself if it is a run, else those in it."""
    if (group / run_directory.RUN_FILE).is_file():
        return {group: run_directory.read(group)}
    found = {
        path.parent: run_directory.read(path.parent)
        for path in sorted(group.glob(f"*/{run_directory.RUN_FILE}"))
    }
    if not found:
        raise ConfigError(
            f"'{group}' is not a run and contains none: there is no {run_directory.RUN_FILE}."
        )
    settings = [curves.comparable_settings(folder) for folder in found]
    differ = sorted(
        {n for one in settings for n in one if any(o.get(n) != one[n] for o in settings)}
    )
    if differ:
        raise ConfigError(
            f"the runs in '{group}' differ in {', '.join(differ)}, not only in their seeds: name "
            "the folders of each kind, or the runs."
        )
    return found


def _last_value(folder: Path, metric: str) -> float:
    """Return the last value of a metric in a run."""
    reports = curves.reports(folder / "metrics.jsonl")
    values = [report[metric] for report in reports if metric in report]
    if not values:
        known = sorted({name for report in reports for name in report} - {"step"})
        listed = f"It has: {', '.join(known)}.{closest(metric, known)}" if known else "It has none."
        raise ConfigError(f"run '{folder}' reported no '{metric}'. {listed}")
    if values[-1] is None:
        raise ConfigError(f"the last '{metric}' of run '{folder}' is not a finite number.")
    return float(values[-1])
