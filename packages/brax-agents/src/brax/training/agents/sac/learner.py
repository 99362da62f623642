"""One training step of SAC, as pure functions of the training state.

The losses are in `losses.py`. Start reading at `SACLearner.training_step`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from brax.env import State
from brax.training.agents.sac.losses import SACLossConfig, SACWeights, compute_sac_loss
from brax.training.distributed import devices
from brax.training.learner import (
    Learner,
    Parts,
    Tally,
    Updates,
    count_updates,
    descend,
    episodes,
    in_a_row,
    repeated,
)
from brax.training.learning.replay_buffers import ReplayBuffer, ReplayBufferState, Sample
from brax.training.policies import PolicyParams, make_inference_fn
from brax.training.runner import acting


class SACTrainingState(NamedTuple):
    """Everything that one training step passes to the next. A checkpoint stores it whole."""

    params: PolicyParams
    q: Any
    """Parameters of the critics."""
    target_q: Any
    """Parameters of the target critics, an exponential moving average of `q`."""
    log_alpha: jax.Array
    """Logarithm of the temperature, shape ()."""
    optimizer_state: Any
    env_state: State
    replay: ReplayBufferState
    key: jax.Array
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32."""


class SACLearner(Learner):
    """The functions of SAC that are compiled: the first state and one training step."""

    def __init__(self, parts: Parts) -> None:
        """Make the policy, the losses, the optimizer and the replay buffer; nothing is compiled."""
        super().__init__(parts)
        config = self.config
        self._make_policy = make_inference_fn(parts.networks)
        action_size = parts.env.action_size
        entropy = config.target_entropy
        self._loss = SACLossConfig(
            discounting=config.discounting,
            reward_scaling=config.reward_scaling,
            # Haarnoja et al. 2018, table 1, takes minus the number of actions; half of that is
            # Google's default.
            target_entropy=-0.5 * action_size if entropy is None else entropy,
        )
        # One optimizer for all weights, so that an update is skipped for all of them or for none.
        self._optimizer = optax.multi_transform(
            {
                "networks": optax.adam(config.learning_rate),
                "alpha": optax.adam(config.alpha_learning_rate),
            },
            SACWeights("networks", "networks", "alpha"),  # type: ignore[arg-type]
        )
        sample = Sample.like(self.sample_obs, action_size)
        self._buffer = ReplayBuffer(
            config.max_replay_size, config.num_envs, sample, config.batch_size
        )

    @property
    def split(self) -> dict[str, int]:
        """Parts of the training state that devices share, with the length of the split axis."""
        # The buffer is a ring for each environment, so it is split like the environments.
        return {**super().split, "replay": self.config.num_envs}

    def init(self, key: jax.Array) -> SACTrainingState:
        """Return the first training state, with an empty replay buffer."""
        policy_key, q_key, env_key, train_key = jax.random.split(key, 4)
        policy = self.networks.policy_network.init(policy_key)
        q = self.networks.q_network.init(q_key)
        log_alpha = jnp.zeros(())
        return SACTrainingState(
            params=PolicyParams(self.first_normalizer(), policy),
            q=q,
            # The target critics start equal to the critics.
            target_q=q,
            log_alpha=log_alpha,
            optimizer_state=self._optimizer.init(SACWeights(policy, q, log_alpha)),
            env_state=self.reset(env_key),
            replay=self._buffer.init(),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def training_step(self, state: SACTrainingState) -> tuple[SACTrainingState, Tally]:
        """Take a step in every environment and store it, then learn from the replay buffer."""
        key, act_key, learn_key = jax.random.split(state.key, 3)
        policy = self._make_policy(state.params)
        env_state, data = acting.actor_step(self.env, state.env_state, policy, act_key, self.extra)
        normalizer = self.normalizer_after(state.params.normalizer, data.observation)
        state = state._replace(
            params=state.params._replace(normalizer=normalizer),
            env_state=env_state,
            replay=self._buffer.insert(state.replay, Sample.of_step(data)),
            key=key,
        )
        state, updates = self._learn(state, learn_key)
        return state, Tally(updates, episodes(data.extras["state_extras"]))

    def _learn(self, state: SACTrainingState, key: jax.Array) -> tuple[SACTrainingState, Updates]:
        """Make `grad_updates_per_step` updates, or none while the buffer holds too little."""
        enough = self._buffer.size(state.replay) >= self.config.min_replay_size
        # The number of updates is data: the same program fills the buffer and learns.
        number = jnp.where(enough, self.config.grad_updates_per_step, 0)
        # The i-th update has the i-th key, whatever the number of updates is.
        return repeated(lambda i, s: self._update(s, jax.random.fold_in(key, i)), state, number)

    def _update(self, state: SACTrainingState, key: jax.Array) -> tuple[SACTrainingState, Updates]:
        """Make one update of all weights, or none if the gradient is not finite."""
        sample_key, loss_key = jax.random.split(key)
        # Rows are drawn from the rings of all devices; split again, each device works on its share.
        batch = devices.shard(self._buffer.sample(state.replay, sample_key), self.mesh)
        weights = SACWeights(state.params.policy, state.q, state.log_alpha)
        grads, losses = jax.grad(compute_sac_loss, has_aux=True)(
            weights,
            state.params.normalizer,
            state.target_q,
            batch,
            loss_key,
            self.networks,
            self._loss,
        )
        weights, optimizer_state, finite = descend(
            self._optimizer, grads, state.optimizer_state, weights
        )
        # A skipped update leaves the target critics where they are.
        tau = jnp.where(finite, self.config.tau, 0.0)
        state = state._replace(
            params=state.params._replace(policy=weights.policy),
            q=weights.q,
            target_q=optax.incremental_update(weights.q, state.target_q, tau),
            log_alpha=weights.log_alpha,
            optimizer_state=optimizer_state,
            bad_updates=in_a_row(state.bad_updates, finite),
        )
        return state, count_updates(losses, finite)
