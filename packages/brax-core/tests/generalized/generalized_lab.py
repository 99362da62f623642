"""Models and measurements for the tests of the generalized pipeline, MuJoCo beside it.

The models are written for these tests: the bodies that users know, without their looks.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import physics_lab
import pytest
from physics_lab import FAST_COMPILE

from brax import dynamics
from brax.base import State, System
from brax.generalized.pipeline import GENERALIZED
from brax.io import mjcf


@pytest.fixture(autouse=True)
def generalized(monkeypatch):
    """Make `physics_lab.record` run this pipeline in modules that import the fixture."""
    monkeypatch.setattr(physics_lab, "PIPELINE", GENERALIZED)


HEAD = """<mujoco><compiler angle="degree"/><option timestep="0.004"/>
<default><joint damping="1" armature=".1"/><geom condim="3" friction=".9 .1 .1"/></default>
<worldbody><geom name="floor" type="plane" size="9 9 1"/>"""
TAIL = "</worldbody></mujoco>"
PLANAR = """<joint type="slide" axis="1 0 0" damping="0" armature="0"/>
<joint type="slide" axis="0 0 1" damping="0" armature="0"/>
<joint axis="0 1 0" damping="0" armature="0"/>"""


def _leg(*parts: tuple[str, str, str], pos: str = "0 0 0") -> str:
    """Nested bodies, each a capsule of a length and radius on a hinge of a range."""
    if not parts:
        return ""
    (size, limits, axis), *rest = parts
    length = size.split()[0]
    return f"""<body pos="{pos}"><joint axis="{axis}" range="{limits}" limited="true"/>
<geom type="capsule" fromto="0 0 0 0 0 -{length}" size="{size.split()[1]}"/>
{_leg(*rest, pos=f"0 0 -{length}")}</body>"""


def _ant() -> str:
    legs = ""
    for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1)):
        legs += f"""<body pos="{0.2 * x} {0.2 * y} 0"><joint axis="0 0 1" range="-30 30"
limited="true"/><geom type="capsule" fromto="0 0 0 {0.2 * x} {0.2 * y} 0" size=".08"
contype="0"/><body pos="{0.2 * x} {0.2 * y} 0"><joint axis="{-y} {x} 0" range="30 70"
limited="true"/><geom type="capsule" fromto="0 0 0 {0.4 * x} {0.4 * y} 0" size=".08"/></body>
</body>"""
    torso = '<geom type="sphere" size=".25" contype="0"/>'
    return f'{HEAD}<body pos="0 0 .6"><freejoint/>{torso}{legs}</body>{TAIL}'


def _swimmer() -> str:
    tail = """<body pos="-1 0 0"><joint axis="0 0 1" range="-100 100" limited="true"/>
<geom type="capsule" fromto="0 0 0 -1 0 0" size=".1"/>{}</body>"""
    return f"""{HEAD}<body pos="0 0 .3"><joint type="slide" axis="1 0 0"/>
<joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>
<geom type="capsule" fromto="0 0 0 1 0 0" size=".1"/>
{tail.format(tail.format(""))}</body>{TAIL}"""


def _humanoid() -> str:
    leg = ""
    for side in (-1, 1):
        leg += f"""<body pos="0 {0.1 * side} -.3"><joint axis="1 0 0" range="-25 25"
limited="true"/><joint axis="0 0 1" range="-60 35" limited="true"/><joint axis="0 1 0"
range="-110 20" limited="true"/><geom type="capsule" fromto="0 0 0 0 {0.01 * side} -.34"
size=".06"/>{_leg(("0.3 .049", "-160 -2", "0 -1 0"), pos="0 .01 -.4")}</body>"""
    arms = ""
    for side in (-1, 1):
        arms += f"""<body pos="0 {0.17 * side} .06"><joint axis="2 {side} 1" range="-85 60"
limited="true"/><joint axis="0 -1 {side}" range="-85 60" limited="true"/><geom type="capsule"
fromto="0 0 0 .16 {0.16 * side} -.16" size=".04"/><body pos=".18 {0.18 * side} -.18">
<joint axis="0 -1 {side}" range="-90 50" limited="true"/><geom type="capsule"
fromto="0 0 0 .17 {-0.17 * side} .17" size=".031"/></body></body>"""
    return f"""{HEAD}<body pos="0 0 1.4"><freejoint/><geom type="capsule"
