"""TD3: a deterministic policy, two critics, and targets that follow slowly.

Source: Fujimoto, van Hoof, Meger 2018 (1802.09477), algorithm 1.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from brax.env import State
from brax.training import acting, networks, types
from brax.training.agent import Agent
from brax.training.config import RunConfig
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
from brax.training.policies import PolicyParams
from brax.training.population import PolicyNetworks, make_inference_fn
from brax.training.replay_buffers import ReplayBuffer, ReplayBufferState, Sample
from brax.training.settings import number


@dataclass(frozen=True)
class TD3Config(RunConfig):
    """The numbers of a run; `number` declares what is allowed, and it is checked before the run."""

    step_formula = "num_envs * action_repeat"

    num_envs: int = number(16, 1)
    learning_rate: float = number(1e-3, 0, open_low=True)
    discounting: float = number(0.99, 0, 1)
    batch_size: int = number(256, 1)
    grad_updates_per_step: int = number(16, 1)
    tau: float = number(0.005, 0, 1, open_low=True)
    exploration_std: float = number(0.1, 0)
    target_noise_std: float = number(0.2, 0)
    target_noise_bound: float = number(0.5, 0)
    policy_delay: int = number(2, 1)
    min_replay_size: int = number(1024, 1)
    max_replay_size: int = number(131_072, 1)

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        return self.num_envs * self.action_repeat

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that TD3 needs."""
        return ("truncation", "terminal_obs")


@dataclass(frozen=True)
class TD3Networks(PolicyNetworks):
    """A policy that draws nothing, and two critics."""

    q_network: networks.FeedForwardNetwork


def make_td3_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: Any = types.identity_observation_preprocessor,
    hidden_layer_sizes: tuple[int, ...] = (64, 64),
) -> TD3Networks:
    """Make the networks; parameters with defaults are settings, `network_factory.NAME`."""
    sizes = (observation_size, preprocess_observations_fn, hidden_layer_sizes)
    return TD3Networks(
        policy_network=networks.make_policy_network(action_size, *sizes),
        squash=jnp.tanh,
        q_network=networks.make_q_network(observation_size, action_size, *sizes[1:]),
    )


class TD3State(NamedTuple):
    """The training state, from step to step; a checkpoint holds all of it."""

    params: PolicyParams
    q: Any
    target_policy: Any
    target_q: Any
    policy_optimizer: Any
    q_optimizer: Any
    env_state: State
    replay: ReplayBufferState
    updates: jax.Array
    key: jax.Array
    bad_updates: jax.Array


