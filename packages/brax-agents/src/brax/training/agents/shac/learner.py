"""One training step of SHAC, as pure functions of the training state.

The loss of the policy is `SHACLearner.actor_loss`, around `losses.py`. Start reading at
`SHACLearner.training_step`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from brax.env import State
from brax.training import types
from brax.training.agents.shac.losses import short_horizon_return
from brax.training.learner import (
    Learner,
    Parts,
    Tally,
    count_updates,
    descend,
    ends,
    episodes,
    in_a_row,
)
from brax.training.learning.advantages import compute_gae
from brax.training.learning.gradient_clipping import GradientClippingWrapper
from brax.training.learning.zeroth_order import likelihood_ratio_surrogate, mix_gradients
from brax.training.policies import ActorCriticParams, make_inference_fn
from brax.training.runner import acting


class SHACTrainingState(NamedTuple):
    """Everything that one training step passes to the next. A checkpoint stores it whole."""

    params: ActorCriticParams
    target_value: Any
    """Parameters of the target critic, an exponential moving average of the critic."""
    optimizer_state: Any
    """Adam's states, of the policy and of the critic."""
    env_state: State
    key: jax.Array
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32."""


class SHACLearner(Learner):
    """The functions of SHAC that are compiled: the first state and one training step."""

    def __init__(self, parts: Parts) -> None:
        """Make policy, optimizers and environment with clipped gradients; nothing is compiled."""
        super().__init__(parts)
        self._make_policy = make_inference_fn(parts.networks)
        most = self.config.max_state_gradient
        if most is not None:
            # The loss is a mean over steps and environments. The setting bounds the gradient of the
            # return of one environment, which is larger by this factor.
            most /= self.config.horizon_length * self.config.num_envs
        self._clipped_env = GradientClippingWrapper(self.env, most)
        rates = self.config.learning_rate, self.config.critic_learning_rate
        self._actor, self._critic = (
            optax.chain(
                optax.clip_by_global_norm(self.config.max_gradient_norm),
                optax.adam(rate, b1=0.7, b2=0.95),
            )
            for rate in rates
        )

    def init(self, key: jax.Array) -> SHACTrainingState:
        """Return the first training state."""
        policy_key, value_key, env_key, train_key = jax.random.split(key, 4)
        policy = self.networks.policy_network.init(policy_key)
        value = self.networks.value_network.init(value_key)
        return SHACTrainingState(
            params=ActorCriticParams(self.first_normalizer(), policy, value),
            # The target critic starts equal to the critic.
            target_value=value,
            optimizer_state=(self._actor.init(policy), self._critic.init(value)),
            env_state=self.reset(env_key),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def with_params(self, state: SHACTrainingState, params: ActorCriticParams) -> SHACTrainingState:
        """Return the first state with other parameters, whose critic is the target critic too."""
        # A copy, since a training step takes over the memory of each leaf
        target = jax.tree.map(jnp.copy, params.value)
        return state._replace(params=params, target_value=target)

    def training_step(self, state: SHACTrainingState) -> tuple[SHACTrainingState, Tally]:
        """Improve the policy through the simulator, then fit the critic to the experience."""
        key, act_key, critic_key = jax.random.split(state.key, 3)
        normalizer, policy, value = state.params
        actor_state, critic_state = state.optimizer_state
        loss = jax.value_and_grad(self.actor_loss, has_aux=True)
        (actor_loss, (env_state, data, targets)), grads = loss(policy, state, act_key)
        policy, actor_state, finite = descend(self._actor, grads, actor_state, policy)

        value, critic_state, critic_loss, taught = self._teach(
            normalizer, value, critic_state, data.observation, targets, critic_key
        )
        # One failed gradient of the two counts the training step as failed.
        finite = finite & taught
        updates = count_updates(
            {
                "actor_loss": actor_loss,
                "critic_loss": critic_loss,
                "grad_norm": optax.tree.norm(grads),
            },
            finite,
        )
        state = SHACTrainingState(
            params=ActorCriticParams(
                self.normalizer_after(normalizer, data.observation), policy, value
            ),
            target_value=optax.incremental_update(value, state.target_value, self.config.tau),
            optimizer_state=(actor_state, critic_state),
            env_state=env_state,
            key=key,
            bad_updates=in_a_row(state.bad_updates, finite),
        )
        return state, Tally(updates, episodes(data.extras["state_extras"]))

    def actor_loss(self, policy: Any, state: SHACTrainingState, key: jax.Array) -> tuple[Any, Any]:
        """Return the negated mean return per step and entropy, with what the critic learns from.

        The second value is the last environment state, the transitions, and the critic's targets.
        """
        env_state, data = acting.generate_unroll(
            self._clipped_env,
            state.env_state,
            self._make_policy((state.params.normalizer, policy)),
            key,
            self.config.horizon_length,
            self.extra,
            # Each step is computed again in the backward pass: memory grows with the state, not
            # with all that a physics step computes.
            rematerialize=True,
        )
        returns = short_horizon_return(
            data.reward * self.config.reward_scaling,
            *ends(data),
            # The gradient passes through the value of the last state into the state (eq. 5).
            self._value(state, data.next_observation),
            self.config.discounting,
        )
        mean = jnp.mean(returns) / self.config.horizon_length
        # No gradient passes through the targets: the critic is fitted to constants.
        targets = self._targets(state, jax.lax.stop_gradient(data))
        if share := self.config.zeroth_order:
            # The advantage of the likelihood-ratio estimate, as far ahead as the targets see.
            better = targets - self._value(state, data.observation)
            other = likelihood_ratio_surrogate(
                self.networks, state.params.normalizer, policy, data, better
            )
            mean = mix_gradients(mean, other, share)
        # Minus the log density of the actions drawn, whose gradient passes through the actions too.
        entropy = -jnp.mean(data.extras["policy_extras"]["log_prob"])
        return -mean - self.config.entropy_cost * entropy, (env_state, data, targets)

    def _value(self, state: SHACTrainingState, observation: Any) -> jax.Array:
        """Return the target critic's values of observations."""
        return self.networks.value_network.apply(
            state.params.normalizer, state.target_value, observation
        )

    def _targets(self, state: SHACTrainingState, data: types.Transition) -> jax.Array:
        """Return the TD(lambda) targets of the critic, (time, n)."""
        termination, truncation = ends(data)
        next_values = self._value(state, data.next_observation)
        # Targets come from the target critic, so that they move slowly.
        targets, _ = compute_gae(
            truncation,
            termination,
            data.reward * self.config.reward_scaling,
            self._value(state, data.observation),
            next_values[-1],
            self.config.gae_lambda,
            self.config.discounting,
            timeout_value=next_values,
        )
        return targets

    def _teach(
        self,
        normalizer: Any,
        value: Any,
        critic_state: object,
        obs: object,
        targets: Any,
        key: jax.Array,
    ) -> tuple[Any, Any, jax.Array, jax.Array]:
        """Fit the critic to its targets in shuffled minibatches.

        Returns:
            Its parameters, its optimizer's state, the mean loss, and if all gradients were finite.
        """
        # The critic has no memory, so time and environment are one axis.
        rows = targets.size
        flat_obs, flat = jax.tree.map(lambda x: x.reshape(rows, *x.shape[2:]), (obs, targets))

        def minibatch(carry: tuple[Any, Any], part: tuple[object, jax.Array]) -> tuple[Any, Any]:
            value, critic_state = carry
            part_obs, target = part

            def loss(value: Any) -> jax.Array:
                error = self.networks.value_network.apply(normalizer, value, part_obs) - target
                return jnp.mean(error**2)

            error, grads = jax.value_and_grad(loss)(value)
            value, critic_state, finite = descend(self._critic, grads, critic_state, value)
            return (value, critic_state), (error, finite)

        def one_pass(carry: tuple[Any, Any], key: jax.Array) -> tuple[Any, Any]:
            parts = self.dealt(key, (flat_obs, flat), self.config.num_minibatches)
            return jax.lax.scan(minibatch, carry, parts)

        keys = jax.random.split(key, self.config.critic_updates)
        (value, critic_state), (errors, finite) = jax.lax.scan(
            one_pass, (value, critic_state), keys
        )
        return value, critic_state, jnp.mean(errors), jnp.all(finite)
