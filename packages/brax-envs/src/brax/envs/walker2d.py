"""The walker: two legs that learn to walk along x in a plane."""

import dataclasses
from typing import ClassVar

from brax.envs.hopper import Hopper, HopperParameters, clipped
from brax.envs.observation import Part
from brax.envs.task import Physics


@dataclasses.dataclass(frozen=True)
class Walker2dParameters(HopperParameters):
    """Reward, termination and initial state of the walker; those not listed are the hopper's."""

    healthy_z_range: tuple[float, float] = (0.8, 2.0)
    healthy_angle_range: tuple[float, float] = (-1.0, 1.0)
    healthy_state_range: tuple[float, float] = (-float("inf"), float("inf"))


class Walker2d(Hopper):
    """A torso on two legs with three motors each, in a plane.

    The reward is `reward_forward + reward_healthy + reward_ctrl`.

    Source of the task: Gymnasium's `Walker2d`. Departures: only the feet collide with the floor.
    The step that terminates is rewarded as a healthy one, as in Gymnasium's v4, but not in v5.
    """

    name = "walker2d"
    model = "walker2d.xml"
    physics: ClassVar = {"generalized": Physics(0.002, 4)}
    kind = Walker2dParameters
    layout = (
        Part("torso height", "m", "q", 1, 2),
        Part("torso pitch", "rad", "q", 2, 3),
        Part("thigh, leg and foot angles, right, then left", "rad", "q", 3, 9),
        clipped("torso velocity x, z", "m/s", 0, 2),
        clipped("torso pitch rate", "rad/s", 2, 3),
        clipped("thigh, leg and foot rates, right, then left", "rad/s", 3, 9),
    )
