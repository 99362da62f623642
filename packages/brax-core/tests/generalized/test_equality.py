"""Equality constraints, tendon limits, torsional and rolling friction: MuJoCo's motion."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both, generalized, run  # noqa: F401
from physics_lab import FAST_COMPILE

from brax import dynamics
from brax.builder import ModelBuilder
from brax.generalized.pipeline import GENERALIZED
from brax.io import mjcf


def model(content, inside="", options=""):
    """Return a model of the given content after its bodies, and inside of the world."""
    return f"""<mujoco><option timestep=".002" {options}/><compiler angle="radian"/>
<default><joint axis="0 1 0" damping=".02" armature=".01"/><default class="bare">
<geom contype="0" conaffinity="0"/></default></default><worldbody>
{inside}</worldbody>{content}</mujoco>"""


BODIES = """<body name="a" childclass="bare" pos=".1 .2 1" quat=".9 .1 .2 .3"><freejoint/>
<geom type="box" size=".1 .15 .05" mass="1"/><site name="s" pos=".1 .2 .1" quat=".5 .3 .2 .1"/>
</body><body name="b" childclass="bare" pos=".5 .3 1.2" quat=".4 .5 .2 .3"><freejoint/>
<geom type="box" size=".1 .2 .3" mass="2"/><body name="c" pos=".1 .2 .3"><joint name="h"
axis="0 1 0" ref=".1"/><geom size=".1" mass="1"/><body name="d" pos=".2 .1 .3"
quat="1 1 0 0"><geom type="box" size=".1 .12 .05" mass=".3"/>
<site name="t" pos="-.1 .1 .1"/></body></body></body>"""
"""Two trees, and a body without joints at the end of one."""

CHAIN = """<body name="a"><joint name="a" ref=".1"/><inertial pos=".1 0 0" mass=".3"
diaginertia=".001 .002 .002"/><body name="b" pos=".2 0 0"><joint name="b"/>
<inertial pos=".1 0 0" mass=".2" diaginertia=".001 .002 .002"/><body name="c" pos=".2 0 0">
<joint name="c"/><inertial pos=".05 0 0" mass=".1" diaginertia=".001 .002 .002"/></body></body>
<body name="d" pos="0 .1 0"><joint name="d" axis="0 0 1"/><inertial pos=".1 0 0" mass=".3"
diaginertia=".001 .002 .002"/></body></body>"""
TENDONS = """<tendon><fixed name="p" {}><joint joint="a" coef=".5"/><joint joint="b" coef="1"/>
</fixed><fixed name="q" {}><joint joint="b" coef="2"/><joint joint="d" coef="-1.5"/></fixed>
</tendon>"""
ROLLING = """<geom type="plane" size="9 9 1" friction="{}"/>
<body pos="0 0 .099"><freejoint/><geom size=".1" condim="{}" friction="{}" mass="1"/></body>
<body pos=".4 0 .05"><freejoint/><geom type="capsule" size=".05 .1" condim="3" mass=".5"/></body>
<body pos="-.4 0 .0995" quat="1 .3 .1 .2"><freejoint/><geom size=".1" condim="4" mass="1"
friction=".7 .05 .02"/></body>"""

SOFT = 'solref=".03 .8" solimp=".3 .9 .2 .4 3"'
MODELS = {
    "connect": model(
        f'<equality><connect body1="a" body2="c" anchor=".1 .2 .3" {SOFT}/></equality>', BODIES
    ),
    "connect to the world": model(
        '<equality><connect body1="c" anchor=".1 .2 .3"/></equality>', BODIES
    ),
    "connect within a tree": model(
        f'<equality><connect body1="c" body2="d" anchor=".1 0 0" {SOFT}/></equality>', CHAIN
    ),
    "weld": model(
        f"""<equality><weld body1="a" body2="c" anchor=".1 .2 .3" torquescale=".7" {SOFT}/>
</equality>""",
        BODIES,
    ),
    "weld to a pose": model(
        """<equality><weld body1="d" body2="a" relpose=".4 .3 .2 1 0 .5 1" anchor=".1 0 0"/>
</equality>""",
        BODIES,
    ),
    "weld without torque": model(
        f"""<equality><weld body1="a" body2="c" anchor=".1 .2 .3" torquescale="0" {SOFT}/>
</equality>""",
        BODIES,
    ),
    "weld of sites": model(f'<equality><weld site1="s" site2="t" {SOFT}/></equality>', BODIES),
    "connect of sites": model('<equality><connect site1="s" site2="t"/></equality>', BODIES),
    "joints": model(
        f"""<equality><joint joint1="a" joint2="c" polycoef=".1 .8 .5 -.3 .2" {SOFT}/>
<joint joint1="d" polycoef=".2 0 0 0 0"/></equality>""",
        CHAIN,
    ),
    "tendons": model(
        TENDONS.format("", "")
        + f'<equality><tendon tendon1="p" tendon2="q" polycoef="0 .5 .2 0 0" {SOFT}/></equality>',
        CHAIN,
    ),
    "limits and friction of tendons": model(
        TENDONS.format(
            'limited="true" range="-.1 .2" margin=".01"',
            'frictionloss=".1" limited="true" range="-.3 .1" solreflimit=".03 1"',
        ),
        CHAIN,
    ),
    "rolling, pyramidal": model("", ROLLING.format(".8 .01 .003", 6, ".9 .02 .01")),
    "rolling, elliptic": model(
        "", ROLLING.format(".8 .01 .003", 6, ".9 .02 .01"), 'cone="elliptic" impratio="2"'
    ),
}


HEAP = "".join(
    f"""<body pos="{0.12 * (i % 2)} {0.1 * (i % 3)} {0.09 + 0.17 * i}"><freejoint/>
