"""MuJoCo's step with other contacts than its own acts at those alone."""

import jax
import mujoco
import mujoco_steps
import numpy as np
import pytest

from brax.io import mjcf

STUCK = """<mujoco><size memory="20K"/><worldbody>
<geom type="plane" size="1 1 1" gap=".1"/>
<body name="ball" pos="0 0 .15"><freejoint/><geom size=".1" mass="1"/></body></worldbody>
<actuator><adhesion body="ball" ctrlrange="0 1" gain="5"/></actuator></mujoco>"""


@pytest.mark.parametrize(("above", "pull"), [(0.05, 5.0), (0.2, 0.0)], ids=["in the gap", "out"])
def test_adhesion_acts_at_the_exchanged_contacts(above, pull):
    model = mujoco_steps.exact(mujoco.MjModel.from_xml_string(STUCK))
    assert model.narena == mujoco_steps.MEMORY  # the file's would be too little for many contacts
    at = np.array([[0, 0, 0.15, 1, 0, 0, 0]])
    before = mujoco_steps.Before(at, np.zeros((1, 6)), np.zeros((1, 0)), np.ones((1, 1)))
    with jax.enable_x64(True):
        system = mjcf.loads(STUCK)
        found = mujoco_steps.contacts_at(system, model, before)
        np.testing.assert_allclose(found.dist, [[0.05]], atol=1e-12)
        put = found._replace(dist=np.full((1, 1), above))
        qd, _ = mujoco_steps.with_contacts(system, model, before, put)
    # The ball has a mass of 1 kg and the step is 2 ms.
    np.testing.assert_allclose(qd[0, 2], -(9.81 + pull) * 0.002, rtol=1e-9)
