"""An environment without physics, for trying agents: it costs nothing."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.env import Env, State, check_key


class Fast(Env):
    """Observes zeros and earns 1 a step, whatever one does."""

    dt = 0.02
    """Duration of a step [s]."""

    def __init__(self, use_dict_obs: bool = False, asymmetric_obs: bool = False) -> None:
        """Makes the environment.

        Args:
            use_dict_obs: whether the observation is a dictionary, with the entry `state` (2,).
            asymmetric_obs: whether the dictionary has an entry `privileged_state` (4,) too.
        """
        self._dictionary = use_dict_obs or asymmetric_obs
        self._asymmetric = asymmetric_obs

    def reset(self, rng: jax.Array) -> State:
        """Starts an episode."""
        check_key(rng)
        return State(None, self._observe(), jnp.zeros(()), jnp.zeros(()))

    def step(self, state: State, action: jax.Array) -> State:
        """Earns 1."""
        return state.replace(obs=self._observe(), reward=jnp.ones(()))

    @property
    def action_size(self) -> int:
        """One entry, without effect."""
        return 1

    def _observe(self) -> Any:
        if not self._dictionary:
            return jnp.zeros(2)
        extra = {"privileged_state": jnp.zeros(4)} if self._asymmetric else {}
        return {"state": jnp.zeros(2)} | extra
