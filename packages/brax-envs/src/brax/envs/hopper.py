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
"""Velocities are observed up to this [m/s or rad/s]."""


def clipped(name: str, unit: str, start: int, stop: int) -> Computed:
    """Velocities from `start` to `stop`, cut off at `FASTEST`."""

    def read(sys: System, state: PipelineState, ctrl: jax.Array) -> jax.Array:
        return jnp.clip(state.qd[start:stop], -FASTEST, FASTEST)

    return Computed(f"{name}, within {FASTEST:g}", unit, stop - start, read)


@dataclasses.dataclass(frozen=True)
class HopperParameters:
    """What the hopper is rewarded for, when it ends and how it starts."""

    forward_reward_weight: float = 1.0
    """Reward per speed along x [s/m]."""
    ctrl_cost_weight: float = 1e-3
    """Cost of the squared length of the action."""
    healthy_reward: float = 1.0
    """Reward of a step in which it is healthy, or of any if being unhealthy ends it."""
    terminate_when_unhealthy: bool = True
    """True if being unhealthy ends the episode."""
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    """Bounds of all coordinates but x, and of all velocities."""
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    """Heights of the torso at which it is healthy [m]."""
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)
    """Pitch of the torso at which it is healthy [rad]."""
    reset_noise_scale: float = 5e-3
    """Coordinates and velocities start up to this far from the rest."""
    exclude_current_positions_from_observation: bool = True
    """True if x is hidden."""


class Hopper(Task):
    """A torso on one leg with three motors, in a plane.

    The reward is `reward_forward + reward_healthy + reward_ctrl`.
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
        """Speed along x and being healthy, less the cost of the action."""
        p = self.parameters
        healthy = self._is_healthy(after) | p.terminate_when_unhealthy
        return {
            "reward_forward": p.forward_reward_weight * (after.q[0] - before.q[0]) / self.dt,
            "reward_healthy": p.healthy_reward * healthy.astype(jnp.float32),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Where it is along x, and how fast it came there."""
        return {"x_position": after.q[0], "x_velocity": (after.q[0] - before.q[0]) / self.dt}

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether it is unhealthy."""
        return ~self._is_healthy(after) & self.parameters.terminate_when_unhealthy

    def _is_healthy(self, state: PipelineState) -> jax.Array:
        p = self.parameters
        rest = jnp.concatenate([state.q[1:], state.qd])
        return (
            between(p.healthy_z_range[0], state.q[1], p.healthy_z_range[1])
            & between(p.healthy_angle_range[0], state.q[2], p.healthy_angle_range[1])
            & between(p.healthy_state_range[0], rest, p.healthy_state_range[1]).all()
        )
