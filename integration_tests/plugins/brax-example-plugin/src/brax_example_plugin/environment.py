"""A cart on a rail, to be brought to rest in the middle."""

import jax
import jax.numpy as jnp

from brax import System
from brax.builder import ModelBuilder
from brax.env import PipelineEnv, State


class Cart(PipelineEnv):
    """Observes position [m] and velocity [m/s]; the action is a push of up to 2 N on 1 kg."""

    def __init__(self, backend: str = "spring", n_frames: int = 5) -> None:
        super().__init__(build(), backend=backend, n_frames=n_frames)

    def reset(self, rng: jax.Array) -> State:
        """Start at rest, up to a metre off the middle."""
        q = jax.random.uniform(rng, (1,), minval=-1.0, maxval=1.0)
        pipeline_state = self.pipeline_init(q, jnp.zeros(1))
        zero = jnp.zeros(())
        obs = jnp.concatenate([pipeline_state.q, pipeline_state.qd])
        return State(pipeline_state, obs, zero, zero, {"distance": zero}, {})

    def step(self, state: State, action: jax.Array) -> State:
        """Push the cart; the reward decreases with the distance and slightly with the push."""
        pipeline_state = self.pipeline_step(state.pipeline_state, action)
        distance = jnp.abs(pipeline_state.q[0])
        return state.replace(
            pipeline_state=pipeline_state,
            obs=jnp.concatenate([pipeline_state.q, pipeline_state.qd]),
            reward=1.0 - distance - 0.01 * jnp.sum(action**2),
            metrics=state.metrics | {"distance": distance},
        )


def build() -> System:
    """Return a body of 1 kg on a rail along x, with a motor."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.01)
    builder.add_body("cart", mass=1.0, inertia=(0.01, 0.01, 0.01))
    rail = builder.add_joint("cart", "slide", axis=(1, 0, 0), damping=0.1)
    builder.add_geom("cart", "sphere", size=(0.1,), contype=0, conaffinity=0)
    builder.add_actuator(rail, gear=2.0, ctrl_range=(-1, 1))
    return builder.build()
