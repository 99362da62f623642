"""The humanoid that lies on its back and learns to stand up."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.envs.humanoid import MAXIMAL, Humanoid
from brax.envs.task import Physics, Task


@dataclasses.dataclass(frozen=True)
class HumanoidStandupParameters:
    """What the humanoid is rewarded for and how it starts."""

    uph_cost_weight: float = 1.0
    """Reward per height of the torso over the duration of a step [s/m]."""
    ctrl_cost_weight: float = 0.01
    """Cost of the squared length of the controls, which are within 0.4."""
    reset_noise_scale: float = 0.01
    """Coordinates and velocities start up to this far from the rest."""
    exclude_current_positions_from_observation: bool = True
    """True if x and y are hidden."""


class HumanoidStandup(Task):
    """The humanoid's body on its back. All but upper arms and thighs meets the floor.

    The reward is `reward_linup + reward_alive + reward_quadctrl`. Actions in [-1, 1] are scaled to
    the motors' range, -0.4 to 0.4. Episodes end by time only.
    """

    name = "humanoidstandup"
    model = "humanoidstandup.xml"
    physics: ClassVar = {"generalized": Physics(0.003, 5), "spring": MAXIMAL, "positional": MAXIMAL}
    kind = HumanoidStandupParameters
    scaled = True
    hidden = Humanoid.hidden
    layout = Humanoid.layout

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Height of the torso and 1, less the cost of controls."""
        p = self.parameters
        return {
            "reward_linup": p.uph_cost_weight * after.q[2] / self.dt,
            "reward_alive": jnp.ones(()),
            "reward_quadctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
