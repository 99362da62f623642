"""Writes compatibility.md: what becomes of every MJCF file that gymnasium and dm_control ship.

`python docs/compatibility.py [--largest N]`: a model of more than N degrees of freedom is loaded
only, as the page then says; without it all are simulated.

`python docs/compatibility.py --models DIR [--section TITLE]` tries all MJCF and URDF files of a
folder instead, and prints their table, or puts it into the page under a title. Its results are kept
in `compatibility-DIR.jsonl` of the working directory, so that a second run continues the first.
"""

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

import census
import jax
import jax.numpy as jnp
import mujoco
import mujoco_steps
import numpy as np

from brax import contact, plugins
from brax.base import State, System
from brax.errors import ModelError
from brax.io import mjcf

PAGE = Path(__file__).with_suffix(".md")
PACKAGES = ("gymnasium", "dm_control")
STATES = 12
CLOSE = (1e-9, 1e-6, 1e-3)
"""Bounds by which the page reports the error of a step."""
DEEP, DEEPER = 0.01, 1.5
"""Greatest depth of a contact [m], and as a multiple of MuJoCo's."""

HEAD = """# Compatibility with other packages' model files

This page lists every MJCF file of the PyPI packages gymnasium {gymnasium} and dm_control
{dm_control}, and how `generalized` runs it, compared with MuJoCo {mujoco}. `hatch run
compatibility` writes it.

Every file that MuJoCo can load, and in which something moves, is loaded. It is simulated for one
second from its initial state, with controls of zero. The second column gives the result:

- *runs*: the state stays finite, and nothing penetrates deeper than 10 mm, or than 1.5 times
  the depth in MuJoCo after the same second;
- *loads*: the model is too large to be simulated here;
- *refused*: the model asks for something unsupported, and the third column gives the reasons.

The last column compares single steps from {states} states of a second that MuJoCo simulates
under random controls. The error of a step is that of the change of all velocities, relative to
the largest change. Both sides use double precision and enough solver iterations. MuJoCo runs
without its `noslip_iterations` and without sleeping bodies, which `generalized` does not have. It
uses its current collision detection and Newton's method, also where a file selects others. The
cell is empty where steps were not compared.

Where steps differ, the contacts differ. Such files are compared once more, with a step of MuJoCo
that is given the depths, positions and normals of `generalized` ("with its contacts"). These are
the differences:

- `point.xml` of gymnasium: the sphere is at a distance of exactly zero from the plane, where
  rounding decides whether the contact acts. With a radius that is 1e-12 m larger or smaller on
  both sides, all 12 steps are within 1e-06. (MuJoCo cannot be given contacts in steps of
  Runge-Kutta.)
- `dog_v2/dog.xml`: in one state MuJoCo has the one contact point of a capsule and a box twice.
- `jaco_arm.xml`: the hulls of two links overlap by 40 mm in the initial state, which throws the
  arm about unpredictably in both simulators. In three states, a search over all directions found
  the depths of `generalized` to 0.1 µm for all pairs of hulls, and those of MuJoCo to 0.04 mm.
  For a cylinder and a hull it found 10.5156 mm, as `generalized` does; along MuJoCo's normal
  they overlap by 23.6 mm.
- `drosophila_fused.xml`: of 3406 pairs of meshes, the 64 nearest are tested unless the model
  says otherwise. Those that touch are among them in all 12 states. The hulls overlap by up to
  148 mm. MuJoCo adds contact points that are up to 3 mm less deep than the deepest one. For two
  hulls its normal gives an overlap of 39.1 mm, where another direction gives 38.3 mm.
- `fruitfly_v2/floor.xml`: MuJoCo's normals between ellipsoids and capsules are up to 6e-06 off,
  with the smallest tolerance that its search allows; those of `generalized` up to 1e-08. The
  reference for 40 contacts in 5 states is Newton's method on the depth.
- `boxbox_bad1.xml` and `conemesh_box.xml` of MuJoCo's tests: the two simulators choose different
  contact points on the round end of a cylinder, or on a face with many corners.
- `actuator_group_disable.xml` of these: where two parallel cylinders touch along a line, MuJoCo has
  a contact at its midpoint, `generalized` has contacts at its two ends.
- `z1.urdf` of example-robot-data: the contact points of two crossed cylinders are 1 to 2 µm apart,
  in states where the arm is nearly at rest.
- `sdf` geoms of MuJoCo's models: MuJoCo has up to 40 points of two overlapping shapes with parts of
  their depth, `generalized` up to four with the whole depth, see
  [models.md](models.md#signed-distances). MuJoCo can miss a contact; in the exchange it then gets
  one whose friction and softness are those of another state or distance.
- `gear.xml` of these: flat sides of the two gears lie in one plane. Points of them are at a
  distance of zero, where rounding decides whether a contact acts. With one gear 0.1 mm higher all 6
  steps are within 4e-11 with the contacts exchanged.
- `stacked_boxes.xml` of these: the boxes come to rest with edges within 2e-6 rad of parallel. If
  the bodies move by 1e-15 m, the contact points move by up to 12 µm, and a step changes by
  4e-9 m/s.
- `solver/model.xml` and `testdata/model.xml` of these: the sensors were compared without contacts,
  since their program takes long to compile.
- `general_dyntype.xml` of these has four slides in three dimensions. Its inertia matrix is
  singular, so that MuJoCo has no accelerations to compare with.
- `panda.urdf`: in three states MuJoCo's normal between two hulls is that of a face, along which
  they overlap by 1.05 mm. A search over directions found least overlaps of 0.30622, 0.24386 and
  0.14964 mm, as `generalized` does to 1e-9 mm. In one of these states a difference of 7e-5
  remains with the contacts exchanged.

The sections after those of gymnasium and dm_control are made by `hatch run compatibility --models
DIR --section TITLE`. Every URDF file counts there, and every MJCF file that MuJoCo can load by
itself and in which something rigid moves. The last three columns are the largest relative errors
over 6 states: of an acceleration, of an acceleration with the contacts exchanged, and of a
supported sensor. The second column gives the result:

- *agrees*: accelerations are within 1e-03 of MuJoCo's, or within 1e-06 with the contacts exchanged;
- *differs*: they are not, and the third column says how deep shapes overlap;
- *loads*: steps were not compared: the third column has the reason, or, where only loading was
  tried, the size of the model;
- *refused*: the third column gives the reasons;
- *fails*: the file shows a fault of Brax.

A reason that is too long for a table is in a list below it.

`flex` is not supported: eight of MuJoCo's own files have one. It would need, in every pipeline, an
elastic energy of edges, triangles or tetrahedra with its implicit integration, equality constraints
of edges, and contacts of elements with geoms and with each other.

Where a URDF file is refused for an inertia ("mass and inertia of moving bodies", "inertia must"),
the words are those of MuJoCo's compiler, which refuses it.
"""

