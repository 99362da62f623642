"""Learning curves as a picture or a page."""

import base64
import html
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from brax.errors import ConfigError
from brax.training.analysis.curves import Curve

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{metric}</title>
<style>
body {{ font: 14px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }}
img {{ width: 100%; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 4px 10px; border-bottom: 1px solid #ddd; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
</style>
</head>
<body>
<h1>{metric}</h1>
<img src="data:image/svg+xml;base64,{picture}" alt="learning curves">
<table>
<tr><th>runs</th><th>seeds</th><th>steps</th><th>mean</th><th>95 % interval</th></tr>
{rows}
</table>
<p>{note}</p>
</body>
</html>
"""


_NOTE = (
    "Thick: the mean over seeds, linear between reports, as far as every run goes. Shaded: its "
    "95 % interval by Student's t. Thin: the runs."
)


def picture(found: Sequence[Curve], metric: str, form: str) -> bytes:
    """Draw curves.

    Args:
        found: the curves.
        metric: label of the vertical axis.
        form: `png` or `svg`.

    Raises:
        ConfigError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError(
            "curves need the package matplotlib: pip install 'brax-agents[plot]'"
        ) from error
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    panel(axes, found, metric)
    axes.legend(frameon=False, fontsize="small")
    content = io.BytesIO()
    # Without a date, the same curves give the same file.
    figure.savefig(content, format=form, metadata={"Date": None} if form == "svg" else None)
    return content.getvalue()


def panel(axes: Any, found: Sequence[Curve], metric: str) -> None:
    """Draw curves into a panel of matplotlib.

    Args:
        axes: the panel.
        found: the curves.
        metric: label of the vertical axis.
    """
    from matplotlib.ticker import EngFormatter

    for number, curve in enumerate(found):
        _draw(axes, curve, f"C{number}")
    values = np.concatenate([values for curve in found for _, values in curve.runs])
    margin = 0.05 * (np.ptp(values) or 1.0)
    # An interval of two seeds can be many times as high as the curves.
    axes.set(xlabel="environment steps", ylabel=metric)
    axes.set_ylim(values.min() - margin, values.max() + margin)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _draw(axes: Any, curve: Curve, color: str) -> None:
    """Draw one curve: its interval, its runs and its mean."""
    number = len(curve.runs)
    if number > 1:
        for steps, values in curve.runs:
            axes.plot(steps, values, color=color, alpha=0.35, linewidth=0.7)
        low, high = curve.mean - curve.half_width, curve.mean + curve.half_width
        axes.fill_between(curve.steps, low, high, color=color, alpha=0.18, linewidth=0)
    label = f"{curve.label} ({number} seed{'s' * (number > 1)})"
    axes.plot(curve.steps, curve.mean, color=color, linewidth=1.8, label=label)


def page(found: Sequence[Curve], metric: str) -> bytes:
    """Return a page with the picture and the last values. It loads nothing from the network."""
    drawn = base64.b64encode(picture(found, metric, "svg")).decode()
    rows = "\n".join(map(_row, found))
    return _PAGE.format(metric=html.escape(metric), picture=drawn, rows=rows, note=_NOTE).encode()


def _row(curve: Curve) -> str:
    """Return the curve's last values, as a row of the table."""
    cells = [html.escape(curve.label), str(len(curve.runs)), "-", "-", "-"]
    if len(curve.steps):
        mean, half = curve.mean[-1], curve.half_width[-1]
        cells[2:4] = [f"{curve.steps[-1]:,}", f"{mean:.4g}"]
        if np.isfinite(half):
            cells[4] = f"{mean - half:.4g} to {mean + half:.4g}"
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


WRITERS = {
    ".png": lambda found, metric: picture(found, metric, "png"),
    ".svg": lambda found, metric: picture(found, metric, "svg"),
    ".html": page,
}
"""Functions that write curves, by the suffix of the file."""
