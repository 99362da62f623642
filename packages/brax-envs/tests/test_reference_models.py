"""Our models against those that Gymnasium ships, both compiled by MuJoCo."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from brax import envs

OURS = Path(envs.__file__).parent / "assets"


@pytest.fixture(params=["ant.xml", "inverted_pendulum.xml"])
def models(request):
    """Ours and theirs."""
    gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium's models are the reference")
    theirs = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    return [mujoco.MjModel.from_xml_path(str(path / request.param)) for path in (OURS, theirs)]


JOINTS = ("jnt_type", "jnt_axis", "jnt_range", "jnt_limited", "jnt_pos", "jnt_stiffness")
DOFS = ("dof_armature", "dof_damping", "dof_frictionloss")
MOTORS = ("actuator_trnid", "actuator_gear", "actuator_ctrlrange", "actuator_gainprm")


@pytest.mark.parametrize("field", JOINTS + DOFS + MOTORS)
def test_joints_and_motors(models, field):
    ours, theirs = models
    assert [ours.joint(j).name for j in range(ours.njnt)] == [
        theirs.joint(j).name for j in range(theirs.njnt)
    ]
    np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), atol=1e-9)


def test_mass_matrix_and_bias_in_a_generic_pose(models):
    """Masses, inertias and frames all enter the mass matrix and the bias force."""
    found = []
    for model in models:
        data, rng = mujoco.MjData(model), np.random.default_rng(0)
        data.qpos[:] = model.qpos0 + rng.uniform(-0.5, 0.5, model.nq)
        data.qvel[:] = rng.uniform(-1, 1, model.nv)
        mujoco.mj_forward(model, data)
        matrix = np.zeros((model.nv, model.nv))
        for column, unit in zip(matrix, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, column, unit)
        found.append((matrix, data.qfrc_bias.copy()))
    # The reference's pole leans by 1 mm in 600, which shows in the small bias force.
    tolerance = 1e-2 if models[0].nv == 2 else 1e-9
    for ours, theirs in zip(*found, strict=True):
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours / scale, theirs / scale, atol=tolerance)


def test_the_ant_stands_with_its_feet_outwards_and_down():
    model = mujoco.MjModel.from_xml_path(str(OURS / "ant.xml"))
    data = mujoco.MjData(model)
    data.qpos[:] = model.numeric("init_qpos").data
    mujoco.mj_forward(model, data)
    for leg, end in enumerate([(0.4, 0.4), (-0.4, 0.4), (-0.4, -0.4), (0.4, -0.4)], 1):
        foot = data.body(f"foot_{leg}")
        tip = foot.xpos + foot.xmat.reshape(3, 3) @ [*end, 0]
        # The ankle is 0.4 sqrt(2) from the torso's axis, the foot as long and 1 rad below level.
        length = 0.4 * np.sqrt(2)
        assert tip[2] == pytest.approx(0.55 - length * np.sin(1))
        assert tip[:2] == pytest.approx(np.sign(end) * length * (1 + np.cos(1)) / np.sqrt(2))
