"""Tries every model file of a folder: which load, and which step as MuJoCo does.

`hatch run compatibility --models DIR` calls this.
"""

import contextlib
import copy
import json
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import mujoco
import mujoco_steps
import numpy as np

from brax.base import System
from brax.errors import ModelError
from brax.io import mjcf, urdf

STATES = 6
WITH_CONTACTS = 1e-6
"""Bound of the error of a step of MuJoCo with the contacts of `generalized`."""
MAX_CELL = 40
"""Characters of a reason beyond which it is not in the table but below it."""
NO_BREAK = str.maketrans({" ": "\N{NO-BREAK SPACE}", "-": "-\N{WORD JOINER}"})
HEAD = "| file | | reason | acceleration | with its contacts | sensors |\n|---|---|---|---|---|---|"


class Row(NamedTuple):
    """The outcome for a file."""

    file: str
    status: str
    """'agrees', 'differs', 'loads' (its steps were not compared), 'refused' or 'fails'; '' if
    MuJoCo cannot load it or nothing rigid moves in it."""
    reason: str = ""
    error: float | None = None
    """The largest relative error of an acceleration."""
    with_contacts: float | None = None
    """That against MuJoCo with the contacts of `generalized`."""
    sensors: float | None = None
    """The largest relative error of a sensor."""


class _TimeLimit(BaseException):
    """Raised in the middle of a model that takes too long; no handler of errors catches it."""


def census(folder: Path, results: Path, seconds: int, largest: float) -> list[Row]:
    """Return the outcomes for all model files in a folder and below.

    Args:
        folder: the folder.
        results: a file of results, one JSON object a line. What it has is not tried again, except
            for models that are no longer too large.
        seconds: the CPU time that a model may take. A running compilation is not interrupted.
        largest: the largest number of degrees of freedom with which steps are compared.
    """
    known = {}
    if results.exists():
        known = {row.file: row for row in (Row(**json.loads(line)) for line in results.open())}
    paths = sorted(p for p in folder.rglob("*") if p.suffix in (".xml", ".urdf"))
    for path in paths:
        name = str(path.relative_to(folder))
        if name in known and not _may_be_stepped_now(known[name], largest):
            continue
        known[name] = _tried(name, path, seconds, largest)
        with results.open("a") as file:
            print(json.dumps(known[name]._asdict()), file=file)
        if known[name].status:
            print(*known[name], file=sys.stderr, flush=True)
    return [known[str(p.relative_to(folder))] for p in paths]


def _may_be_stepped_now(row: Row, largest: float) -> bool:
    """Return whether a model was too large when it was tried, and no longer is."""
    found = re.fullmatch(r"(\d+) degrees? of freedom", row.reason)
    return found is not None and int(found[1]) <= largest


def section(title: str, rows: list[Row]) -> str:
    """Return the page's section for a folder: counts, then a table."""
    mine = [row for row in rows if row.status]
    counts = Counter(row.status for row in mine)
    told = (
        f"{counts['agrees']} step as in MuJoCo, {counts['differs']} differ, {counts['loads']} load "
        f"and were not compared, {counts['refused']} are refused, {counts['fails']} fail."
    )
    table = [
        " | ".join([f"| {r.file}", r.status, short(r.reason), *map(_number, r[3:])]) + " |"
        for r in mine
    ]
    listed = below((r.file, r.reason) for r in mine)
    return "\n".join([f"## {title}: {len(mine)} files", "", told, "", HEAD, *table]) + listed + "\n"


def degrees(number: int) -> str:
    """Return a number of degrees of freedom in words."""
    return f"{number} degree{'s' * (number != 1)} of freedom"


def cell(text: str) -> str:
    """Return a text as a table has it: its lines break after a semicolon only."""
    return "; ".join(part.translate(NO_BREAK) for part in escaped(text).split("; "))


def plain(text: str) -> str:
    """Return the text of a cell without the characters that keep it together."""
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{WORD JOINER}", "")


def escaped(text: str) -> str:
    """Return a text with names of XML elements, which Markdown would take for HTML."""
    return text.replace("<", "&lt;")


def short(reason: str) -> str:
    """Return a reason as a table has it."""
    return cell(reason if len(reason) <= MAX_CELL else "see below")


def below(reasons: Iterable[tuple[str, str]]) -> str:
    """Return the list below a table: each file whose reason is too long for it."""
    lines = [f"- `{file}`: {escaped(text)}" for file, text in reasons if len(text) > MAX_CELL]
    return "".join(f"\n{line}" for line in ["", *lines]) if lines else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"


