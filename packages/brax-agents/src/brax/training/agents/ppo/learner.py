"""One training step of PPO, as pure functions of the training state."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from brax.env import Env, State
from brax.training import acting, devices
from brax.training.acme import running_statistics
from brax.training.agents.ppo.config import PPOConfig
from brax.training.agents.ppo.losses import Batch, compute_ppo_loss
from brax.training.agents.ppo.networks import PPONetworks, PPOParams, make_inference_fn


class TrainingState(NamedTuple):
    """All that one training step hands to the next."""

    params: PPOParams
    optimizer_state: Any
    env_state: State
    key: jax.Array
    bad_updates: jax.Array
    """Updates in a row that were skipped because their gradient was not finite, int32."""


class Tally(NamedTuple):
    """Sums of what happened in some training steps."""

    losses: dict[str, jax.Array]
    """Parts of the loss, over the updates that were made."""
    skipped_losses: dict[str, jax.Array]
    """Parts of the loss, over the updates that were skipped."""
    updates: jax.Array
    """Updates that were made."""
    skipped: jax.Array
    """Updates that were skipped because their gradient was not finite."""
    episodes: dict[str, jax.Array]
    """Metrics of the episodes that ended."""
    episodes_ended: jax.Array
    """Number of episodes that ended."""
    nan_envs: jax.Array
    """Environments that were reset because they were not finite."""


class Learned(NamedTuple):
    """What an update changes."""

    policy: Any
    value: Any
    optimizer_state: Any
    bad_updates: jax.Array


class Learner:
    """The compiled parts of PPO: first state, training steps, fresh environments."""

    def __init__(
        self, env: Env, networks: PPONetworks, config: PPOConfig, mesh: Mesh, info: State
    ) -> None:
        """Prepares the functions; compiles nothing.

        Args:
            env: batched environment.
            networks: PPO's networks.
            config: PPO's settings.
            mesh: devices.
            info: shapes of the environment's state.
        """
        self._env = env
        self._networks = networks
        self._config = config
        self._mesh = mesh
        self._make_policy = make_inference_fn(networks)
        self._extra = [
            name
            for name in ("truncation", "nan", "episode_done", "episode_metrics")
            if name in info.info
        ]
        clip = [optax.clip_by_global_norm(config.max_grad_norm)] if config.max_grad_norm else []
        self._optimizer = optax.chain(*clip, optax.adam(config.learning_rate))
        self._obs = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), info.obs)

    def init(self, key: jax.Array) -> TrainingState:
        """Makes the first state."""
        policy_key, value_key, env_key, train_key = jax.random.split(key, 4)
        normalizer: Any = ()
        if self._config.normalize_observations:
            normalizer = running_statistics.init_state(self._obs)
        params = PPOParams(
            normalizer,
            self._networks.policy_network.init(policy_key),
            self._networks.value_network.init(value_key),
        )
        return TrainingState(
            params=params,
            optimizer_state=self._optimizer.init((params.policy, params.value)),
            env_state=self._env.reset(jax.random.split(env_key, self._config.num_envs)),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def fresh_environments(self, state: TrainingState) -> TrainingState:
        """Resets every environment anew."""
        key, now = jax.random.split(state.key)
        env_state = self._env.reset(jax.random.split(now, self._config.num_envs))
        return state._replace(env_state=env_state, key=key)

    def advance(self, state: TrainingState, steps: jax.Array) -> tuple[TrainingState, Tally]:
        """Takes `steps` training steps; the number is data, so one program serves all."""
        shapes = jax.eval_shape(self.training_step, state)[1]
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

        def step(_: jax.Array, carry: tuple[TrainingState, Tally]) -> tuple[TrainingState, Tally]:
            state, tally = carry
            state, new = self.training_step(state)
            return state, jax.tree.map(jnp.add, tally, new)

        return jax.lax.fori_loop(0, steps, step, (state, nothing))

    def training_step(self, state: TrainingState) -> tuple[TrainingState, Tally]:
        """Collects experience, takes its statistics, learns from it."""
        key, collect_key, learn_key = jax.random.split(state.key, 3)
        env_state, batch, episodes = self._collect(state.params, state.env_state, collect_key)
        params = state.params
        if self._config.normalize_observations:
            statistics = running_statistics.update(params.normalizer, batch.observation)
            params = params._replace(normalizer=statistics)
        state = state._replace(params=params, env_state=env_state, key=key)
        state, learned = self._learn(state, batch, learn_key)
        return state, Tally(*learned, *episodes)

    def _collect(
        self, params: PPOParams, env_state: State, key: jax.Array
    ) -> tuple[State, Batch, tuple[Any, jax.Array, jax.Array]]:
        """Runs every environment for `num_unrolls` stretches."""
        policy = self._make_policy(params)

        def unroll(state: State, key: jax.Array) -> tuple[State, tuple[Batch, Any]]:
            state, data = acting.generate_unroll(
                self._env, state, policy, key, self._config.unroll_length, self._extra
            )
            return state, (self._batch(params, data), _episodes(data.extras["state_extras"]))

        keys = jax.random.split(key, self._config.num_unrolls)
        env_state, (batch, episodes) = jax.lax.scan(unroll, env_state, keys)
        stretches = self._config.batch_size * self._config.num_minibatches

        def merge(x: jax.Array) -> jax.Array:
            """(unroll, env, ...) to (stretch, ...), an environment's stretches side by side."""
            return jnp.swapaxes(x, 0, 1).reshape(stretches, *x.shape[2:])

        batch = jax.tree.map(merge, batch)
        places = devices.shardings(batch, self._mesh, stretches)
        batch = jax.lax.with_sharding_constraint(batch, places)
        return env_state, batch, jax.tree.map(lambda x: jnp.sum(x, axis=0), episodes)

    def _batch(self, params: PPOParams, data: Any) -> Batch:
        """Experience of one unroll, environments first."""
        truncation = data.extras["state_extras"]["truncation"]
        timeout_value = None
        if self._config.bootstrap_on_timeout:
            timeout_value = self._networks.value_network.apply(
                params.normalizer, params.value, data.next_observation
            )
        timed = dict(
            observation=data.observation,
            raw_action=data.extras["policy_extras"]["raw_action"],
            log_prob=data.extras["policy_extras"]["log_prob"],
            reward=data.reward * self._config.reward_scaling,
            termination=(1.0 - data.discount) * (1.0 - truncation),
            truncation=truncation,
            timeout_value=timeout_value,
        )
        timed = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), timed)
        last = jax.tree.map(lambda x: x[-1], data.next_observation)
        return Batch(last_observation=last, **timed)

    def _learn(
        self, state: TrainingState, batch: Batch, key: jax.Array
    ) -> tuple[TrainingState, tuple[Any, Any, jax.Array, jax.Array]]:
        """Passes over the experience in shuffled minibatches, one update each."""
        config = self._config
        stretches = config.batch_size * config.num_minibatches
        normalizer = state.params.normalizer

        def minibatch(learned: Learned, inputs: Any) -> tuple[Learned, Any]:
            rows, key = inputs
            part = jax.tree.map(
                lambda x: x.at[rows].get(mode="promise_in_bounds", unique_indices=True), batch
            )
            return self._update(learned, normalizer, part, key)

        def epoch(learned: Learned, key: jax.Array) -> tuple[Learned, Any]:
            shuffle, rest = jax.random.split(key)
            rows = jax.random.permutation(shuffle, stretches)
            rows = rows.reshape(config.num_minibatches, config.batch_size)
            return jax.lax.scan(minibatch, learned, (rows, jax.random.split(rest, len(rows))))

        learned = Learned(
            state.params.policy, state.params.value, state.optimizer_state, state.bad_updates
        )
        keys = jax.random.split(key, config.num_updates_per_batch)
        learned, (losses, finite) = jax.lax.scan(epoch, learned, keys)
        state = state._replace(
            params=PPOParams(normalizer, learned.policy, learned.value),
            optimizer_state=learned.optimizer_state,
            bad_updates=learned.bad_updates,
        )
        good = jax.tree.map(lambda x: jnp.sum(jnp.where(finite, x, 0.0)), losses)
        bad = jax.tree.map(lambda x: jnp.sum(jnp.where(finite, 0.0, x)), losses)
        count = jnp.sum(finite, dtype=jnp.int32)
        return state, (good, bad, count, jnp.sum(~finite, dtype=jnp.int32))

    def _update(
        self, learned: Learned, normalizer: Any, batch: Batch, key: jax.Array
    ) -> tuple[Learned, tuple[dict[str, jax.Array], jax.Array]]:
        """Takes one gradient step, or none where the gradient is not finite."""
        weights = (learned.policy, learned.value)

        def loss(weights: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
            params = PPOParams(normalizer, *weights)
            return compute_ppo_loss(params, batch, key, self._networks, self._config.loss)

        grads, losses = jax.grad(loss, has_aux=True)(weights)
        finite = jnp.isfinite(optax.tree.norm(grads))
        updates, optimizer_state = self._optimizer.update(grads, learned.optimizer_state, weights)
        policy, value = optax.apply_updates(weights, updates)
        new = Learned(policy, value, optimizer_state, jnp.int32(0))
        old = learned._replace(bad_updates=learned.bad_updates + 1)
        return jax.tree.map(lambda n, o: jnp.where(finite, n, o), new, old), (losses, finite)


def _episodes(extras: dict[str, Any]) -> tuple[dict[str, jax.Array], jax.Array, jax.Array]:
    """Sums over the episodes that ended: their metrics, their number, and non-finite resets."""
    ended = extras.get("episode_done", jnp.zeros_like(extras["truncation"]))
    metrics = extras.get("episode_metrics", {})
    sums = {name: jnp.sum(jnp.where(ended > 0, x, 0.0)) for name, x in metrics.items()}
    nan = extras.get("nan", jnp.zeros_like(ended))
    return sums, jnp.sum(ended > 0, dtype=jnp.int32), jnp.sum(nan > 0, dtype=jnp.int32)