fromto="0 -.07 0 0 .07 0" size=".07"/><geom type="sphere" pos="0 0 .19" size=".09"/>{arms}
<body pos="0 0 -.2"><joint axis="0 0 1" range="-45 45" limited="true"/><joint axis="0 1 0"
range="-75 30" limited="true"/><geom type="capsule" fromto="0 -.06 0 0 .06 0" size=".06"/>{leg}
</body></body>{TAIL}"""


_THREE = (("0.45 .05", "-150 0", "0 -1 0"), ("0.5 .04", "-150 0", "0 -1 0"))
_FOOT = ("0.2 .06", "-45 45", "0 -1 0")
MODELS = {
    "ant": _ant(),
    "half_cheetah": f"""{HEAD}<body pos="0 0 .7">{PLANAR}<geom type="capsule"
fromto="-.5 0 0 .5 0 0" size=".046"/>{_leg(("0.3 .046", "-30 60", "0 1 0"), _FOOT, pos="-.5 0 0")}
{_leg(("0.27 .046", "-57 40", "0 1 0"), _FOOT, pos=".5 0 0")}</body>{TAIL}""",
    "hopper": f"""{HEAD}<body pos="0 0 1.5">{PLANAR}<geom type="capsule" fromto="0 0 .2 0 0 -.2"
size=".05"/>{_leg(*_THREE, _FOOT, pos="0 0 -.2")}</body>{TAIL}""",
    "humanoid": _humanoid(),
    "walker": f"""{HEAD}<body pos="0 0 1.5">{PLANAR}<geom type="capsule" fromto="0 0 .2 0 0 -.2"
size=".05"/>{_leg(*_THREE, _FOOT, pos="0 0 -.2")}{_leg(*_THREE, _FOOT, pos="0 0 -.2")}</body>
{TAIL}""",
    "swimmer": _swimmer(),
}
"""The floor meets what has a contype; limbs do not meet each other."""


def random_tree(shape: int, seed: int, held: bool = False) -> str:
    """Return a tree of random structure, with random numbers: poses, inertias, joints.

    One that is `held` has limits and dry friction, and a ball on each body, above a plane.
    """
    structure, rng = np.random.default_rng(shape), np.random.default_rng(seed)
    n = int(structure.integers(2, 6))
    children: list[list[int]] = [[] for _ in range(n)]
    for i in range(1, n):
        children[int(structure.integers(0, i))].append(i)

    def some(scale: float, size: int = 3) -> str:
        return " ".join(f"{scale * v:.4f}" for v in rng.normal(size=size))

    hold = np.random.default_rng([seed, 1])

    def limits() -> str:
        middle = hold.uniform(-0.3, 0.3)
        return f"""range="{middle - 0.2:.3f} {middle + 0.2:.3f}" limited="true"
frictionloss="{hold.uniform(0, 3):.3f}" """

    def ball() -> str:
        at = " ".join(f"{x:.3f}" for x in hold.normal(size=3) * 0.1)
        return f"""<geom size="{hold.uniform(0.1, 0.3):.3f}" pos="{at}"
friction="{hold.uniform(0.3, 1.2):.3f}"/>"""

    def joint(kind: str) -> str:
        return f"""<joint type="{kind}" axis="{some(1)}" pos="{some(0.2)}"
{limits() if held else ""}
armature="{rng.uniform(0, 0.1):.3f}" damping="{rng.uniform(0, 1):.3f}"
stiffness="{rng.uniform(0, 5):.3f}" springref="{some(0.3, 1)}" ref="{some(0.2, 1)}"/>"""

    def joints(root: bool) -> str:
        if root and structure.random() < 0.5:
            return "<freejoint/>"
        kinds = structure.choice(["hinge", "slide"], int(structure.integers(1, 4)))
        return "".join(map(joint, kinds))

    def body(i: int) -> str:
        size = rng.uniform(0.02, 0.2, size=3)
        moments = " ".join(f"{x:.4f}" for x in size + size.max())
        return f"""<body pos="{some(0.4)}" quat="{some(1, 4)}">{joints(i == 0)}
