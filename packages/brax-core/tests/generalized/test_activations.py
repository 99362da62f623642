"""Activations, gains and muscles in joint coordinates: MuJoCo's motion, by every integrator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generalized_lab import INTEGRATORS, both, side_by_side
from physics_lab import FAST_COMPILE

from brax.generalized.pipeline import GENERALIZED

ARM = """<mujoco><option timestep=".004" integrator="{}" actuatorgroupdisable="3"/>
<compiler angle="radian"/><default><joint axis="0 1 0" damping=".02" armature=".01"/></default>
<worldbody><body><joint name="a" ref=".1"/>
<inertial pos=".1 0 0" mass=".3" diaginertia=".001 .002 .002"/><body pos=".2 0 0"><joint name="b"/>
<inertial pos=".1 0 0" mass=".2" diaginertia=".001 .002 .002"/><body pos=".2 0 0"><joint name="c"/>
<inertial pos=".05 0 0" mass=".1" diaginertia=".001 .002 .002"/></body></body></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef=".5"/><joint joint="b" coef="1"/></fixed></tendon>
<actuator><motor joint="a" gear=".3"/>
<general joint="a" gaintype="affine" gainprm="1 .3 -.2" biastype="affine" biasprm=".1 -.5 -.05"/>
<intvelocity joint="b" kp="3" actrange="-.3 .01"/>
<cylinder joint="c" timeconst=".05" area=".3" bias=".05 -.1 -.02"/>
<position joint="c" kp=".5" timeconst=".03"/>
<muscle joint="a" lengthrange="-1 1.5" force="2"/>
<muscle tendon="t" lengthrange="-1.7 2" scale="3" tausmooth=".3" gear="1.1"/>
<general joint="b" dyntype="filter" dynprm=".04" gaintype="affine" gainprm=".5 .1 -.2"
actearly="true"/>
<general joint="b" dyntype="filterexact" dynprm=".04" gainprm=".5" actearly="true"
actlimited="true" actrange="-.1 .1"/><motor joint="a" gear="5" group="3"/></actuator></mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_motion_is_mujocos(f64, integrator):
    peer = both(ARM.format(integrator))
    rng, data = np.random.default_rng(0), peer.data
    data.qpos, data.qvel = 0.3 * rng.normal(size=3), rng.normal(size=3)
    data.ctrl = [0.2, 0.5, 0.4, 0.8, -0.6, 0.7, 0.4, 0.9, -0.7, 1.0]
    for state in side_by_side(peer, 100):
        for got, want in ((state.q, data.qpos), (state.qd, data.qvel)):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)  # 2e-15
        assert state.activation is not None
        np.testing.assert_allclose(state.activation, data.act, rtol=0, atol=1e-12)  # 6e-16
    assert np.ptp(data.act) > 1  # they differ


@pytest.mark.slow
def test_gradients_of_a_muscle_are_those_of_differences(f64):
    sys = both(ARM.format("Euler")).sys
    start = GENERALIZED.init(sys, jnp.array([0.1, 0.2, 0.3]), jnp.array([0.3, -0.2, 0.1]))

    def end(activation, act):
        state = start.replace(activation=activation)
        after = GENERALIZED.step(sys, state, act)
        assert after.activation is not None
        return after.qd @ jnp.array([1.0, 2.0, 3.0]) + after.activation @ jnp.arange(7.0)

    at = jnp.array([0.0, 0.3, 0.2, 0.4, 0.5, 0.1, 0.05]), jnp.linspace(0.1, 0.9, 10)
    found = jax.jit(jax.grad(end, argnums=(0, 1)), compiler_options=FAST_COMPILE)(*at)
    value = jax.jit(end, compiler_options=FAST_COMPILE)
    for which, gradient in enumerate(found):
        for i in range(len(gradient)):
            ends = []
            for side in (1e-5, -1e-5):
                moved = list(at)
                moved[which] = at[which].at[i].add(side)
                ends.append(float(value(*moved)))
            assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-9)
