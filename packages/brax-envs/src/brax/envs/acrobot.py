"""The acrobot: two hanging rods that swing up by a motor in the elbow."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import kinematics
from brax.base import State as PipelineState
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, Task

PIVOT = 2.2
"""Height of the point that the rods hang from [m]."""


@dataclasses.dataclass(frozen=True)
class AcrobotParameters:
    """What the acrobot is rewarded for and how it starts."""

    height_reward_weight: float = 0.5
    """Reward per height of the tip above the pivot [1/m], from -2 m to 2 m."""
    ctrl_cost_weight: float = 1e-3
    """Cost of the squared action."""
    reset_noise_scale: float = 0.1
    """Angles and rates start up to this far from hanging at rest."""


class Acrobot(Task):
    """Two rods of 1 m, of which the upper one hangs from a pivot, and a motor between them.

    The reward is `reward_height + reward_ctrl`: -1 hanging, 1 balanced upright. Episodes end by
    time only. The motor cannot lift the rods; it has to swing them.

    Source of the task: Spong (1995), The Swing Up Control Problem for the Acrobot. Departures: rods
    of even mass, and a reward by height for learning.
    """

    name = "acrobot"
    model = "acrobot.xml"
    physics: ClassVar = {
        "generalized": Physics(0.01, 4),
        "spring": Physics(0.005, 8),
        "positional": Physics(0.005, 8),
    }
    kind = AcrobotParameters
    layout = (
        Computed("cosines of the angles", "", 2, lambda _, s, __: jnp.cos(s.q)),
        Computed("sines of the angles", "", 2, lambda _, s, __: jnp.sin(s.q)),
        Part("rates of shoulder and elbow", "rad/s", "qd", 0, 2),
    )

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Height of the tip above the pivot, less the cost of the action."""
        p = self.parameters
        height = kinematics.frame(self.sys, after.x, "tip").pos[2] - PIVOT
        return {
            "reward_height": p.height_reward_weight * height,
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