class TD3Learner(Learner):
    """The first state and one training step, as pure functions."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        config = self.config
        self._optimizer = optax.adam(config.learning_rate)
        sample = Sample.like(self.sample_obs, parts.env.action_size)
        self._buffer = ReplayBuffer(
            config.max_replay_size, config.num_envs, sample, config.batch_size
        )

    @property
    def split(self) -> dict[str, int]:
        """Parts of the state that devices share, and the length along which they are split."""
        return {**super().split, "replay": self.config.num_envs}

    def init(self, key: jax.Array) -> TD3State:
        """Make the first state, with nothing in the replay buffer."""
        policy_key, q_key, env_key, train_key = jax.random.split(key, 4)
        policy = self.networks.policy_network.init(policy_key)
        q = self.networks.q_network.init(q_key)
        return TD3State(
            params=PolicyParams(self.first_normalizer(), policy),
            q=q,
            target_policy=policy,
            target_q=q,
            policy_optimizer=self._optimizer.init(policy),
            q_optimizer=self._optimizer.init(q),
            env_state=self.reset(env_key),
            replay=self._buffer.init(),
            updates=jnp.int32(0),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def training_step(self, state: TD3State) -> tuple[TD3State, Tally]:
        """Take a noisy step in every environment and store it, then learn from stored steps."""
        key, act_key, learn_key = jax.random.split(state.key, 3)
        policy = self._exploring(state.params)
        env_state, data = acting.actor_step(self.env, state.env_state, policy, act_key, self.extra)
        normalizer = self.normalizer_after(state.params.normalizer, data.observation)
        replay = self._buffer.insert(state.replay, Sample.of_step(data))
        state = state._replace(
            params=state.params._replace(normalizer=normalizer),
            env_state=env_state,
            replay=replay,
            key=key,
        )
        enough = self._buffer.size(replay) >= self.config.min_replay_size
        updates = jnp.where(enough, self.config.grad_updates_per_step, 0)
        state, learned = repeated(
            lambda i, state: self._update(state, jax.random.fold_in(learn_key, i)), state, updates
        )
        return state, Tally(learned, episodes(data.extras["state_extras"]))

    def _exploring(self, params: PolicyParams) -> types.Policy:
        """Return the policy with noise on its actions."""

        def policy(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
            action = self.networks.act(*params, observation)
            noise = self.config.exploration_std * jax.random.normal(key, action.shape)
            return jnp.clip(action + noise, -1.0, 1.0), {}

        return policy

    def _update(self, state: TD3State, key: jax.Array) -> tuple[TD3State, Updates]:
        """Update the critics, and every `policy_delay` times the policy and the targets."""
        sample_key, noise_key = jax.random.split(key)
        sample = self._buffer.sample(state.replay, sample_key)
        loss, grads = jax.value_and_grad(self.critic_loss)(state.q, state, sample, noise_key)
        q, q_optimizer, finite = descend(self._optimizer, grads, state.q_optimizer, state.q)
        state = state._replace(
            q=q,
            q_optimizer=q_optimizer,
            updates=state.updates + 1,
            bad_updates=in_a_row(state.bad_updates, finite),
        )
        due = state.updates % self.config.policy_delay == 0
        state = jax.lax.cond(due, lambda: self._move_policy(state, sample), lambda: state)
        return state, count_updates({"critic_loss": loss}, finite)

    def critic_loss(self, q: Any, state: TD3State, sample: Sample, key: jax.Array) -> jax.Array:
        """Return the mean squared error of both critics.

        The target is the lower target critic at the target policy's action with bounded noise.
        """
        normalizer, bound = state.params.normalizer, self.config.target_noise_bound
        action = self.networks.act(normalizer, state.target_policy, sample.next_observation)
        noise = self.config.target_noise_std * jax.random.normal(key, action.shape)
        action = jnp.clip(action + jnp.clip(noise, -bound, bound), -1.0, 1.0)
        judge = self.networks.q_network.apply
        later = jnp.min(judge(normalizer, state.target_q, sample.next_observation, action), -1)
        target = sample.reward + self.config.discounting * sample.goes_on * later
        now = judge(normalizer, q, sample.observation, sample.action)
        return jnp.mean((now - jax.lax.stop_gradient(target)[:, None]) ** 2)

    def _move_policy(self, state: TD3State, sample: Sample) -> TD3State:
        """Improve the policy by the first critic, and move the target networks towards theirs."""
        normalizer, policy = state.params

        def loss(policy: Any) -> jax.Array:
            action = self.networks.act(normalizer, policy, sample.observation)
            judge = self.networks.q_network.apply
            return -jnp.mean(judge(normalizer, state.q, sample.observation, action)[:, 0])

        policy, optimizer, _ = descend(
            self._optimizer, jax.grad(loss)(policy), state.policy_optimizer, policy
        )
        follow = self.config.tau
        return state._replace(
            params=PolicyParams(normalizer, policy),
            policy_optimizer=optimizer,
            target_policy=optax.incremental_update(policy, state.target_policy, follow),
            target_q=optax.incremental_update(state.q, state.target_q, follow),
        )


CART = {
    "num_timesteps": 30_000,
    "episode_length": 100,
    "num_evals": 4,
    "num_envs": 64,
    "learning_rate": 3e-4,
    "discounting": 0.95,
    "batch_size": 128,
    "grad_updates_per_step": 32,
    "exploration_std": 0.3,
}
"""Settings for the cart: three seeds earn 84 to 93 of 100, where doing nothing earns 50."""

TD3 = Agent(
    name="example_td3",
    config=TD3Config,
    make_networks=make_td3_networks,
    learner=TD3Learner,
    presets={"example_cart": {"default": CART}},
    make_inference_fn=make_inference_fn,
)
