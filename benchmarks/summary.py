"""From measurements to tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import rich
from cells import MUJOCO, NEWEST, OURS, PEER, WRAPPED
from rich.markup import escape
from rich.table import Table

MIB = 2**20

KINDS = ("settled", "falling", "trained")
"""Kinds of states of `models`; the last one where there is a trained policy."""

Measured = Mapping[str, Any]
"""One entry of a side's list: numbers by name, or by the kind of states."""
Row = Callable[[Sequence[str], Mapping[str, Any]], tuple[str, ...]]
"""Makes the text of a table's row from the parts of a cell's name and its result."""

TITLES = {
    "peer": "Against Google's brax",
    "single": "Against Google's brax with one JAX device",
    "versions": "Beside the newest Python and JAX",
    "mujoco": "Against MuJoCo C, ant",
    "features": "Against MuJoCo C, models with more contacts",
    "models": "Against MuJoCo C, models as people have them",
    "training": "Training by PPO, against Google's brax",
    "reach": "To a return of 776 by PPO, each by its own recipe, against Google's brax",
    "memory": "Memory of a compiled step, ant",
    "gradient": "Reverse mode through a rollout, ant",
    "wrapped": "Cost of the training wrappers, ant",
    "precision": "Single and double precision, ant",
    "batch": "Batch, ant",
    "links": "Links, a chain",
    "contacts": "Contacts, a plate on balls",
}


