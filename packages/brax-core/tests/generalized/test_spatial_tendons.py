"""Spatial tendons: paths over sites, pulleys, balls and cylinders, against MuJoCo."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both, generic
from physics_lab import FAST_COMPILE

from brax import plugins
from brax.actuators.tendon_wrapping import around_axis, around_point
from brax.components import Vec3
from brax.generalized.pipeline import GENERALIZED
from brax.sensors import sensors

ARM = """<mujoco><option timestep=".002" integrator="{}" iterations="80" ls_iterations="50"/>
<default><joint axis="0 1 0" damping=".02" armature=".01"/><geom contype="0" conaffinity="0"/>
</default><worldbody><site name="w" pos="-.1 .05 .4"/><site name="v" pos=".2 -.1 .5"/>
<site name="far" pos="-.15 0 .75"/>
<geom name="drum" type="cylinder" size=".08 .3" pos=".05 0 .45" euler="80 10 0"/>
<body name="upper"><joint name="a" springref=".2"/><geom type="capsule" size=".03 .1" pos=".1 0 0"/>
<site name="s0" pos=".05 .06 .05"/><site name="s1" pos=".15 -.02 .03"/>
<body name="lower" pos=".2 0 0"><joint name="b"/><joint name="c" axis="1 0 .3"/>
<geom name="elbow" size=".06"/><geom type="capsule" size=".03 .1" pos=".1 0 0"/>
<site name="over" pos="0 .02 .2"/><site name="ring" pos=".01 0 .02"/>
<site name="t0" pos=".1 .03 .05"/><site name="t1" pos=".2 0 .1"/></body></body>
<body name="kite" pos=".1 .3 .6" quat="1 .2 0 .1"><freejoint/><geom type="box" size=".1 .05 .02"/>
<site name="k0" pos=".1 .05 .02"/><site name="k1" pos="-.1 0 -.02"/></body></worldbody>
<tendon>
<spatial name="flexor" stiffness="20" damping=".5" range=".05 .14"><site site="s1"/>
<geom geom="elbow" sidesite="over"/><site site="t0"/></spatial>
<spatial name="sheath" stiffness="3" springlength=".1 .15"><site site="s0"/>
<geom geom="elbow" sidesite="ring"/><site site="t1"/></spatial>
<spatial name="crane" stiffness="5" damping=".1" frictionloss=".3"><site site="w"/>
<geom geom="drum"/><site site="k0"/><pulley divisor="2"/><site site="k1"/><site site="v"/>
<geom geom="drum" sidesite="far"/><site site="s0"/><pulley divisor="3"/><site site="w"/>
<site site="t1"/></spatial>
<fixed name="plain" stiffness=".5"><joint joint="a" coef="1"/><joint joint="c" coef="1.5"/></fixed>
<spatial name="kept"><site site="k0"/><site site="t0"/></spatial>
<spatial name="idle"><site site="s0"/><site site="s1"/></spatial></tendon>
<equality><tendon tendon1="kept" tendon2="plain" polycoef=".01 .2 .1 0 0"/></equality>
<actuator><motor name="m0" tendon="crane" gear="-1.5"/>
<position name="m1" tendon="flexor" kp="30" kv="1"/>
<motor joint="b"/><velocity tendon="plain" kv=".03" gear="-2"/>
<motor site="t1" refsite="s1" gear="0 0 1 0 0 0"/></actuator>
<sensor><tendonpos tendon="crane"/><tendonvel tendon="crane"/><tendonpos tendon="sheath"/>
<actuatorpos actuator="m0"/><actuatorvel actuator="m1"/></sensor></mujoco>"""
ACT = np.array([2.0, 0.1, 0.02, -0.3, 0.4])


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["Euler", pytest.param("implicit", marks=pytest.mark.long)])
def test_motion_is_mujocos(integrator):
    peer = both(ARM.format(integrator))
    sys, model, data = peer
    np.testing.assert_allclose(sys.tendon.length0, model.tendon_length0, atol=1e-12)
    np.testing.assert_allclose(sys.tendon.invweight, model.tendon_invweight0, rtol=1e-9, atol=1e-12)
    q, qd = generic(peer, np.random.default_rng(0), spread=0.1)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, qd, ACT
    state = GENERALIZED.init(sys, jnp.array(q), jnp.array(qd))
    step = jax.jit(GENERALIZED.step, compiler_options=FAST_COMPILE)
    for _ in range(10):
        mujoco.mj_step(model, data)
        assert data.ten_wrapnum.tolist() == [4, 4, 13, 0, 2, 2]  # around each geom
        state = step(sys, state, jnp.array(ACT))
        np.testing.assert_allclose(state.qd, data.qvel, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.q, data.qpos, rtol=0, atol=1e-9)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(sensors(sys, state, jnp.array(ACT)), data.sensordata, atol=1e-9)


FREE = ARM.replace('range=".05 .14"', "").replace('frictionloss=".3"', "")
FREE = FREE[: FREE.index("<equality>")] + FREE[FREE.index("<actuator>") :]


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def one_step(pipeline, sys, q, qd):
    run = plugins.get("pipeline", pipeline)
    return run.step(sys, run.init(sys, q, qd), jnp.array(ACT)).qd


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["spring", "positional"])
def test_pulls_are_mujocos_in_every_pipeline(pipeline):
    """A tendon changes rates from rest as MuJoCo's, on joints and on a free link."""
    dt = 1e-5
    peer = both(FREE.format("Euler").replace(".002", str(dt)))
    sys, model, data = peer
    q, qd = generic(peer, np.random.default_rng(0), spread=0.1)
    data.qpos[:], data.ctrl[:] = q, ACT
    mujoco.mj_step(model, data)
    assert np.abs(data.qvel).min() > 0.1 * dt
    got = one_step(pipeline, sys, jnp.array(q), jnp.zeros_like(qd))
    # Measured 3e-8 and 5e-7: the step's own length.
    np.testing.assert_allclose(got / dt, data.qvel / dt, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.long
def test_the_derivative_of_a_step_is_that_of_differences():
    """By coordinates, stiffness and a geom's size, where the path wraps around balls and a drum."""
    peer = both(FREE.format("Euler"))
    sys = peer.sys
    q, qd = (jnp.array(x) for x in generic(peer, np.random.default_rng(0), spread=0.1))
    toward = jnp.array(np.random.default_rng(1).normal(size=sys.qd_size()))

    def speed(hinges, stiffness, size):
        model = sys.tree_replace({"tendon.stiffness": stiffness, "geom.size": size})
        state = GENERALIZED.init(model, q.at[:3].set(hinges), qd)
        return toward @ GENERALIZED.step(model, state, jnp.array(ACT)).qd

    at = (q[:3], sys.tendon.stiffness, sys.geom.size)
    rng = np.random.default_rng(2)
    way = tuple(jnp.array(rng.normal(size=x.shape)) * 0.1 for x in at)
    found = jax.jit(jax.grad(speed, (0, 1, 2)), compiler_options=FAST_COMPILE)(*at)
    fast = jax.jit(speed, compiler_options=FAST_COMPILE)
    assert all(np.isfinite(g).all() and np.any(g) for g in found)
    slope = sum(float((g * w).sum()) for g, w in zip(found, way, strict=True))
    eps = 1e-5
    up, down = (fast(*(x + s * eps * w for x, w in zip(at, way, strict=True))) for s in (1, -1))
    np.testing.assert_allclose(slope, (up - down) / (2 * eps), rtol=1e-6)


WAY = """<mujoco><worldbody><geom name="g" type="{}" size=".3 1"/><site name="a"/><site name="b"/>
<site name="side"/><body><joint/><geom size=".1"/></body></worldbody><tendon><spatial>
<site site="a"/><geom geom="g" {}/><site site="b"/></spatial></tendon></mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("sided", [False, True], ids=["", "sided"])
@pytest.mark.parametrize(("shape", "way"), [("sphere", around_point), ("cylinder", around_axis)])
def test_ways_around_are_mujocos(shape, way, sided):
    """Wrapping of random points agrees with MuJoCo, with derivatives.

    The points lie inside and outside of the geom, as do the side sites.
    """
    model = mujoco.MjModel.from_xml_string(WAY.format(shape, 'sidesite="side"' * sided))
    model.site_sameframe[:] = 0
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3, 3)) * 0.5
    points[::2, 2] *= 0.2
    want, wraps = [], []
    for row in points:
        model.site_pos[:] = row
        mujoco.mj_forward(model, data)
        want.append(data.ten_length[0])
        wraps.append(data.ten_wrapnum[0] > 2)

    def length(points):
        a, b, side = (Vec3(*jnp.moveaxis(points[:, k], 1, 0)[..., None]) for k in range(3))
        found = way(a, b, jnp.full_like(a.x, 0.3), side if sided else None)
        ends = [(found.first - a), (b - found.last)]
        around = sum(jnp.sqrt(v.dot(v)) for v in ends) + found.length
        straight = jnp.sqrt((b - a).dot(b - a))
        return jnp.where(found.wraps, around, straight)[:, 0], found.wraps[:, 0]

    got, touches = length(jnp.array(points))
    np.testing.assert_array_equal(touches, wraps)
    assert 50 < sum(wraps) < 350
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
    slope = jax.grad(lambda p: length(p)[0].sum())(jnp.array(points))
    step = np.zeros_like(points)
    step[:, :2] = rng.normal(size=(400, 2, 3)) * 1e-6
    change = length(jnp.array(points + step))[0] - length(jnp.array(points - step))[0]
    smooth = np.abs(change) < 1e-4  # not where the path takes another way
    assert smooth.sum() > 390
    np.testing.assert_allclose(
        (2 * slope * step).sum(axis=(1, 2))[smooth], change[smooth], atol=1e-10
    )