SUMMARY = "## Summary"
OWN = "MuJoCo's repository"
"""Beginning of the title of the section of MuJoCo's own models."""

AGREES = re.compile(r"^within|with its contacts within 1e-0[69]$")
"""Closeness of a step that counts as MuJoCo's in the summary."""
STATUSES = ("runs", "loads", "refused", "fails")


class Row(NamedTuple):
    """The outcome for a file."""

    file: str
    status: str
    """One of `STATUSES`; what `loads` was not simulated."""
    reason: str
    close: str = ""
    """Agreement of its steps with MuJoCo's; empty if it does not run."""


def files() -> Iterator[tuple[str, Path]]:
    """Yield the files, by package and path in it."""
    for package in PACKAGES:
        spec = util.find_spec(package)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{package} is not installed: pip install {package}")
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.xml")):
            yield f"{package}/{path.relative_to(root)}", path


def moves(path: Path) -> bool:
    """Return whether a file is a model by itself, in which something moves."""
    try:
        return bool(mujoco.MjModel.from_xml_path(str(path)).nv)
    except ValueError:  # a part of other files
        return False


def judge(name: str, path: Path, largest: float = np.inf) -> Row:
    """Load and run a file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sys = mjcf.load(path, allow_external_assets=True)
            start = plugins.get("pipeline", "generalized").init(
                sys, sys.init_q, jnp.zeros(sys.qd_size())
            )
    except ModelError as error:
        return Row(name, "refused", census.reasons(error))
    if sys.qd_size() > largest:
        return Row(name, "loads", f"{census.degrees(sys.qd_size())}, not simulated")
    depth, finite = simulate(sys, start)
    theirs = mujoco_depth(sys)
    told = (
        f"{1000 * depth:.1f} mm deep, MuJoCo {1000 * theirs:.1f} mm"
        if depth > 5e-5
        else "nothing penetrates"
    )
    if not finite:
        return Row(name, "fails", "not finite")
    if depth > max(DEEP, DEEPER * theirs):
        return Row(name, "fails", told)
    return Row(name, "runs", told, compared(path))


def simulate(sys: System, state: State) -> tuple[float, bool]:
    """Return the depth [m] of the deepest contact after a second, and whether all stays finite."""
    engine = plugins.get("pipeline", "generalized")
    steps = max(1, round(mujoco_steps.SECONDS / 10 / float(sys.opt.timestep)))
    rest = jnp.zeros(sys.act_size())
    advance = jax.jit(
        lambda s: engine.step(sys, s, rest, steps), compiler_options=mujoco_steps.QUICK
    )
    for _ in range(10):
        state = advance(state)
        if not (np.isfinite(state.q).all() and np.isfinite(state.qd).all()):
            return 0.0, False
    found = contact.get(sys, state.x)
    return (0.0 if found is None else float(max(0.0, -float(found.dist.min())))), True


def mujoco_depth(sys: System) -> float:
    """Return the depth of MuJoCo's deepest contact after the same time."""
    model = census.mujoco_model(sys)
    data = mujoco.MjData(model)
    while data.time < mujoco_steps.SECONDS:
        mujoco.mj_step(model, data)
    return max(0.0, -min((c.dist for c in data.contact), default=0.0))


