"""The humanoid: two legs, two arms and a torso that learn to run along x."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.envs.body_observation import center_of_mass, com_inertia, com_velocity, motor_forces
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, Task, between, travel

LINKS = 11

MAXIMAL = Physics(0.0015, 10)
"""Time step of the pipelines in maximal coordinates."""


@dataclasses.dataclass(frozen=True)
class HumanoidParameters:
    """Reward, termination and initial state of the humanoid."""

    forward_reward_weight: float = 1.25
    """Reward per velocity of the centre of mass along x [s/m]."""
    ctrl_cost_weight: float = 0.1
    """Cost of the squared norm of the controls, which are within ±0.4."""
    healthy_reward: float = 5.0
    """Reward of a healthy step, or of every step if being unhealthy terminates."""
    terminate_when_unhealthy: bool = True
    """True if leaving `healthy_z_range` terminates the episode."""
    healthy_z_range: tuple[float, float] = (1.0, 2.0)
    """Heights of the torso at which it is healthy [m]."""
    reset_noise_scale: float = 1e-2
    """Maximum noise of initial coordinates and velocities."""
    exclude_current_positions_from_observation: bool = True
    """True if x and y are not observed."""


class Humanoid(Task):
    """A body of eleven links with seventeen motors.

    The reward is `reward_linvel + reward_alive + reward_quadctrl`. Actions in [-1, 1] are scaled to
    the motors' range, -0.4 to 0.4.

    Source of the task: Gymnasium's `Humanoid`. Departures: contact forces are neither observed nor
    a cost. Only the feet collide, and only with the floor. Gymnasium's actions are the controls,
    without scaling. The step that terminates is rewarded as a healthy one, as in Gymnasium's v4,
    but not in v5.

    The observation has 244 entries, and Gymnasium's has 270 without contact forces. It lists the
    feet, which are parts of the shins here. Its velocities, MuJoCo's `cvel`, are angular velocities
    first, then velocities at the model's centre of mass, without a weight. Its forces of the motors
    leave out the six of the root, which are zero.
    """

    name = "humanoid"
    model = "humanoid.xml"
    physics: ClassVar = {"generalized": Physics(0.003, 5), "spring": MAXIMAL, "positional": MAXIMAL}
    kind = HumanoidParameters
    scaled = True
    hidden = (Part("torso x, y", "m", "q", 0, 2),)
    layout = (
        Part("torso height", "m", "q", 2, 3),
        Part("torso orientation (w, x, y, z)", "", "q", 3, 7),
        Part("joint angles: abdomen, right and left leg, right and left arm", "rad", "q", 7, 24),
        Part("torso velocity, world axes", "m/s", "qd", 0, 3),
        Part("torso angular velocity, its own axes", "rad/s", "qd", 3, 6),
        Part("joint rates, in the order of the angles", "rad/s", "qd", 6, 23),
        Computed(
            "inertia about the centre of mass, link by link: xx, yy, zz, xy, xz, yz; "
            "mass times offset [kg m]; mass [kg]",
            "kg m^2",
            10 * LINKS,
            lambda sys, s, _: com_inertia(sys, s).ravel(),
        ),
        Computed(
            "velocity times share of the mass, link by link, and angular velocity [rad/s]",
            "m/s",
            6 * LINKS,
            lambda sys, s, _: com_velocity(sys, s).ravel(),
        ),
        Computed("forces of the motors on coordinates' rates", "N m", 23, motor_forces),
    )

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the rewards for forward velocity and health, and the cost of the controls."""
        p = self.parameters
        # If being unhealthy terminates, the last step is rewarded as well, as in Gymnasium's v4.
        healthy = self._is_healthy(after) | p.terminate_when_unhealthy
        return {
            "reward_linvel": p.forward_reward_weight * self._velocity(before, after)[0],
            "reward_alive": p.healthy_reward * healthy.astype(jnp.float32),
            "reward_quadctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }

    def extras(self, before: PipelineState, after: PipelineState) -> dict[str, jax.Array]:
        """Return the position and the velocity of the centre of mass."""
        start, end = (center_of_mass(self.sys, state) for state in (before, after))
        found = travel(start, end, self.dt)
        forward = self.parameters.forward_reward_weight * found["x_velocity"]
        return found | {"forward_reward": forward}

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether it is unhealthy."""
        return ~self._is_healthy(after) & self.parameters.terminate_when_unhealthy

    def _velocity(self, before: PipelineState, after: PipelineState) -> jax.Array:
        return (center_of_mass(self.sys, after) - center_of_mass(self.sys, before)) / self.dt

    def _is_healthy(self, state: PipelineState) -> jax.Array:
        low, high = self.parameters.healthy_z_range
        return between(low, state.q[2], high)
