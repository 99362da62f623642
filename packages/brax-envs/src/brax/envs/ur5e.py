"""The UR5e: an industrial arm that brings its tool to one target after another."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import kinematics, math
from brax.base import State as PipelineState
from brax.base import System
from brax.envs.goal import GoalTask, goal
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, spread

SHOULDER = (0.0, 0.0, 0.1625)
"""Position of the shoulder [m]."""


def tool(sys: System, state: PipelineState) -> jax.Array:
    """Return the position of the tool's tip [m], shape (3,)."""
    return kinematics.frame(sys, state.x, "tool").pos


def miss(sys: System, state: PipelineState) -> jax.Array:
    """Return the vector from the tool to the target [m], shape (3,)."""
    return goal(state) - tool(sys, state)


@dataclasses.dataclass(frozen=True)
class Ur5eParameters:
    """Reward and initial state of the arm."""

    approach_reward_weight: float = 1.0
    """Reward per distance moved towards the target [1/m]."""
    hit_reward: float = 1.0
    """Reward for hitting a target."""
    ctrl_cost_weight: float = 1e-3
    """Cost of the squared norm of the action."""
    target_radius: float = 0.02
    """Distance at which the tool hits a target [m]."""
    target_range: tuple[float, float] = (0.3, 0.8)
    """Distances of targets from the shoulder [m]; they are never below it."""
    reset_noise_scale: float = 0.1
    """Maximum noise of initial angles [rad]."""


class Ur5e(GoalTask):
    """An arm with six motors, and a target that moves when the tool hits it.

    The reward is `reward_approach + reward_hit + reward_ctrl`. Episodes end only by truncation.
    """

    name = "ur5e"
    model = "ur5e.xml"
    physics: ClassVar = {
        "generalized": Physics(0.01, 4),
        "spring": Physics(0.005, 8),
        "positional": Physics(0.005, 8),
    }
    kind = Ur5eParameters
    layout = (
        Computed("cosines of the angles", "", 6, lambda _, s, __: jnp.cos(s.q[:6])),
        Computed("sines of the angles", "", 6, lambda _, s, __: jnp.sin(s.q[:6])),
        Part("rates from shoulder to wrist", "rad/s", "qd", 0, 6),
        Computed("tool x, y, z", "m", 3, lambda sys, s, _: tool(sys, s)),
        Computed("from tool to target", "m", 3, lambda sys, s, _: miss(sys, s)),
    )

    def start(self, key_q: jax.Array, key_qd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the arm bent and at rest, with noise on the angles."""
        noise = spread(key_q, 6, self.parameters.reset_noise_scale)
        return self.sys.init_q.at[:6].add(noise), jnp.zeros(self.sys.qd_size())

    def target(self, key: jax.Array, physics: PipelineState) -> jax.Array:
        """Draw a target, uniform in distance and direction, not below the shoulder."""
        key_direction, key_distance = jax.random.split(key)
        low, high = self.parameters.target_range
        # Normalized normal numbers are uniform on the sphere.
        direction, _ = math.normalize(jax.random.normal(key_direction, (3,)))
        distance = jax.random.uniform(key_distance, minval=low, maxval=high)
        # The absolute z mirrors directions below the shoulder to above it.
        return jnp.array(SHOULDER) + distance * direction.at[2].set(jnp.abs(direction[2]))

    def is_hit(self, physics: PipelineState) -> jax.Array:
        """Return whether the tool is at the target."""
        return math.safe_norm(miss(self.sys, physics)) < self.parameters.target_radius

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the rewards for approaching and hitting the target, and the cost of the action."""
        p = self.parameters
        far, near = (math.safe_norm(miss(self.sys, state)) for state in (before, after))
        return {
            "reward_approach": p.approach_reward_weight * (far - near),
            "reward_hit": p.hit_reward * self.is_hit(after).astype(jnp.float32),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
