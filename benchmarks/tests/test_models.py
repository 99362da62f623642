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
