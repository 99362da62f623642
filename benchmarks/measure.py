"""Measures one cell: compiles in fresh processes, validates, and runs the sides in turns."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import cells
from cells import Cell, Size
from sides import BenchError, Side
from summary import summarize
from validation import problems, untaught


def measure(
    cell: Cell, size: Size, pythons: Mapping[str, str], say: Callable[[str], object]
) -> dict[str, Any]:
    """Measure a cell, and return the result in the types of JSON.

    Args:
        cell: what to measure.
        size: how often; a side alone compiles once.
        pythons: interpreters by whose they are.
        say: prints what is going on.

    Raises:
        BenchError: if a side fails, the devices differ, or our result is not valid.
    """
    about = {"batch": cell.batch, "length": cell.length}
    if cell.request and len(cell.sides) > 1:
        return about | cell.arguments | {"sides": _answers(cell, size, pythons, say)}
    if cell.request:
        with ExitStack() as stack:
            (side,) = _start(cell, pythons, stack)
            return about | cell.arguments | side.about | side.ask(cell.request, **cell.arguments)
    results: dict[str, dict[str, Any]] = {name: {"compile": [], "run": []} for name in cell.sides}
    turns = size.compiles if len(cell.sides) > 1 else 1
    for i in range(turns):
        with ExitStack() as stack:
            started = _start(cell, pythons, stack)
            for side in started:
                results[side.name]["compile"].append(side.ask("compile"))
                say(f"  compiled {i + 1} of {turns}: {side.name}")
            if i + 1 == turns:
                _run(cell, size, started, results, say)
    found = about | {"sides": results}
    _check_speed(cell, found)
    return found


def _check_speed(cell: Cell, found: dict[str, Any]) -> None:
    """Raise an error if a side is slower than its cell allows."""
    if cell.part not in cells.SLOWEST:
        return
    ours, other = summarize(found).values()
    if 1 / other["faster"] < cells.SLOWEST[cell.part]:
        *_, name = cell.sides
        raise BenchError(
            f"{name} makes {other['speed']:,.0f} steps/s, ours {ours['speed']:,.0f}: "
            f"{1 / other['faster']:.2f} of ours, less than {cells.SLOWEST[cell.part]}"
        )


def _answers(
    cell: Cell, size: Size, pythons: Mapping[str, str], say: Callable[[str], object]
) -> dict[str, dict[str, Any]]:
    """Return the answers of sides that take turns, each in a fresh process.

    The request `reach` takes minutes and is made once.
    """
    results: dict[str, dict[str, Any]] = {name: {"answers": []} for name in cell.sides}
    turns = 1 if cell.request == "reach" else size.trainings
    for i in range(turns):
        with ExitStack() as stack:
            for side in _start(cell, pythons, stack):
                answer = side.ask(cell.request, **cell.arguments)
                if found := untaught(answer):
                    raise BenchError(f"{side.name} is not valid, so not counted: {found}")
                results[side.name] |= side.about
                results[side.name]["answers"].append(answer)
                say(f"  answered {i + 1} of {turns}: {side.name}")
    return results


def _start(cell: Cell, pythons: Mapping[str, str], stack: ExitStack) -> list[Side]:
    started = []
    for name, setup in cell.sides.items():
        python = pythons[setup.python]
        side = Side(name, python, setup.settings, setup.script, setup.environment)
        stack.callback(side.close)
        started.append(side)
    return started


def _run(
    cell: Cell,
    size: Size,
    started: list[Side],
    results: dict[str, dict[str, Any]],
    say: Callable[[str], object],
) -> None:
    for side in started:
        results[side.name] |= side.about | _validate(cell, side, say)
    devices = {name: result["device"] for name, result in results.items()}
    if len(set(devices.values())) > 1:
        raise BenchError(f"the sides run on different devices: {devices}")
    for i in range(size.rounds):
        for side in started:
            results[side.name]["run"].append(side.ask("run", length=cell.length))
        say(f"  round {i + 1} of {size.rounds}")


def _validate(cell: Cell, side: Side, say: Callable[[str], object]) -> dict[str, Any]:
    """Run a side once, as a warm-up, and validate the result; ours must also obey Newton."""
    side.ask("run", length=cell.length)
    check = side.ask("check")
    ours = side.name == cells.OURS
    if cell.part == "models":  # this side compares itself with MuJoCo
        return check | _counted(side, check["problems"], say)
    flies = ours and cell.part in cells.COMPARED and "drift" in cell.model["limits"]
    found = problems(check, cell.model["limits"], side.ask("flight") if flies else None)
    return {"forward": check["forward"]} | _counted(side, found, say)


def _counted(side: Side, found: list[str], say: Callable[[str], object]) -> dict[str, Any]:
    """Return what is wrong with a side's result; raise an error if it is ours."""
    if found and side.name == cells.OURS:
        raise BenchError(f"{side.name} is not valid, so not counted: {'; '.join(found)}")
    say(f"  {side.name}: {'; '.join(found) or 'the result is sane'}")
    return {"problems": found}
