"""The inverted pendulum: a cart that balances a pole."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.envs.observation import Part
from brax.envs.task import Physics, Task, between


@dataclasses.dataclass(frozen=True)
class InvertedPendulumParameters:
    """Termination and initial state of the pole."""

    max_angle: float = 0.2
    """Angle of the pole beyond which the episode terminates [rad]."""
    reset_noise_scale: float = 0.01
    """Maximum noise of initial coordinates and velocities."""


class InvertedPendulum(Task):
    """A pole on a cart with one motor. One step lasts 0.02 s, and its reward is 1, `reward_alive`.

    The action in [-1, 1] is scaled to the motor's control range, -3 to 3.

    Source of the task: Gymnasium's `InvertedPendulum`. Departures: a step lasts 0.02 s, not 0.04 s.
    Gymnasium's actions are the controls, without scaling. The step in which the pole falls is
    rewarded, as in Gymnasium's v4, but not in v5.
    """

    name = "inverted_pendulum"
    model = "inverted_pendulum.xml"
    default = "spring"
    physics: ClassVar = {"spring": Physics(0.005, 4)}
    kind = InvertedPendulumParameters
    scaled = True
    layout = (
        Part("cart position", "m", "q", 0, 1),
        Part("pole angle from upright", "rad", "q", 1, 2),
        Part("cart velocity", "m/s", "qd", 0, 1),
        Part("pole rate", "rad/s", "qd", 1, 2),
    )

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return 1, also for the step in which the pole falls."""
        # As in Gymnasium's v4.
        return {"reward_alive": jnp.ones(())}

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether the pole has fallen."""
        return ~between(-self.parameters.max_angle, after.q[1], self.parameters.max_angle)
