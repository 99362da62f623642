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

Written by `python benchmarks/learning.py page` from the curves in `benchmarks/results/learning/`,
each stored by `python benchmarks/learning.py train ENV`, which trains by a recipe of the project
over several seeds; `ant_shac` is the ant by another agent. The files tell the settings, the
machine, the versions and every evaluation.

Returns are of the last evaluation: the mean over seeds, and those of the seeds. Random is what
actions drawn evenly earn, in episodes of the same length. Time is of all seeds together, with
compiling and evaluations, on a machine that did other work besides.

Thick: the mean over seeds, with its 95 % interval by Student's t. Thin: the seeds. Dotted: random
actions, where they are in the picture.
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
    lines += _made_of(reports)
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
    """Return a paragraph for each machine and set of versions, as lines."""
    made = {}
    for name, report in reports.items():
        machine, versions = report["machine"], report["versions"]
        told = (
            f"{machine['cores']} cores of {machine['processor']}, {machine['memory']} GiB, on "
            f"{machine['platform']}; {', '.join(f'{k} {v}' for k, v in versions.items())}"
        )
        made.setdefault(told, []).append(name)
    lines = []
    for told, names in made.items():
        lines += ["", *textwrap.wrap(f"{', '.join(names)}: {told}.", 100)]
    return lines


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
