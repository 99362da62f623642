"""From measurements to what is told of them."""

from statistics import median

import rich
from rich.table import Table

OURS, TRAINING, PEER = "brax", "brax, wrapped", "Google's brax"

COLUMNS = (
    "",
    "env steps/s",
    "rounds",
    "against Google's",
    "trace + compile [s]",
    "against Google's",
)


def summarize(report):
    """Medians of each side, and the median over the rounds of each round's ratio to Google's.

    Args:
        report: `batch`, `length`, and `sides`, by name: `compile`, a list of seconds `trace` and
            `compile`, and `run`, a list of `seconds`, in the order of the rounds.

    Returns:
        By name: `steps_per_second`, one a round, `speed_ratio`, `compile_seconds`,
        `compile_ratio`.
    """
    steps = report["batch"] * report["length"]
    out = {}
    for name, side in report["sides"].items():
        peer = report["sides"][PEER]
        seconds = [run["seconds"] for run in side["run"]]
        compile_seconds = [c["trace"] + c["compile"] for c in side["compile"]]
        out[name] = {
            "steps_per_second": [steps / s for s in seconds],
            "speed_ratio": median(
                p["seconds"] / s for p, s in zip(peer["run"], seconds, strict=True)
            ),
            "compile_seconds": median(compile_seconds),
            "compile_ratio": median(
                s / (p["trace"] + p["compile"])
                for p, s in zip(peer["compile"], compile_seconds, strict=True)
            ),
        }
    return out


def rows(report):
    """The table of a report, a row of text for each side."""
    for name, side in summarize(report).items():
        speeds = side["steps_per_second"]
        yield (
            name,
            f"{median(speeds):,.0f}",
            f"{min(speeds):,.0f} to {max(speeds):,.0f}",
            f"{side['speed_ratio']:.2f} x",
            f"{side['compile_seconds']:.1f}",
            f"{side['compile_ratio']:.2f} x",
        )


def show(report):
    """Prints the table."""
    table = Table(*COLUMNS, box=None)
    for row in rows(report):
        table.add_row(*row)
    rich.print(
        f"{report['environment']} {report['backend']}, batch {report['batch']}, "
        f"{report['length']} steps, {report['machine']}"
    )
    rich.print(table)