def compared(path: Path) -> str:
    """Return how near steps are to MuJoCo's, if necessary also with the contacts exchanged."""
    with jax.enable_x64(True):
        sys = mjcf.load(path, allow_external_assets=True)
    model = mujoco_steps.exact(census.mujoco_model(sys))
    before, after = mujoco_steps.simulated(model, STATES)
    with jax.enable_x64(True):
        error, put, _ = mujoco_steps.both_errors(sys, model, before, after)
    told = closeness(error)
    return told if put is None else f"{told}; with its contacts {closeness(put)}"


def closeness(error: np.ndarray) -> str:
    """Return the smallest bar that all errors are below, or how many are below the largest one."""
    for bar in CLOSE:
        if error.max() < bar:
            return f"within {bar:.0e}"
    below = int((error < CLOSE[-1]).sum())
    return f"{below} of {STATES} within {CLOSE[-1]:.0e}, the worst {error.max():.1g}"


def rows(largest: float) -> list[Row]:
    """Return the outcomes for all files."""
    out = []
    for name, path in files():
        if moves(path):
            out.append(judge(name, path, largest))
            print(*out[-1], file=sys.stderr, flush=True)
            jax.clear_caches()  # no two files share a program
    return out


def table(found: Sequence[Row]) -> str:
    """Return the rows as the page has them."""
    return "\n".join(
        f"| {row.file} | {row.status} | {census.short(row.reason)} | {census.cell(row.close)} |"
        for row in found
    )


