"""More known answers of `tests/physics` in joint coordinates: T07, T11, T17, T23, T41, T43."""

# ruff: noqa: F401

import pytest
from generalized_lab import generalized
from precision import bound, bound_slow
from test_actuators import (
    test_actuators_of_one_joint_add_up,
    test_each_actuator_drives_its_own_joint,
)
from test_contacts import test_a_ball_rolls_down_a_slope, test_a_ball_slips_down_a_slope
from test_free_body import test_flips_about_the_middle_axis
from test_joints import (
    test_a_rotor_keeps_its_rate_while_its_link_tumbles,
    test_energy_of_a_double_pendulum_drifts_no_more_than_mujocos,
    test_orbit_of_two_springs_closes,
    test_orbit_of_two_springs_keeps_its_angular_momentum,
)

pytestmark = pytest.mark.slow
