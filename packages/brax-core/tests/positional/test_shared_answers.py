"""The known answers of `tests/physics` that do not depend on the pipeline, for this one.

T01 to T05, T07 to T11, T14 to T17, T19, T20, T23, T24, T39 to T43, T46, T49, T58 and T59. The
bounds are the same; residuals of this pipeline are in `docs/positional.md`.
"""

# ruff: noqa: F401

import pytest
from test_actuators import (
    test_actuators_of_one_joint_add_up,
    test_clamping_does_not_change_the_control,
    test_control_is_clamped,
    test_each_actuator_drives_its_own_joint,
    test_force_is_clamped,
    test_force_is_gear_times_gain_and_bias,
)
from test_contacts import (
    test_a_ball_rolls_down_a_slope,
    test_a_ball_slips_down_a_slope,
    test_a_box_sticks_and_slips_at_the_angle_of_friction,
    test_a_capsule_comes_to_rest,
    test_a_collision_of_two_balls,
    test_a_sliding_box,
    test_an_elastic_bounce_gains_no_energy,
    test_bounce_heights,
    test_friction_has_no_preferred_direction,
    test_the_floor_bears_a_sphere_at_rest,
)
from test_free_body import (
    test_a_quaternion_stays_normalized,
    test_box_tumbles_as_eulers_equations_say,
    test_energy_and_momentum_of_a_long_tumble,
    test_energy_never_grows_over_100_seconds,
    test_energy_of_a_tumble_never_grows,
    test_error_of_free_fall_is_of_first_order,
    test_flips_about_the_middle_axis,
    test_free_fall_is_the_discrete_sum,
    test_projectile,
    test_rotation_is_the_exact_exponential,
    test_velocity_damping_is_exponential,
)
from test_joint_features import (
    test_a_ball_joint_stops_at_its_range,
    test_a_ball_joint_swings_on_its_spring,
    test_a_ball_joint_with_a_range_passes_through_no_angle,
    test_a_heavy_rotor_on_a_light_link,
    test_coordinates_at_rest_are_ref,
    test_dry_friction_holds_and_slips,
    test_gimbal_lock_is_survived,
)
from test_joints import (
    test_a_bead_on_a_turning_rod,
    test_a_hinge_rests_at_its_limit,
    test_a_rotor_slows_what_its_motor_turns,
    test_a_slide_rests_at_its_limit,
    test_energy_of_a_double_pendulum_drifts_no_more_than_mujocos,
    test_implicit_damping_is_the_discrete_power,
    test_orbit_of_two_springs_closes,
    test_orbit_of_two_springs_keeps_its_angular_momentum,
    test_oscillator_has_the_discrete_frequency,
    test_oscillator_in_single_precision,
    test_period_of_a_pendulum,
    test_period_of_a_rod,
    test_strong_damping_never_turns_the_motion_round,
    test_torques_between_links_keep_the_total_momentum,
)
from test_kinematics import test_frames_and_coordinates_keep_together

pytestmark = pytest.mark.slow
