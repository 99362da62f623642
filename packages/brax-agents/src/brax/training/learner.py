"""The interface of a learner: the first training state and one training step, as pure functions.

The functions below the class are the parts that learners share: counting of episodes and updates,
gradient steps that skip non-finite gradients, and shuffling.
"""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh

from brax.env import Env, State
from brax.training import types
from brax.training.acme import running_statistics
from brax.training.distributed import devices
from brax.training.learning.stacking import stacked_scan
from brax.training.nn import images

EPISODE_INFO = ("truncation", "nan", "episode_done", "episode_metrics")
"""Entries of the environment's `info` that describe episodes."""


class Episodes(NamedTuple):
    """Sums over the episodes that ended; all arrays have the shape (), or that of the environments.

    `each_episode` returns the terms of the sums, one for each environment.
    """

    episodes: dict[str, jax.Array]
    """Sums of their metrics."""
    episodes_ended: jax.Array
    """Number of episodes that ended."""
    nan_envs: jax.Array
    """Number of environments that were reset because their state was not finite."""


class Updates(NamedTuple):
    """Sums over updates; all arrays have the shape ()."""

    losses: dict[str, jax.Array]
    """Parts of the loss, over the updates that were made."""
    skipped_losses: dict[str, jax.Array]
    """Parts of the loss, over the updates that were skipped."""
    updates: jax.Array
    """Number of updates that were made."""
    skipped: jax.Array
    """Number of updates that were skipped because their gradient was not finite."""


class Tally(NamedTuple):
    """Sums over some training steps."""

    learned: Updates
    acted: Episodes


class Learned(NamedTuple):
    """The part of a training state that an update changes."""

    weights: Any
    """The weights, or what `Vectors` makes of them."""
    optimizer_state: Any
    """The optimizer's state for such weights."""
    bad_updates: jax.Array
    """Consecutive updates skipped because their gradient was not finite, int32, shape ()."""


@dataclass(frozen=True)
class Parts:
    """The parts that a learner is made from."""

    env: Env
    """Batched environment."""
    networks: Any
    """The agent's networks."""
    config: Any
    """The agent's numbers."""
    runtime: Any
    """The settings of the run that are not numbers."""
    mesh: Mesh
    """Devices."""
    info: State
    """Shapes of the environment's state."""


def environment_keys(env: Env, key: jax.Array, number: int) -> jax.Array:
    """Return the keys that reset a batch of environments.

    Environments that are not a `brax.env.Env` get keys of plain integers, (number, 2): wrappers of
    other packages read the size of the batch from `rng.shape[:-1]`. The draws are the same.
    """
    keys = jax.random.split(key, number)
    return keys if isinstance(getattr(env, "unwrapped", env), Env) else jax.random.key_data(keys)


