"""Fetch: a dog made of boxes that runs to one target after another."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import math
from brax.base import State as PipelineState
from brax.envs.goal import GoalTask, goal
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, spread

UP = (0.0, 0.0, 1.0)


def in_trunk(vector: jax.Array, state: PipelineState) -> jax.Array:
    """Return a world vector (3,) in the axes of the trunk."""
    return math.inv_rotate(vector, state.x.rot[0])


def miss(state: PipelineState) -> jax.Array:
    """Return the vector from the trunk to the target along the floor [m], shape (3,)."""
    return (goal(state) - state.x.pos[0]).at[2].set(0.0)


def up(state: PipelineState) -> jax.Array:
    """Return the world's z axis in the axes of the trunk, shape (3,)."""
    return in_trunk(jnp.array(UP), state)


@dataclasses.dataclass(frozen=True)
class FetchParameters:
    """Reward, termination and initial state of the dog."""

    approach_reward_weight: float = 1.0
    """Reward per distance moved towards the target [1/m]."""
    hit_reward: float = 1.0
    """Reward for hitting a target."""
    height_reward_weight: float = 0.1
    """Reward per height of the trunk and time [1/(m s)]."""
    upright_reward_weight: float = 0.1
    """Reward per cosine of the trunk's tilt and time [1/s]."""
    min_upright: float = 0.5
    """Cosine of the trunk's tilt below which the episode terminates."""
    target_radius: float = 0.5
    """Distance along the floor at which the trunk hits a target [m]."""
    target_distance: float = 4.0
    """Distance of new targets from the trunk [m]."""
    reset_noise_scale: float = 0.1
    """Maximum noise of initial joint angles [rad]."""


class Fetch(GoalTask):
    """A dog with two motors in its spine and eight in its legs, and a target that moves when hit.

    The reward is `reward_approach + reward_hit + reward_height + reward_upright`. The episode
    terminates when the dog has fallen over.

    Source of the task: Freeman et al. (2021), Brax, section 4. Departures: the dog has a quarter of
    the size, with distances to match, and episodes terminate.
    """

    name = "fetch"
    model = "fetch.xml"
    default = "spring"
    physics: ClassVar = {
        "spring": Physics(0.005, 4),
        "generalized": Physics(0.005, 4),
        "positional": Physics(0.005, 4),
    }
    kind = FetchParameters
    layout = (
        Part("trunk height", "m", "q", 2, 3),
        Computed("up, in the trunk's axes", "", 3, lambda _, s, __: up(s)),
        Part("spine yaw and pitch", "rad", "q", 7, 9),
        Part("hip and knee angles, leg by leg", "rad", "q", 9, 17),
        Computed(
            "trunk velocity, its own axes", "m/s", 3, lambda _, s, __: in_trunk(s.xd.vel[0], s)
        ),
        Part("trunk angular velocity, its own axes", "rad/s", "qd", 3, 6),
        Part("rates of spine, hips and knees", "rad/s", "qd", 6, 16),
        Computed(
            "from trunk to target along the floor, the trunk's axes",
            "m",
            3,
            lambda _, s, __: in_trunk(miss(s), s),
        ),
    )

    def start(self, key_q: jax.Array, key_qd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the dog standing at rest, with noise on the joint angles."""
        noise = spread(key_q, 10, self.parameters.reset_noise_scale)
        # The first seven coordinates are the free joint's, the last three the target's.
        return self.sys.init_q.at[7:17].add(noise), jnp.zeros(self.sys.qd_size())

    def target(self, key: jax.Array, physics: PipelineState) -> jax.Array:
        """Draw a target on the floor, at a fixed distance in any direction."""
        angle = jax.random.uniform(key, maxval=2 * jnp.pi)
        direction = jnp.array([jnp.cos(angle), jnp.sin(angle), 0.0])
        return physics.x.pos[0].at[2].set(0.0) + self.parameters.target_distance * direction

    def is_hit(self, physics: PipelineState) -> jax.Array:
        """Return whether the trunk is above the target."""
        return math.safe_norm(miss(physics)) < self.parameters.target_radius

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the rewards for approaching and hitting the target, and for height and posture."""
        p = self.parameters
        approach = math.safe_norm(miss(before)) - math.safe_norm(miss(after))
        upright = up(after)[2]
        return {
            "reward_approach": p.approach_reward_weight * approach,
            "reward_hit": p.hit_reward * self.is_hit(after).astype(jnp.float32),
            "reward_height": p.height_reward_weight * self.dt * after.x.pos[0, 2],
            "reward_upright": p.upright_reward_weight * self.dt * upright,
        }

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether the dog has fallen over."""
        # Written as a negation so that NaN terminates the episode.
        return ~(up(after)[2] >= self.parameters.min_upright)
