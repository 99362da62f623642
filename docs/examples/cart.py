"""A cart that drives to a target on a rail: a complete environment."""

import jax
import jax.numpy as jnp

from brax.builder import ModelBuilder
from brax.env import PipelineEnv, State, check_key


def cart_model():
    """Return a cart of 1 kg on a rail along x, pushed by a motor of up to 5 N."""
    model = ModelBuilder()
    model.set_option(timestep=0.01)
    model.add_body("cart", mass=1.0, inertia=(0.01, 0.01, 0.01))
    model.add_joint("cart", "slide", "rail", axis=(1, 0, 0), range=(-2, 2), damping=0.5)
    model.add_geom("cart", "sphere", size=(0.1,), contype=0, conaffinity=0)
    model.add_actuator("rail", gear=5.0, ctrl_range=(-1, 1))
    return model.build()


class Cart(PipelineEnv):
    """A cart whose reward is minus the distance to a target, which `reset` draws."""

    def __init__(self, backend="spring", n_frames=5, reach=1.5):
        super().__init__(cart_model(), backend, n_frames)
        self.reach = reach

    def reset(self, rng):
        """Start at rest in the middle."""
        target = jax.random.uniform(check_key(rng), (), minval=-self.reach, maxval=self.reach)
        physics = self.pipeline_init(self.sys.init_q, jnp.zeros(self.sys.qd_size()))
        zero = jnp.zeros(())
        return State(
            pipeline_state=physics,
            obs=self.observe(physics, target),
            reward=zero,
            done=zero,
            metrics={"distance": zero},
            info={"target": target},
        )

    def step(self, state, action):
        """Advance by 0.05 s under a motor control in [-1, 1]."""
        physics = self.pipeline_step(state.pipeline_state, action)
        target = state.info["target"]
        distance = jnp.abs(physics.q[0] - target)
        return state.replace(
            pipeline_state=physics,
            obs=self.observe(physics, target),
            reward=-distance,
            done=jnp.where(distance < 10, 0.0, 1.0),  # also 1 where the distance is NaN
            metrics={"distance": distance},
        )

    def observe(self, physics, target):
        """Return position and velocity of the cart, and position of the target."""
        return jnp.concatenate([physics.q, physics.qd, target[None]])
