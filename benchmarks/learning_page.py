"""Writes docs/learning.md and its picture from stored learning curves."""

import json
import textwrap

import numpy as np
from about import ROOT
from matplotlib.figure import Figure

from brax.training.analysis import plots
from brax.training.analysis.curves import curve

PAGE = ROOT / "docs" / "learning.md"
PICTURE = ROOT / "docs" / "images" / "learning.png"
HEAD = """# Learning curves

The table has the return that each recipe of Brax reaches, over several seeds. To train one of
them yourself, run the command in its row, or `python benchmarks/learning.py train ENV`, which
also stores the curve in `benchmarks/results/learning/`. `python benchmarks/learning.py page`
writes this page from the stored curves.

- `return` is the mean over seeds of the last evaluation; the next column has each seed's.
- `random` is the return of uniformly random actions in episodes of the same length.
- `time` is that of all seeds together, with compilation and evaluations, on a machine that did
  other work.
- `ant` occurs twice: `ant_shac` is its curve by SHAC.

In the picture, thick lines are the mean over seeds, with its 95 % interval by Student's t. Thin
lines are the seeds. Dotted lines are random actions, where they are within the picture.
"""
TITLES = (
    *("environment", "recipe", "steps", "episode"),
    *("random", "return", "of each seed", "time [s]"),
)


def load(folder):
    """Return the stored reports, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def text(reports):
    """Return the text of the page."""
    lines = [HEAD, "![learning curves](images/learning.png)", "", _line(TITLES)]
    lines += [_line("---" for _ in TITLES)]
    lines += [_line(_row(report)) for report in reports.values()]
    lines += ["", "Machines and versions:", "", *_made_of(reports)]
    return "\n".join(lines) + "\n"


def _row(report):
    last = [returns[-1] for returns in report["returns"]]
    return (
        f"`{report['environment']}`",
        f"`{report['command']}`",
        f"{report['steps'][-1]:,}",
        f"{report['settings'].get('episode_length', 1000)}",
        f"{report['random']:.4g}",
        f"{np.mean(last):.4g}",
        ", ".join(f"{value:.4g}" for value in last),
        f"{report['seconds']:.0f}",
    )


def _made_of(reports):
    """Return an item of a list for each machine and set of versions."""
    made = {}
    for name, report in reports.items():
        machine, versions = report["machine"], report["versions"]
        used = (
            f"{machine['cores']} cores of {machine['processor']}, {machine['memory']} GiB, on "
            f"{machine['platform']}; {', '.join(f'{k} {v}' for k, v in versions.items())}"
        )
        made.setdefault(used, []).append(name)
    return [
        textwrap.fill(f"- {', '.join(names)}: {used}.", 110, subsequent_indent="  ")
        for used, names in made.items()
    ]


def _line(cells):
    return f"| {' | '.join(cells)} |"


def draw(reports, path):
    """Draws the curves, one panel for each environment, with the random policy as a line."""
    columns = 4
    rows = -(-len(reports) // columns)
    figure = Figure(figsize=(4 * columns, 2.9 * rows), dpi=75, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, report) in zip(panels, reports.items(), strict=False):
        steps = np.array(report["steps"])
        series = [(steps, np.array(returns)) for returns in report["returns"]]
        plots.panel(axes, [curve(name, series)], "return")
        axes.axhline(report["random"], color="0.4", linestyle=":", linewidth=1.2)
        axes.set_title(name, fontsize="medium")
    for axes in panels[len(reports) :]:
        axes.set_visible(False)
    figure.savefig(path)


def write(folder):
    """Write the page and the picture."""
    reports = load(folder)
    PAGE.write_text(text(reports))
    draw(reports, PICTURE)
