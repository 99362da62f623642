"""The ant as the tutorials write it: numbers worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from brax.io import mjcf

ANT = Path(__file__).parent / "models" / "ant.xml"


@pytest.fixture(scope="module")
def ant():
    return mjcf.load(ANT)


def test_links(ant):
    assert ant.link_types == "f11111111"
    assert ant.link_parents == (-1, 0, 1, 0, 3, 0, 5, 0, 7)
    assert ant.link_names[:3] == ("torso", "aux_1", "foot_1")


def test_leg_stubs_belong_to_the_torso(ant):
    sphere = 5 * 4 / 3 * np.pi * 0.25**3
    capsule = 5 * np.pi * 0.08**2 * (0.2 * np.sqrt(2) + 4 / 3 * 0.08)
    np.testing.assert_allclose(ant.link.inertia.mass[:2], [sphere + 4 * capsule, capsule], 1e-6)


def test_limits_are_radians(ant):
    lower, upper = (np.rad2deg(bound) for bound in ant.dof.limit)
    assert np.isinf(lower[:6]).all()
    np.testing.assert_allclose(lower[6:], [-30, 30, -30, -70, -30, -70, -30, 30], 1e-5)
    np.testing.assert_allclose(upper[6:], [30, 70, 30, -30, 30, -30, 30, 70], 1e-5)


def test_only_feet_meet_the_floor(ant):
    pairs = {
        (ant.geom_names[a], ant.geom_names[b])
        for group in ant.collisions
        for a, b in zip(group.geom1, group.geom2, strict=True)
    }
    assert pairs == {("floor", f"foot_{i}") for i in range(1, 5)}


def test_actuators_are_in_the_order_of_the_file(ant):
    assert [ant.joint_names[j] for j in ant.actuator_joint] == [
        *("hip_4", "ankle_4", "hip_1", "ankle_1", "hip_2", "ankle_2", "hip_3", "ankle_3")
    ]
    np.testing.assert_array_equal(ant.actuator.gear, 150)
    np.testing.assert_array_equal(ant.actuator.ctrl_range, [[-1, 1]] * 8)


def test_custom_numbers(ant):
    np.testing.assert_allclose(ant.init_q, [0, 0, 0.55, 1, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0, 1])
    np.testing.assert_allclose(ant.ang_damping, -0.05)
