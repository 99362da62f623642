"""The reacher by angles: the reacher's arm, which is told the angles of its joints."""

import dataclasses
from typing import ClassVar

from brax.envs.reacher import Reacher, ReacherParameters
from brax.envs.task import Physics


@dataclasses.dataclass(frozen=True)
class ReacherangleParameters(ReacherParameters):
    """What it is rewarded for and how it starts: as the reacher."""

    ctrl_cost_weight: float = 0.0
    """Cost of the squared angles that the joints are told; no angle costs more than another."""


class Reacherangle(Reacher):
    """The reacher with servos. Actions in [-1, 1] are scaled to angles, half a turn either way.

    The reward is `reward_dist + reward_ctrl`. Episodes end by time only.
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