def page(found: Sequence[Row]) -> str:
    """Return the whole page."""
    versions = {p: metadata.version(p) for p in PACKAGES}
    parts = [HEAD.strip().format(mujoco=mujoco.__version__, states=STATES, **versions)]
    for package in PACKAGES:
        mine = [row for row in found if row.file.startswith(f"{package}/")]
        counts = [sum(row.status == status for row in mine) for status in STATUSES]
        told = "{} run, {} load and were not simulated, {} are refused, {} fail".format(*counts)
        head = "| file | | what was found | steps as MuJoCo's |\n|---|---|---|---|"
        below = census.below((row.file, row.reason) for row in mine)
        parts.append(f"## {package}: {len(mine)} files\n\n{told}.\n\n{head}\n{table(mine)}{below}")
    return "\n\n".join(parts) + "\n"


def sections() -> list[str]:
    """Return the page's sections, each from its heading on."""
    return re.split(r"^(?=## )", PAGE.read_text(), flags=re.M)[1:]


def joined(head: str, parts: Sequence[str]) -> str:
    """Return the page of a head and sections, with a summary of these between them."""
    parts = [part for part in parts if not part.startswith(SUMMARY)]
    return "\n\n".join(part.strip() for part in (head, summary(parts), *parts)) + "\n"


def summary(parts: Sequence[str]) -> str:
    """Return the section that counts the files of all others."""
    own = [part for part in parts if part.startswith(f"## {OWN}")]
    robots = [part for part in parts if part not in own]
    head = "| files | number | load | fail | stepped | agree |\n|---|---|---|---|---|---|"
    lines = [_counted("robots of packages on PyPI", robots), _counted("MuJoCo's own models", own)]
    return "\n".join([SUMMARY, "", head, *lines])


def _counted(title: str, parts: Sequence[str]) -> str:
    """Return the summary's row for some sections."""
    text = census.plain("\n".join(parts))
    rows = re.findall(r"^\| \S+\.(?:xml|urdf) \| (\w+) \|.*\| (.*)\|$", text, flags=re.M)
    status = [word for word, _ in rows]
    close = [told.strip() for word, told in rows if word == "runs"]
    load = len(rows) - status.count("refused") - status.count("fails")
    agree = status.count("agrees") + sum(bool(AGREES.search(told)) for told in close)
    stepped = status.count("agrees") + status.count("differs") + sum(map(bool, close))
    counts = (len(rows), _share(load, len(rows)), status.count("fails"), stepped)
    return " | ".join([f"| {title}", *map(str, counts), _share(agree, stepped)]) + " |"


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / max(whole, 1):.1f} %)"


def main() -> None:
    """Write the page, or print the table of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--largest", type=float, default=np.inf, help="most degrees of freedom")
    parser.add_argument("--models", type=Path, metavar="DIR", help="print this folder's table")
    parser.add_argument("--section", help="put the table into the page, under this heading")
    parser.add_argument("--seconds", type=int, default=60, help="CPU time that a model may take")
    asked = parser.parse_args()
    if asked.models is None:
        mine = tuple(f"## {package}: " for package in PACKAGES)
        others = [part for part in sections() if not part.startswith(mine)]
        head, *mine_now = re.split(r"^(?=## )", page(rows(asked.largest)), flags=re.M)
        PAGE.write_text(joined(head, [*mine_now, *others]))
        return
    if not asked.models.is_dir():
        parser.error(f"no such folder: {asked.models}")
    results = Path(f"compatibility-{asked.models.resolve().name}.jsonl")
    found = census.census(asked.models, results, asked.seconds, asked.largest)
    told = census.section(asked.section or str(asked.models), found)
    if not asked.section:
        print(told)
        return
    others = [part for part in sections() if not part.startswith(f"## {asked.section}: ")]
    head = PAGE.read_text().partition("\n## ")[0]
    PAGE.write_text(joined(head, [*others, told]))


if __name__ == "__main__":
    main()
