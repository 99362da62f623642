"""Random damage to a valid model: it loads and moves finitely, or there is a `ModelError`."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from damage import damaged_xml

from brax import plugins
from brax.errors import ModelError
from brax.io import mjcf

MODEL = """
<mujoco model="fuzz">
  <compiler angle="degree"/>
  <option timestep="0.005" gravity="0 0 -9.81"><flag energy="enable"/></option>
  <custom>
    <numeric name="ang_damping" data="-0.1"/>
    <numeric name="init_qpos" data="0 0 0.5 1 0 0 0 0.1 0.2"/>
    <tuple name="elasticity"><element objtype="geom" objname="ball" prm="0.5"/></tuple>
  </custom>
  <default>
    <geom friction="0.8 0.1 0.1" rgba="1 0 0 1"/>
    <default class="limb"><joint damping="1" armature="0.1" range="-45 45"/></default>
  </default>
  <asset><material name="red" rgba="1 0 0 1"/></asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom name="floor" type="plane" size="5 5 5"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint name="root"/>
      <geom name="ball" size="0.2" mass="2"/>
      <body name="stub" pos="0.2 0 0" euler="0 0 10">
        <geom name="rod" type="capsule" fromto="0 0 0 0.2 0 0" size="0.05"/>
        <body name="leg" pos="0.2 0 0">
          <joint name="hip" class="limb" axis="0 1 0" stiffness="2" springref="5"/>
          <joint name="knee" type="slide" axis="0 0 1" range="-0.1 0.1"/>
          <geom name="shin" type="capsule" fromto="0 0 0 0 0 -0.3" size="0.04" material="red"/>
          <site name="toe" pos="0 0 -0.3"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="trunk" body2="leg"/></contact>
  <actuator>
    <motor name="push" joint="hip" gear="10" ctrlrange="-1 1"/>
    <position name="hold" joint="knee" kp="20" forcerange="-5 5"/>
  </actuator>
  <sensor><jointpos joint="hip"/></sensor>
</mujoco>
"""


@functools.lru_cache(maxsize=256)
def stepper(structure):
    """One compiled step for all models of one structure."""
    pipeline = plugins.get("pipeline", "spring")

    def step(leaves):
        system = jax.tree.unflatten(structure, leaves)
        state = pipeline.init(system, system.init_q, jnp.zeros(system.qd_size()))
        return pipeline.step(system, state, jnp.zeros(system.act_size()))

    return jax.jit(step)


def outcome(seed: int, moves: bool) -> str:
    xml = damaged_xml(MODEL, seed)
    try:
        with warnings.catch_warnings():  # MuJoCo's own remarks on odd masses
            warnings.simplefilter("ignore")
            system = mjcf.loads(xml)
    except ModelError as error:
        assert str(error), f"seed {seed}: an empty message\n{xml}"
        return "refused"
    assert np.isfinite(system.init_q).all(), f"seed {seed}: init_q is not finite\n{xml}"
    leaves, structure = jax.tree.flatten(system)
    if moves:
        state = stepper(structure)(leaves)
        assert np.isfinite(state.q).all(), f"seed {seed}: a step is not finite\n{xml}"
    return "loaded"


@pytest.mark.slow
def test_the_model_is_valid():
    leaves, structure = jax.tree.flatten(mjcf.loads(MODEL))
    assert np.isfinite(stepper(structure)(leaves).q).all()


def test_few_seeds():
    outcomes = [outcome(seed, moves=False) for seed in range(30)]
    assert {"loaded", "refused"} <= set(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [50, pytest.param(500, marks=pytest.mark.long)])
def test_many_seeds(seeds):
    outcomes = [outcome(seed, moves=seed < seeds // 5) for seed in range(seeds)]
    assert min(outcomes.count("loaded"), outcomes.count("refused")) > seeds // 10