class Learner(abc.ABC):
    """The functions of an agent that are compiled.

    The training state is a named tuple of the agent's own. It has at least `params` (whose first
    entries are `normalizer` and `policy`), `key`, and `bad_updates`, the number of consecutive
    updates that were skipped because their gradient was not finite.
    """

    split_axis: ClassVar[int] = 0
    """Axis that devices split in the parts of `split`."""

    def __init__(self, parts: Parts) -> None:
        """Store the parts; nothing is compiled."""
        self.env = parts.env
        self.networks = parts.networks
        self.config = parts.config
        self.mesh = parts.mesh
        # An environment need not report all of these; learners carry along those that it does.
        self.extra = [name for name in EPISODE_INFO if name in parts.info.info]
        self.sample_obs = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), parts.info.obs
        )
        """Shapes of one environment's observation."""

    @property
    def split(self) -> Mapping[str, int]:
        """Parts of the training state that devices share, with the length of the split axis."""
        return {"env_state": self.config.num_envs}

    @property
    def has_replay_buffer(self) -> bool:
        """True if the training state has experience of earlier training steps."""
        # Whatever is split besides the environments and their memory.
        return not set(self.split) <= {"env_state", "memory"}

    @abc.abstractmethod
    def init(self, key: jax.Array) -> Any:
        """Return the first training state."""

    @abc.abstractmethod
    def training_step(self, state: Any) -> tuple[Any, Tally]:
        """Take one training step."""

    def advance(self, state: Any, steps: jax.Array) -> tuple[Any, Tally]:
        """Take `steps` training steps, a scalar that is data, so that one program serves all."""
        return repeated(lambda _, state: self.training_step(state), state, steps)

    def with_params(self, state: Any, params: Any) -> Any:
        """Return the first state with other parameters in it."""
        return state._replace(params=params)

    def fresh_environments(self, state: Any) -> Any:
        """Reset all environments."""
        key, now = jax.random.split(state.key)
        return state._replace(env_state=self.reset(now), key=key)

    def reset(self, key: jax.Array) -> State:
        """Start an episode in every environment, as if some steps were over if they are staggered.

        Environments that reset together are otherwise truncated together too, in one training step
        of many; those between see no first steps of an episode, which an agent that learns from its
        recent experience only then forgets.
        """
        state = self.env.reset(environment_keys(self.env, key, self.config.num_envs))
        if not self.config.stagger_episodes:
            return state
        steps = state.info["steps"]
        over = jax.random.randint(
            jax.random.fold_in(key, 1), steps.shape, 0, self.config.episode_length
        )
        return state.replace(info={**state.info, "steps": over.astype(steps.dtype)})

    def first_normalizer(self) -> Any:
        """Return statistics of no observations; `()` if none is normalized, as images never are."""
        vectors = images.vectors(self.sample_obs)
        if not (self.config.normalize_observations and jax.tree.leaves(vectors)):
            return ()
        return running_statistics.init_state(vectors, self.config.normalize_observations_std_eps)

    def normalizer_after(self, normalizer: Any, observations: Any) -> Any:
        """Return the statistics with these observations added; batch axes come first."""
        if not jax.tree.leaves(normalizer):
            return normalizer
        return running_statistics.update(
            normalizer,
            images.vectors(observations),
            until_count=self.config.normalize_until_count,
        )

    def dealt(self, key: jax.Array, rows: Any, number: int) -> Any:
        """Return rows in random order as minibatches, whose rows the devices share.

        Args:
            key: random key.
            rows: a pytree of arrays (rows, ...).
            number: number of minibatches, which divides that of the rows.

        Returns:
            A pytree of arrays (minibatches, rows of a minibatch, ...).
        """
        order = shuffled(key, len(jax.tree.leaves(rows)[0]))

        def deal(x: jax.Array) -> jax.Array:
            # A permutation: no row is out of bounds or taken twice, so XLA need not check.
            # A row is one axis, which XLA's CPU compiler copies in whole registers.
            flat = x.reshape(len(x), -1)
            part = flat.at[order].get(mode="promise_in_bounds", unique_indices=True)
            return part.reshape(number, -1, *x.shape[1:])

        return devices.shard(jax.tree.map(deal, rows), self.mesh, axis=1)

    def in_epochs(
        self,
        update: Callable[[Any, Any, jax.Array], tuple[Any, Any]],
        learned: Any,
        rows: Any,
        key: jax.Array,
    ) -> tuple[Any, Any]:
        """Pass over experience `num_updates_per_batch` times, in `num_minibatches` minibatches.

        Args:
            update: takes what is learned, a minibatch, leaves (rows of a minibatch, ...), and a
                random key; returns what is learned next, and something to keep.
            learned: what is learned.
            rows: the experience, a pytree of arrays (rows, ...).
            key: random key.

        Returns:
            What is learned in the end, and what was kept, (epochs, minibatches, ...).
        """
        number = self.config.num_minibatches

        def epoch(learned: Any, key: jax.Array) -> tuple[Any, Any]:
            shuffle, rest = jax.random.split(key)
            parts = self.dealt(shuffle, rows, number), jax.random.split(rest, number)
            return stacked_scan(lambda now, inputs: update(now, *inputs), learned, parts)

        keys = jax.random.split(key, self.config.num_updates_per_batch)
        return jax.lax.scan(epoch, learned, keys)


