"""One training step of PPO, as pure functions of the training state.

The loss is in `losses.py`. Start reading at `PPOLearner.training_step`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.env import State
from brax.errors import ConfigError
from brax.training.agents.ppo.losses import Batch, Memory, compute_ppo_loss, with_targets
from brax.training.agents.ppo.networks import PPOParams
from brax.training.agents.ppo.optimizer import LRSchedule, adaptive_kl_learning_rate, make_optimizer
from brax.training.distributed import devices
from brax.training.learner import (
    Episodes,
    Learned,
    Learner,
    Parts,
    Tally,
    Updates,
    count_updates,
    descend,
    ends,
    episodes,
    in_a_row,
)
from brax.training.learning.some_values import values_of_some
from brax.training.learning.vectors import Vectors
from brax.training.nn import images, networks
from brax.training.policies import make_inference_fn
from brax.training.runner import acting


class PPOTrainingState(NamedTuple):
    """Everything that one training step passes to the next. A checkpoint stores it whole."""

    params: PPOParams
    optimizer_state: Any
    env_state: State
    key: jax.Array
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32."""
    memory: tuple[Memory, ...] = ()
    """Memory of recurrent networks in the current episode of each environment, as the only entry;
    empty without memory.
    """


class PPOLearner(Learner):
    """The functions of PPO that are compiled: the first state and one training step."""

    def __init__(self, parts: Parts) -> None:
        """Make the functions of the policy and the optimizer; nothing is compiled.

        Raises:
            ConfigError: if only one of the networks has memory.
        """
        super().__init__(parts)
        both = parts.networks.policy_network, parts.networks.value_network
        recurrent = [isinstance(network, networks.RecurrentNetwork) for network in both]
        if any(recurrent) and not all(recurrent):
            raise ConfigError(
                "network_factory returned memory for only one of policy_network and value_network; "
                "ppo needs it in both or in neither."
            )
        self._recurrent = all(recurrent)
        self._make_policy = make_inference_fn(parts.networks)
        self._optimizer = make_optimizer(self.config)

    @property
    def split(self) -> Mapping[str, int]:
        """Parts of the training state that devices share: environments, and memory if any."""
        own = {"memory": self.config.num_envs} if self._recurrent else {}
        return {**super().split, **own}

    def init(self, key: jax.Array) -> PPOTrainingState:
        """Return the first training state."""
        policy_key, value_key, env_key, train_key = jax.random.split(key, 4)
        params = PPOParams(
            self.first_normalizer(),
            self.networks.policy_network.init(policy_key),
            self.networks.value_network.init(value_key),
        )
        return PPOTrainingState(
            params=params,
            optimizer_state=self._optimizer.init((params.policy, params.value)),
            env_state=self.reset(env_key),
            key=train_key,
            bad_updates=jnp.int32(0),
            memory=self._first_memory(),
        )

    def fresh_environments(self, state: PPOTrainingState) -> PPOTrainingState:
        """Reset all environments, and forget what was before."""
        fresh: PPOTrainingState = super().fresh_environments(state)
        return fresh._replace(memory=self._first_memory())

    def _first_memory(self) -> tuple[Memory, ...]:
        """Return the memory before the first steps of episodes."""
        if not self._recurrent:
            return ()
        both = self.networks.policy_network, self.networks.value_network
        return (Memory(*(jnp.zeros((self.config.num_envs, x.memory_size)) for x in both)),)

    def training_step(self, state: PPOTrainingState) -> tuple[PPOTrainingState, Tally]:
        """Collect experience, update the observation statistics, then learn from the experience."""
        key, collect_key, learn_key = jax.random.split(state.key, 3)
        state, batch, acted = self._collect(state, collect_key)
        # The statistics change before learning: the updates normalize by statistics that include
        # this batch. Log densities in the batch were computed with the older ones.
        normalizer = self.normalizer_after(state.params.normalizer, batch.observation)
        params = state.params._replace(normalizer=normalizer)
        state = state._replace(params=params, key=key)
        state, updates = self._learn(state, batch, learn_key)
        return state, Tally(updates, acted)

    def _collect(
        self, state: PPOTrainingState, key: jax.Array
    ) -> tuple[PPOTrainingState, Batch, Episodes]:
        """Run every environment for `num_unrolls` unrolls.

        Returns:
            The state after them, the experience with the unroll as first axis, and the sums over
            the episodes that ended.
        """
        params = state.params
        policy = self._acting_policy(params)

        def unroll(before: tuple[Any, ...], key: jax.Array) -> tuple[Any, tuple[Batch, Any]]:
            env_state, remembered = before
            env_state, memory, data = acting.generate_recurrent_unroll(
                self.env, env_state, remembered, policy, key, self.config.unroll_length, self.extra
            )
            batch = self._batch(params, data)
            if remembered:
                batch = batch._replace(memory=remembered[0])
            return (env_state, memory), (batch, episodes(data.extras["state_extras"]))

        keys = jax.random.split(key, self.config.num_unrolls)
        after, (batch, acted) = jax.lax.scan(unroll, (state.env_state, state.memory), keys)
        unrolls = self.config.batch_size * self.config.num_minibatches

        def merge(x: jax.Array) -> jax.Array:
            """Join (unroll, env, ...) to (env * unroll, ...), environments first."""
            return jnp.swapaxes(x, 0, 1).reshape(unrolls, *x.shape[2:])

        # The environments are split over devices along this axis, so that the unrolls of each can
        # stay on its device.
        batch = jax.tree.map(merge, batch)
        places = devices.shardings(batch, self.mesh, unrolls)
        batch = jax.lax.with_sharding_constraint(batch, places)
        state = state._replace(env_state=after[0], memory=after[1])
        return state, batch, jax.tree.map(lambda x: jnp.sum(x, axis=0), acted)

    def _acting_policy(self, params: PPOParams) -> Callable[..., Any]:
        """Return the policy of the rollouts; with memory, its extras have the critic's value too.

        The critic's memory depends on all observations of the episode, so that it has to see them
        one after the other, as the policy does.
        """
        policy: Callable[..., Any] = self._make_policy(params)
        if not self._recurrent:
            return policy

        def act(observation: Any, key: jax.Array, memory: Memory) -> tuple[jax.Array, Any]:
            action, extras = policy(observation, key, memory.policy)
            value, remembered = self.networks.value_network.apply(
                params.normalizer, params.value, observation, memory.value
            )
            memory = Memory(extras["memory"], remembered)
            return action, {**extras, "value": value, "memory": memory}

        return act

    def _batch(self, params: PPOParams, data: Any) -> Batch:
        """Return the experience of one unroll, with environments as first axis."""
        # Everything here is (time, env) until the last lines.
        termination, truncation = ends(data)
        after, recorded = data.next_observation, data.extras["policy_extras"]
        memory: tuple[jax.Array, ...] = ()
        if self._recurrent:
            value, memory = recorded["value"], (recorded["memory"].value,)
        else:
            value = self._value(params, data.observation)
        last, timeout_value = jax.tree.map(lambda x: x[-1], after), None
        if self.config.bootstrap_on_timeout:
            values_after = values_of_some(
                lambda seen: self._value(params, *seen),
                (after, *memory),
                truncation > 0,
                # Of other seeds too, since `vmap` makes one loop of those of all seeds.
                split=self.mesh.size > 1,
            )
            last_value = values_after[-1]
            # No update fits the values of last observations, which are never acted on. Clipped to
            # the range of the values in the same unroll, which are fitted, an extrapolation cannot
            # feed itself.
            timeout_value = jnp.clip(values_after, jnp.min(value, axis=0), jnp.max(value, axis=0))
        else:
            last_value = self._value(params, last, *(x[-1] for x in memory))
        steps = {
            "observation": data.observation,
            "raw_action": recorded["raw_action"],
            "log_prob": recorded["log_prob"],
            "value": value,
            "reward": data.reward * self.config.reward_scaling,
            "termination": termination,
            "truncation": truncation,
            "timeout_value": timeout_value,
        }
        # Minibatches are drawn from whole unrolls, so environments come first.
        steps = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), steps)
        return Batch(**steps, last_observation=last, last_value=last_value)

    def _value(self, params: PPOParams, observation: Any, *memory: jax.Array) -> jax.Array:
        """Return the critic's values of observations, each with the memory before it, if any."""
        found = self.networks.value_network.apply(
            params.normalizer, params.value, observation, *memory
        )
        return found[0] if memory else found

    def _learn(
        self, state: PPOTrainingState, batch: Batch, key: jax.Array
    ) -> tuple[PPOTrainingState, Updates]:
        """Pass over the experience in shuffled minibatches, with one update for each."""
        normalizer = state.params.normalizer
        batch, seen_by = self._preprocessed(batch, normalizer)
        if not self.config.recompute_targets:
            batch = with_targets(batch, self.config.loss)
        weights = Vectors((state.params.policy, state.params.value))
        learned = Learned(weights.first, weights.flatten(state.optimizer_state), state.bad_updates)

        def update(now: Learned, part: Batch, key: jax.Array) -> tuple[Learned, Any]:
            return self._update(now, weights, seen_by, part, key)

        # Whole unrolls are shuffled: a row is one unroll with all of its steps.
        learned, (losses, finite) = self.in_epochs(update, learned, batch, key)
        state = state._replace(
            params=PPOParams(normalizer, *weights.restore(learned.weights)),
            optimizer_state=weights.unflatten(learned.optimizer_state, state.optimizer_state),
            bad_updates=learned.bad_updates,
        )
        return state, count_updates(losses, finite)

    def _preprocessed(self, batch: Batch, normalizer: Any) -> tuple[Batch, Any]:
        """Return the experience with preprocessed observations, and the normalizer for them, None.

        All updates see the same statistics, so that it is enough to normalize once. Networks that
        were made elsewhere may not allow that; then both stay as they are.
        """
        preprocess: Any = getattr(self.networks.policy_network, "preprocess", None)
        other: Any = getattr(self.networks.value_network, "preprocess", None)
        if preprocess is None or preprocess is not other:
            return batch, normalizer
        now = preprocess(batch.observation, normalizer)
        last = preprocess(batch.last_observation, normalizer)
        return batch._replace(observation=now, last_observation=last), None

    def _update(
        self,
        learned: Learned,
        vectors: Vectors,
        normalizer: Any,
        batch: Batch,
        key: jax.Array,
    ) -> tuple[Learned, tuple[dict[str, jax.Array], jax.Array]]:
        """Take one gradient step, or none if the gradient is not finite."""
        if self.config.augment_pixels:
            key, shift_key = jax.random.split(key)
            batch = _shifted(batch, shift_key)

        # The normalizer is no weight: no gradient goes into it.
        def loss(weights: Any, over: object) -> tuple[jax.Array, dict[str, jax.Array]]:
            params, networks = PPOParams(normalizer, *weights), self.networks.over(over)
            return compute_ppo_loss(params, batch, key, networks, self.config.loss)

        weights = vectors.restore(learned.weights)
        grads, losses = devices.grad(loss, weights, self.mesh, len(batch.log_prob))
        # The learning rate follows the KL divergence before this update, of the policy that the
        # earlier updates of this training step have moved.
        optimizer_state = learned.optimizer_state
        if self.config.learning_rate_schedule == LRSchedule.ADAPTIVE_KL:
            optimizer_state, rate = adaptive_kl_learning_rate(
                optimizer_state,
                losses["kl_estimate"],
                self.config.desired_kl,
                self.config.learning_rate_schedule_min_lr,
                self.config.learning_rate_schedule_max_lr,
            )
            losses["learning_rate"] = rate
        weights, optimizer_state, finite = descend(
            self._optimizer, vectors.of(grads), optimizer_state, learned.weights
        )
        bad_updates = in_a_row(learned.bad_updates, finite)
        return Learned(weights, optimizer_state, bad_updates), (losses, finite)


def _shifted(batch: Batch, key: jax.Array) -> Batch:
    """Return experience whose images are randomly shifted, each sample by a shift of its own.

    Values and log densities stay those of the images that the policy saw.
    """
    return batch._replace(observation=images.randomly_shifted(batch.observation, key))
