"""The known answers of `tests/physics` that hold in joint coordinates too, in both precisions.

T01, T02, T04, T05, T15, T16, T23 and T24; what takes longer is in `test_longer_shared_answers.py`.
Where the answer differs, as with soft limits, the tests beside this file have it.
"""

# ruff: noqa: F401

from generalized_lab import generalized
from precision import bound, bound_slow
from test_actuators import (
    test_clamping_does_not_change_the_control,
    test_force_is_clamped,
    test_force_is_gear_times_gain_and_bias,
)
from test_free_body import (
    test_error_of_free_fall_is_of_first_order,
    test_free_fall_is_the_discrete_sum,
    test_projectile,
    test_rotation_is_the_exact_exponential,
)
from test_joints import (
    test_a_rotor_slows_what_its_motor_turns,
    test_implicit_damping_is_the_discrete_power,
    test_oscillator_has_the_discrete_frequency,
    test_oscillator_in_single_precision,
    test_period_of_a_pendulum,
    test_period_of_a_rod,
    test_strong_damping_never_turns_the_motion_round,
)
