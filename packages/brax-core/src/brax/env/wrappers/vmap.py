"""`VmapWrapper`: a batch of environments."""

import jax

from brax.env.base import (
    Env,
    State,
    Wrapper,
    check_batch_given,
    check_count,
    key_shape,
    number_of_keys,
)
from brax.errors import ConfigError
from brax.kernels.batch_last import map_step


class VmapWrapper(Wrapper):
    """A wrapper that maps `reset` and `step` over a leading axis."""

    def __init__(self, env: Env, batch_size: int | None = None) -> None:
        """Wrap an environment.

        Args:
            env: one environment.
            batch_size: number of keys into which `reset` splits a single key; without it, `reset`
                needs a batch of keys.
        """
        super().__init__(env)
        self.batch_size = None if batch_size is None else check_count("batch_size", batch_size)

    def reset(self, rng: jax.Array) -> State:
        """Start one episode per key.

        Raises:
            ConfigError: if there is no batch of keys, or one of another size.
        """
        if key_shape(rng) == () and self.batch_size is not None:
            rng = jax.random.split(rng, self.batch_size)
        keys = number_of_keys(rng)
        if self.batch_size not in (None, keys):
            raise ConfigError(f"reset got {keys} keys, batch_size is {self.batch_size}")
        return jax.vmap(self.env.reset)(rng)

    def step(self, state: State, action: jax.Array) -> State:
        """Advance every environment by its own action, (batch, action_size).

        Raises:
            ShapeError: if the state does not come from `reset`, or the number of actions is not
                that of the environments.
        """
        check_batch_given(self, state, action)
        return map_step(self.env.step)(state, action)
