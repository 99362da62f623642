"""Speed, compile time and memory of this project and its peers: `hatch run bench`."""

import datetime
import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import about
import cells
import click
import summary
from cells import Cell, Size
from measure import measure
from rich.console import Console
from sides import BenchError, cores, fetch_robots, newest_python, peer_models, peer_python

RESULTS = Path(__file__).parent / "results"

console = Console(stderr=True, highlight=False)


@click.command()
@click.option("--quick", "size", flag_value="quick", help="A smoke run of everything, tiny.")
@click.option(
    "--full", "size", flag_value="full", help="Curves and trained policies too; two hours."
)
@click.option("--only", multiple=True, help="Cells whose names contain this, as ant/spring.")
@click.option("--list", "only_list", is_flag=True, help="Print the names of the cells and end.")
@click.option("--resume", is_flag=True, help="Keep what the report has of this commit.")
@click.option("--peer-python", help="Interpreter that has Google's brax; by default one is made.")
@click.option("--models", help="Folder of the models of Google's brax, where it is not there.")
@click.option("--name", default="local/latest", show_default=True, help="results/NAME.json")
def main(
    size: str | None,
    only: tuple[str, ...],
    only_list: bool,
    resume: bool,
    peer_python: str | None,
    models: str | None,
    name: str,
) -> None:
    """Measures against Google's brax and MuJoCo C, and writes a report.

    It runs on the CPU, or where JAX_PLATFORMS says; there without Google's brax and MuJoCo.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    asked = cells.SIZES[size or "normal"]
    pythons, models = _pythons(peer_python, models, only_list)
    threads = cores()
    wanted = [c for c in cells.cells(asked, models, threads) if not only or _match(c.name, only)]
    if only_list:
        click.echo("\n".join(cell.name for cell in wanted))
        return
    path = RESULTS / f"{name}.json"
    commit = about.commit()
    report = _report(path, commit if resume else None)
    if any(cells.NEWEST in cell.sides for cell in wanted):
        pythons[cells.NEWEST] = newest_python()
    if any(cell.part == "models" for cell in wanted):
        fetch_robots()
    for i, cell in enumerate(wanted):
        if cell.name in report["cells"]:
            continue
        console.print(f"{i + 1} of {len(wanted)}: {cell.name}")
        report["cells"][cell.name] = _measured(cell, asked, pythons, commit)
        _write(path, report)
    summary.show(report)
    console.print(path)
    if any("failed" in report["cells"][cell.name] for cell in wanted):
        raise click.ClickException("some cells failed: see above")


def _match(name: str, only: tuple[str, ...]) -> bool:
    return any(part in name for part in only)


def _pythons(
    peer: str | None, models: str | None, only_list: bool
) -> tuple[dict[str, str], str | None]:
    """Interpreters, and the folder of models."""
    pythons = {cells.OURS: sys.executable}
    if os.environ["JAX_PLATFORMS"] == "cpu" and not only_list:
        pythons[cells.PEER] = peer or peer_python()
        models = models or peer_models(pythons[cells.PEER])
    return pythons, models


def _measured(cell: Cell, size: Size, pythons: dict[str, str], commit: str) -> dict[str, Any]:
    """Return the result of a cell, or the reason why there is none."""
    cell, missing = _here(cell)
    if missing:
        console.print(f"  {missing}")
    if not cell.sides:
        return {"skipped": missing}
    try:
        found = measure(cell, size, pythons, console.print)
    except BenchError as error:
        console.print(f"  failed: {error}")
        return {"failed": str(error)}
    return {"commit": commit, "load": os.getloadavg()[0], "without": missing, **found}


def _here(cell: Cell) -> tuple[Cell, str]:
    """Return the parts of a cell that can be measured here, and what is missing."""
    if "path" in cell.model and cell.model["path"] is None:
        return replace(cell, sides={}), "no model: pass the folder of Google's with --models"
    if os.environ["JAX_PLATFORMS"] == "cpu" or cell.part not in cells.COMPARED:
        return cell, ""
    others = [name for name in cell.sides if name != cells.OURS]
    alone = replace(cell, sides={cells.OURS: cell.sides[cells.OURS]})
    return alone, f"{others[0]} is compared on CPUs only"


def _report(path: Path, commit: str | None) -> dict[str, Any]:
    """Return a new report, with the results of an earlier one of the same commit."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    report = {
        "command": shlex.join(["hatch", "run", "bench", *sys.argv[1:]]),
        "date": now,
        "machine": about.machine(),
        "versions": about.versions(),
        "cells": {},
    }
    if commit and path.exists():
        before = json.loads(path.read_text())["cells"]
        report["cells"] = {k: v for k, v in before.items() if v.get("commit") == commit}
    return report


def _write(path: Path, report: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
