"""The swimmer: three rods in a viscous fluid that learn to swim along x."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.envs.observation import Part
from brax.envs.task import Physics, Task, travel


@dataclasses.dataclass(frozen=True)
class SwimmerParameters:
    """Reward and initial state of the swimmer."""

    forward_reward_weight: float = 1.0
    """Reward per velocity along x [s/m]."""
    ctrl_cost_weight: float = 1e-4
    """Cost of the squared norm of the action."""
    reset_noise_scale: float = 0.1
    """Maximum noise of initial coordinates and velocities."""
    exclude_current_positions_from_observation: bool = True
    """True if x and y are not observed."""


class Swimmer(Task):
    """Three rods joined by two motors, in a plane, in a viscous fluid.

    The reward is `reward_fwd + reward_ctrl`. Episodes end only by truncation.

    Source of the task: Gymnasium's `Swimmer`.
    """

    name = "swimmer"
    model = "swimmer.xml"
    physics: ClassVar = {"generalized": Physics(0.01, 4)}
    kind = SwimmerParameters
    hidden = (Part("front rod x, y", "m", "q", 0, 2),)
    layout = (
        Part("front rod heading", "rad", "q", 2, 3),
        Part("angles of the joints", "rad", "q", 3, 5),
        Part("front rod velocity x, y", "m/s", "qd", 0, 2),
        Part("front rod heading rate", "rad/s", "qd", 2, 3),
        Part("rates of the joints", "rad/s", "qd", 3, 5),
    )

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the reward for velocity along x, and the cost of the action."""
        p = self.parameters
        return {
            "reward_fwd": p.forward_reward_weight * (after.q[0] - before.q[0]) / self.dt,
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Return the position and the velocity of the front rod."""
        found = travel(before.q, after.q, self.dt)
        forward = self.parameters.forward_reward_weight * found["x_velocity"]
        return found | {"forward_reward": forward}
