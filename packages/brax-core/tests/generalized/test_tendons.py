"""Fixed tendons in joint coordinates: MuJoCo's motion, by every integrator that both have."""

import mujoco
import numpy as np
import pytest
from generalized_lab import both, generalized, generic  # noqa: F401
from physics_lab import record

FINGER = """<mujoco><option timestep=".002" integrator="{}"/><compiler angle="radian"/>
<default><joint axis="0 1 0" damping=".02" armature=".001"/></default><worldbody><body>
<joint name="a" ref=".1"/><inertial pos=".1 0 0" mass=".3" diaginertia=".001 .002 .002"/>
<body pos=".2 0 0"><joint name="b"/><inertial pos=".1 0 0" mass=".2" diaginertia=".001 .002 .002"/>
<body pos=".2 0 0"><joint name="c"/><inertial pos=".05 0 0" mass=".1"
diaginertia=".001 .002 .002"/></body></body>
<body pos="0 .1 0"><joint name="d" axis="0 0 1"/><inertial pos=".1 0 0" mass=".3"
diaginertia=".001 .002 .002"/></body></body></worldbody>
<tendon><fixed name="flexor" stiffness=".8" damping=".05" springlength=".1 .3"><joint joint="a"
coef=".5"/><joint joint="b" coef="1"/><joint joint="c" coef="-.7"/></fixed>
<fixed name="across" stiffness=".5"><joint joint="b" coef="1"/><joint joint="d" coef="1.5"/></fixed>
<fixed name="idle"><joint joint="a" coef="2"/></fixed></tendon>
<actuator><position tendon="flexor" kp="2" gear="1.5"/><motor joint="d"/>
<velocity tendon="across" kv=".03" gear="-2"/></actuator></mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "integrator",
    [
        "Euler",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("implicitfast", "implicit", "RK4")),
    ],
)
def test_motion_is_mujocos(f64, integrator):
    peer = both(FINGER.format(integrator))
    q, qd = generic(peer, np.random.default_rng(0))
    act = np.array([0.4, 0.2, -0.3])
    got = record(peer.sys, q=q, qd=qd, act=act, steps=20)
    data = peer.data
    data.qpos, data.qvel, data.ctrl = q, qd, act
    rows = []
    for _ in range(20):
        mujoco.mj_step(peer.model, data)
        rows.append(np.concatenate([data.qpos, data.qvel]))
    want = np.array(rows)
    assert np.ptp(want, axis=0).min() > 0.01  # everything moves
    np.testing.assert_allclose(np.concatenate([got.q, got.qd], axis=1), want, rtol=0, atol=1e-9)
