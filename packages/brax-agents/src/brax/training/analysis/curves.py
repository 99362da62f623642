"""Learning curves: what runs reported, and its mean and interval over seeds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brax.errors import ConfigError, closest
from brax.training.checkpoints import run_directory

_PER_RUN_SETTINGS = ("seed", "num_timesteps")
"""Settings in which runs of one curve may differ."""


@dataclass(frozen=True)
class Curve:
    """What runs that differ in their seed reported of one metric."""

    label: str
    runs: tuple[tuple[np.ndarray, np.ndarray], ...]
    """Environment steps and values of each run, each (reports,)."""
    steps: np.ndarray
    """Steps of any run at which every run has a value, or one between two, shape (n,)."""
    mean: np.ndarray
    """Mean over the runs, linear between their reports, shape (n,)."""
    half_width: np.ndarray
    """Half of the 95 % interval of that mean; NaN for a single run; shape (n,)."""


def curves(folders: Sequence[Path], metric: str) -> list[Curve]:
    """Reads the metric of runs and joins those that differ in nothing but their seed.

    Args:
        folders: directories of runs.
        metric: its name, such as `eval/episode_reward`.

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
    """The mean of several runs, with the interval of Student's t distribution."""
    from scipy.special import stdtrit

    first, last = max(s[0] for s, _ in series), min(s[-1] for s, _ in series)
    every = np.unique(np.concatenate([steps for steps, _ in series]))
    steps = every[(every >= first) & (every <= last)]
    rows = np.stack([np.interp(steps, *run) for run in series])
    number = len(series)
    if number == 1:
        half_width = np.full(len(steps), np.nan)
    else:
        half_width = stdtrit(number - 1, 0.975) * rows.std(axis=0, ddof=1) / np.sqrt(number)
    return Curve(label, tuple(series), steps, rows.mean(axis=0), half_width)


def read(folder: Path, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of a metric in the `metrics.jsonl` of a run.

    What a run reported again, after it was resumed from an earlier step, counts once.

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
    """Reads a file of metrics; a last line that was cut off is left out.

    Raises:
        ConfigError: if there is no such file, or a line of it is no report.
    """
    try:
        *lines, _ = path.read_text("utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ConfigError(f"'{path}' cannot be read: {error}") from error
    return [_report(f"'{path}', line {n}", line) for n, line in enumerate(lines, 1) if line]


def _report(where: str, line: str) -> dict[str, Any]:
    """A line of a file of metrics."""
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
    """What a run was asked for, without what may differ between runs of one kind."""
    run = run_directory.read(folder)
    config = {name: value for name, value in run.config.items() if name not in _PER_RUN_SETTINGS}
    environment = {f"env.{name}": value for name, value in run.environment_kwargs.items()}
    return {"environment": run.environment, "trainer": run.trainer} | config | environment


def _labels(settings: Sequence[dict[str, Any]]) -> list[str]:
    """Environment and trainer, and every setting in which the groups differ."""
    names = list(dict.fromkeys(name for told in settings for name in told))
    differ = [
        name
        for name in names
        if name not in ("environment", "trainer")
        and len({json.dumps(told.get(name)) for told in settings}) > 1
    ]
    return [
        ", ".join(
            [f"{told['environment']}, {told['trainer']}"]
            + [f"{name}={json.dumps(told[name])}" for name in differ if name in told]
        )
        for told in settings
    ]
