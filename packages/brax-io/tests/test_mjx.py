"""The pipeline `mjx`: its model is MuJoCo's of the same file, and what it lacks is refused."""

import json as standard_json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import mjx as pipeline
from brax import plugins
from brax.builder import ModelBuilder
from brax.errors import BraxError, ModelError
from brax.io import json, mjcf
from brax.mjx import mujoco_model

LAB = Path(__file__).parent / "mjx_lab.py"
ANT = Path(__file__).parent / "models" / "ant.xml"


def test_it_is_a_pipeline_by_its_name():
    assert plugins.get("pipeline", "mjx") is pipeline.MJX


def test_the_translated_model_moves_as_the_file():
    """By MuJoCo C, from the same states: single precision is what the numbers went through."""
    theirs, sys = mjcf.load_mjmodel(ANT), mjcf.load(ANT)
    ours = mujoco_model(sys)
    a, b = mujoco.MjData(theirs), mujoco.MjData(ours)
    a.qpos[:] = sys.init_q
    rng, touching = np.random.default_rng(0), 0
    for _ in range(300):
        b.qpos[:], b.qvel[:], b.qacc_warmstart[:] = a.qpos, a.qvel, a.qacc_warmstart
        a.ctrl[:] = b.ctrl[:] = rng.uniform(-1, 1, theirs.nu)
        mujoco.mj_step(theirs, a)
        mujoco.mj_step(ours, b)
        np.testing.assert_allclose(b.qvel, a.qvel, atol=1e-4)  # measured: 2e-6
        touching += a.ncon > 0
    assert touching > 50


def test_what_is_not_translated_is_named():
    made = ModelBuilder()
    made.add_body("arm", mass=1.0, inertia=(1, 1, 1))
    made.add_joint("arm", "ball", "wrist", damping=(1, 2, 1))
    made.add_actuator(body="arm", name="hold", ctrl_range=(0, 1))
    made.add_body("hand", "arm", mass=1.0, inertia=(1, 1, 1))
    made.set_option(integrator="variational", time_of_impact=True, density=1.0)
    sys = made.build()
    with pytest.raises(ModelError, match="the model has 5 problems") as caught:
        pipeline.MJX.init(sys, sys.init_q, jnp.zeros(3))
    told = str(caught.value)
    assert "mjx: option 'integrator': 'variational' is not one of euler, implicitfast, rk4" in told
    assert "mjx: joint 'wrist': damping differs between its axes" in told
    assert "mjx: actuator 'hold': adhesion is not translated" in told
    assert "mjx: Option.time_of_impact is not translated" in told
    assert "mjx: the fluid drag on parts of 'arm' is not translated" in told
    rows = pipeline.MJX.report(sys)
    assert [status for _, status, _ in rows].count("refused") == 5


def test_links_in_another_order_are_refused():
    made = ModelBuilder()
    for name, parent in (("a", "world"), ("b", "world"), ("hand", "a")):
        made.add_body(name, parent, mass=1.0, inertia=(1, 1, 1))
        made.add_joint(name)
    with pytest.raises(ModelError, match="mjx: the model's links are not in depth-first order"):
        mujoco_model(made.build())


def test_numbers_that_are_not_known_are_refused():
    sys = json.loads(json.dumps(mjcf.load(ANT)))  # without MuJoCo's model of the file
    with pytest.raises(ModelError, match="must be known when the program is compiled"):
        jax.jit(pipeline.MJX.init)(sys, sys.init_q, jnp.zeros(sys.qd_size()))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco.mjx", None)
    monkeypatch.delattr(mujoco, "mjx", raising=False)
    sys_ = mjcf.load(ANT)
    with pytest.raises(BraxError, match=r"pip install 'brax-io\[mjx\]'"):
        pipeline.MJX.init(sys_, sys_.init_q, jnp.zeros(14))


@pytest.mark.slow
@pytest.mark.long
def test_steps_are_mjx_steps_of_the_file():
    """Free fall by arithmetic: after n steps of h, g h^2 n (n + 1) / 2."""
    pytest.importorskip("mujoco.mjx")
    env = {**os.environ, "JAX_ENABLE_X64": "1"}
    done = subprocess.run([sys.executable, LAB], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = standard_json.loads(done.stdout.splitlines()[-1])
    assert found["free fall"]["fallen"] == pytest.approx(9.81 * 0.01**2 * 100 * 101 / 2, rel=1e-9)
    assert found["free fall"]["held"] == pytest.approx(0, abs=1e-9)
    for name, free in (("pendulum", 300), ("ant", 100)):
        assert found[name]["free"] >= free
        assert found[name]["c"] < 1e-3  # measured: 7e-5 and 4e-15
        assert found[name]["mjx"] < 1e-6  # measured: 0 and 2e-14
    assert found["environments"]["alike"]
    assert found["environments"]["driven"] > 1e-4
