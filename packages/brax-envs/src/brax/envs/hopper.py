"""The hopper: one leg that learns to hop along x."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.base import System
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, Task, between

FASTEST = 10.0
"""Bound of observed velocities [m/s or rad/s]."""


def clipped(name: str, unit: str, start: int, stop: int) -> Computed:
    """Return the part of an observation with velocities `start` to `stop`, clipped to `FASTEST`."""

    def read(sys: System, state: PipelineState, ctrl: jax.Array) -> jax.Array:
        return jnp.clip(state.qd[start:stop], -FASTEST, FASTEST)

    return Computed(f"{name}, within {FASTEST:g}", unit, stop - start, read)


@dataclasses.dataclass(frozen=True)
class HopperParameters:
    """Reward, termination and initial state of the hopper."""

    forward_reward_weight: float = 1.0
    """Reward per velocity along x [s/m]."""
    ctrl_cost_weight: float = 1e-3
    """Cost of the squared norm of the action."""
    healthy_reward: float = 1.0
    """Reward of a healthy step, or of every step if being unhealthy terminates."""
    terminate_when_unhealthy: bool = True
    """True if being unhealthy terminates the episode."""
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    """Bounds of all coordinates except x, and of all velocities."""
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    """Heights of the torso at which it is healthy [m]."""
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)
    """Pitch of the torso at which it is healthy [rad]."""
    reset_noise_scale: float = 5e-3
    """Maximum noise of initial coordinates and velocities."""
    exclude_current_positions_from_observation: bool = True
    """True if x is not observed."""


class Hopper(Task):
    """A torso on one leg with three motors, in a plane.

    The reward is `reward_forward + reward_healthy + reward_ctrl`.

    Source of the task: Gymnasium's `Hopper`. Departures: only the foot collides, and only with the
    floor. The step that terminates is rewarded as a healthy one, as in Gymnasium's v4, but not in
    v5.
    """

    name = "hopper"
    model = "hopper.xml"
    physics: ClassVar = {"generalized": Physics(0.002, 4)}
    kind = HopperParameters
    hidden = (Part("torso x", "m", "q", 0, 1),)
    layout = (
        Part("torso height", "m", "q", 1, 2),
        Part("torso pitch", "rad", "q", 2, 3),
        Part("thigh, leg and foot angles", "rad", "q", 3, 6),
        clipped("torso velocity x, z", "m/s", 0, 2),
        clipped("torso pitch rate", "rad/s", 2, 3),
        clipped("thigh, leg and foot rates", "rad/s", 3, 6),
    )

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the rewards for velocity along x and health, and the cost of the action."""
        p = self.parameters
        # If being unhealthy terminates, the last step is rewarded as well, as in Gymnasium's v4.
        healthy = self._is_healthy(after) | p.terminate_when_unhealthy
        return {
            "reward_forward": p.forward_reward_weight * (after.q[0] - before.q[0]) / self.dt,
            "reward_healthy": p.healthy_reward * healthy.astype(jnp.float32),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Return the position and the velocity along x."""
        return {"x_position": after.q[0], "x_velocity": (after.q[0] - before.q[0]) / self.dt}

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether it is unhealthy."""
        return ~self._is_healthy(after) & self.parameters.terminate_when_unhealthy

    def _is_healthy(self, state: PipelineState) -> jax.Array:
        p = self.parameters
        # x is the distance travelled, which should grow without a limit.
        rest = jnp.concatenate([state.q[1:], state.qd])
        return (
            between(p.healthy_z_range[0], state.q[1], p.healthy_z_range[1])
            & between(p.healthy_angle_range[0], state.q[2], p.healthy_angle_range[1])
            & between(p.healthy_state_range[0], rest, p.healthy_state_range[1]).all()
        )
