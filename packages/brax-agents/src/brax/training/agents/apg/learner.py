"""One training step of APG, as pure functions of the training state.

The loss is `APGLearner.loss`. Start reading at `APGLearner.training_step`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from brax.env import State
from brax.training import types
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
from brax.training.learning.zeroth_order import (
    leave_one_out_advantage,
    likelihood_ratio_surrogate,
    mix_gradients,
)
from brax.training.policies import PolicyParams, make_inference_fn
from brax.training.runner import acting


class APGTrainingState(NamedTuple):
    """Everything that one training step passes to the next. A checkpoint stores it whole."""

    params: PolicyParams
    optimizer_state: Any
    env_state: State
    key: jax.Array
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32."""


class APGLearner(Learner):
    """The functions of APG that are compiled: the first state and one training step."""

    def __init__(self, parts: Parts) -> None:
        """Make policy, optimizer and environment with clipped gradients; nothing is compiled."""
        super().__init__(parts)
        config = self.config
        self._make_policy = make_inference_fn(parts.networks)
        # An environment that breaks must not make the gradient of all others non-finite.
        self._clipped_env = GradientClippingWrapper(self.env)
        rate = config.learning_rate
        if config.use_schedule:
            rate = optax.exponential_decay(rate, 1, config.schedule_decay)
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(config.max_gradient_norm), optax.adam(rate, *config.adam_b)
        )

    def init(self, key: jax.Array) -> APGTrainingState:
        """Return the first training state."""
        policy_key, env_key, train_key = jax.random.split(key, 3)
        policy = self.networks.policy_network.init(policy_key)
        return APGTrainingState(
            params=PolicyParams(self.first_normalizer(), policy),
            optimizer_state=self._optimizer.init(policy),
            env_state=self.reset(env_key),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def training_step(self, state: APGTrainingState) -> tuple[APGTrainingState, Tally]:
        """Continue from the environments' states, and follow the gradient of the window's rewards.

        The gradient does not pass into what lies before the window.
        """
        key, act_key = jax.random.split(state.key)
        normalizer, policy = state.params
        # `state` is no argument that is differentiated: the window starts from it as from a
        # constant.
        loss = jax.value_and_grad(self.loss, has_aux=True)
        (value, (env_state, data)), grads = loss(policy, state, act_key)
        policy, optimizer_state, finite = descend(
            self._optimizer, grads, state.optimizer_state, policy
        )
        params = PolicyParams(self.normalizer_after(normalizer, data.observation), policy)
        bad_updates = in_a_row(state.bad_updates, finite)
        updates = count_updates({"loss": value, "grad_norm": optax.tree.norm(grads)}, finite)
        state = APGTrainingState(params, optimizer_state, env_state, key, bad_updates)
        return state, Tally(updates, episodes(data.extras["state_extras"]))

    def loss(self, policy: Any, state: APGTrainingState, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the negated mean reward of the window, its last state, and its transitions."""
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
        mean = jnp.mean(data.reward)
        # Rewards that jump and ends of episodes have no derivative through the simulator; the
        # likelihood-ratio estimate sees them (Suh et al. 2022).
        if share := self.config.zeroth_order:
            # Advantages are constants of the estimate, as in REINFORCE.
            seen = jax.lax.stop_gradient(data)
            advantage = leave_one_out_advantage(seen.observation, *known_returns(seen))
            other = likelihood_ratio_surrogate(
                self.networks, state.params.normalizer, policy, data, advantage
            )
            mean = mix_gradients(mean, other, share)
        return -mean, (env_state, data)


def known_returns(data: types.Transition) -> tuple[jax.Array, jax.Array]:
    """Return each episode's return to go within a window, and 1 where it is known, both (time, n).

    The return is unknown in an episode that the time limit ends within the window: its actions are
    not to blame for the rewards that are missing after that.
    """
    termination, truncation = ends(data)
    ended = jnp.maximum(termination, truncation)
    # `to_come(truncation, ended)` is 1 from the start of an episode to its truncation, else 0.
    return to_come(data.reward, ended), 1.0 - to_come(truncation, ended)


def to_come(rewards: jax.Array, ended: jax.Array) -> jax.Array:
    """Return the undiscounted return to go of each step within a window, (time, n).

    Args:
        rewards: rewards of each step, (time, n).
        ended: 1 where the episode ended with the step, by termination or truncation, (time, n).
    """
    none = jnp.zeros_like(rewards)
    # GAE with values of zero and lambda 1 is the sum of rewards to the end of the episode.
    returns, _ = compute_gae(none, ended, rewards, none, none[0], lambda_=1.0, discount=1.0)
    return returns
