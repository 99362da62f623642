"""Dampers, dry friction and rotors: of free joints, and explicit ones; servos that only turn."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both
from physics_lab import FAST_COMPILE

from brax import plugins
from brax.errors import ModelError
from brax.generalized.pipeline import GENERALIZED


def check_step(xml, q=None, qd=None, ctrl=(), activation=None):
    """Compare the rates after a step with MuJoCo's, and return MuJoCo's."""
    peer = both(xml)
    model, data = peer.model, peer.data
    data.qpos[:] = data.qpos if q is None else q
    data.qvel[:], data.ctrl[:] = 0.0 if qd is None else qd, ctrl
    sys = peer.sys.replace(opt=peer.sys.opt.replace(iterations=20, ls_iterations=10))

    def step(sys, q, qd, act):
        state = GENERALIZED.init(sys, q, qd)
        if activation is not None:
            state = state.replace(activation=jnp.array(activation))
        return GENERALIZED.step(sys, state, act).qd

    if activation is not None:
        data.act[:] = activation
    args = [jnp.array(x) for x in (data.qpos, data.qvel, data.ctrl)]
    found = jax.jit(step, compiler_options=FAST_COMPILE)(sys, *args)
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(found, data.qvel, rtol=1e-10, atol=1e-12)
    return data.qvel


FREE = """<mujoco><option gravity="0 0 0" integrator="{}">{}</option><worldbody><body pos="0 0 1">
<joint type="free" damping=".5" frictionloss=".1" armature=".2"/>
<geom type="box" size=".1 .2 .3" mass="2" pos="{}"/>{}</body></worldbody></mujoco>"""
OFF = '<flag eulerdamp="disable"/>'
CHILD = """<body pos=".3 0 0"><joint axis="0 1 0" damping=".2"/><geom size=".1"/></body>"""
TURNED = [0.1, 0.2, 1.0, 0.8, 0.2, -0.4, 0.4]


def test_a_free_joint_is_resisted_along_its_six_coordinates():
    check_step(FREE.format("Euler", "", "0 0 0", ""), qd=[1, 0, 0, 0, 2, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["", OFF], ids=["eulerdamp", "no eulerdamp"])
@pytest.mark.parametrize(
    "integrator",
    [
        "Euler",
        "implicitfast",
        *(pytest.param(i, marks=pytest.mark.long) for i in ("implicit", "RK4")),
    ],
)
def test_a_resisted_free_joint_that_carries_others_is_mujocos(integrator, flag):
    q = np.array([*TURNED, 0.3])
    q[3:7] /= np.linalg.norm(q[3:7])
    qd = [1, -0.3, 0.2, 0.4, 2, 0.5, -0.6]
    check_step(FREE.format(integrator, flag, ".1 .2 0", CHILD), q, qd)


@pytest.mark.parametrize("name", ["spring", "positional"])
def test_pipelines_that_do_not_resist_free_joints_say_so(name):
    sys = both(FREE.format("Euler", "", "0 0 0", "")).sys
    with pytest.raises(ModelError, match="damping, dry friction or armature of a free joint"):
        plugins.get("pipeline", name).init(sys, sys.init_q, jnp.zeros(6))


def test_explicit_damping_is_mujocos():
    """1 - .01 * 2 / .041."""
    found = check_step(
        f"""<mujoco><option timestep=".01" gravity="0 0 0">{OFF}</option><worldbody><body>
<joint axis="0 1 0" damping="2"/><geom size=".05" pos=".2 0 0" mass="1"/></body></worldbody>
</mujoco>""",
        qd=[1.0],
    )
    np.testing.assert_allclose(found, 0.512195, rtol=1e-6)


TURNING = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint axis="0 0 1"/>
<geom type="box" size=".2 .1 .1" mass="3"/><site name="tip"/></body><site name="base"/></worldbody>
<actuator>{}</actuator></mujoco>"""
ON = 'site="tip" refsite="base"'
SERVOS = "".join(
    (
        f'<position {ON} gear="0 0 0 0 0 1" kp="2"/>',
        f'<position {ON} gear="0 0 0 .6 0 -1.3" kp=".7" kv=".1"/>',
        f'<position {ON} gear=".1 0 0 0 0 1" kp=".5"/>',
        f'<general {ON} gear="0 0 0 0 0 1" gainprm="2" biastype="affine" biasprm=".5 -2 0"/>',
        f'<general {ON} gear="0 0 0 0 0 1" gainprm="2" biastype="affine" biasprm=".5 -1 0"/>',
        f'<general {ON} gear="0 0 0 0 0 1" gaintype="affine" gainprm="2 0 0" biastype="affine"'
        ' biasprm="0 -2 0"/>',
        f'<velocity {ON} gear="0 0 0 0 0 1" kv="2"/>',
        '<position site="tip" gear="0 0 0 0 0 1" kp="2"/>',
        f'<intvelocity {ON} gear="0 0 0 0 0 1" kp="2" actrange="-30 30"/>',
        f'<position {ON} gear="0 0 0 0 0 1" kp="3" timeconst=".1"/>',
    )
)
"""Setpoints on the circle, and what is none: other gears, gains and biases, no reference."""


def test_a_servo_between_sites_that_only_turn_takes_the_nearest_turn():
    found = check_step(TURNING.format(SERVOS.split("/>")[0] + "/>"), [2.0], [0.0], [-2.5])
    np.testing.assert_allclose(found, 0.142654825, rtol=1e-8)
    ctrl = [-2.5, 9.0, -4.0, 7.0, 6.0, -3.0, 1.0, 5.0, 2.0, -6.0]
    servos, activation = SERVOS, [-3.5, 9.0]
    if int(mujoco.__version__.split(".")[0]) < 4:
        # It takes the setpoint of a filtered servo, the last one, as it is.
        servos, ctrl, activation = SERVOS.rpartition("<")[0], ctrl[:-1], activation[:-1]
    check_step(TURNING.format(servos), [2.0], [0.3], ctrl, activation=activation)
