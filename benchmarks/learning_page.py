"""Writes docs/learning.md, its picture and `returns.toml` from stored learning curves."""

import functools
import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from about import ROOT
from matplotlib.figure import Figure
from page import row

from brax.training.analysis import plots
from brax.training.analysis.curves import curve
from brax.training.config import evaluated_steps
from brax.training.runner.presets import STORED_RETURNS

Reports = dict[str, dict[str, Any]]
"""Stored curves by name."""

PAGE = ROOT / "docs" / "learning.md"
PICTURE = ROOT / "docs" / "images" / "learning.png"
HEAD = """# Learning curves

The table has the return that each recipe of Brax reaches, over seeds that were not used to choose
its settings. To train one of them yourself, run the command in its row. The command
`python benchmarks/learning.py train ENV` trains all seeds and stores their curves in
`benchmarks/results/learning/`, and `python benchmarks/learning.py page` writes this page from them.
`brax train` ends with the range of these returns, to which you can compare your own.

- `return` is the mean over seeds of the last evaluation; the next column has each seed's.
- `seen` describes the behaviour: the mean speed, the number of targets reached in an episode, or
  the share of episodes in which the pusher's object ends within 5 cm of its goal.
- `random` is the return of uniformly random actions in episodes of the same length.
- `published` is the highest mean return that we know of in Gymnasium's environment of that name,
  whose model and reward ours follow. The hopper's is from TD3 (Fujimoto et al. 2018), the swimmer's
  from SAC ([SLM-Lab][slm]), and the others are from SAC after a million steps
  ([Tianshou][tianshou]). For the humanoid that stands up it is a fifth of CrossQ's return in
  SLM-Lab, 150,913, where rewards are five times ours. Other published returns have other rewards or
  shorter episodes.
- `time` and `CPU` are the mean time and CPU time of one seed, including compilation and
  evaluations. Each seed was trained on one core; another core did other work. The processor had no
  512-bit registers for the hopper, grasp and the presets `record`, except the humanoid's. While
  grasp, the pusher and the presets `record` of the ant, the half cheetah and the walker were
  trained, two to five runs shared two cores, so that they took up to twice their CPU time.
- `idle` is the time of one more run with the first seed, with two cores of an EPYC (Zen 5) for
  itself. Rounding differs between processors and versions, so its return is another one; it is
  in `benchmarks/results/learning/idle/`.

In the picture, thick lines are the mean over seeds, with its 95 % interval by Student's t. Thin
lines are the seeds. Dotted lines are random actions and dashed lines published returns, where they
are within the picture. The upper axis is the mean CPU time of a run, spread evenly over the steps,
although compilation comes first. The line of a seed that ended early, at the `stop_at_reward` of
its preset, continues at the seed's last return. This is the return of the evaluation that ended
it, which favours the seed a little.

[slm]: https://github.com/kengz/SLM-Lab/blob/master/docs/BENCHMARKS.md
[tianshou]: https://github.com/thu-ml/tianshou/blob/master/examples/mujoco/README.md
"""
PUBLISHED = {
    "ant": 5850.0,
    "halfcheetah": 12139.0,
    "hopper": 3564.0,
    "humanoid": 5489.0,
    "humanoidstandup": 150_913 / 5,
    "inverted_double_pendulum": 9359.5,
    "inverted_pendulum": 1000.0,
    "swimmer": 301.0,
    "walker2d": 5007.0,
}
"""Published returns by environment; `HEAD` says whose."""
RETURNS_HEAD = """# Returns of the last evaluations of presets, one for each seed, by preset,
# environment and agent.
# `python benchmarks/learning.py page` writes this file from the stored curves."""
TITLES = (
    *("environment", "recipe", "agent", "steps", "episode", "random", "published", "return"),
    *("of each seed", "seeds", "seen", "time [s]", "CPU [s]", "idle [s]"),
)


