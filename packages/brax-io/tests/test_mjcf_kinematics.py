"""Frames and velocities of random stacks of joints agree with MuJoCo's."""

import random

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import kinematics, plugins
from brax.io import mjcf


def numbers(rng: random.Random, n: int) -> str:
    return " ".join(f"{rng.uniform(-1, 1):.3f}" for _ in range(n))


def stack(rng: random.Random) -> str:
    """Up to six degrees of freedom, as MuJoCo allows: a ball has no rotation after it."""
    kinds = [rng.choice(("hinge", "slide")) for _ in range(rng.randint(0, 3))]
    kinds += rng.choice((["ball"], []))
    return "".join(
        f'<joint type="{kind}" pos="{numbers(rng, 3)}" axis="{numbers(rng, 3)}" '
        f'ref="{rng.uniform(-1, 1):.3f}"/>'
        for kind in kinds or ["hinge"]
    )


def random_tree(seed: int) -> str:
    rng = random.Random(seed)

    def body(depth: int) -> str:
        joints = "<freejoint/>" if depth == 2 and seed % 2 else stack(rng)
        below = "".join(body(depth - 1) for _ in range(2)) if depth else ""
        return (
            f'<body pos="{numbers(rng, 3)}" quat="{numbers(rng, 4)}">{joints}'
            f'<geom size=".1" pos="{numbers(rng, 3)}" contype="0" conaffinity="0"/>{below}</body>'
        )

    return f'<mujoco><compiler angle="radian"/><worldbody>{body(2)}</worldbody></mujoco>'


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(i, marks=pytest.mark.slow) for i in (0, 2, 3))])
def test_frames_and_velocities(seed):
    model = mujoco.MjModel.from_xml_string(random_tree(seed))
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    data.qpos[:], data.qvel[:] = rng.normal(size=model.nq), rng.normal(size=model.nv)
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_forward(model, data)
    velocity = np.zeros((model.nbody, 6))
    for i, out in enumerate(velocity):
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, i, out, 0)
    with jax.enable_x64(True):
        system = mjcf.load_model(model)
        x, xd = kinematics.forward(system, jnp.array(data.qpos), jnp.array(data.qvel))
    turn = np.sum(np.asarray(x.rot) * data.xquat[1:], axis=1)
    np.testing.assert_allclose(x.pos, data.xpos[1:], atol=1e-12)
    np.testing.assert_allclose(np.abs(turn), 1, atol=1e-12)
    np.testing.assert_allclose(xd.ang, velocity[1:, :3], atol=1e-11)
    np.testing.assert_allclose(xd.vel, velocity[1:, 3:], atol=1e-11)


STACK = """
<mujoco><option timestep="0.001"/><worldbody><body pos="1 2 3" quat="1 2 3 4">
  <joint axis="1 2 1" ref="20" frictionloss="0.5"/>
  <joint type="slide" axis="0 1 1" pos=".1 0 .2" stiffness="20" springref=".1"/>
  <joint type="ball" pos=".1 .2 .3" stiffness="5" damping=".2" armature=".05"/>
  <geom size=".1" pos=".1 .2 -.3"/>
</body></worldbody></mujoco>"""


@pytest.mark.slow
def test_a_stack_with_a_ball_moves_as_mujocos():
    # Spring, damper and rotor of a ball, ref, dry friction. 1e-14
    model = mujoco.MjModel.from_xml_string(STACK)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    start = data.qpos.copy(), data.qvel.copy()
    for _ in range(100):
        mujoco.mj_step(model, data)
    with jax.enable_x64(True):
        system, pipeline = mjcf.load_model(model), plugins.get("pipeline", "generalized")
        state = pipeline.init(system, *map(jnp.array, start))
        state = jax.jit(pipeline.step, static_argnums=3)(system, state, jnp.zeros(0), 100)
    np.testing.assert_allclose(state.q, data.qpos, atol=1e-11)
    np.testing.assert_allclose(state.qd, data.qvel, atol=1e-10)
    assert np.abs(data.qpos - start[0]).max() > 0.02
