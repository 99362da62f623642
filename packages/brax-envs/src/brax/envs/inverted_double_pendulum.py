"""The inverted double pendulum: a cart that balances two poles, one on top of the other."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import math
from brax.base import State as PipelineState
from brax.envs.hopper import clipped
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, Task, normal

POLE = 0.6
"""Length of each pole [m]."""


@dataclasses.dataclass(frozen=True)
class InvertedDoublePendulumParameters:
    """Reward, termination and initial state of the poles."""

    healthy_reward: float = 10.0
    """Reward of a step after which the poles stand."""
    min_height: float = 1.0
    """Height of the upper pole's tip at which the episode terminates [m]; upright it is 1.2 m."""
    reset_noise_scale: float = 0.1
    """Maximum noise of initial coordinates; a tenth is the standard deviation of velocities, which
    in Gymnasium is the whole."""


class InvertedDoublePendulum(Task):
    """Two poles on a cart with one motor.

    The reward is `reward_alive + reward_distance + reward_velocity`: 10 while the poles stand, less
    the squared distances of the tip from the centre and from a height of 2 m, less the squared
    rates.

    Source of the task: Gymnasium's `InvertedDoublePendulum`. Departures: a step lasts 0.02 s, not
    0.05 s. The initial velocities have a tenth of Gymnasium's standard deviation. Gymnasium's ninth
    entry of the observation, the constraint force on the cart, is left out.
    """

    name = "inverted_double_pendulum"
    model = "inverted_double_pendulum.xml"
    physics: ClassVar = {
        "generalized": Physics(0.01, 2),
        "spring": Physics(0.005, 4),
        "positional": Physics(0.005, 4),
    }
    kind = InvertedDoublePendulumParameters
    layout = (
        Part("cart position", "m", "q", 0, 1),
        Computed("sines of the poles' angles", "", 2, lambda _, s, __: jnp.sin(s.q[1:3])),
        Computed("cosines of the poles' angles", "", 2, lambda _, s, __: jnp.cos(s.q[1:3])),
        clipped("cart velocity", "m/s", 0, 1),
        clipped("poles' rates", "rad/s", 1, 3),
    )

    def first_velocities(self, key: jax.Array, scale: float) -> jax.Array:
        """Draw normal velocities; their standard deviation is a tenth of `scale`."""
        return normal(key, self.sys.qd_size(), scale / 10)

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the reward for standing, and the costs of distance and rates."""
        x, _, z = tip(after)
        _, lower, upper = after.qd
        stands = (~self.is_over(after)).astype(jnp.float32)
        return {
            "reward_alive": self.parameters.healthy_reward * stands,
            # The weights are Gymnasium's.
            "reward_distance": -(0.01 * x**2 + (z - 2) ** 2),
            "reward_velocity": -(1e-3 * lower**2 + 5e-3 * upper**2),
        }

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether the tip is too low."""
        # Written as a negation so that NaN terminates the episode.
        return ~(tip(after)[2] > self.parameters.min_height)


def tip(state: PipelineState) -> jax.Array:
    """Return the free end of the upper pole [m], shape (3,)."""
    return state.x.pos[2] + math.rotate(jnp.array([0.0, 0.0, POLE]), state.x.rot[2])
