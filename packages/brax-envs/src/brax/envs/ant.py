"""The ant: four legs that learn to run along x."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.env import PipelineEnv, State, check_key
from brax.envs.observation import Layout, Part, observe
from brax.envs.parameters import make_parameters
from brax.errors import ConfigError
from brax.io import mjcf

MODEL = Path(__file__).parent / "assets" / "ant.xml"

POSITION: Layout = (Part("torso position x, y", "m", "q", 0, 2),)

LAYOUT: Layout = (
    Part("torso height", "m", "q", 2, 3),
    Part("torso orientation (w, x, y, z)", "", "q", 3, 7),
    Part("hip and ankle angles, leg by leg", "rad", "q", 7, 15),
    Part("torso velocity, world axes", "m/s", "qd", 0, 3),
    Part("torso angular velocity, its own axes", "rad/s", "qd", 3, 6),
    Part("hip and ankle rates, leg by leg", "rad/s", "qd", 6, 14),
)


@dataclasses.dataclass(frozen=True)
class AntParameters:
    """What the ant is rewarded for, when it ends and how it starts."""

    forward_reward_weight: float = 1.0
    """Reward per speed along x [s/m]."""
    ctrl_cost_weight: float = 0.5
    """Cost of the squared length of the action."""
    healthy_reward: float = 1.0
    """Reward of a step in which the ant is healthy, or of any if being unhealthy ends it."""
    terminate_when_unhealthy: bool = True
    """Whether leaving `healthy_z_range` ends the episode."""
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    """Heights of the torso at which the ant is healthy [m]."""
    reset_noise_scale: float = 0.1
    """Coordinates start up to this far from the rest, velocities with this deviation."""
    exclude_current_positions_from_observation: bool = True
    """Whether x and y are hidden."""
    use_contact_forces: bool = False
    """Must be False: pipelines do not report contact forces."""
    contact_cost_weight: float = 5e-4
    """Cost of the contact forces, were they used."""
    contact_force_range: tuple[float, float] = (-1.0, 1.0)
    """Bounds of the contact forces, were they used."""


class Ant(PipelineEnv):
    """A four-legged robot with eight motors. One step lasts 0.05 s.

    The reward is `reward_forward + reward_survive + reward_ctrl + reward_contact`.
    """

    def __init__(self, backend: str = "spring", n_frames: int = 10, **parameters: Any) -> None:
        """Makes the environment.

        Args:
            backend: name of the pipeline.
            n_frames: physics steps of 0.005 s in one step.
            **parameters: fields of `AntParameters`.

        Raises:
            ConfigError: on an unknown parameter, or `use_contact_forces`.
        """
        super().__init__(mjcf.load(MODEL), backend, n_frames)
        self.parameters = make_parameters(AntParameters, parameters, "ant")
        if self.parameters.use_contact_forces:
            raise ConfigError("ant: use_contact_forces=True is not supported; leave it out")
        hidden = self.parameters.exclude_current_positions_from_observation
        self.observation_layout = LAYOUT if hidden else POSITION + LAYOUT

    def reset(self, rng: jax.Array) -> State:
        """Starts near the rest, standing, with noise on coordinates and velocities."""
        key_q, key_qd = jax.random.split(check_key(rng))
        scale = self.parameters.reset_noise_scale
        q = self.sys.init_q
        q = q + jax.random.uniform(key_q, q.shape, q.dtype, -scale, scale)
        qd = scale * jax.random.normal(key_qd, (self.sys.qd_size(),), q.dtype)
        physics = self.pipeline_init(q, qd)
        zero = jnp.zeros(())
        still = self._metrics(physics, physics, jnp.zeros(self.action_size))
        metrics = jax.tree.map(jnp.zeros_like, still)
        return State(physics, observe(self.observation_layout, physics), zero, zero, metrics)

    def step(self, state: State, action: jax.Array) -> State:
        """Advances by 0.05 s under motor controls in [-1, 1], shape (8,)."""
        physics = self.pipeline_step(state.pipeline_state, action)
        metrics = self._metrics(state.pipeline_state, physics, action)
        reward = sum(metrics[name] for name in REWARDS)
        over = ~self._is_healthy(physics) & self.parameters.terminate_when_unhealthy
        return state.replace(
            pipeline_state=physics,
            obs=observe(self.observation_layout, physics),
            reward=reward,
            done=over.astype(jnp.float32),
            metrics=metrics,
        )

    def _is_healthy(self, physics: PipelineState) -> jax.Array:
        low, high = self.parameters.healthy_z_range
        z = physics.x.pos[0, 2]
        return (low <= z) & (z <= high)  # false for NaN

    def _metrics(
        self, before: PipelineState, after: PipelineState, action: jax.Array
    ) -> dict[str, jax.Array]:
        p = self.parameters
        x, y = after.x.pos[0, 0], after.x.pos[0, 1]
        velocity = (after.x.pos[0] - before.x.pos[0]) / self.dt
        forward = p.forward_reward_weight * velocity[0]
        healthy = self._is_healthy(after) | p.terminate_when_unhealthy
        return {
            "reward_forward": forward,
            "reward_survive": p.healthy_reward * healthy.astype(jnp.float32),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(action**2),
            "reward_contact": jnp.zeros(()),
            "x_position": x,
            "y_position": y,
            "distance_from_origin": jnp.hypot(x, y),
            "x_velocity": velocity[0],
            "y_velocity": velocity[1],
            "forward_reward": forward,
        }


REWARDS = ("reward_forward", "reward_survive", "reward_ctrl", "reward_contact")
"""The metrics that make up the reward."""
