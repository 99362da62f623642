"""Experience kept on the devices, to learn from later."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.training import types


class Sample(NamedTuple):
    """A step as learning off the policy wants it, each leaf (n, ...)."""

    observation: Any
    """What the policy saw."""
    action: jax.Array
    """What it did, in (-1, 1), (n, action_size)."""
    reward: jax.Array
    """What it got, unscaled, (n,)."""
    goes_on: jax.Array
    """0 where the episode ended of itself, else 1, also where it was truncated, (n,)."""
    next_observation: Any
    """The true observation after the step."""

    @staticmethod
    def like(observation: Any, action_size: int) -> "Sample":
        """A single one, to shape a buffer by."""
        number, action = jnp.zeros(()), jnp.zeros(action_size)
        return Sample(observation, action, number, number, observation)

    @staticmethod
    def of_step(data: types.Transition) -> "Sample":
        """A step of all environments, each leaf (num_envs, 1, ...), as `ReplayBuffer.insert` takes
        it; its extras have to hold the state's `truncation`."""
        goes_on = jnp.maximum(data.discount, data.extras["state_extras"]["truncation"])
        kept = data.observation, data.action, data.reward, goes_on, data.next_observation
        return Sample(*jax.tree.map(lambda x: x[:, None], kept))


class ReplayBufferState(NamedTuple):
    """A ring of samples for each environment, all filled up to the same step."""

    data: Any
    """Samples, each leaf (num_envs, steps, ...): split over devices like the environments."""
    position: jax.Array
    """Step that is written next, int32."""
    filled: jax.Array
    """Steps that hold samples, int32."""


class ReplayBuffer:
    """Keeps the last samples of every environment, and draws from them evenly."""

    def __init__(
        self, max_replay_size: int, num_envs: int, sample: Any, batch_size: int, stride: int = 1
    ) -> None:
        """Allocates nothing.

        Args:
            max_replay_size: samples to keep, of all environments together, at least
                `num_envs * stride`; rounded down to a multiple of that.
            num_envs: number of environments.
            sample: tree of one sample, or of its shapes.
            batch_size: samples in one draw.
            stride: steps that are put in at once.
        """
        self.steps = max_replay_size // (num_envs * stride) * stride
        self._num_envs = num_envs
        self._sample = sample
        self._batch = batch_size
        self._stride = stride

    def init(self) -> ReplayBufferState:
        """Makes an empty buffer."""
        shape = (self._num_envs, self.steps)
        data = jax.tree.map(lambda x: jnp.zeros(shape + x.shape, x.dtype), self._sample)
        return ReplayBufferState(data, jnp.int32(0), jnp.int32(0))

    def insert(self, state: ReplayBufferState, samples: Any) -> ReplayBufferState:
        """Puts steps in, each leaf (num_envs, stride, ...), over the oldest if it is full.

        They are kept in the types of the sample that the buffer was made for.
        """
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
        """Draws `batch_size` samples, evenly and with replacement; something must be there."""
        rows = jax.random.randint(key, (self._batch,), 0, self.size(state))
        step, env = jnp.divmod(rows, self._num_envs)
        return jax.tree.map(lambda x: x.at[env, step].get(mode="promise_in_bounds"), state.data)

    def size(self, state: ReplayBufferState) -> jax.Array:
        """Samples that are in the buffer, int32."""
        return state.filled * self._num_envs
