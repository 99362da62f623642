"""A client in the style of MJX's tutorial: a robot of its own that MuJoCo reads and MJX moves.

The environment reads MJX's data from its state, and MuJoCo's numbers from its system. Training
randomizes friction and gains.
"""

import functools

import jax
import mujoco
import numpy as np
import pytest
from jax import numpy as jp

from brax import envs
from brax.base import System
from brax.envs.base import PipelineEnv, State
from brax.io import mjcf

pytest.importorskip("mujoco.mjx")

# A sled of 3 kg on the floor, which carries a motor with an arm of 1 kg.
XML = """<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="sled" pos="0 0 0.1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom name="runner" size="0.1" mass="3"/>
      <body name="arm" pos="0 0 0.5">
        <joint name="shoulder" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.02" mass="1" contype="0"/>
        <site name="tip" pos="0 0 0.4"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder"/></actuator>
</mujoco>"""


class Sled(PipelineEnv):
    """The sled is paid for the height of the arm's tip."""

    def __init__(self, **kwargs):
        mj_model = mujoco.MjModel.from_xml_string(XML)
        mj_model.opt.solver = mujoco.mjtSolver.mjSOL_CG
        mj_model.opt.iterations = 10
        mj_model.opt.ls_iterations = 10
        kwargs["n_frames"] = kwargs.get("n_frames", 5)
        kwargs["backend"] = "mjx"
        super().__init__(mjcf.load_model(mj_model), **kwargs)
        kind = mujoco.mjtObj.mjOBJ_SITE.value
        self._tip = mujoco.mj_name2id(self.sys.mj_model, kind, "tip")

    def reset(self, rng):
        rng, key = jax.random.split(rng)
        noise = jax.random.uniform(key, (self.sys.nq,), minval=-0.1, maxval=0.1)
        qpos = self.sys.qpos0 + noise.at[1].set(0)
        data = self.pipeline_init(qpos, jp.zeros(self.sys.nv))
        reward, done, zero = jp.zeros(3)
        metrics = {"moved": zero}
        return State(data, self._get_obs(data), reward, done, metrics, {"rng": rng})

    def step(self, state, action):
        before = state.pipeline_state
        data = self.pipeline_step(before, action)
        moved = data.subtree_com[1, 0] - before.subtree_com[1, 0]
        state.metrics.update(moved=moved)
        reward = data.site_xpos[self._tip, 2]
        return state.replace(pipeline_state=data, obs=self._get_obs(data), reward=reward)

    def _get_obs(self, data):
        return jp.concatenate([data.qpos, data.qvel, data.cinert[1:].ravel(), data.qfrc_actuator])


def domain_randomize(sys: System, rng):
    """Return systems with another friction of all geoms and another gain each."""

    @jax.vmap
    def rand(rng):
        friction_key, gain_key = jax.random.split(rng)
        friction = jax.random.uniform(friction_key, minval=0.2, maxval=0.8)
        gain = jax.random.uniform(gain_key, minval=0.5, maxval=2.0)
        return (
            sys.geom_friction.at[:, 0].set(friction),
            sys.actuator_gainprm.at[:, 0].set(gain),
        )

    friction, gain = rand(rng)
    in_axes = jax.tree.map(lambda x: None, sys)
    in_axes = in_axes.tree_replace({"geom_friction": 0, "actuator_gainprm": 0})
    return sys.tree_replace({"geom_friction": friction, "actuator_gainprm": gain}), in_axes


KEYS = jax.random.split(jax.random.PRNGKey(1), 4)


@pytest.fixture(scope="module")
def env():
    envs.register_environment("sled", Sled)
    return envs.get_environment("sled")


@pytest.fixture(scope="module")
def batch(env):
    """Return a batch whose systems differ, and its first state."""
    randomize = functools.partial(domain_randomize, rng=KEYS)
    batch = envs.training.wrap(env, episode_length=100, randomization_fn=randomize)
    return batch, jax.jit(batch.reset)(jax.random.split(jax.random.PRNGKey(2), len(KEYS)))


def test_numbers_of_the_model_have_mujocos_names(env):
    sys = env.sys
    assert (sys.nq, sys.nv, sys.nu, sys.nbody, sys.ngeom, sys.nsite) == (3, 3, 1, 3, 3, 1)
    assert env.action_size == 1 and env.dt == pytest.approx(0.02)


def test_states_have_mjx_data(batch):
    """The tip is 0.4 m from the shoulder, and the centre of mass is that of 3 kg and 1 kg."""
    data = jax.tree.map(lambda x: x[0], batch[1].pipeline_state)
    x, _, angle = data.qpos
    arm = np.array([np.sin(angle), 0, np.cos(angle)])
    sled = np.array([x, 0, 0.1])
    shoulder = np.array([x, 0, 0.6])
    np.testing.assert_allclose(data.site_xpos[0], shoulder + 0.4 * arm, atol=1e-6)
    centre = (3 * sled + shoulder + 0.2 * arm) / 4
    np.testing.assert_allclose(data.subtree_com[1], centre, atol=1e-6)
    np.testing.assert_array_equal(data.qvel, 0)
    # The last of the ten numbers of a body is its mass.
    np.testing.assert_allclose(data.cinert[1:, 9], [3, 1], rtol=1e-6)


def test_friction_and_gains_differ(env, batch):
    """Sleds that move at 3 m/s do what MuJoCo's do, with each its own friction and gain."""
    batch, state = batch
    moving = state.pipeline_state.qvel.at[:, 0].set(3.0)
    state = first = state.tree_replace({"pipeline_state.qvel": moving})
    step = jax.jit(batch.step)
    for _ in range(5):
        state = step(state, jp.full((len(KEYS), 1), 0.5))
    systems, _ = domain_randomize(env.sys, KEYS)
    for i, qpos in enumerate(first.pipeline_state.qpos):
        model = mujoco.MjModel.from_xml_string(XML)
        model.geom_friction[:] = systems.geom_friction[i]
        model.actuator_gainprm[:] = systems.actuator_gainprm[i]
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[0], data.ctrl[:] = qpos, 3.0, 0.5
        mujoco.mj_step(model, data, 25)
        now = state.pipeline_state
        np.testing.assert_allclose(now.qvel[i], data.qvel, atol=5e-3)
        np.testing.assert_allclose(now.qfrc_actuator[i], data.qfrc_actuator, rtol=1e-5)
    assert np.ptp(state.pipeline_state.qvel[:, 0]) > 0.1
