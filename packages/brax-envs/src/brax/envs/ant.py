"""The ant: four legs that learn to run along x."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.envs.observation import Part
from brax.envs.task import Physics, Task, between, normal, travel


@dataclasses.dataclass(frozen=True)
class AntParameters:
    """Reward, termination and initial state of the ant."""

    forward_reward_weight: float = 1.0
    """Reward per velocity along x [s/m]."""
    ctrl_cost_weight: float = 0.5
    """Cost of the squared norm of the action."""
    healthy_reward: float = 1.0
    """Reward of a healthy step, or of every step if being unhealthy terminates."""
    terminate_when_unhealthy: bool = True
    """True if leaving `healthy_z_range` terminates the episode."""
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    """Heights of the torso at which the ant is healthy [m]."""
    reset_noise_scale: float = 0.1
    """Maximum noise of initial coordinates, and standard deviation of initial velocities."""
    exclude_current_positions_from_observation: bool = True
    """True if x and y are not observed."""
    use_contact_forces: bool = False
    """Must be False: contact forces are not part of the observation."""
    contact_cost_weight: float = 5e-4
    """Cost of the contact forces, if they were used."""
    contact_force_range: tuple[float, float] = (-1.0, 1.0)
    """Bounds of the contact forces, if they were used."""


class Ant(Task):
    """A four-legged robot with eight motors. One step lasts 0.05 s.

    The reward is `reward_forward + reward_survive + reward_ctrl + reward_contact`.

    Source of the task: Gymnasium's `Ant`. Departures: contact forces are neither observed nor a
    cost, and only the feet collide with the floor. The ant starts on its feet, with the torso at
    0.55 m and the ankles at 1 rad; Gymnasium's starts at 0.75 m with straight legs. The step that
    terminates is rewarded as a healthy one, as in Gymnasium's v4, but not in v5.
    """

    name = "ant"
    model = "ant.xml"
    default = "spring"
    physics: ClassVar = {
        "spring": Physics(0.005, 10),
        "generalized": Physics(0.01, 5),
        "positional": Physics(0.005, 10),
    }
    kind = AntParameters
    hidden = (Part("torso position x, y", "m", "q", 0, 2),)
    layout = (
        Part("torso height", "m", "q", 2, 3),
        Part("torso orientation (w, x, y, z)", "", "q", 3, 7),
        Part("hip and ankle angles, leg by leg", "rad", "q", 7, 15),
        Part("torso velocity, world axes", "m/s", "qd", 0, 3),
        Part("torso angular velocity, its own axes", "rad/s", "qd", 3, 6),
        Part("hip and ankle rates, leg by leg", "rad/s", "qd", 6, 14),
    )

    def first_velocities(self, key: jax.Array, scale: float) -> jax.Array:
        """Draw normal velocities with the standard deviation `scale`."""
        return normal(key, self.sys.qd_size(), scale)

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the rewards for velocity along x and health, and the cost of the action."""
        p = self.parameters
        # If being unhealthy terminates, the last step is rewarded as well, as in Gymnasium's v4.
        healthy = self._is_healthy(after) | p.terminate_when_unhealthy
        return {
            "reward_forward": p.forward_reward_weight * self._velocity(before, after)[0],
            "reward_survive": p.healthy_reward * healthy.astype(jnp.float32),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
            "reward_contact": jnp.zeros(()),  # so that the metrics are those that users know
        }

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Return the position and the velocity of the torso."""
        found = travel(before.x.pos[0], after.x.pos[0], self.dt)
        forward = self.parameters.forward_reward_weight * found["x_velocity"]
        return found | {"forward_reward": forward}

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether the ant is unhealthy."""
        # Comparisons with NaN are false, so a state with NaN is unhealthy and terminates.
        return ~self._is_healthy(after) & self.parameters.terminate_when_unhealthy

    def _velocity(self, before: PipelineState, after: PipelineState) -> jax.Array:
        return (after.x.pos[0] - before.x.pos[0]) / self.dt

    def _is_healthy(self, state: PipelineState) -> jax.Array:
        low, high = self.parameters.healthy_z_range
        return between(low, state.x.pos[0, 2], high)