<inertial pos="{some(0.1)}" quat="{some(1, 4)}" mass="{rng.uniform(0.5, 3):.3f}"
diaginertia="{moments}"/>{ball() if held else ""}{"".join(map(body, children[i]))}</body>"""

    floor = '<geom type="plane" size="9 9 1"/>' if held else ""
    return f'<mujoco><compiler angle="radian"/><worldbody>{floor}{body(0)}</worldbody></mujoco>'


class Stages(NamedTuple):
    """The quantities that are compared with MuJoCo."""

    mass: jax.Array
    bias: jax.Array
    pos: jax.Array
    rot: jax.Array


@functools.partial(jax.jit, compiler_options=FAST_COMPILE)
def stages(sys: System, q: jax.Array, qd: jax.Array) -> Stages:
    """Mass matrix, bias force and frames."""
    x = GENERALIZED.init(sys, q, qd).x
    mass, bias = dynamics.mass_matrix(sys, q), dynamics.bias_force(sys, q, qd)
    return Stages(mass, bias, x.pos, x.rot)


class Peer(NamedTuple):
    """A model, ours and MuJoCo's."""

    sys: System
    model: mujoco.MjModel
    data: mujoco.MjData


def both(xml: str, **options: object) -> Peer:
    """Read a model twice, with options for MuJoCo and a solver that converges."""
    model = mujoco.MjModel.from_xml_string(xml)
    for key, value in {"tolerance": 0.0, "iterations": 100, "ls_iterations": 50, **options}.items():
        setattr(model.opt, key, value)
    return Peer(mjcf.loads(xml), model, mujoco.MjData(model))


INTEGRATORS = (
    "Euler",
    *(pytest.param(n, marks=pytest.mark.long) for n in ("implicitfast", "implicit", "RK4")),
)
"""Integrators that both have. Tests of all but the first are long: compiling takes its time."""


def side_by_side(peer: Peer, steps: int) -> Iterator[State]:
    """Step both from MuJoCo's state, under its controls; yield our states."""
    data = peer.data
    step, act = jax.jit(GENERALIZED.step, compiler_options=FAST_COMPILE), jnp.array(data.ctrl)
    state = GENERALIZED.init(peer.sys, jnp.array(data.qpos), jnp.array(data.qvel))
    for _ in range(steps):
        mujoco.mj_step(peer.model, data)
        state = step(peer.sys, state, act)
        yield state


def generic(peer: Peer, rng: np.random.Generator, spread: float = 0.3) -> tuple[np.ndarray, ...]:
    """Coordinates and rates away from anything special."""
    q = np.array(peer.sys.init_q, float) + spread * rng.normal(size=peer.model.nq)
    mujoco.mj_normalizeQuat(peer.model, q)
    return q, rng.normal(size=peer.model.nv)


def theirs(peer: Peer, q: np.ndarray, qd: np.ndarray) -> Stages:
    """MuJoCo's answer."""
    model, data = peer.model, peer.data
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    return Stages(
        *map(jnp.asarray, (dense_mass(peer), data.qfrc_bias, data.xpos[1:], data.xquat[1:]))
    )


def dense_mass(peer: Peer) -> np.ndarray:
    """MuJoCo's mass matrix at where its data are."""
    model, out = peer.model, np.zeros((peer.model.nv, peer.model.nv))
    mujoco.mju_sym2dense(out, peer.data.M, model.M_rownnz, model.M_rowadr, model.M_colind)
    return out


def record(
    sys: System, q: jax.Array, qd: jax.Array, act: jax.Array, samples: int, every: int = 1
) -> tuple[jax.Array, jax.Array]:
    """Coordinates and rates after each `every` steps."""

    def sample(state, _):
        state = jax.lax.fori_loop(0, every, lambda _, s: GENERALIZED.step(sys, s, act), state)
        return state, (state.q, state.qd)

    return jax.lax.scan(sample, GENERALIZED.init(sys, q, qd), None, length=samples)[1]


run = jax.jit(record, static_argnames=("samples", "every"), compiler_options=FAST_COMPILE)