<geom size=".1" condim="{(3, 4, 6)[i % 3]}" friction=".7 .05 .02" mass="1"/>
{'<body pos=".1 0 0"><joint name="h"/><geom size=".05" mass=".2" contype="0"/></body>' * (i == 2)}
</body>"""
    for i in range(4)
)
MODELS["a heap, one large block"] = model(
    """<tendon><fixed name="p" limited="true" range="-.1 .1"><joint joint="h" coef="1"/></fixed>
</tendon><equality><joint joint1="h" polycoef=".1 .5 0 0 0"/></equality>""",
    f'<geom type="plane" size="9 9 1"/>{HEAP}',
)
"""25 degrees of freedom that all meet: what works through large blocks by loops is at work."""


QUICK = ("joints",)
LONG = ("connect to the world", "connect within a tree", "connect of sites", "weld to a pose")


@functools.partial(jax.jit, compiler_options=FAST_COMPILE)
def steps(sys, q, qd, warm):
    """One step from each state."""

    def step(q, qd, warm):
        state = GENERALIZED.init(sys, q, qd).replace(warmstart=warm)
        return GENERALIZED.step(sys, state, jnp.zeros(0)).qd

    return jax.vmap(step)(q, qd, warm)


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in QUICK
        else pytest.param(name, marks=[pytest.mark.slow] + [pytest.mark.long] * (name in LONG))
        for name in MODELS
    ],
)
def test_steps_are_mujocos(f64, name):
    """From states along its own run, kicked now and then so that the constraints are at work."""
    peer, rng = both(MODELS[name], jacobian=0), np.random.default_rng(0)
    data, rows, active = peer.data, [], []
    data.qpos[:] += 0.05 * rng.normal(size=peer.model.nq)
    mujoco.mj_normalizeQuat(peer.model, data.qpos)
    for i in range(100):
        if i % 10 == 0:
            data.qvel[:] += 0.5 * rng.normal(size=peer.model.nv)
        before = [data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()]
        mujoco.mj_step(peer.model, data)
        rows.append([*before, data.qvel.copy()])
        active.append(np.abs(data.qfrc_constraint).max() > 0)
    assert np.mean(active) > 0.1
    q, qd, warm, wanted = (np.array(x) for x in zip(*rows, strict=True))
    sys = peer.sys.replace(opt=peer.sys.opt.replace(iterations=15, ls_iterations=10))
    found = steps(sys, q, qd, warm)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


def four_bar(softness):
    """Two cranks, .3 m long, and a coupler between them, .5 m long: a parallelogram."""
    built = ModelBuilder()
    built.set_option(timestep=0.002)
    rod: dict[str, Any] = dict(mass=0.3, inertia=(1e-4, 2e-3, 2e-3), ipos=(0.15, 0, 0))
    for name, x in (("left", 0.0), ("right", 0.5)):
        built.add_body(name, pos=(x, 0, 1), quat=(1, 0, -1, 0), **rod)
        built.add_joint(name, "hinge", name, axis=(0, 1, 0))
    built.add_body("coupler", "left", pos=(0.3, 0, 0), quat=(1, 0, 1, 0), mass=0.5,
                   inertia=(1e-4, 1e-2, 1e-2), ipos=(0.25, 0, 0))  # fmt: skip
    built.add_joint("coupler", "hinge", "knee", axis=(0, 1, 0))
    built.add_connect("coupler", "right", anchor=(0.5, 0, 0), solref=softness)
    return built.build()


@pytest.mark.slow
def test_a_four_bar_linkage_holds_its_loop(f64):
    """In ten seconds from near its upper dead point the loop stays closed.

    The cranks stay parallel, and the energy is constant.
    """
    sys = four_bar((0.004, 1.0))
    np.testing.assert_allclose(sys.eq_data[0, :6], [0.5, 0, 0, 0.3, 0, 0], atol=1e-12)
    q, qd = run(sys, jnp.array([0.5, 0.5, -0.5]), jnp.zeros(3), jnp.zeros(0), samples=5000)
    left, right, knee = q.T
    assert np.ptp(left) > 2.0  # it swings
    end = 0.3 * np.stack([np.sin(left) - np.sin(right), np.cos(left) - np.cos(right)])
    lean = left + knee
    end += 0.5 * np.stack([np.cos(lean) - 1, -np.sin(lean)])
    assert np.abs(end).max() < 1e-4
    kinetic, potential = jax.vmap(lambda q, qd: dynamics.energy(sys, q, qd))(q, qd)
    total = np.asarray(kinetic + potential)
    assert np.ptp(total) < 0.02 * np.ptp(np.asarray(potential))


@pytest.mark.slow
def test_a_ball_is_held_up_by_rolling_friction(f64):
    """A ball on a slope rolls unless `tan slope < roll / radius`."""
    content = """<geom type="plane" size="9 9 1" quat="{} 0 {} 0" friction="1 .005 .01"/>
<body pos="{} 0 {}"><freejoint/><geom size=".1" condim="6" friction="1 .005 .01" mass="1"/>
</body>"""
    moved = {}
    for slope in (0.09, 0.11):
        half = np.arctan(slope) / 2
        place = 0.1 * np.sin(2 * half), 0.1 * np.cos(2 * half)
        xml = model(
            "", content.format(np.cos(half), np.sin(half), *place), 'cone="elliptic" impratio="100"'
        )
        sys = mjcf.loads(xml)
        _, qd = run(sys, sys.init_q, jnp.zeros(6), jnp.zeros(0), samples=1, every=500)
        moved[slope] = float(qd[-1, 0])
    # What sticks creeps, the less the stiffer friction is; 5/7 g sin would be .7 m/s after 1 s.
    assert abs(moved[0.09]) < 0.02
    assert moved[0.11] > 0.05