def repeated(
    step: Callable[[jax.Array, Any], tuple[Any, Any]], state: Any, number: jax.Array
) -> tuple[Any, Any]:
    """Take `number` steps, which is data, and add up their tallies.

    Args:
        step: function from its index, a scalar, and a state to the next state and a tally.
        state: the first state.
        number: number of steps, a scalar.

    Returns:
        The last state and the sums.
    """
    shapes = jax.eval_shape(step, jnp.int32(0), state)[1]
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

    def add(i: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state, tally = carry
        state, new = step(i, state)
        return state, jax.tree.map(jnp.add, tally, new)

    # A loop with a traced bound is a `while`, which is compiled once for every number of steps.
    return jax.lax.fori_loop(0, number, add, (state, nothing))


def episodes(extras: Mapping[str, Any]) -> Episodes:
    """Return the sums over the episodes that ended in some steps.

    Args:
        extras: entries of `info` after each step, of any batch shape; those of `EPISODE_INFO` that
            the environment has.
    """
    return summed(each_episode(extras))


def summed(each: Episodes) -> Episodes:
    """Sum over all environments."""
    # In their own types: in double precision mode counts would otherwise become 64 bits wide, and
    # the carry of a loop change its type.
    return jax.tree.map(lambda x: jnp.sum(x, dtype=x.dtype), each)


def each_episode(extras: Mapping[str, Any]) -> Episodes:
    """Return the terms that `episodes` sums, one for each environment."""
    ended = extras.get("episode_done", jnp.zeros_like(extras["truncation"]))
    metrics = extras.get("episode_metrics", {})
    of_ended = {name: jnp.where(ended > 0, x, 0.0) for name, x in metrics.items()}
    nan = extras.get("nan", jnp.zeros_like(ended))
    return Episodes(of_ended, jnp.int32(ended > 0), jnp.int32(nan > 0))


def descend(
    optimizer: Any, grads: Any, optimizer_state: Any, weights: Any
) -> tuple[Any, Any, jax.Array]:
    """Take one step of an optimizer, or none if the gradient is not finite.

    Returns:
        The weights, the optimizer's state, and whether the gradient was finite, a scalar.
    """
    grads, norm = jax.lax.platform_dependent(
        grads, cpu=lambda grads: (grads, optax.tree.norm(grads)), default=_by_one_vector
    )
    # One number that is not finite makes the norm so. A norm that overflows counts too.
    finite = jnp.isfinite(norm)
    updates, new_state = optimizer.update(grads, optimizer_state, weights)
    new = optax.apply_updates(weights, updates), new_state
    old = weights, optimizer_state
    # The optimizer's state stays too: Adam's moments would keep the NaN for ever.
    weights, optimizer_state = jax.tree.map(lambda n, o: jnp.where(finite, n, o), new, old)
    return weights, optimizer_state, finite


def _by_one_vector(grads: Any) -> tuple[Any, jax.Array]:
    """Return a gradient, cut from one vector, and its norm.

    On a GPU each layer's sum of squares and step would be kernels of their own. XLA joins layers of
    one shape in a kernel if they read the same array, which the barrier makes of the gradient.
    """
    vector, restore = ravel_pytree(grads)
    vector = jax.lax.optimization_barrier(vector)
    return restore(vector), jnp.linalg.norm(vector)


def shuffled(key: jax.Array, number: int) -> jax.Array:
    """Return the numbers below `number`, fewer than 2^31, in random order, int32, (number,).

    The numbers are sorted by random bits in front of them in one word, because XLA's CPU compiler
    sorts words five times as fast as pairs. Numbers with equal bits keep their order, so sorting is
    repeated until each number has been given three times as many random bits as it has itself.
    """
    # Bits of a number; the other bits of the 32 are random.
    own = max(number - 1, 1).bit_length()
    order = jnp.arange(number, dtype=jnp.uint32)
    for now in jax.random.split(key, -(-3 * own // (32 - own))):
        drawn = jax.random.bits(now, (number,)) << own | jnp.arange(number, dtype=jnp.uint32)
        order = order[jnp.sort(drawn) & ((1 << own) - 1)]
    return order.astype(jnp.int32)


def in_a_row(bad_updates: jax.Array, finite: jax.Array) -> jax.Array:
    """Return the number of consecutive skipped updates after one more update; all are scalars."""
    return jnp.where(finite, 0, bad_updates + 1)


def ends(data: types.Transition) -> tuple[jax.Array, jax.Array]:
    """Return 1 where episodes terminated, and 1 where the time limit truncated them.

    Both have the shape of `data.discount`.
    """
    # `discount` is 0 at both kinds of ends.
    truncation = data.extras["state_extras"]["truncation"]
    return (1.0 - data.discount) * (1.0 - truncation), truncation


def count_updates(losses: Mapping[str, jax.Array], finite: jax.Array) -> Updates:
    """Sum the parts of losses over updates, separately over those that were skipped.

    Args:
        losses: each of the shape of `finite`.
        finite: whether each update was made, any shape.
    """
    return Updates(
        # `where` and not a product: 0 times NaN is NaN.
        losses=jax.tree.map(lambda x: jnp.sum(jnp.where(finite, x, 0.0)), dict(losses)),
        skipped_losses=jax.tree.map(lambda x: jnp.sum(jnp.where(finite, 0.0, x)), dict(losses)),
        updates=jnp.sum(finite, dtype=jnp.int32),
        skipped=jnp.sum(~finite, dtype=jnp.int32),
    )
