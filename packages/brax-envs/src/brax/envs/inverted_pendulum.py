"""The inverted pendulum: a cart that keeps a pole upright."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import PipelineEnv, State, check_key
from brax.envs.observation import Layout, Part, observe
from brax.envs.parameters import make_parameters
from brax.io import mjcf

MODEL = Path(__file__).parent / "assets" / "inverted_pendulum.xml"

LAYOUT: Layout = (
    Part("cart position", "m", "q", 0, 1),
    Part("pole angle from upright", "rad", "q", 1, 2),
    Part("cart velocity", "m/s", "qd", 0, 1),
    Part("pole rate", "rad/s", "qd", 1, 2),
)


@dataclasses.dataclass(frozen=True)
class InvertedPendulumParameters:
    """When the pole has fallen and how it starts."""

    max_angle: float = 0.2
    """Angle of the pole beyond which the episode ends [rad]."""
    reset_noise_scale: float = 0.01
    """Coordinates and velocities start up to this far from zero."""


class InvertedPendulum(PipelineEnv):
    """A pole on a cart with one motor. One step lasts 0.02 s and earns 1.

    The action in [-1, 1] is scaled to the motor's control range, -3 to 3.
    """

    observation_layout = LAYOUT

    def __init__(self, backend: str = "spring", n_frames: int = 4, **parameters: Any) -> None:
        """Makes the environment.

        Args:
            backend: name of the pipeline.
            n_frames: physics steps of 0.005 s in one step.
            **parameters: fields of `InvertedPendulumParameters`.

        Raises:
            ConfigError: on an unknown parameter.
        """
        super().__init__(mjcf.load(MODEL), backend, n_frames)
        self.parameters = make_parameters(
            InvertedPendulumParameters, parameters, "inverted_pendulum"
        )

    def reset(self, rng: jax.Array) -> State:
        """Starts near upright."""
        key_q, key_qd = jax.random.split(check_key(rng))
        scale = self.parameters.reset_noise_scale
        q = self.sys.init_q
        q = q + jax.random.uniform(key_q, q.shape, q.dtype, -scale, scale)
        qd = jax.random.uniform(key_qd, (self.sys.qd_size(),), q.dtype, -scale, scale)
        physics = self.pipeline_init(q, qd)
        zero = jnp.zeros(())
        return State(physics, observe(LAYOUT, physics), zero, zero)

    def step(self, state: State, action: jax.Array) -> State:
        """Advances by 0.02 s under an action in [-1, 1], shape (1,)."""
        low, high = self.sys.actuator.ctrl_range.T
        physics = self.pipeline_step(state.pipeline_state, low + (action + 1) / 2 * (high - low))
        upright = jnp.abs(physics.q[1]) <= self.parameters.max_angle  # false for NaN
        return state.replace(
            pipeline_state=physics,
            obs=observe(LAYOUT, physics),
            reward=jnp.ones(()),
            done=(~upright).astype(jnp.float32),
        )
