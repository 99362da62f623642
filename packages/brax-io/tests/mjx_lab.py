"""Results of the pipeline `mjx` as JSON; test_mjx runs it in double precision."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

from brax.base import Force
from brax.env import PipelineEnv
from brax.io import mjcf
from brax.mjx import MJX

ANT = (Path(__file__).parent / "models" / "ant.xml").read_text("utf-8")
BALL = """<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 9"><freejoint/><geom size=".1" density="1000"/></body></worldbody></mujoco>"""
PENDULUM = """<mujoco><compiler angle="radian"/><option timestep=".004" wind="1 0 0" density="1.2"/>
<worldbody><body name="a"><joint name="swing" axis="0 1 0" damping=".03" armature=".01"/>
  <geom type="capsule" size=".05" fromto="0 0 0 .5 .1 0"/>
  <body name="b" pos=".5 .1 0" euler=".3 .2 .1">
    <joint name="lift" axis="0 1 0" stiffness="3" springref=".2" ref=".1" range="-.4 .5"/>
    <joint name="out" type="slide" axis="1 0 0" frictionloss=".2" range="-.1 .1"/>
    <geom type="box" size=".2 .05 .03" pos=".2 0 0"/></body></body></worldbody>
<tendon><fixed name="both" stiffness="4" damping=".1"><joint joint="swing" coef=".7"/>
  <joint joint="lift" coef="-1.2"/></fixed></tendon>
<actuator><motor joint="swing" gear="2" ctrlrange="-.5 .5"/>
  <position joint="lift" kp="6" forcerange="-1 1"/><motor tendon="both"/></actuator></mujoco>"""


def free_fall():
    """Return the fall of a ball in 100 steps, and that of one held by an external force."""
    sys = mjcf.loads(BALL)
    start = MJX.init(sys, sys.init_q, jnp.zeros(6))
    nothing = jnp.zeros(0)
    fallen = jax.jit(lambda s: MJX.step(sys, s, nothing, 100))(start)
    weight = sys.link.inertia.mass[:, None] * -sys.opt.gravity
    lift = Force(jnp.zeros((1, 3)), weight)
    held = jax.jit(lambda s: MJX.step(sys, s, nothing, 100, lift))(start)
    return {"fallen": 9 - float(fallen.q[2]), "held": 9 - float(held.q[2])}


def apart(text, steps):
    """Velocities after a step: the largest errors, relative to the change in a step.

    From the states of a run of MuJoCo C under random controls, on the file itself: against MuJoCo C
    where nothing touches, and against MJX's own step of the file everywhere. (Where things touch,
    MJX is not MuJoCo C to such accuracy, whoever makes its model.)
    """
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.iterations, model.opt.ls_iterations = 100, 50
    data, sys = mujoco.MjData(model), mjcf.loads(text).replace(file_model=None)
    data.qpos[:] = sys.init_q
    theirs = mjx.put_model(model)
    blank = mjx.make_data(theirs)

    @jax.jit
    def both(q, qd, act, warmstart):
        state = MJX.init(sys, q, qd).replace(warmstart=warmstart)
        told = blank.replace(qpos=q, qvel=qd, ctrl=act, qacc_warmstart=warmstart)
        return MJX.step(sys, state, act).qd, mjx.step(theirs, told).qvel

    rng = np.random.default_rng(0)
    errors: dict[str, list[Any]] = {"c": [], "mjx": [], "mjx from c": []}
    for _ in range(steps):
        act, before = rng.uniform(-1, 1, model.nu), data.qvel.copy()
        ours, other = both(data.qpos.copy(), data.qvel.copy(), act, data.qacc_warmstart.copy())
        data.ctrl[:] = act
        mujoco.mj_step(model, data)
        change = np.linalg.norm(data.qvel - before)
        errors["mjx"].append(np.linalg.norm(ours - other) / change)
        errors["mjx from c"].append(np.linalg.norm(other - data.qvel) / change)
        if not data.ncon:
            errors["c"].append(np.linalg.norm(ours - data.qvel) / change)
    return {name: max(values) for name, values in errors.items()} | {"free": len(errors["c"])}


class Swing(PipelineEnv):
    """An environment on the pipeline, of which only the physics are used."""

    def reset(self, rng):
        raise NotImplementedError

    def step(self, state, action):
        raise NotImplementedError


def environments():
    """Four environments at once, one of them driven."""
    env = Swing(mjcf.loads(PENDULUM), backend="mjx", n_frames=5)
    start = env.pipeline_init(env.sys.init_q, jnp.zeros(3))
    acts = jnp.zeros((4, 3)).at[2, 0].set(0.5)
    ends = jax.vmap(lambda act: env.pipeline_step(start, act))(acts).q
    return {"alike": bool((ends[0] == ends[1]).all()), "driven": float(ends[2, 0] - ends[0, 0])}


if __name__ == "__main__":
    found = {
        "free fall": free_fall(),
        "pendulum": apart(PENDULUM, 300),
        "ant": apart(ANT, 200),
        "environments": environments(),
    }
    print(json.dumps(found))
