"""A mass that is pushed along a line: trivial physics, for testing agents."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import Env, State, check_array, check_key, check_state
from brax.errors import ConfigError, ShapeError, closest

_VIEWS = ("view_0", "view_1")
_PIXELS = tuple(f"pixels/{view}" for view in _VIEWS)
_LATENTS = tuple(f"latent_pixels/{view}" for view in _VIEWS)
_ENTRIES: dict[str, tuple[str, ...]] = {
    "ndarray": (),
    "dict_state": ("state",),
    "dict_pixels": _PIXELS,
    "dict_pixels_state": (*_PIXELS, "state"),
    "dict_latent_state": (*_LATENTS, "state"),
}
"""Entries of the observation by `obs_mode`; none is one array."""


class Fast(Env):
    """A mass at rest that is pushed with 1 m/s^2 in every step whose action is above zero.

    The reward is its position, so the return is 0.02^2 * 128 * 129 * 130 / 6 = 143.1 if it is
    pushed in each of 128 steps, and 0 if it is never pushed. The push has no gradient with respect
    to the action.
    """

    dt = 0.02
    """Duration of a step [s]."""

    def __init__(
        self,
        use_dict_obs: bool = False,
        asymmetric_obs: bool = False,
        obs_mode: str = "ndarray",
        pixel_obs: bool = False,
    ) -> None:
        """Choose the form of the observation.

        Args:
            use_dict_obs: whether the observation is a dictionary, with the entry `state` (2,):
                position [m] and velocity [m/s]; the same as `obs_mode="dict_state"`.
            asymmetric_obs: whether the dictionary also has an entry `privileged_state` (4,):
                position, velocity, push [m/s^2] and time [s].
            obs_mode: `ndarray`, one array with position and velocity, or the entries of the
                dictionary: `dict_state`, `dict_pixels`, `dict_pixels_state` or
                `dict_latent_state`. `pixels` are two images (8, 8, 3), `latent` two vectors (12,)
                that stand for encoded images. Both are zero.
            pixel_obs: must not be True without images in `obs_mode`.

        Raises:
            ConfigError: if there is no such `obs_mode`, or `pixel_obs` does not fit it.
        """
        if obs_mode not in _ENTRIES:
            raise ConfigError(
                f"unknown obs_mode '{obs_mode}'. Allowed: {', '.join(_ENTRIES)}."
                f"{closest(str(obs_mode), _ENTRIES)}"
            )
        if pixel_obs and "pixels" not in obs_mode:
            raise ConfigError(
                f"pixel_obs=True, but obs_mode='{obs_mode}' has no images: use dict_pixels_state."
            )
        self._entries = _ENTRIES[obs_mode]
        if not self._entries and (use_dict_obs or asymmetric_obs):
            self._entries = ("state",)
        if asymmetric_obs:
            self._entries += ("privileged_state",)

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

    @property
    def observation_size(self) -> Any:
        """The size of the observation; by name if it is a dictionary, shapes of images as such."""
        found = super().observation_size
        if not isinstance(found, Mapping):
            return found
        return {name: x[0] if len(x) == 1 else x for name, x in found.items()}

    def _observe(self, moved: jax.Array) -> Any:
        """Return the observation of position, velocity, push and time."""
        if not self._entries:
            return moved[:2]
        blank = dict.fromkeys(_PIXELS, jnp.zeros((8, 8, 3)))
        blank |= dict.fromkeys(_LATENTS, jnp.zeros(12))
        found = {"state": moved[:2], "privileged_state": moved, **blank}
        return {name: found[name] for name in self._entries}
