"""The habits of Google's notebooks: models as text, pipelines as modules, training and pages."""

import functools
import math
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jp

from brax import envs
from brax.generalized import pipeline as generalized
from brax.io import html, mjcf, model
from brax.positional import pipeline as positional
from brax.spring import pipeline as spring
from brax.training.agents.ppo import train as ppo

PENDULUM = """<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body pos="0 0 2">
      <joint name="hinge" axis="0 1 0" type="hinge"/>
      <geom pos="0 0 -1" size="0.1" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge"/></actuator>
</mujoco>"""

BALL = """<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body pos="0 0 1.5">
      <joint type="free"/>
      <geom size="0.5" type="sphere"/>
    </body>
    <geom size="40 40 40" type="plane"/>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize("pipeline", [generalized, positional, spring])
def test_a_pendulum_swings_in_every_pipeline(pipeline):
    """It is let go at 0.05 rad: a cosine, of a point mass and a small ball's inertia."""
    substeps = 4
    system = mjcf.loads(PENDULUM).tree_replace({"opt.timestep": 0.01 / substeps})
    step = jax.jit(pipeline.step)
    state = jax.jit(pipeline.init)(system, jp.array([0.05]), jp.zeros(system.qd_size()))
    rollout = []
    for i in range(50 * substeps):
        if i % substeps == 0:
            rollout.append(state)
        state = step(system, state, None)
    omega = math.sqrt(9.81 / (1 + 0.4 * 0.1**2))
    np.testing.assert_allclose(state.q, 0.05 * math.cos(omega * 0.5), atol=1e-3)
    np.testing.assert_allclose(jp.linalg.norm(state.x.pos - jp.array([0, 0, 2])), 0, atol=1e-5)
    page = html.render(system, rollout)
    assert "<html" in page.lower()


def test_a_ball_bounces():
    """A ball of elasticity 0.8 that falls by 1 m leaves the floor at 0.8 of its speed."""
    ball = mjcf.loads(BALL)
    # Its density is that of water.
    np.testing.assert_allclose(ball.link.inertia.mass, 4 / 3 * np.pi * 0.5**3 * 1000, rtol=1e-5)
    ball = ball.replace(elasticity=jp.array([0.8] * ball.ngeom))
    state = jax.jit(positional.init)(ball, ball.init_q, jp.array([1.0, 0, 0, 0, 0, 0]))
    step, speeds = jax.jit(positional.step), []
    for _ in range(300):
        state = step(ball, state, None)
        speeds.append(float(state.xd.vel[0, 2]))
    np.testing.assert_allclose(max(speeds), 0.8 * math.sqrt(2 * 9.81), rtol=0.02)


def test_train_save_load_and_show(tmp_path):
    """The cells of the training notebook, with few steps."""
    env = envs.get_environment(env_name="inverted_pendulum", backend="spring")
    state = jax.jit(env.reset)(rng=jax.random.PRNGKey(seed=0))
    assert html.render(env.sys, [state.pipeline_state])
    train_fn = functools.partial(
        ppo.train,
        num_timesteps=320,
        num_evals=2,
        reward_scaling=10,
        episode_length=20,
        normalize_observations=True,
        action_repeat=1,
        unroll_length=5,
        num_minibatches=2,
        num_updates_per_batch=2,
        discounting=0.97,
        learning_rate=3e-4,
        entropy_cost=1e-2,
        num_envs=8,
        batch_size=8,
        seed=1,
    )
    xdata, ydata = [], []

    def progress(num_steps, metrics):
        xdata.append(num_steps)
        ydata.append(metrics["eval/episode_reward"])

    make_inference_fn, params, _ = train_fn(environment=env, progress_fn=progress)
    assert xdata == [0, 320] and all(0 < reward <= 20 for reward in ydata)
    model.save_params(tmp_path / "params", params)
    inference_fn = jax.jit(make_inference_fn(model.load_params(tmp_path / "params")))
    env = envs.create(env_name="inverted_pendulum", backend="spring")
    rng, rollout, step = jax.random.PRNGKey(seed=1), [], jax.jit(env.step)
    state = jax.jit(env.reset)(rng=rng)
    for _ in range(5):
        rollout.append(state.pipeline_state)
        act_rng, rng = jax.random.split(rng)
        act, _ = inference_fn(state.obs, act_rng)
        state = step(state, act)
    created: Any = env  # as for a client: a wrapper hands on what it lacks
    assert html.render(created.sys.tree_replace({"opt.timestep": created.dt}), rollout)
