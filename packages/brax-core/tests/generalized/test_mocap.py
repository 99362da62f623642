"""Bodies that the state places: what they drag, carry and meet moves as MuJoCo's does."""

import chex
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both, generic
from physics_lab import FAST_COMPILE

from brax import contact, kinematics, plugins
from brax.base import Transform
from brax.builder import ModelBuilder
from brax.errors import ModelError, ShapeError
from brax.generalized.pipeline import GENERALIZED
from brax.sensors import sensors

DRAGGED = """<mujoco><option timestep=".002" iterations="60" ls_iterations="50"/>
<default><geom friction="1 0 0"/></default><worldbody>
<body name="hand" mocap="true" pos=".2 -.1 1" quat="1 .2 .1 0"><geom name="tray" type="box"
size=".3 .3 .05"/><site name="grip" pos=".1 .2 .3"/><body name="post" pos=".1 0 .2" euler="0 20 0">
<geom size=".05" contype="0" conaffinity="0"/><body name="vane"><joint axis="0 1 0" damping=".1"/>
<geom type="capsule" size=".02 .2" pos="0 0 .2" contype="0" conaffinity="0"/></body></body></body>
<body name="eye" mocap="true" pos="-1 0 1" quat="1 0 .1 .3"/>
<body name="box" pos="-1 .2 1"><freejoint/><geom type="box" size=".1 .2 .3" contype="0"
conaffinity="0"/></body>
<body name="bob" pos="1 .2 1" quat="1 1 0 0"><freejoint/><geom type="box" size=".1 .2 .1"
contype="0" conaffinity="0"/></body>
<body name="ball" pos=".2 -.1 1.14"><freejoint/><geom name="ball" size=".1"/></body></worldbody>
<equality><weld body1="eye" body2="box" torquescale=".3"/>
<weld body1="bob" body2="hand" anchor=".1 0 .1"/><connect body1="hand" body2="box" anchor="0 0 1"/>
</equality>
<sensor><framepos objtype="site" objname="grip"/><framequat objtype="xbody" objname="post"/>
<framelinvel objtype="xbody" objname="vane"/></sensor></mujoco>"""
STEP = jax.jit(GENERALIZED.step, compiler_options=FAST_COMPILE)


@pytest.mark.slow
def test_what_a_mocap_body_drags_carries_and_meets_moves_as_mujocos():
    peer = both(DRAGGED)
    sys, model, data = peer
    rng = np.random.default_rng(0)
    q, qd = generic(peer, rng, spread=0.02)
    state = GENERALIZED.init(sys, jnp.array(q), jnp.array(qd))
    assert state.mocap is not None
    np.testing.assert_allclose(state.mocap.pos, data.mocap_pos)
    data.qpos[:], data.qvel[:] = q, qd
    data.mocap_pos += 0.03 * rng.normal(size=(2, 3))
    data.mocap_quat += 0.03 * rng.normal(size=(2, 4))
    state = state.replace(mocap=Transform(jnp.array(data.mocap_pos), jnp.array(data.mocap_quat)))
    assert state.mocap is not None
    assert not np.allclose(np.linalg.norm(state.mocap.rot, axis=1), 1)  # normalized, as MuJoCo's
    for step in range(5):
        mujoco.mj_step(model, data)
        assert step or data.ncon > 0
        state = STEP(sys, state, jnp.zeros(0))
        np.testing.assert_allclose(state.qd, data.qvel, atol=1e-9)
        np.testing.assert_allclose(state.q, data.qpos, atol=1e-9)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(sensors(sys, state, jnp.zeros(0)), data.sensordata, atol=1e-9)
    here = kinematics.frame(sys, state.x, "post", state.mocap)
    np.testing.assert_allclose(here.pos, data.body("post").xpos, atol=1e-9)
    touch = contact.get(sys, state.x, state.mocap)
    assert touch is not None
    np.testing.assert_allclose(touch.dist.min(), data.contact.dist.min(), atol=1e-9)
    chex.assert_trees_all_equal_structs(state, STEP(sys, state, jnp.zeros(0)))


def lift(**more):
    """Return a tray that the state places, and a ball on it."""
    model = ModelBuilder()
    model.add_body("tray", pos=(0, 0, 1), mocap=True, **more)
    model.add_geom("tray", "box", size=(1, 1, 0.1))
    model.add_body("ball", pos=(0, 0, 1.3), mass=1, inertia=(0.016, 0.016, 0.016))
    model.add_joint("ball", "free")
    model.add_geom("ball", "sphere", size=(0.2,))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["spring", "positional", "generalized"])
def test_every_pipeline_keeps_a_mocap_body_where_it_is_put(pipeline):
    """A ball rests on a tray; the tray is gone, and it falls for a tenth of a second."""
    sys, run = lift().build(), plugins.get("pipeline", pipeline)
    start = run.init(sys, sys.init_q, jnp.zeros(6))
    step = jax.jit(run.step, static_argnums=3, compiler_options=FAST_COMPILE)
    away = start.mocap.replace(pos=jnp.array([[0.0, 0.0, -1.0]]))
    rests, falls = (
        step(sys, start.replace(mocap=tray), jnp.zeros(0), 50) for tray in (start.mocap, away)
    )
    assert abs(rests.q[2] - 1.3) < 1e-3
    # Semi-implicit Euler: n (n + 1) / 2 steps' worth.
    np.testing.assert_allclose(falls.q[2], 1.3 - 9.81 * 0.002**2 * 50 * 51 / 2, atol=1e-9)
    np.testing.assert_array_equal(falls.mocap.pos, away.pos)


def test_a_bad_mocap_body_or_pose_is_refused():
    with pytest.raises(ModelError, match="body 'tray': a mocap body must be a child of the world"):
        model = lift()
        model.add_joint("tray")
        model.build()
    model = lift()
    model.add_body("arm", "tray", mass=1, inertia=(1, 1, 1))
    model.add_joint("arm")
    sys = model.build()
    run = plugins.get("pipeline", "spring")
    with pytest.raises(ModelError, match="joints on mocap bodies, which this pipeline does not"):
        run.init(sys, sys.init_q, jnp.zeros(sys.qd_size()))
    state = GENERALIZED.init(sys, sys.init_q, jnp.zeros(sys.qd_size()))
    with pytest.raises(ShapeError, match=r"mocap.pos has shape \(2, 3\); the model has 1 mocap"):
        GENERALIZED.step(sys, state.replace(mocap=Transform.zero((2,))), jnp.zeros(0))
