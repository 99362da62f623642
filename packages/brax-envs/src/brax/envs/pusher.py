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
"""The point between the fingertips, in the frame of the hand [m]; Gymnasium's is the origin."""


def place(body: str) -> Computed:
    """Return the part of an observation with the position of a body."""

    def read(sys: System, state: PipelineState, ctrl: jax.Array) -> jax.Array:
        return kinematics.frame(sys, state.x, body).pos

    return Computed(f"{body} x, y, z", "m", 3, read)


def tip(sys: System, state: PipelineState) -> jax.Array:
    """Return the point between the fingertips [m], shape (3,)."""
    hand = kinematics.frame(sys, state.x, "r_wrist_roll_link")
    return hand.pos + math.rotate(jnp.array(BETWEEN_FINGERS), hand.rot)


@dataclasses.dataclass(frozen=True)
class PusherParameters:
    """Reward and initial state of the pusher."""

    dist_reward_weight: float = 1.0
    """Cost of the distance from object to goal [1/m]."""
    ctrl_cost_weight: float = 0.1
    """Cost of the squared norm of the controls."""
    near_reward_weight: float = 0.5
    """Cost of the distance from object to the point between the fingertips [1/m]."""
    min_distance: float = 0.17
    """Minimum initial distance of the object from the goal [m]."""
    reset_velocity_scale: float = 0.005
    """Maximum noise of the arm's initial rates [rad/s]."""


class Pusher(Task):
    """An arm with seven motors, an object that slides on a table, and a goal for the object.

    The reward is `reward_dist + reward_ctrl + reward_near`, of the state after the step. Actions in
    [-1, 1] are scaled to the motors' range, -2 to 2. Episodes end only by truncation.

    Source of the task: Gymnasium's `Pusher`. Departures: the point between the fingertips is
    observed and rewarded. Gymnasium's point, its body `tips_arm`, is 0.1 m behind it, in the middle
    of the palm, so `reward_near` differs by up to 0.05. An object that is drawn too near to the
    goal is moved away from it, not drawn again. Hand and object touch with friction, in Gymnasium
    without. The hand passes through the table, on which Gymnasium's stops. Positions are those
    after the step, and Gymnasium's are one physics step older. Gymnasium's actions are the
    controls, without scaling.
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
        """Return the arm stretched out, and an object near the goal.

        The object is up to 0.3 m in front of the goal, and up to 0.2 m to its side.
        """
        p = self.parameters
        low, high = jnp.array([-0.3, -0.2]), jnp.array([0.0, 0.2])
        offset = jax.random.uniform(key_q, (2,), minval=low, maxval=high)
        # Rejection sampling would need a loop of random length.
        direction, distance = math.normalize(offset)
        offset = jnp.where(distance < p.min_distance, direction * p.min_distance, offset)
        # The goal is at the origin of its slides.
        q = jnp.concatenate([self.sys.init_q[:7], offset, jnp.zeros(2)])
        return q, jnp.concatenate([spread(key_qd, 7, p.reset_velocity_scale), jnp.zeros(4)])

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the costs of the object's distances and of the controls."""
        p = self.parameters
        body, goal = (kinematics.frame(self.sys, after.x, b).pos for b in ("object", "goal"))
        near = math.safe_norm(body - tip(self.sys, after))
        return {
            "reward_dist": -p.dist_reward_weight * math.safe_norm(body - goal),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
            "reward_near": -p.near_reward_weight * near,
        }
