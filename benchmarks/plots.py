"""Plots of the curves of a report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cells import OURS
from matplotlib.figure import Figure
from models import PIPELINES
from summary import summarize

Point = tuple[int, float, float]
"""Size, environment steps per second and seconds of compiling."""

CURVES = {"batch": "batch (ants)", "links": "links of a chain", "contacts": "contacts of a plate"}


def draw(report: Mapping[str, Any], folder: Path, name: str) -> dict[str, Path]:
    """Write a plot of each curve of a report; return their files, by curve."""
    out = {}
    for curve, label in CURVES.items():
        points = {p: _points(report, f"{curve}/{p}/") for p in PIPELINES}
        if any(points.values()):
            out[curve] = folder / f"bench-{name}-{curve}.png"
            _plot(points, label, out[curve])
    return out


def _points(report: Mapping[str, Any], prefix: str) -> list[Point]:
    """Size, environment steps per second and seconds of compiling."""
    found = []
    for name, cell in report["cells"].items():
        if name.startswith(prefix) and "sides" in cell:
            about = summarize(cell)[OURS]
            found.append((int(name.removeprefix(prefix)), about["speed"], about["compile"]))
    return sorted(found)


def _plot(points: Mapping[str, list[Point]], label: str, path: Path) -> None:
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    speed, compiling = figure.subplots(1, 2)
    sizes = sorted({size for found in points.values() for size, *_ in found})
    for (pipeline, found), marker in zip(points.items(), "os^", strict=True):
        at = [sizes.index(size) for size, *_ in found]  # evenly: they grow by about equal factors
        speed.plot(at, [p[1] for p in found], marker=marker, label=pipeline)
        compiling.plot(at, [p[2] for p in found], marker=marker, label=pipeline)
    speed.set(ylabel="environment steps per second", yscale="log")
    compiling.set(ylabel="trace + compile [s]", ylim=(0, None))
    for axes in (speed, compiling):
        axes.set(xlabel=label)
        many = len(sizes) > 6
        axes.set_xticks(range(len(sizes)), [f"{n:,}" for n in sizes], rotation=45 if many else 0)
        axes.grid(alpha=0.3)
    speed.legend()
    figure.savefig(path, dpi=110)
