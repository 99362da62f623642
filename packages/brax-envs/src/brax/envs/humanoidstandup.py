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
    """Reward per height of the torso over the duration of a step [s/m]; with 5 it is that of
    Gymnasium."""
    ctrl_cost_weight: float = 0.01
    """Cost of the squared norm of the controls, which are within ±0.4; Gymnasium's is 0.1."""
    reset_noise_scale: float = 0.01
    """Maximum noise of initial coordinates and velocities."""
    exclude_current_positions_from_observation: bool = True
    """True if x and y are not observed."""


class HumanoidStandup(Task):
    """The humanoid on its back. Upper arms, thighs and waist do not collide with the floor.

    The reward is `reward_linup + reward_alive + reward_quadctrl`. Actions in [-1, 1] are scaled to
    the motors' range, -0.4 to 0.4. Episodes end only by truncation.

    Source of the task: Gymnasium's `HumanoidStandup`. Departures: the reward for the height is a
    fifth of Gymnasium's, which divides the height by the physics step of 0.003 s, not by the whole
    step of 0.015 s. The control cost is a tenth, so it is half of Gymnasium's in proportion to the
    height. There is no cost of impacts. `uph_cost_weight=5, ctrl_cost_weight=0.1` gives
    Gymnasium's numbers. The body is that of `humanoid`, whose departures in actions and
    observation apply, and its parts do not collide with each other.
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
            # The height counts, not its gain, as in Gymnasium. There the divisor is the physics
            # step, a fifth of `dt`; learning curves depend on this one.
            "reward_linup": p.uph_cost_weight * after.q[2] / self.dt,
            "reward_alive": jnp.ones(()),
            "reward_quadctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
