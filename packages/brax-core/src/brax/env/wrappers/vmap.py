"""Many environments side by side."""

import jax

from brax.env.base import Env, State, Wrapper, key_shape


class VmapWrapper(Wrapper):
    """Maps `reset` and `step` over a leading axis."""

    def __init__(self, env: Env, batch_size: int | None = None) -> None:
        """Wraps an environment.

        Args:
            env: one environment.
            batch_size: into how many `reset` splits a single key; without it, `reset` needs a
                batch of keys.
        """
        super().__init__(env)
        self.batch_size = batch_size

    def reset(self, rng: jax.Array) -> State:
        """Starts one episode per key."""
        if key_shape(rng) == () and self.batch_size is not None:
            rng = jax.random.split(rng, self.batch_size)
        return jax.vmap(self.env.reset)(rng)

    def step(self, state: State, action: jax.Array) -> State:
        """Advances every environment by its own action, (batch, action_size)."""
        return jax.vmap(self.env.step)(state, action)