def tables(
    report: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """For each part that was measured: its title, header and rows of text."""
    for part, title in TITLES.items():
        found = [(name.split("/")[1:], c) for name, c in report["cells"].items() if _is(name, part)]
        done = [(name, c) for name, c in found if "skipped" not in c]
        if done:
            header, row = TABLES[part]
            yield title, header, [_failed(name, c, header) or row(name, c) for name, c in done]


def _failed(
    name: Sequence[str], cell: Mapping[str, Any], header: Sequence[str]
) -> tuple[str, ...] | None:
    """Return the row of a cell without a result; None if it has one."""
    if "failed" in cell:
        return (*name, cell["failed"], *[""] * (len(header) - len(name) - 1))
    return None


def show(report: Mapping[str, Any]) -> None:
    """Print the tables."""
    for title, header, rows in tables(report):
        table = Table(*map(escape, header), box=None, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row)
        rich.print(table)


def summarize(cell: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Medians of a cell's sides; of ratios, over the rounds, since a shared machine drifts.

    Args:
        cell: `batch`, `length`, and `sides`, by name: `compile`, a list of seconds `trace`,
            `compile` and `cores`, and `run`, a list of `seconds` and of seconds of all `cores`,
            in the order of the rounds.

    Returns:
        By name: `speed` [env steps/s], `compile` [s], and how much of it the first side's are:
        `faster` by the clock, `cheaper` in seconds of all cores, `compiles`.
    """
    sides = list(cell["sides"].values())
    ours = sides[0]
    return {
        name: {
            "speed": median(cell["batch"] * cell["length"] / run["seconds"] for run in side["run"]),
            "compile": median(_compile(c) for c in side["compile"]),
            "faster": _ratio(side["run"], ours["run"], lambda r: r["seconds"]),
            "cheaper": _ratio(side["run"], ours["run"], lambda r: r["cores"]),
            "compiles": _ratio(ours["compile"], side["compile"], _compile),
        }
        for name, side in cell["sides"].items()
    }


def _ratio(
    a: Sequence[Measured], b: Sequence[Measured], value: Callable[[Measured], float]
) -> float | None:
    """Median of the ratios of what was measured in turn; None of what takes no time."""
    pairs = [(value(x), value(y)) for x, y in zip(a, b, strict=True)]
    return median(x / y for x, y in pairs) if all(y for _, y in pairs) else None


def _compile(turn: Measured) -> float:
    return turn["trace"] + turn["compile"]


def _is(name: str, part: str) -> bool:
    return name.split("/")[0] == part


def _compared(other: str) -> Row:
    def row(name: Sequence[str], cell: Mapping[str, Any]) -> tuple[str, ...]:
        found = summarize(cell)
        ours, theirs = found[OURS], found.get(other)
        if not theirs:
            return (*name, f"{ours['speed']:,.0f}", "", "", "", f"{ours['compile']:.1f}", "", "")
        compiles = theirs["compiles"]
        return (
            *name,
            f"{ours['speed']:,.0f}",
            f"{theirs['speed']:,.0f}",
            f"{theirs['faster']:.2f} x",
            f"{theirs['cheaper']:.2f} x",
            f"{ours['compile']:.1f}",
            f"{theirs['compile']:.1f}" if compiles else "",
            f"{compiles:.2f} x" if compiles else "",
        )

    return row


def _robot(name: Sequence[str], cell: Mapping[str, Any]) -> tuple[str, ...]:
    """Return speeds of physics steps from settled states, and ratios from each kind of states."""
    ours, theirs = cell["sides"][OURS], cell["sides"].get(MUJOCO)
    compiled = f"{median(map(_compile, ours['compile'])):.1f}"
    ends = (compiled, f"{ours['load']:.1f}")
    if not theirs:
        return (*name, "", "", f"{_steps(ours, 'settled'):,.0f}", *[""] * 7, *ends)
    contacts = theirs["contacts"]
    ratios = [_ratio_of(kind, ours, theirs, value) for kind in KINDS for value in (_pace, _thrift)]
    return (
        *name,
        str(theirs["dofs"]),
        ", ".join(f"{contacts[kind]:.1f}" for kind in KINDS if kind in contacts),
        *(f"{_steps(side, 'settled'):,.0f}" for side in (ours, theirs)),
        *ratios,
        *ends,
    )


def _ratio_of(
    kind: str,
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    value: Callable[[Measured], float],
) -> str:
    """Return how many times as fast ours is from states of `kind`, or nothing without any."""
    if kind not in theirs["contacts"]:
        return ""
    mine, other = ([run[kind] for run in side["run"]] for side in (ours, theirs))
    return f"{_ratio(mine, other, value):.2f} x"


def _steps(side: Mapping[str, Any], kind: str) -> float:
    return median(_pace(run[kind]) for run in side["run"])


def _pace(run: Measured) -> float:
    return run["steps"] / run["seconds"]


def _thrift(run: Measured) -> float:
    return run["steps"] / run["cores"]


def _training(name: Sequence[str], cell: Mapping[str, Any]) -> tuple[str, ...]:
    """Speeds and times to the first epoch's end, less what an epoch takes; medians of turns."""
    ours = cell["sides"][OURS]["answers"]
    theirs = cell["sides"].get(PEER, {}).get("answers")
    row = [f"{median(map(_speed, ours)):,.0f}"]
    if not theirs:
        return (*name, *row, "", "", f"{median(map(_lead, ours)):.1f}", "", "")
    pairs = list(zip(ours, theirs, strict=True))
    return (
        *name,
        *row,
        f"{median(map(_speed, theirs)):,.0f}",
        f"{median(_speed(a) / _speed(b) for a, b in pairs):.2f} x",
        f"{median(map(_lead, ours)):.1f}",
        f"{median(map(_lead, theirs)):.1f}",
        f"{median(_lead(a) / _lead(b) for a, b in pairs):.2f} x",
    )


def _reach(name: Sequence[str], cell: Mapping[str, Any]) -> tuple[str, ...]:
    """Seconds from the call to the evaluation that shows the return, compiling included."""
    ends = [side["answers"][0][-1] for side in cell["sides"].values()]
    texts = [
        f"{end['seconds']:.0f} ({end['return']:,.0f} after {end['steps']:,} steps)" for end in ends
    ]
    ratio = f"{ends[1]['seconds'] / ends[0]['seconds']:.1f} x" if len(ends) > 1 else ""
    return (*name, *texts, *[""] * (2 - len(ends)), ratio)


def _speed(reports: Sequence[Measured]) -> float:
    """Return the speed of all epochs but the first."""
    return median(report["speed"] for report in reports[2:])


def _lead(reports: Sequence[Measured]) -> float:
    """Seconds from the call to the end of the first epoch that it does not take later."""
    first, second = (report["seconds"] for report in reports[1:3])
    return first - (second - first)


def _point(name: Sequence[str], cell: Mapping[str, Any]) -> tuple[str, ...]:
    (ours,) = summarize(cell).values()
    batch = f"{cell['batch']:,}"
    return (*name, batch, f"{ours['speed']:,.0f}", f"{ours['compile']:.1f}")


def _memory(name: Sequence[str], cell: Mapping[str, Any]) -> tuple[str, ...]:
    sizes = (f"{cell[k] / MIB:.1f}" for k in ("temporary", "arguments"))
    return (*name, f"{cell['batch']:,}", *sizes)


def _gradient(name: Sequence[str], cell: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        *name,
        f"{cell['batch']:,}",
        f"{cell['length']:,}",
        f"{cell['temporary'] / MIB:.1f}",
        f"{cell['finite']:,}",
        f"{cell['compile']:.0f}",
        f"{cell['seconds']:.0f}",
    )


def _header(*names: str, other: str) -> tuple[str, ...]:
    speeds = ("env steps/s", f"{other}", "faster", "in CPU s")
    return (*names, *speeds, "trace + compile [s]", f"{other} [s]", "of it")


POINT = ("env steps/s", "trace + compile [s]")

TABLES = {
    "peer": (_header("model", "pipeline", "actions", other=PEER), _compared(PEER)),
    "single": (_header("model", "pipeline", other=PEER), _compared(PEER)),
    "versions": (_header("model", "pipeline", other=NEWEST), _compared(NEWEST)),
    "mujoco": (_header("model", "pipeline", "actions", other=MUJOCO), _compared(MUJOCO)),
    "features": (_header("model", other=MUJOCO), _compared(MUJOCO)),
    "models": (
        (
            "model",
            "dofs",
            "contacts: settled, falling, trained",
            "physics steps/s",
            MUJOCO,
            "faster",
            "in CPU s",
            "falling: faster",
            "in CPU s",
            "trained: faster",
            "in CPU s",
            "trace + compile [s]",
            "load [s]",
        ),
        _robot,
    ),
    "wrapped": (_header("model", "pipeline", other="wrapped"), _compared(WRAPPED)),
    "training": (
        (
            "environment",
            "pipeline",
            "networks",
            "steps/s",
            PEER,
            "faster",
            "before training [s]",
            f"{PEER} [s]",
            "of it",
        ),
        _training,
    ),
    "reach": (("environment", "pipeline", "seconds", PEER, "faster"), _reach),
    "precision": (("pipeline", "precision", "batch", *POINT), _point),
    "batch": (("pipeline", "batch", *POINT), lambda name, cell: _point(name[:1], cell)),
    "links": (("pipeline", "links", "batch", *POINT), _point),
    "contacts": (("pipeline", "contacts", "batch", *POINT), _point),
    "memory": (("pipeline", "batch", "beyond its state [MiB]", "state [MiB]"), _memory),
    "gradient": (
        (
            "pipeline",
            "batch",
            "steps",
            "needs [MiB]",
            "finite, last steps",
            "compile [s]",
            "run [s]",
        ),
        _gradient,
    ),
}
