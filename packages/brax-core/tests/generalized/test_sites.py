"""Actuators on sites, and bounds of a joint's actuators: MuJoCo's motion."""

import numpy as np
import pytest
from generalized_lab import INTEGRATORS, both, generic, side_by_side

CRAFT = """<mujoco><option timestep=".002" integrator="{}"/><compiler angle="radian"/>
<default><joint damping=".02" armature=".01"/></default><worldbody>
<site name="w" pos=".3 .2 .5" quat="1 .3 .2 -.1"/><body pos="0 0 1"><freejoint/>
<inertial pos=".02 .01 0" mass="1.3" diaginertia=".02 .03 .04"/>
<site name="r1" pos=".2 .1 .05" quat="1 .1 0 0"/><site name="r2" pos="-.2 0 0"/>
<body pos=".2 0 0"><joint name="b" axis="0 1 0" actuatorfrcrange="-.05 .04"/>
<inertial pos=".1 0 0" mass=".2" diaginertia=".001 .002 .002"/><body pos=".2 0 0">
<joint name="c" axis="1 0 1"/><inertial pos=".05 0 0" mass=".1" diaginertia=".001 .002 .002"/>
<body pos="0 .05 .1" euler=".2 .3 .4"><site name="tip" pos=".1 .02 0" quat=".9 .2 .3 .1"/></body>
</body></body><body pos="-.2 0 0.1"><joint name="d" axis="0 0 1"/>
<inertial pos=".1 0 0" mass=".2" diaginertia=".001 .002 .002"/><site name="other" pos=".15 0 .1"/>
</body></body></worldbody><actuator><motor site="r1" gear="0 0 1 0 0 .1"/>
<motor site="r2" gear=".1 0 1 0 .3 -.1"/>
<general site="tip" gear=".3 .2 .1 .02 .05 .03" biastype="affine" biasprm="0 -.5 -.8"/>
<position site="tip" refsite="r1" gear=".3 .2 .1 .02 .05 .03" kp="2" kv="1.5"/>
<position site="other" refsite="tip" gear="1 .2 .1 .3 .05 .1" kp=".4" kv=".3" timeconst=".1"/>
<position site="tip" refsite="w" gear="0 1 .4 .3 .05 .1" kp=".4" kv=".3"/>
<position joint="b" kp="2" kv=".1"/><damper joint="b" kv=".3" ctrlrange="0 1"/></actuator>
</mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_motion_is_mujocos(f64, integrator):
    peer = both(CRAFT.format(integrator))
    data = peer.data
    data.qpos, data.qvel = generic(peer, np.random.default_rng(0))
    data.ctrl = [0.2, 0.5, 0.4, 0.8, -0.6, 0.7, 0.4, 0.9]
    saturated = 0
    for state in side_by_side(peer, 50):
        saturated += data.qfrc_actuator[6] in (-0.05, 0.04)
        assert state.activation is not None
        got = state.q, state.qd, state.activation
        for mine, want in zip(got, (data.qpos, data.qvel, data.act), strict=True):
            np.testing.assert_allclose(mine, want, rtol=0, atol=1e-12)  # 2e-15
    assert saturated > 5
