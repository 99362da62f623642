"""The half cheetah: a planar runner with a front leg and a back leg."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.envs.observation import Part
from brax.envs.task import Physics, Task, normal


@dataclasses.dataclass(frozen=True)
class HalfcheetahParameters:
    """Reward and initial state of the half cheetah."""

    forward_reward_weight: float = 1.0
    """Reward per velocity along x [s/m]."""
    ctrl_cost_weight: float = 0.1
    """Cost of the squared norm of the action."""
    reset_noise_scale: float = 0.1
    """Maximum noise of initial coordinates, and standard deviation of initial velocities."""
    exclude_current_positions_from_observation: bool = True
    """True if x is not observed."""


class Halfcheetah(Task):
    """A planar body with two legs of three joints each.

    The reward is `reward_run + reward_ctrl`. Episodes end only by truncation.

    Source of the task: Gymnasium's `HalfCheetah`. Departure: the thighs do not collide with the
    floor.
    """

    name = "halfcheetah"
    model = "half_cheetah.xml"
    physics: ClassVar = {
        "generalized": Physics(0.01, 5),
        "spring": Physics(0.003125, 16),
        "positional": Physics(0.003125, 16),
    }
    kind = HalfcheetahParameters
    hidden = (Part("torso x", "m", "q", 0, 1),)
    layout = (
        Part("torso height above its start", "m", "q", 1, 2),
        Part("torso pitch", "rad", "q", 2, 3),
        Part("thigh, shin and foot angles, back leg, then front leg", "rad", "q", 3, 9),
        Part("torso velocity x, z", "m/s", "qd", 0, 2),
        Part("torso pitch rate", "rad/s", "qd", 2, 3),
        Part("thigh, shin and foot rates, back leg, then front leg", "rad/s", "qd", 3, 9),
    )

    def first_velocities(self, key: jax.Array, scale: float) -> jax.Array:
        """Draw normal velocities with the standard deviation `scale`."""
        return normal(key, self.sys.qd_size(), scale)

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the reward for velocity along x, and the cost of the action."""
        p = self.parameters
        return {
            "reward_run": p.forward_reward_weight * (after.q[0] - before.q[0]) / self.dt,
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Return the position and the velocity along x."""
        return {"x_position": after.q[0], "x_velocity": (after.q[0] - before.q[0]) / self.dt}
