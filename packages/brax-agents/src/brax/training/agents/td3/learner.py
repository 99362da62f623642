"""One training step of TD3, as pure functions of the training state.

The losses are in `losses.py`, the transitions over several steps in `n_step.py`. Start reading at
`TD3Learner.training_step`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from brax.env import State
from brax.errors import ConfigError
from brax.training import types
from brax.training.agents.td3 import n_step
from brax.training.agents.td3.losses import (
    TD3LossConfig,
    compute_critic_loss,
    compute_policy_loss,
)
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
from brax.training.learning import schedules
from brax.training.learning.replay_buffers import ReplayBuffer, ReplayBufferState
from brax.training.policies import PolicyParams
from brax.training.runner import acting


class Slow(NamedTuple):
    """The parts of the training state that change once in `policy_delay` updates."""

    policy: Any
    """Parameters of the policy."""
    optimizer_state: Any
    """State of the policy's optimizer."""
    target_policy: Any
    """Parameters of the target policy, an exponential moving average of `policy`."""
    target_q: Any
    """Parameters of the target critics, an exponential moving average of the critics."""


class TD3TrainingState(NamedTuple):
    """Everything that one training step passes to the next. A checkpoint stores it whole."""

    params: PolicyParams
    q: Any
    """Parameters of the critics."""
    target_policy: Any
    """Parameters of the target policy, an exponential moving average of the policy."""
    target_q: Any
    """Parameters of the target critics, an exponential moving average of `q`."""
    policy_optimizer_state: Any
    q_optimizer_state: Any
    updates_since_policy: jax.Array
    """Updates of the critics since the last one of the policy, int32."""
    noise_std: jax.Array
    """Standard deviation of the noise on the actions of each environment, (num_envs,)."""
    env_state: State
    replay: ReplayBufferState
    key: jax.Array
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32."""


class TD3Learner(Learner):
    """The functions of TD3 that are compiled: the first state and one training step."""

    def __init__(self, parts: Parts) -> None:
        """Make the losses, the optimizer and the replay buffer; nothing is compiled."""
        super().__init__(parts)
        config = self.config
        self._loss = TD3LossConfig(
            reward_scaling=config.reward_scaling,
            target_noise=config.target_noise,
            target_noise_clip=config.target_noise_clip,
            atoms=np.linspace(config.v_min, config.v_max, config.num_atoms)
            if config.num_atoms
            else None,
        )
        self._check_critics(parts.env.action_size)
        updates = config.grad_updates_per_step
        self._q_optimizer = self._adam(updates)
        self._policy_optimizer = self._adam(updates / config.policy_delay)
        step = n_step.Step.like(self.sample_obs, parts.env.action_size)
        self._buffer = ReplayBuffer(
            config.max_replay_size, config.num_envs, step, config.batch_size
        )

    def _adam(self, updates: float) -> optax.GradientTransformation:
        """Return Adam for networks that are updated so often in a training step."""
        # Without decay of the weights `adamw` is Adam.
        rate = schedules.learning_rate(self.config, updates)
        return optax.adamw(rate, weight_decay=self.config.weight_decay)

    def _check_critics(self, action_size: int) -> None:
        """Reject critics whose outputs are not those that the loss reads.

        Raises:
            ConfigError: with both numbers.
        """
        network, expected = self.networks.q_network, max(self.config.num_atoms, 1)

        def outputs(key: jax.Array) -> jax.Array:
            obs = jax.tree.map(lambda x: jnp.zeros((1, *x.shape), x.dtype), self.sample_obs)
            action = jnp.zeros((1, action_size))
            values: jax.Array = network.apply(
                self.first_normalizer(), network.init(key), obs, action
            )
            return values

        found = jax.eval_shape(outputs, jax.random.key(0)).shape[-1]
        if found != expected:
            raise ConfigError(
                f"the critics give {found} numbers each, but num_atoms={self.config.num_atoms} "
                f"needs {expected}: set num_atoms as a setting of TD3, not in network_factory."
            )

    @property
    def split(self) -> dict[str, int]:
        """Parts of the training state that devices share, with the length of the split axis."""
        # The buffer is a ring for each environment, so it is split like the environments.
        number = self.config.num_envs
        return {**super().split, "replay": number, "noise_std": number}

    def init(self, key: jax.Array) -> TD3TrainingState:
        """Return the first training state, with an empty replay buffer."""
        policy_key, q_key, noise_key, env_key, train_key = jax.random.split(key, 5)
        policy = self.networks.policy_network.init(policy_key)
        q = self.networks.q_network.init(q_key)
        return TD3TrainingState(
            params=PolicyParams(self.first_normalizer(), policy),
            q=q,
            # The target networks start equal to the networks.
            target_policy=policy,
            target_q=q,
            policy_optimizer_state=self._policy_optimizer.init(policy),
            q_optimizer_state=self._q_optimizer.init(q),
            updates_since_policy=jnp.int32(0),
            noise_std=jax.random.uniform(
                noise_key,
                (self.config.num_envs,),
                minval=self.config.min_exploration_noise,
                maxval=self.config.max_exploration_noise,
            ),
            env_state=self.reset(env_key),
            replay=self._buffer.init(),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def with_params(self, state: TD3TrainingState, params: PolicyParams) -> TD3TrainingState:
        """Return the first state with other parameters, whose policy is the target policy too."""
        # A copy, since a training step takes over the memory of each leaf.
        target = jax.tree.map(jnp.copy, params.policy)
        return state._replace(params=params, target_policy=target)

    def fresh_environments(self, state: TD3TrainingState) -> TD3TrainingState:
        """Reset all environments, which ends the episodes in the replay buffer too."""
        replay = n_step.end_episodes(self._buffer, state.replay)
        fresh: TD3TrainingState = super().fresh_environments(state._replace(replay=replay))
        return fresh

    def training_step(self, state: TD3TrainingState) -> tuple[TD3TrainingState, Tally]:
        """Take a step in every environment and store it, then learn from the replay buffer."""
        key, act_key, learn_key = jax.random.split(state.key, 3)
        policy = self._exploring_policy(state)
        env_state, data = acting.actor_step(self.env, state.env_state, policy, act_key, self.extra)
        normalizer = self.normalizer_after(state.params.normalizer, data.observation)
        state = state._replace(
            params=state.params._replace(normalizer=normalizer),
            env_state=env_state,
            replay=self._buffer.insert(state.replay, n_step.Step.of(data)),
            key=key,
        )
        state, updates = self._learn(state, learn_key)
        return state, Tally(updates, episodes(data.extras["state_extras"]))

    def _exploring_policy(self, state: TD3TrainingState) -> types.Policy:
        """Return the policy with noise; before the first update it draws actions uniformly."""
        learning = self._buffer.size(state.replay) >= self.config.min_replay_size

        def policy(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
            noise_key, uniform_key = jax.random.split(key)
            action = self.networks.act(*state.params, observation)
            noise = state.noise_std[:, None] * jax.random.normal(noise_key, action.shape)
            # Fujimoto et al. 2018, section 6.1: the first steps do not depend on the parameters.
            uniform = jax.random.uniform(uniform_key, action.shape, minval=-1.0)
            return jnp.where(learning, jnp.clip(action + noise, -1.0, 1.0), uniform), {}

        return policy

    def _learn(self, state: TD3TrainingState, key: jax.Array) -> tuple[TD3TrainingState, Updates]:
        """Make `grad_updates_per_step` updates, or none while the buffer holds too little."""
        enough = self._buffer.size(state.replay) >= self.config.min_replay_size
        # A transition over several steps needs as many.
        enough &= state.replay.filled >= self.config.n_steps
        # The number of updates is data: the same program fills the buffer and learns.
        number = jnp.where(enough, self.config.grad_updates_per_step, 0)
        # The i-th update has the i-th key, whatever the number of updates is.
        return repeated(lambda i, s: self._update(s, jax.random.fold_in(key, i)), state, number)

    def _update(self, state: TD3TrainingState, key: jax.Array) -> tuple[TD3TrainingState, Updates]:
        """Update the critics, and every `policy_delay` times the policy and the target networks."""
        sample_key, loss_key = jax.random.split(key)
        config = self.config
        batch = n_step.draw(
            self._buffer, state.replay, sample_key, config.n_steps, config.discounting
        )
        # Rows are drawn from the rings of all devices; split again, each device works on its share.
        batch = devices.shard(batch, self.mesh)
        grads, losses = jax.grad(compute_critic_loss, has_aux=True)(
            state.q,
            state.params.normalizer,
            state.target_policy,
            state.target_q,
            batch,
            loss_key,
            self.networks,
            self._loss,
        )
        q, q_optimizer_state, finite = descend(
            self._q_optimizer, grads, state.q_optimizer_state, state.q
        )
        # A skipped update does not count, so that none is followed by one of the policy.
        since = state.updates_since_policy + finite
        due = finite & (since >= config.policy_delay)
        state = state._replace(q=q, q_optimizer_state=q_optimizer_state)
        state, policy_finite = self._update_policy(state, batch.observation, due)
        # One failed gradient of the two counts the update as failed.
        finite = finite & policy_finite
        state = state._replace(
            # A failed update of the policy stays due. Otherwise updates of the critics alone would
            # come between such failures, and they would never be consecutive.
            updates_since_policy=jnp.where(due & policy_finite, 0, since),
            bad_updates=in_a_row(state.bad_updates, finite),
        )
        return state, count_updates(losses, finite)

    def _update_policy(
        self, state: TD3TrainingState, observation: Any, due: jax.Array
    ) -> tuple[TD3TrainingState, jax.Array]:
        """Update the policy and the target networks, if it is time to.

        Returns:
            The state, and false if it was time to, but the gradient was not finite.
        """
        before = Slow(
            state.params.policy, state.policy_optimizer_state, state.target_policy, state.target_q
        )
        after, finite = jax.lax.cond(
            due,
            lambda slow: self._improved(slow, state.params.normalizer, state.q, observation),
            lambda slow: (slow, jnp.bool_(True)),
            before,
        )
        state = state._replace(
            params=state.params._replace(policy=after.policy),
            policy_optimizer_state=after.optimizer_state,
            target_policy=after.target_policy,
            target_q=after.target_q,
        )
        return state, finite

    def _improved(
        self, slow: Slow, normalizer: Any, q: Any, observation: object
    ) -> tuple[Slow, jax.Array]:
        """Return the policy after an update, and target networks that have moved."""
        grads = jax.grad(compute_policy_loss)(
            slow.policy, normalizer, q, observation, self.networks, self._loss
        )
        policy, optimizer_state, finite = descend(
            self._policy_optimizer, grads, slow.optimizer_state, slow.policy
        )
        # A skipped update leaves the target networks where they are.
        tau = jnp.where(finite, self.config.tau, 0.0)
        follow = optax.incremental_update
        return Slow(
            policy=policy,
            optimizer_state=optimizer_state,
            target_policy=follow(policy, slow.target_policy, tau),
            target_q=follow(q, slow.target_q, tau),
        ), finite
