"""The made models are what the curves say they are."""

import models
import mujoco
import numpy as np
import pytest


def load(model):
    return mujoco.MjModel.from_xml_string(model["xml"])


@pytest.mark.parametrize("links", [2, 7])
def test_a_chain_has_its_links_and_no_contacts(links):
    made = load(models.chain(links))
    assert (made.nbody - 1, made.nv) == (links, links)
    data = mujoco.MjData(made)
    mujoco.mj_forward(made, data)
    assert data.ncon == 0
    np.testing.assert_allclose(data.xpos[-1], [0.1 * (links - 1), 0, 0], atol=1e-12)


@pytest.mark.parametrize("contacts", [0, 1, 16, 64])
def test_a_plate_has_its_contacts_once_it_rests(contacts):
    made = load(models.tray(contacts))
    assert (made.nbody - 1, made.nv) == (1, 6)
    data = mujoco.MjData(made)
    data.qpos[2] = 0.049  # the balls are 0.05 m high
    mujoco.mj_forward(made, data)
    assert data.ncon == contacts


def settled(model, steps):
    """Return the model after some steps without motors, from where it starts."""
    made = load(model)
    made.opt.timestep = model["timestep"]
    data = mujoco.MjData(made)
    if made.nnumeric and made.numeric(0).name == "init_qpos":
        data.qpos[:] = made.numeric("init_qpos").data
    mujoco.mj_step(made, data, steps)
    return made, data


def test_a_humanoid_that_lies_touches_itself_and_the_floor():
    made, data = settled(models.crowded_humanoid(), 1000)
    pairs = made.geom_bodyid[data.contact.geom]
    assert (pairs == 0).any() and (pairs > 0).all(axis=1).any()
    assert 3 < data.ncon < 16


def test_an_ant_stands_on_rough_ground_with_all_feet_near_it():
    made, data = settled(models.rough_ant(), 300)
    assert made.geom_type[data.contact.geom].min() == mujoco.mjtGeom.mjGEOM_HFIELD
    assert data.ncon >= 3
    assert made.hfield_data.std() > 0.2


def test_boxes_lie_between_two_fingers():
    model = models.gripper()
    made, data = settled(model, 200)
    assert (made.nbody - 1, made.nu) == (6, 3)
    np.testing.assert_allclose(data.qpos[[2, 9, 16]], 0.03, atol=1e-3)
    # Pressed together by both fingers they are lifted.
    data.ctrl[:] = 0, 1, 1
    mujoco.mj_step(made, data, 200)
    data.ctrl[:] = 1, 1, 1
    mujoco.mj_step(made, data, 200)
    assert data.qpos[2] > 0.1
