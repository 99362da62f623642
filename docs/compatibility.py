"""Writes compatibility.md: what becomes of every MJCF file that gymnasium and dm_control ship.

`python docs/compatibility.py [LARGEST]`: a model of more than LARGEST degrees of freedom is
loaded only, as the page then says; without it all are simulated.
"""

import copy
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from brax import contact, plugins
from brax.base import System
from brax.errors import ModelError
from brax.io import mjcf

PAGE = Path(__file__).with_suffix(".md")
PACKAGES = ("gymnasium", "dm_control")
SECONDS = 1.0
STATES = 12
CLOSE = (1e-9, 1e-6, 1e-3)
"""Bounds by which the page reports the error of a step."""
RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
DEEP, DEEPER = 0.01, 1.5
"""Greatest depth of a contact [m], and as a multiple of MuJoCo's."""

HEAD = """# Compatibility with other packages' model files

This page lists every MJCF file of the PyPI packages gymnasium {gymnasium} and dm_control
{dm_control}, and how `generalized` runs it, compared with MuJoCo {mujoco}. `hatch run
compatibility` writes it.

Every file that MuJoCo can load, and in which something moves, is loaded. It is simulated for one
second from its initial state, with controls of zero. The second column says what came of it:

- *runs*: the state stays finite, and nothing penetrates deeper than 10 mm, or than 1.5 times
  what MuJoCo has after the same second;
- *loads*: the model is too large to be simulated here;
- *refused*: the model asks for something unsupported, and the third column gives the reasons.

The last column compares single steps from {states} states of a second that MuJoCo simulates
under random controls. The error of a step is that of the change of all velocities, relative to
the largest change. Both sides use double precision and enough iterations of their solvers.
MuJoCo runs without its `noslip_iterations`, which `generalized` does not have, and with its
present search for contacts, also where a file asks for the former one. The cell is empty where
steps were not compared.

Where steps differ, contacts differ. Such files are compared once more, with a step of MuJoCo
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
"""

QUICK = {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": True}
"""Each program runs for a second of simulation only."""

_ELEMENT = re.compile(r"^\w+ '[^']*'( \([^)]*\))?( and \w+ '[^']*'( \([^)]*\))?)?:? ?")
"""Start of a problem: the element, or the two elements, that it names."""

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
        return Row(name, "refused", reasons(error.problems or (str(error),)))
    if sys.qd_size() > largest:
        return Row(name, "loads", f"{sys.qd_size()} degrees of freedom, not simulated")
    depth, finite = simulate(sys, start)
    theirs = mujoco_depth(path)
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


def reasons(problems: Sequence[str]) -> str:
    """Return the problems without their elements, each once, and how often."""
    plain = [_ELEMENT.sub("", p.splitlines()[0]).split(". Registered:")[0] for p in problems]
    counted = {p: plain.count(p) for p in dict.fromkeys(plain)}
    return "; ".join(f"{p} ({n} times)" if n > 1 else p for p, n in counted.items())


def simulate(sys: System, state: object) -> tuple[float, bool]:
    """Return the depth [m] of the deepest contact after `SECONDS`, and whether all stays finite."""
    engine = plugins.get("pipeline", "generalized")
    steps = max(1, round(SECONDS / 10 / float(sys.opt.timestep)))
    rest = jnp.zeros(sys.act_size())
    advance = jax.jit(lambda s: engine.step(sys, s, rest, steps), compiler_options=QUICK)
    for _ in range(10):
        state = advance(state)
        if not (np.isfinite(state.q).all() and np.isfinite(state.qd).all()):
            return 0.0, False
    found = contact.get(sys, state.x)
    return (0.0 if found is None else float(max(0.0, -found.dist.min()))), True


def mujoco_model(path: Path) -> mujoco.MjModel:
    """Return the model as MuJoCo has it, with its present search for contacts."""
    model = mjcf.load_mjmodel(path, allow_external_assets=True)
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_NATIVECCD)
    return model


def mujoco_depth(path: Path) -> float:
    """Return the depth of MuJoCo's deepest contact after the same time."""
    model = mujoco_model(path)
    data = mujoco.MjData(model)
    while data.time < SECONDS:
        mujoco.mj_step(model, data)
    return max(0.0, -min((c.dist for c in data.contact), default=0.0))


class Found(NamedTuple):
    """Contacts of the states that are compared, each (STATES, n_contacts, ...)."""

    dist: np.ndarray
    pos: np.ndarray
    frame: np.ndarray
    first: np.ndarray
    """Links of the first geom; `second` are those of the second."""
    second: np.ndarray


def compared(path: Path) -> str:
    """Return how near steps are to MuJoCo's, if necessary also with the contacts exchanged.

    An error is of the change of rates in a step, against MuJoCo's, over the largest change.
    """
    model = exact_model(path)
    before, after = along_mujoco(model)
    with jax.enable_x64(True):
        sys = mjcf.load(path, allow_external_assets=True)
        sys = sys.tree_replace({"opt.iterations": 40, "opt.ls_iterations": 15})
        moved = rates_after(sys, before)
        most = np.maximum(np.abs(after - before[1]).max(axis=1), 1e-9)
        error = np.abs(moved - after).max(axis=1) / most
        told = closeness(error)
        if error.max() < CLOSE[-1] or not sys.collisions or model.opt.integrator == RK4:
            return told
        found = contacts_at(sys, before)
    put = with_contacts(model, links(sys, model), before, found)
    return f"{told}; with its contacts {closeness(np.abs(moved - put).max(axis=1) / most)}"


