"""The humanoid that starts on its back and learns to stand up."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.envs.humanoid import MAXIMAL, Humanoid
from brax.envs.task import Physics, Task


@dataclasses.dataclass(frozen=True)
class HumanoidStandupParameters:
    """Reward and initial state of the humanoid."""

    uph_cost_weight: float = 1.0
    """Reward per height of the torso over the duration of a step [s/m]."""
    ctrl_cost_weight: float = 0.01
    """Cost of the squared norm of the controls, which are within ±0.4."""
    reset_noise_scale: float = 0.01
    """Maximum noise of initial coordinates and velocities."""
    exclude_current_positions_from_observation: bool = True
    """True if x and y are not observed."""


class HumanoidStandup(Task):
    """The humanoid on its back. All parts except upper arms and thighs collide with the floor.

    The reward is `reward_linup + reward_alive + reward_quadctrl`. Actions in [-1, 1] are scaled to
    the motors' range, -0.4 to 0.4. Episodes end only by truncation.

    Source of the task: Gymnasium's `HumanoidStandup`. Departures: a tenth of the control cost, and
    no cost of impacts.
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
        """Return the reward for the torso's height, a constant 1, and the control cost."""
        p = self.parameters
        return {
            # Gymnasium divides the height by the time step, not the gain in height.
            "reward_linup": p.uph_cost_weight * after.q[2] / self.dt,
            "reward_alive": jnp.ones(()),
            "reward_quadctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
