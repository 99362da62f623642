"""Learning curves: the reports of runs, with mean and interval over seeds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brax.errors import ConfigError, closest
from brax.training.checkpoints import run_directory

_PER_RUN_SETTINGS = ("seed", "num_timesteps")
"""Settings in which the runs of one curve may differ."""


@dataclass(frozen=True)
class Curve:
    """One metric, as reported by runs that differ in their seeds."""

    label: str
    runs: tuple[tuple[np.ndarray, np.ndarray], ...]
    """Environment steps and values of each run, each (reports,)."""
    steps: np.ndarray
    """Steps of all runs that lie within the range of every run, shape (n,)."""
    mean: np.ndarray
    """Mean over the runs, linear between their reports, shape (n,)."""
    half_width: np.ndarray
    """Half of the 95 % interval of that mean; NaN for a single run; shape (n,)."""


def curves(folders: Sequence[Path], metric: str) -> list[Curve]:
    """Read a metric of runs, and join the runs that differ only in their seeds.

    Args:
        folders: directories of runs.
        metric: name of the metric, such as `eval/episode_reward`.

    Raises:
        ConfigError: if a folder is no run, or never reported the metric.
    """
    groups: dict[str, list[Path]] = {}
    for folder in dict.fromkeys(folders):
        groups.setdefault(json.dumps(comparable_settings(folder), sort_keys=True), []).append(
            folder
        )
    labels = _labels([json.loads(key) for key in groups])
    return [
        curve(label, [read(folder, metric) for folder in members])
        for label, members in zip(labels, groups.values(), strict=True)
    ]


def curve(label: str, series: Sequence[tuple[np.ndarray, np.ndarray]]) -> Curve:
    """Return the mean of several runs, with the interval of Student's t distribution."""
    from scipy.special import stdtrit

    # Only steps that every run covers: beyond them the mean would be of fewer runs.
    first, last = max(s[0] for s, _ in series), min(s[-1] for s, _ in series)
    every = np.unique(np.concatenate([steps for steps, _ in series]))
    steps = every[(every >= first) & (every <= last)]
    rows = np.stack([np.interp(steps, *run) for run in series])
    number = len(series)
    if number == 1:
        half_width = np.full(len(steps), np.nan)
    else:
        # t quantile times the standard error of the mean.
        half_width = stdtrit(number - 1, 0.975) * rows.std(axis=0, ddof=1) / np.sqrt(number)
    return Curve(label, tuple(series), steps, rows.mean(axis=0), half_width)


def read(folder: Path, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and values of a metric in the `metrics.jsonl` of a run.

    Steps that were reported again, after the run was resumed from an earlier step, count once.

    Raises:
        ConfigError: if there is no such file, or no such metric in it.
    """
    path = folder / "metrics.jsonl"
    points: list[tuple[int, float]] = []
    seen: set[str] = set()
    for report in reports(path):
        seen |= report.keys()
        if (value := report.get(metric)) is not None:
            while points and points[-1][0] >= report["step"]:
                # What a resumed run reports replaces what it had reported of the same steps.
                points.pop()
            points.append((report["step"], float(value)))
    if not points:
        names = sorted(seen - {"step"})
        raise ConfigError(
            f"'{path}' has no numbers of '{metric}'. It has: {', '.join(names) or 'nothing'}."
            f"{closest(metric, names)}"
        )
    steps, values = zip(*points, strict=True)
    return np.array(steps), np.array(values)


def reports(path: Path) -> list[dict[str, Any]]:
    """Read a file of metrics; a last line that was cut off is left out.

    Raises:
        ConfigError: if there is no such file, or a line of it is no report.
    """
    try:
        # A whole line ends with a newline: after the last one there is nothing, or half a line.
        *lines, _ = path.read_text("utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ConfigError(f"'{path}' cannot be read: {error}") from error
    return [_report(f"'{path}', line {n}", line) for n, line in enumerate(lines, 1) if line]


def _report(where: str, line: str) -> dict[str, Any]:
    """Return a line of a file of metrics, as a dictionary."""
    try:
        report = json.loads(line)
        if "step" in report and all(isinstance(x, int | float | None) for x in report.values()):
            return dict(report)
    except (ValueError, TypeError, AttributeError):
        pass
    raise ConfigError(
        f'{where} cannot be read: expected a report, such as {{"step": 0, "training/sps": 1.0}}.'
    )


def comparable_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a run, without those in which runs of one group may differ."""
    run = run_directory.read(folder)
    config = {name: value for name, value in run.config.items() if name not in _PER_RUN_SETTINGS}
    environment = {f"env.{name}": value for name, value in run.environment_kwargs.items()}
    return {"environment": run.environment, "trainer": run.trainer} | config | environment


def _labels(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Return a label for each group: environment, trainer, and settings in which they differ."""
    names = list(dict.fromkeys(name for group in settings for name in group))
    differ = [
        name
        for name in names
        if name not in ("environment", "trainer")
        and len({json.dumps(group.get(name)) for group in settings}) > 1
    ]
    return [
        ", ".join(
            [f"{group['environment']}, {group['trainer']}"]
            + [f"{name}={json.dumps(group[name])}" for name in differ if name in group]
        )
        for group in settings
    ]
