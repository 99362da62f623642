"""Fetch: a dog of boxes that runs to one target after another."""

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
    """A vector (3,) of the world in the axes of the trunk."""
    return math.inv_rotate(vector, state.x.rot[0])


def miss(state: PipelineState) -> jax.Array:
    """From the trunk to the target along the floor [m], shape (3,)."""
    return (goal(state) - state.x.pos[0]).at[2].set(0.0)


def up(state: PipelineState) -> jax.Array:
    """Where up is, in the axes of the trunk, shape (3,)."""
    return in_trunk(jnp.array(UP), state)


@dataclasses.dataclass(frozen=True)
class FetchParameters:
    """What the dog is rewarded for and how it starts."""

    approach_reward_weight: float = 1.0
    """Reward per way towards the target [1/m]."""
    hit_reward: float = 1.0
    """Reward of a target that is hit."""
    height_reward_weight: float = 0.1
    """Reward per height of the trunk and time [1/(m s)]."""
    upright_reward_weight: float = 0.1
    """Reward per cosine of the trunk's lean and time [1/s]."""
    min_upright: float = 0.5
    """The episode ends where the cosine of the trunk's lean is less."""
    target_radius: float = 0.5
    """The trunk hits a target that is nearer than this along the floor [m]."""
    target_distance: float = 4.0
    """New targets are this far from the trunk [m]."""
    reset_noise_scale: float = 0.1
    """Joints start up to this far from the rest."""


class Fetch(GoalTask):
    """A dog with two motors in its spine and eight in its legs, and a target that moves on.

    The reward is `reward_approach + reward_hit + reward_height + reward_upright`. The episode ends
    when the dog has fallen over.

    Source of the task: Freeman et al. (2021), Brax, section 4. Departures: a dog of a quarter the
    size, distances to match, and an end.
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
        """Standing still, the joints a little off."""
        noise = spread(key_q, 10, self.parameters.reset_noise_scale)
        return self.sys.init_q.at[7:17].add(noise), jnp.zeros(self.sys.qd_size())

    def target(self, key: jax.Array, physics: PipelineState) -> jax.Array:
        """On the floor, at one distance and in any direction."""
        angle = jax.random.uniform(key, maxval=2 * jnp.pi)
        way = jnp.array([jnp.cos(angle), jnp.sin(angle), 0.0])
        return physics.x.pos[0].at[2].set(0.0) + self.parameters.target_distance * way

    def is_hit(self, physics: PipelineState) -> jax.Array:
        """Return whether the trunk is above the target."""
        return math.safe_norm(miss(physics)) < self.parameters.target_radius

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """The way towards the target and hitting it, and standing tall and upright."""
        p = self.parameters
        way = math.safe_norm(miss(before)) - math.safe_norm(miss(after))
        upright = up(after)[2]
        return {
            "reward_approach": p.approach_reward_weight * way,
            "reward_hit": p.hit_reward * self.is_hit(after).astype(jnp.float32),
            "reward_height": p.height_reward_weight * self.dt * after.x.pos[0, 2],
            "reward_upright": p.upright_reward_weight * self.dt * upright,
        }

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether it has fallen over."""
        return ~(up(after)[2] >= self.parameters.min_upright)
