"""Replay buffers: experience that is kept on the devices."""

from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp

from brax.errors import ConfigError
from brax.training import types


def check_sizes(config: Any, steps: int = 1) -> None:
    """Reject a replay buffer that cannot be filled or is too small.

    Args:
        config: settings of an off-policy agent: `max_replay_size`, `min_replay_size`, `num_envs`
            and those of its run.
        steps: steps of all environments that it must hold, the agent's `n_steps`.

    Raises:
        ConfigError: naming the numbers and the nearest that fits.
    """
    num_envs, asked = config.num_envs, config.min_replay_size
    kept, least = config.max_replay_size // num_envs * num_envs, steps * num_envs
    if kept < least:
        hold = "a step" if steps == 1 else f"n_steps={steps} steps"
        raise ConfigError(
            f"max_replay_size={config.max_replay_size} must hold {hold} of all "
            f"num_envs={num_envs}; the least that does is {least}."
        )
    if asked > kept:
        raise ConfigError(
            f"min_replay_size={asked} must not exceed the {kept} transitions that "
            f"max_replay_size={config.max_replay_size} and num_envs={num_envs} keep."
        )
    # A run that never has enough would end without a single update.
    most = config.training_steps * num_envs
    if config.num_timesteps and max(asked, least) > most:
        name = f"min_replay_size={asked}" if asked > most else f"n_steps={steps}"
        raise ConfigError(
            f"{name} is never reached: num_timesteps={config.num_timesteps} makes {most} "
            "transitions."
        )


def steps_before_updates(config: Any, steps: int = 1) -> int:
    """Return the training steps that only fill the buffer. Arguments as `check_sizes`."""
    # The step that inserts the last one of the needed transitions makes the first updates.
    return max(-(-config.min_replay_size // config.num_envs), steps) - 1


class Sample(NamedTuple):
    """A transition for off-policy learning, leaves (n, ...)."""

    observation: Any
    """Observation that the policy acted on."""
    action: jax.Array
    """Action, in (-1, 1), (n, action_size)."""
    reward: jax.Array
    """Reward, unscaled, (n,)."""
    goes_on: jax.Array
    """0 where the episode terminated, else 1, also where it was truncated, (n,)."""
    next_observation: Any
    """The true observation after the step."""

    @staticmethod
    def like(observation: object, action_size: int) -> "Sample":
        """Return a single sample of zeros, which gives the buffer its shapes."""
        number, action = jnp.zeros(()), jnp.zeros(action_size)
        return Sample(observation, action, number, number, observation)

    @staticmethod
    def of_step(data: types.Transition) -> "Sample":
        """Return a step of all environments, leaves (num_envs, 1, ...), for `ReplayBuffer.insert`.

        The extras must have the state's `truncation`.
        """
        # `discount` is 0 at truncation too, where the value of the next observation still counts.
        goes_on = jnp.maximum(data.discount, data.extras["state_extras"]["truncation"])
        kept = data.observation, data.action, data.reward, goes_on, data.next_observation
        return Sample(*jax.tree.map(lambda x: x[:, None], kept))


class ReplayBufferState(NamedTuple):
    """A ring of samples for each environment, all filled up to the same step."""

    data: Any
    """Samples, leaves (num_envs, steps, ...), split over devices like the environments."""
    position: jax.Array
    """Index of the step that is written next, int32, shape ()."""
    filled: jax.Array
    """Number of steps that hold samples, int32, shape ()."""


class ReplayBuffer:
    """A buffer of the last samples of every environment, from which batches are drawn uniformly."""

    def __class_getitem__(cls, _: object) -> type[Self]:
        """Return the class: annotations may name the types of its state and its samples."""
        return cls

    def __init__(
        self, max_replay_size: int, num_envs: int, sample: object, batch_size: int, stride: int = 1
    ) -> None:
        """Store the sizes; nothing is allocated.

        Args:
            max_replay_size: samples to keep, of all environments together, at least
                `num_envs * stride`; rounded down to a multiple of that.
            num_envs: number of environments.
            sample: tree of one sample, or of its shapes.
            batch_size: samples per draw.
            stride: steps per insertion.
        """
        # A multiple of the stride, so that no insertion wraps around the end of the ring.
        self.steps = max_replay_size // (num_envs * stride) * stride
        self._num_envs = num_envs
        self._sample = sample
        self._batch = batch_size
        self._stride = stride

    def init(self) -> ReplayBufferState:
        """Return an empty buffer."""
        shape = (self._num_envs, self.steps)
        data = jax.tree.map(lambda x: jnp.zeros(shape + x.shape, x.dtype), self._sample)
        return ReplayBufferState(data, jnp.int32(0), jnp.int32(0))

    def insert(self, state: ReplayBufferState, samples: object) -> ReplayBufferState:
        """Insert steps, leaves (num_envs, stride, ...), over the oldest if the buffer is full.

        They are stored in the types of the sample that the buffer was made for.
        """
        # One write for all environments at the same position: a slice, not a scatter.
        data = jax.tree.map(
            lambda kept, new: jax.lax.dynamic_update_slice_in_dim(
                kept, new.astype(kept.dtype), state.position, 1
            ),
            state.data,
            samples,
        )
        return ReplayBufferState(
            data,
            (state.position + self._stride) % self.steps,
            jnp.minimum(state.filled + self._stride, self.steps),
        )

    def sample(self, state: ReplayBufferState, key: jax.Array) -> Any:
        """Draw `batch_size` samples uniformly with replacement. The buffer must not be empty."""
        rows = jax.random.randint(key, (self._batch,), 0, self.size(state))
        # The filled steps come first in the ring, so these rows are all filled.
        step, env = jnp.divmod(rows, self._num_envs)
        return jax.tree.map(lambda x: x.at[env, step].get(mode="promise_in_bounds"), state.data)

    def draw_windows(
        self, state: ReplayBufferState, key: jax.Array, length: int
    ) -> tuple[jax.Array, jax.Array]:
        """Draw `batch_size` windows of consecutive steps uniformly with replacement.

        Args:
            state: a buffer that holds at least `length` steps of each environment.
            key: random key.
            length: steps of a window.

        Returns:
            The environment of each window, (batch_size,), and the indices of its steps in the ring,
            from the oldest to the newest, (batch_size, length).
        """
        starts = (state.filled - (length - 1)) * self._num_envs
        start, env = jnp.divmod(jax.random.randint(key, (self._batch,), 0, starts), self._num_envs)
        # The oldest step is at index 0 until the ring is full, then where the next one is written.
        oldest = state.position - state.filled
        return env, (oldest + start[:, None] + jnp.arange(length, dtype=jnp.int32)) % self.steps

    def size(self, state: ReplayBufferState) -> jax.Array:
        """Return the number of samples in the buffer, int32, shape ()."""
        return state.filled * self._num_envs