def _tried(name: str, path: Path, seconds: int, largest: float) -> Row:
    """Load a file and compare its steps, within a time limit."""
    row = Row(name, "")
    try:
        with _time_limit(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for stage in _stages(name, path, largest):
                row = stage
    except _TimeLimit:
        what = "" if row.error is None else "sensors "
        row = row._replace(reason=f"{what}not finished in {seconds} s")
    return row


def _stages(name: str, path: Path, largest: float) -> Iterator[Row]:
    """Yield what is known of a file, first after loading it, then after its steps."""
    # MuJoCo finds no packages of meshes, so every URDF counts.
    if path.suffix != ".urdf" and not _moves(path):
        return
    try:
        with jax.enable_x64(True):
            system = _load(path)
    except ModelError as error:
        yield Row(name, "refused", reasons(error))
        return
    except Exception as error:  # a fault, which the table shows
        yield _fault(name, error)
        return
    if system.qd_size() > largest:
        yield Row(name, "loads", degrees(system.qd_size()))
        return
    yield Row(name, "loads", "steps not compared")
    try:
        yield from _compared_once(name, system)
    except mujoco.FatalError as error:
        # The contacts may need more memory than MuJoCo is given.
        yield Row(name, "loads", f"MuJoCo: {error}")
    except Exception as error:
        yield _fault(name, error)
    finally:
        jax.clear_caches()  # no two files share the program of a step


def _load(path: Path) -> System:
    """Load a file; a robot that only flies gets a floating base."""
    if path.suffix != ".urdf":
        return mjcf.load(path, allow_external_assets=True)
    try:
        return urdf.load(path, allow_external_assets=True)
    except ModelError as error:
        if "pass floating_base=True" not in str(error):
            raise
        return urdf.load(path, floating_base=True, allow_external_assets=True)


_compared_before: dict[object, Row] = {}
"""The outcomes by the contents of the system: files often hold the same model."""


def _compared_once(name: str, system: System) -> Iterator[Row]:
    """Yield the outcome of the same system in another file, or compare its steps."""
    leaves, structure = jax.tree.flatten(system.replace(file_model=None))
    same = structure, tuple(np.asarray(leaf).tobytes() for leaf in leaves)
    if same in _compared_before:
        yield _compared_before[same]._replace(file=name)
        return
    for row in _compared(name, system):
        _compared_before[same] = row
        yield row


def _compared(name: str, system: System) -> Iterator[Row]:
    """Yield what steps say beside MuJoCo's, then what sensors do, all in double precision."""
    model = mujoco_steps.exact(mujoco_model(system))
    try:
        before, after = mujoco_steps.simulated(model, STATES)
    except FloatingPointError as unstable:
        yield Row(name, "loads", str(unstable))
        return
    with jax.enable_x64(True):
        error, put, read = mujoco_steps.both_errors(system, model, before, after)
    worst, exchanged = float(error.max()), None if put is None else float(put.max())
    agrees = worst < mujoco_steps.CLOSE or (exchanged is not None and exchanged < WITH_CONTACTS)
    reason = "" if agrees else f"overlaps of {1000 * mujoco_steps.depth(model, before):.1f} mm"
    row = Row(name, "agrees" if agrees else "differs", reason, worst, exchanged)
    yield row
    with jax.enable_x64(True):
        sensors = mujoco_steps.sensor_error(system, model, before, read)
    yield row._replace(sensors=sensors)


def mujoco_model(system: System) -> mujoco.MjModel:
    """Return MuJoCo's model of a system that was loaded, with its present search for contacts."""
    model = copy.copy(system.file_model.model)
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_NATIVECCD)
    return model


def reasons(error: ModelError) -> str:
    """Return the problems without their elements, each once, and how often."""
    whole = [p.reason for p in error.problems] or [str(error)]
    plain = [text.splitlines()[0].split(". Registered:")[0] for text in whole]
    counted = {p: plain.count(p) for p in dict.fromkeys(plain)}
    return "; ".join(f"{p} ({n} times)" if n > 1 else p for p, n in counted.items())


def _fault(name: str, error: Exception) -> Row:
    """Return the outcome of an error that is a fault."""
    return Row(name, "fails", f"{type(error).__name__}: {error}".splitlines()[0])


def _moves(path: Path) -> bool:
    """Return whether a file is a model by itself, in which anything rigid moves.

    That is a body with joints that is no corner of a flex.
    """
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, mujoco.FatalError):  # a part of other files
        return False
    soft = np.concatenate([model.flex_vertbodyid, model.flex_nodebodyid])
    return bool(np.setdiff1d(model.dof_bodyid, soft).size)


@contextlib.contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    """Raise `_TimeLimit` in the block when it has used so much CPU time."""

    def over(*_: object) -> None:
        raise _TimeLimit

    former = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
