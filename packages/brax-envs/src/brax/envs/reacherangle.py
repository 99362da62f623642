"""The reacher with joint angles as actions."""

import dataclasses
from typing import ClassVar

from brax.envs.reacher import Reacher, ReacherParameters
from brax.envs.task import Physics


@dataclasses.dataclass(frozen=True)
class ReacherangleParameters(ReacherParameters):
    """Reward and initial state of the reacher with servos."""

    ctrl_cost_weight: float = 0.0
    """Cost of the squared target angles; 0, since no angle is worse than another."""


class Reacherangle(Reacher):
    """The reacher with servos. Actions in [-1, 1] are scaled to angles from -180 to 180 degrees.

    The reward is `reward_dist + reward_ctrl`. Episodes end only by truncation.
    """

    name = "reacherangle"
    model = "reacherangle.xml"
    physics: ClassVar = {
        "generalized": Physics(0.01, 2),
        "spring": Physics(0.005, 4),
        "positional": Physics(0.005, 4),
    }
    kind = ReacherangleParameters
    scaled = True
