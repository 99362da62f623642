"""The acrobot: two hanging rods that swing up with a motor in the elbow."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import kinematics
from brax.base import State as PipelineState
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, Task

PIVOT = 2.2
"""Height of the pivot [m]."""


@dataclasses.dataclass(frozen=True)
class AcrobotParameters:
    """Reward and initial state of the acrobot."""

    height_reward_weight: float = 0.5
    """Reward per height of the tip above the pivot [1/m]; the height is between -2 m and 2 m."""
    ctrl_cost_weight: float = 1e-3
    """Cost of the squared action."""
    reset_noise_scale: float = 0.1
    """Maximum deviation of initial angles [rad] and rates [rad/s] from hanging at rest."""


class Acrobot(Task):
    """Two rods of 1 m with a motor between them; the upper one hangs from a pivot.

    The reward is `reward_height + reward_ctrl`: -1 when hanging, 1 when balanced upright. Episodes
    end only by truncation. The motor is too weak to lift the rods; it has to swing them.

    Source of the task: Spong (1995), The Swing Up Control Problem for the Acrobot. Departures:
    uniform rods, and a reward for height, for learning.
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
        """Return the reward for height of the tip above the pivot, and the cost of the action."""
        p = self.parameters
        # The tip is a static body, fused with the lower rod, so its pose is found by name.
        height = kinematics.frame(self.sys, after.x, "tip").pos[2] - PIVOT
        return {
            "reward_height": p.height_reward_weight * height,
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
