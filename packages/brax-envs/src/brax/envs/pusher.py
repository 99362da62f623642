"""The pusher: an arm that pushes an object to a goal on a table."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import kinematics, math
from brax.base import State as PipelineState
from brax.base import System
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, Task, spread

BETWEEN_FINGERS = (0.1, 0.0, 0.0)
"""The point between the fingertips, in the frame of the hand [m]."""


def place(body: str) -> Computed:
    """Where a body is."""

    def read(sys: System, state: PipelineState, ctrl: jax.Array) -> jax.Array:
        return kinematics.frame(sys, state.x, body).pos

    return Computed(f"{body} x, y, z", "m", 3, read)


def tip(sys: System, state: PipelineState) -> jax.Array:
    """The point between the fingertips [m], shape (3,)."""
    hand = kinematics.frame(sys, state.x, "hand")
    return hand.pos + math.rotate(jnp.array(BETWEEN_FINGERS), hand.rot)


@dataclasses.dataclass(frozen=True)
class PusherParameters:
    """What the pusher is rewarded for and how it starts."""

    dist_reward_weight: float = 1.0
    """Cost of the distance from object to goal [1/m]."""
    ctrl_cost_weight: float = 0.1
    """Cost of the squared length of the controls."""
    near_reward_weight: float = 0.5
    """Cost of the distance from object to fingertips [1/m]."""
    min_distance: float = 0.17
    """The object starts at least this far from the goal [m]."""
    reset_velocity_scale: float = 0.005
    """The arm's rates start up to this far from zero."""


class Pusher(Task):
    """An arm with seven motors, an object that slides on a table, and a goal for it.

    The reward is `reward_dist + reward_ctrl + reward_near`, of the state after the step. Actions in
    [-1, 1] are scaled to the motors' range, -2 to 2. Episodes end by time only.
    """

    name = "pusher"
    model = "pusher.xml"
    physics: ClassVar = {
        "generalized": Physics(0.01, 5),
        "spring": Physics(0.001, 50),
        "positional": Physics(0.001, 50),
    }
    kind = PusherParameters
    scaled = True
    layout = (
        Part("angles from shoulder to wrist", "rad", "q", 0, 7),
        Part("rates from shoulder to wrist", "rad/s", "qd", 0, 7),
        Computed("between the fingertips x, y, z", "m", 3, lambda sys, s, _: tip(sys, s)),
        place("object"),
        place("goal"),
    )

    def start(self, key_q: jax.Array, key_qd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The arm stretched out; the object up to 0.3 m nearer than the goal, 0.2 m to a side."""
        p = self.parameters
        low, high = jnp.array([-0.3, -0.2]), jnp.array([0.0, 0.2])
        at = jax.random.uniform(key_q, (2,), minval=low, maxval=high)
        direction, distance = math.normalize(at)
        at = jnp.where(distance < p.min_distance, direction * p.min_distance, at)
        q = jnp.concatenate([self.sys.init_q[:7], at, jnp.zeros(2)])
        return q, jnp.concatenate([spread(key_qd, 7, p.reset_velocity_scale), jnp.zeros(4)])

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Less the distances from object to goal and to fingertips, less the cost of controls."""
        p = self.parameters
        thing, goal = (kinematics.frame(self.sys, after.x, b).pos for b in ("object", "goal"))
        near = math.safe_norm(thing - tip(self.sys, after))
        return {
            "reward_dist": -p.dist_reward_weight * math.safe_norm(thing - goal),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
            "reward_near": -p.near_reward_weight * near,
        }