def load(folder: Path) -> Reports:
    """Return the stored reports, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def text(reports: Reports, idle: Reports) -> str:
    """Return the text of the page.

    Args:
        reports: curves over seeds.
        idle: runs with one seed each, on a machine that did nothing else.
    """
    lines = [HEAD, "![learning curves](images/learning.png)", "", row(TITLES)]
    lines += [row("---" for _ in TITLES)]
    lines += [row((*_row(report), _idle(idle.get(name)))) for name, report in reports.items()]
    lines += ["", "Machines and versions:", "", *_made_of(reports)]
    return "\n".join(lines) + "\n"


def preset(report: Mapping[str, Any]) -> str:
    """Return the name of the preset in the command of a report."""
    asked = shlex.split(report["command"])
    return asked[asked.index("--preset") + 1]


def returns(reports: Reports) -> str:
    """Return the text of `returns.toml`."""
    tables: dict[str, list[str]] = {}
    for report in reports.values():
        last = [values[-1] for values in report["returns"]]
        line = f"{report['trainer']} = {json.dumps(last)}"
        tables.setdefault(f"[{preset(report)}.{report['environment']}]", []).append(line)
    blocks = ["\n".join((title, *lines)) for title, lines in tables.items()]
    return "\n\n".join((RETURNS_HEAD, *blocks)) + "\n"


def _row(report: Mapping[str, Any]) -> tuple[str, ...]:
    last = [returns[-1] for returns in report["returns"]]
    return (
        f"`{report['environment']}`",
        f"`{report['command']}`",
        report["trainer"],
        _span(report.get("ended", report["steps"][-1:])),
        f"{evaluated_steps(report['settings'])}",
        f"{report['random']:.4g}",
        f"{PUBLISHED[report['environment']]:.0f}" if report["environment"] in PUBLISHED else "",
        f"{np.mean(last):.4g}",
        ", ".join(f"{value:.4g}" for value in last),
        f"{report['seeds'][0]} to {report['seeds'][-1]}",
        _seen(report["seen"]),
        f"{np.mean(report['seconds']):.0f}",
        f"{np.mean(report['cpu_seconds']):.0f}",
    )


def _idle(report: Mapping[str, Any] | None) -> str:
    """Return the time of the only seed of a report."""
    return f"{report['seconds'][0]:.0f}" if report else ""


def _span(ended: Sequence[int]) -> str:
    """Return the steps after which the seeds ended."""
    return " to ".join(f"{steps:,}" for steps in sorted({min(ended), max(ended)}))


def _seen(runs: Sequence[Mapping[str, float]]) -> str:
    """Return the range of speeds, of targets or of objects in place, over the seeds."""
    units = {"speed": " m/s", "targets": " targets", "placed": " % placed"}
    ranges = {key: [run[key] for run in runs] for key in runs[0]}
    return ", ".join(f"{min(x):.3g} to {max(x):.3g}{units[key]}" for key, x in ranges.items())


def _made_of(reports: Reports) -> list[str]:
    """Return an item of a list for each machine and set of versions."""
    made: dict[str, list[str]] = {}
    for name, report in reports.items():
        machine, versions = report["machine"], report["versions"]
        cores = f"{machine['cores']} core{'s' if machine['cores'] > 1 else ''}"
        used = (
            f"{cores} of {machine['processor']}, {machine['memory']} GiB, on "
            f"{machine['platform']}; {', '.join(f'{k} {v}' for k, v in versions.items())}"
        )
        made.setdefault(used, []).append(name)
    return [
        textwrap.fill(
            f"- {', '.join(names)}: {used}.", 110, subsequent_indent="  ", break_on_hyphens=False
        )
        for used, names in made.items()
    ]


def draw(reports: Reports, path: Path) -> None:
    """Draw the curves, one panel for each recipe, with lines of random and published returns."""
    columns = 4
    rows = -(-len(reports) // columns)
    figure = Figure(figsize=(4 * columns, 3.3 * rows), dpi=75, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, report) in zip(panels, reports.items(), strict=False):
        steps = np.array(report["steps"])
        series = [(steps, np.array(returns)) for returns in report["returns"]]
        plots.panel(axes, [curve(name, series)], "return")
        axes.axhline(report["random"], color="0.4", linestyle=":", linewidth=1.2)
        if report["environment"] in PUBLISHED:
            axes.axhline(PUBLISHED[report["environment"]], color="0.4", ls="--", linewidth=1.2)
        each = np.mean(report["cpu_seconds"]) / steps[-1]
        scales = [functools.partial(np.multiply, scale) for scale in (each, 1 / each)]
        time = axes.secondary_xaxis("top", functions=tuple(scales))
        time.set_xlabel("CPU time [s]")
        axes.set_title(name, fontsize="medium")
    for axes in panels[len(reports) :]:
        axes.set_visible(False)
    figure.savefig(path)


def write(folder: Path) -> None:
    """Write the page, the picture and the returns that `brax train` prints."""
    reports = load(folder)
    PAGE.write_text(text(reports, load(folder / "idle")))
    STORED_RETURNS.write_text(returns(reports))
    draw(reports, PICTURE)