def rates_after(sys: System, before: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rates one step after some states."""
    engine = plugins.get("pipeline", "generalized")

    def step(q: jax.Array, qd: jax.Array, activation: jax.Array, ctrl: jax.Array) -> jax.Array:
        state = engine.init(sys, q, qd)
        if len(activation):
            state = state.replace(activation=activation)
        return engine.step(sys, state, ctrl).qd

    return np.asarray(jax.jit(jax.vmap(step), compiler_options=QUICK)(*map(jnp.asarray, before)))


def contacts_at(sys: System, before: Sequence[np.ndarray]) -> Found:
    """Return the contacts at some states."""
    engine = plugins.get("pipeline", "generalized")

    def look(q: jax.Array, qd: jax.Array) -> Found:
        found = contact.get(sys, engine.init(sys, q, qd).x)
        pairs = (jnp.broadcast_to(side, found.dist.shape) for side in found.link_idx)
        return Found(found.dist, found.pos, found.frame, *pairs)

    out = jax.jit(jax.vmap(look), compiler_options=QUICK)(*map(jnp.asarray, before[:2]))
    return Found(*map(np.asarray, out))


def exact_model(path: Path) -> mujoco.MjModel:
    """Return the model as MuJoCo has it, with enough steps of its solvers."""
    model = mujoco_model(path)
    model.opt.tolerance, model.opt.ls_tolerance, model.opt.ccd_tolerance = 1e-12, 1e-6, 1e-14
    model.opt.iterations, model.opt.ls_iterations, model.opt.ccd_iterations = 200, 100, 1000
    model.opt.noslip_iterations = 0
    return model


def along_mujoco(model: mujoco.MjModel) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Coordinates, rates, activations and controls of states, and the rates one step later."""
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    low, high = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, (-1, 1)).T
    before, after = [], []
    for _ in range(STATES):
        data.ctrl[:] = rng.uniform(low, high)
        mujoco.mj_step(model, data, max(1, int(SECONDS / STATES / model.opt.timestep)))
        before.append([a.copy() for a in (data.qpos, data.qvel, data.act, data.ctrl)])
        mujoco.mj_step(model, data)
        after.append(data.qvel.copy())
    return tuple(np.array(a) for a in zip(*before, strict=True)), np.array(after)


def links(sys: System, model: mujoco.MjModel) -> np.ndarray:
    """Return the link that each of MuJoCo's bodies is part of, -1 for the world."""
    out = np.full(model.nbody, -1)
    for body in range(1, model.nbody):
        name = model.body(body).name
        known = name in sys.link_names
        out[body] = sys.link_names.index(name) if known else out[model.body_parentid[body]]
    return out


def with_contacts(
    model: mujoco.MjModel, link: np.ndarray, before: Sequence[np.ndarray], found: Found
) -> np.ndarray:
    """Return the rates after a step of MuJoCo with exchanged positions and normals of contacts.

    All else of a contact is that of the nearest of MuJoCo's between the same links; where MuJoCo
    has none between them there is none.
    """
    data, after = mujoco.MjData(model), []
    for i, at in enumerate(zip(*before, strict=True)):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = at
        mujoco.mj_step1(model, data)
        theirs = [(copy.copy(c), link[model.geom_bodyid[c.geom]].tolist()) for c in data.contact]
        for c in data.contact:
            c.exclude = 1
        for dist, pos, frame, *pair in zip(*(part[i] for part in found), strict=True):
            same = [(c, side) for c, side in theirs if side in (pair, pair[::-1])]
            if not same:
                continue
            like, side = min(same, key=lambda c: np.abs(c[0].pos - pos).sum())
            if dist < like.includemargin:
                made = copy.copy(like)
                made.dist, made.pos[:], made.exclude = dist, pos, 0
                made.frame[:] = np.ravel(frame) * ([1] * 9 if side == pair else [-1] * 6 + [1] * 3)
                mujoco.mj_addContact(model, data, made)
        mujoco.mj_makeConstraint(model, data)
        mujoco.mj_projectConstraint(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_step2(model, data)
        after.append(data.qvel.copy())
    return np.array(after)


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
    return "\n".join(f"| {row.file} | {row.status} | {row.reason} | {row.close} |" for row in found)


def page(found: Sequence[Row]) -> str:
    """Return the whole page."""
    versions = {p: metadata.version(p) for p in PACKAGES}
    parts = [HEAD.strip().format(mujoco=mujoco.__version__, states=STATES, **versions)]
    for package in PACKAGES:
        mine = [row for row in found if row.file.startswith(f"{package}/")]
        counts = [sum(row.status == status for row in mine) for status in STATUSES]
        told = "{} run, {} load and were not simulated, {} are refused, {} fail".format(*counts)
        head = "| file | | what was found | steps as MuJoCo's |\n|---|---|---|---|"
        parts.append(f"## {package}: {len(mine)} files\n\n{told}.\n\n{head}\n{table(mine)}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(rows(float(sys.argv[1]) if sys.argv[1:] else np.inf)))
