"""A mass that is pushed along a line: trivial physics, for testing agents."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.env import Env, State, check_array, check_key, check_state
from brax.errors import ShapeError


class Fast(Env):
    """A mass at rest that is pushed with 1 m/s^2 in every step whose action is above zero.

    The reward is its position, so the return is 0.02^2 * 128 * 129 * 130 / 6 = 143.1 if it is
    pushed in each of 128 steps, and 0 if it is never pushed. The push has no gradient with respect
    to the action.
    """

    dt = 0.02
    """Duration of a step [s]."""

    def __init__(self, use_dict_obs: bool = False, asymmetric_obs: bool = False) -> None:
        """Choose the form of the observation.

        Args:
            use_dict_obs: whether the observation is a dictionary, with the entry `state` (2,):
                position [m] and velocity [m/s].
            asymmetric_obs: whether the dictionary also has an entry `privileged_state` (4,):
                position, velocity, push [m/s^2] and time [s].
        """
        self._dictionary = use_dict_obs or asymmetric_obs
        self._asymmetric = asymmetric_obs

    def reset(self, rng: jax.Array) -> State:
        """Start an episode."""
        check_key(rng)
        rest = jnp.zeros(4)
        return State(rest, self._observe(rest), jnp.zeros(()), jnp.zeros(()))

    def step(self, state: State, action: jax.Array) -> State:
        """Advance by one step, with a push if the action is above zero.

        Raises:
            ShapeError: unless the action is one number, shape (1,).
        """
        check_state(self, state)
        check_array(self, action, (1,))
        if action.shape != (1,):
            raise ShapeError(f"action has shape {action.shape}; 'Fast' takes (1,)")
        position, velocity, _, time = state.pipeline_state
        push = jnp.where(action[0] > 0, 1.0, 0.0)
        velocity = velocity + self.dt * push
        # Semi-implicit Euler, which gives the closed form in the class's docstring.
        position = position + self.dt * velocity
        moved = jnp.stack([position, velocity, push, time + self.dt])
        return state.replace(pipeline_state=moved, obs=self._observe(moved), reward=position)

    @property
    def action_size(self) -> int:
        """The number of entries of an action, 1."""
        return 1

    def _observe(self, moved: jax.Array) -> Any:
        if not self._dictionary:
            return moved[:2]
        extra = {"privileged_state": moved} if self._asymmetric else {}
        return {"state": moved[:2]} | extra
