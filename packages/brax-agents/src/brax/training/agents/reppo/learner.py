"""One training step of REPPO, as pure functions of the training state.

The targets and losses are in `losses.py`. Start reading at `REPPOLearner.training_step`.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from brax.env import State
from brax.training import types
from brax.training.agents.reppo.losses import (
    Batch,
    REPPOLossConfig,
    REPPOWeights,
    compute_reppo_loss,
    histogram_mean,
    soft_lambda_returns,
)
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
from brax.training.learning import schedules
from brax.training.policies import ActorCriticParams
from brax.training.runner import acting

FIRST_MULTIPLIER = 0.01
"""Temperature, and multiplier of the KL divergence, at the start."""


class REPPOTrainingState(NamedTuple):
    """Everything that one training step passes to the next. A checkpoint stores it whole."""

    params: ActorCriticParams
    """Statistics of observations, policy and, as `value`, the critic."""
    log_temperature: jax.Array
    """Logarithm of the weight of the entropy, shape ()."""
    log_multiplier: jax.Array
    """Logarithm of the weight of the KL divergence, shape ()."""
    optimizer_state: Any
    env_state: State
    key: jax.Array
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32."""


class REPPOLearner(Learner):
    """The functions of REPPO that are compiled: the first state and one training step."""

    def __init__(self, parts: Parts) -> None:
        """Make the numbers of the losses and the optimizer; nothing is compiled."""
        super().__init__(parts)
        config = self.config
        entropy = config.target_entropy
        self._loss = REPPOLossConfig(
            v_min=config.v_min,
            v_max=config.v_max,
            kl_bound=config.kl_bound,
            target_entropy=-0.5 * parts.env.action_size if entropy is None else entropy,
        )
        updates = config.num_updates_per_batch * config.num_minibatches
        adam = optax.adam(schedules.learning_rate(config, updates))
        network = optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adam)
        # One optimizer for all weights, so that an update is skipped for all of them or for none;
        # but the gradients of policy and critic are clipped separately.
        self._optimizer = optax.multi_transform(
            {"policy": network, "critic": network, "multiplier": adam},
            REPPOWeights("policy", "critic", "multiplier", "multiplier"),  # type: ignore[arg-type]
        )

    def init(self, key: jax.Array) -> REPPOTrainingState:
        """Return the first training state."""
        policy_key, q_key, env_key, train_key = jax.random.split(key, 4)
        first = jnp.full((), math.log(FIRST_MULTIPLIER))
        weights = REPPOWeights(
            self.networks.policy_network.init(policy_key),
            self.networks.q_network.init(q_key),
            log_temperature=first,
            log_multiplier=first,
        )
        return REPPOTrainingState(
            params=ActorCriticParams(self.first_normalizer(), weights.policy, weights.q),
            log_temperature=weights.log_temperature,
            log_multiplier=weights.log_multiplier,
            optimizer_state=self._optimizer.init(weights),
            env_state=self.reset(env_key),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def training_step(self, state: REPPOTrainingState) -> tuple[REPPOTrainingState, Tally]:
        """Collect experience with its targets, then learn from it."""
        key, collect_key, learn_key = jax.random.split(state.key, 3)
        env_state, batch, acted = self._collect(state, collect_key)
        # The statistics change before learning, as in PPO. The divergence is therefore bounded from
        # what the policy did with the older ones, too.
        normalizer = self.normalizer_after(state.params.normalizer, batch.observation)
        params = state.params._replace(normalizer=normalizer)
        state = state._replace(params=params, env_state=env_state, key=key)
        state, updates = self._learn(state, batch, learn_key)
        return state, Tally(updates, acted)

    def _policy(self, params: ActorCriticParams) -> types.Policy:
        """Return the policy that acts, whose extras describe its distribution."""
        actions = self.networks.parametric_action_distribution

        def policy(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
            logits = self.networks.policy_network.apply(
                params.normalizer, params.policy, observation
            )
            raw = actions.sample_no_postprocessing(logits, key)
            extras = {"logits": logits, "log_prob": actions.log_prob(logits, raw)}
            return actions.postprocess(raw), extras

        return policy

    def _collect(self, state: REPPOTrainingState, key: jax.Array) -> tuple[State, Batch, Episodes]:
        """Run every environment for `unroll_length` actions.

        Returns:
            The environments' state, the experience, whose rows are all steps of all environments,
            and the sums over the episodes that ended.
        """
        act_key, next_key = jax.random.split(key)
        policy, length = self._policy(state.params), self.config.unroll_length
        env_state, data = acting.generate_unroll(
            self.env, state.env_state, policy, act_key, length, self.extra
        )
        acted = data.extras["policy_extras"]
        # Everything here is (time, env).
        target = soft_lambda_returns(
            data.reward * self.config.reward_scaling,
            *ends(data),
            self._soft_value(state, data.next_observation, next_key),
            acted["log_prob"],
            jnp.exp(state.log_temperature),
            self.config.td_lambda,
            self.config.discounting,
        )
        batch = Batch(data.observation, data.action, acted["logits"], target)
        rows = target.size
        batch = jax.tree.map(lambda x: x.reshape(rows, *x.shape[2:]), batch)
        return env_state, batch, episodes(data.extras["state_extras"])

    def _soft_value(self, state: REPPOTrainingState, obs: Any, key: jax.Array) -> jax.Array:
        """Return the value of an action drawn at each observation, with its entropy bonus.

        The critic is bounded by its range, so that values of observations that are never acted on,
        such as those at time limits, cannot diverge.
        """
        action, drawn = self._policy(state.params)(obs, key)
        logits = self.networks.q_network.apply(
            state.params.normalizer, state.params.value, obs, action
        )
        value = histogram_mean(logits, self.config.v_min, self.config.v_max)
        return value - jnp.exp(state.log_temperature) * drawn["log_prob"]

    def _learn(
        self, state: REPPOTrainingState, batch: Batch, key: jax.Array
    ) -> tuple[REPPOTrainingState, Updates]:
        """Pass over the experience in shuffled minibatches, with one update for each."""
        normalizer = state.params.normalizer
        weights = REPPOWeights(
            state.params.policy, state.params.value, state.log_temperature, state.log_multiplier
        )
        learned = Learned(weights, state.optimizer_state, state.bad_updates)
        learned, (losses, finite) = self.in_epochs(
            lambda now, part, key: self._update(now, normalizer, part, key), learned, batch, key
        )
        weights = learned.weights
        state = state._replace(
            params=ActorCriticParams(normalizer, weights.policy, weights.q),
            log_temperature=weights.log_temperature,
            log_multiplier=weights.log_multiplier,
            optimizer_state=learned.optimizer_state,
            bad_updates=learned.bad_updates,
        )
        return state, count_updates(losses, finite)

    def _update(
        self, learned: Learned, normalizer: Any, batch: Batch, key: jax.Array
    ) -> tuple[Learned, tuple[dict[str, jax.Array], jax.Array]]:
        """Make one update of all weights, or none if the gradient is not finite."""
        grads, losses = jax.grad(compute_reppo_loss, has_aux=True)(
            learned.weights, normalizer, batch, key, self.networks, self._loss
        )
        weights, optimizer_state, finite = descend(
            self._optimizer, grads, learned.optimizer_state, learned.weights
        )
        bad_updates = in_a_row(learned.bad_updates, finite)
        return Learned(weights, optimizer_state, bad_updates), (losses, finite)
