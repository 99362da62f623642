"""Our models against those that Gymnasium ships, both compiled by MuJoCo."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from brax import envs

OURS = Path(envs.__file__).parent / "assets"


MODELS = {
    "ant": "ant",
    "half_cheetah": "half_cheetah",
    "hopper": "hopper",
    "humanoid": "humanoid",
    "inverted_double_pendulum": "inverted_double_pendulum",
    "inverted_pendulum": "inverted_pendulum",
    "pusher": "pusher",
    "reacher": "reacher",
    "swimmer": "swimmer",
    "walker2d": "walker2d_v5",
}
"""Ours, and theirs. The humanoid that stands up is our humanoid, lying; theirs is another body."""

SAME_LINKS = tuple(name for name in MODELS if name != "ant")
"""Models whose links have the names of theirs. The feet of their ant have none."""

TOLERANCE = {
    "inverted_pendulum": 1e-2,  # their pole leans by 1 mm in 600, which shows in the small bias
    "inverted_double_pendulum": 1e-4,  # their gravity leans by 1e-5 m/s^2: 2e-4 N of 5 N
    "pusher": 1e-7,  # their object has 1.3e-8 kg beside the rotors' 0.04 kg, which ours has as mass
}


@pytest.fixture(params=MODELS)
def models(request):
    """Ours and theirs, and how far they may differ."""
    gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium's models are the reference")
    theirs = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    paths = OURS / f"{request.param}.xml", theirs / f"{MODELS[request.param]}.xml"
    loaded = [mujoco.MjModel.from_xml_path(str(path)) for path in paths]
    return *loaded, TOLERANCE.get(request.param, 1e-9)


JOINTS = ("jnt_type", "jnt_range", "jnt_limited", "jnt_stiffness", "jnt_solimp")
DOFS = ("dof_damping", "dof_frictionloss")
MOTORS = ("actuator_trnid", "actuator_gear", "actuator_ctrlrange", "actuator_gainprm")


def test_joints_and_motors(models):
    ours, theirs, _ = models
    assert [ours.joint(j).name for j in range(ours.njnt)] == [
        theirs.joint(j).name for j in range(theirs.njnt)
    ]
    for field in JOINTS + DOFS + MOTORS:
        mine, other = getattr(ours, field), getattr(theirs, field)
        np.testing.assert_allclose(mine, other, atol=1e-9, err_msg=field)


@pytest.mark.parametrize("models", SAME_LINKS, indirect=True)
def test_links_have_the_same_names(models):
    """Users look links up by these names, also in copies of environments of Google's brax."""
    ours, theirs = (
        [model.body(i).name for i in range(model.nbody) if model.body_jntnum[i]]
        for model in models[:2]
    )
    assert ours == theirs


def test_dynamics_in_generic_poses(models):
    """Masses, inertias, rotors, frames and springs enter the mass matrix and the forces."""
    *both, tolerance = models
    found = [[_dynamics(model, seed) for seed in range(3)] for model in both]
    for mine, other in zip(*found, strict=True):
        for ours, theirs in zip(mine, other, strict=True):
            scale = max(np.abs(theirs).max(), 1e-12)
            np.testing.assert_allclose(ours / scale, theirs / scale, atol=tolerance)


def _dynamics(model, seed):
    """Mass matrix, bias force, and force of springs, dampers and medium."""
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    data.qpos[:] = model.qpos0 + rng.uniform(-0.5, 0.5, model.nq)
    data.qvel[:] = rng.uniform(-1, 1, model.nv)
    mujoco.mj_forward(model, data)
    matrix = np.zeros((model.nv, model.nv))
    for column, unit in zip(matrix, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    return matrix, data.qfrc_bias.copy(), data.qfrc_passive.copy()


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
