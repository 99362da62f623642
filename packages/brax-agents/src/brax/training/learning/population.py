"""Trying many policies side by side: what agents that search need instead of gradients."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.env import State
from brax.training import types
from brax.training.acme import running_statistics
from brax.training.distributed import devices
from brax.training.learner import (
    Episodes,
    Learner,
    Parts,
    Tally,
    count_updates,
    descend,
    each_episode,
    in_a_row,
    summed,
)
from brax.training.nn import images
from brax.training.nn.networks import FeedForwardNetwork
from brax.training.policies import PolicyParams, policy_part


@dataclass(frozen=True)
class PolicyNetworks:
    """The network of a policy that draws nothing."""

    policy_network: FeedForwardNetwork
    squash: Callable[[jax.Array], jax.Array]
    """Makes actions of the network's outputs."""

    def act(self, normalizer: Any, policy_params: Any, observation: Any) -> jax.Array:
        """The action at an observation."""
        return self.squash(self.policy_network.apply(normalizer, policy_params, observation))


def make_inference_fn(networks: PolicyNetworks) -> Callable[..., types.Policy]:
    """Returns `make_policy(params, deterministic=False)`; the policies are deterministic anyway.

    `params` is what training returns, or its `(normalizer, policy)`.
    """

    def make_policy(params: Any, deterministic: bool = False) -> types.Policy:
        del deterministic
        normalizer, policy_params = policy_part(params)

        def policy(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
            del key
            return networks.act(normalizer, policy_params, observation), {}

        return policy

    return make_policy


class SearchState(NamedTuple):
    """All that one training step of a search hands to the next."""

    params: PolicyParams
    optimizer_state: Any
    key: jax.Array
    bad_updates: jax.Array
    """Updates in a row that were skipped because their gradient was not finite, int32."""


class SearchLearner(Learner):
    """Tries pairs of policies, the parameters plus and minus the same noise, and moves by how each
    did. An agent adds its noise, its optimizer and what it makes of the returns.
    """

    noise_std: float
    """Deviation of the noise on the parameters."""
    reward_shift: float = 0.0
    """Taken off the reward of every environment step."""
    optimizer: Any

    def __init__(self, parts: Parts) -> None:
        """Prepares the functions; compiles nothing."""
        super().__init__(parts)
        self._length = -(-self.config.episode_length // self.config.action_repeat)

    @abc.abstractmethod
    def gradient(
        self, policy: Any, noise: Any, plus: jax.Array, minus: jax.Array
    ) -> tuple[Any, dict[str, jax.Array]]:
        """What to descend along, and numbers to report.

        Args:
            policy: parameters of the policy.
            noise: standard normal noise, like them, each leaf (pairs, ...).
            plus: returns of the parameters plus noise, (pairs,).
            minus: returns of the parameters minus noise, (pairs,).
        """

    @property
    def split(self) -> dict[str, int]:
        """Nothing: the environments live for one training step."""
        return {}

    def init(self, key: jax.Array) -> SearchState:
        """Makes the first state."""
        policy_key, train_key = jax.random.split(key)
        policy = self.networks.policy_network.init(policy_key)
        params = PolicyParams(self.first_normalizer(), policy)
        return SearchState(params, self.optimizer.init(policy), train_key, jnp.int32(0))

    def fresh_environments(self, state: SearchState) -> SearchState:
        """Changes nothing: every training step starts from fresh environments."""
        return state

    def training_step(self, state: SearchState) -> tuple[SearchState, Tally]:
        """Tries all policies for an episode each, and moves the parameters."""
        key, noise_key, env_key = jax.random.split(state.key, 3)
        normalizer, policy = state.params
        noise = _normal_like(policy, self.config.num_envs // 2, noise_key)
        policies = jax.tree.map(
            lambda p, n: jnp.concatenate([p + self.noise_std * n, p - self.noise_std * n]),
            policy,
            noise,
        )
        returns, seen, acted = self.returns(policies, normalizer, env_key)
        grads, found = self.gradient(policy, noise, *jnp.split(returns, 2))
        policy, optimizer_state, finite = descend(
            self.optimizer, grads, state.optimizer_state, policy
        )
        found |= {"return_mean": jnp.mean(returns), "return_std": jnp.std(returns)}
        bad_updates = in_a_row(state.bad_updates, finite)
        state = SearchState(PolicyParams(seen, policy), optimizer_state, key, bad_updates)
        return state, Tally(count_updates(found, finite), acted)

    def returns(
        self, policies: Any, normalizer: Any, key: jax.Array
    ) -> tuple[jax.Array, Any, Episodes]:
        """Plays one episode with each policy; the two of a pair start alike.

        Returns:
            Returns (policies,), statistics of the observations, and the episodes' tally.
        """
        number = self.config.num_envs
        keys = jax.random.split(key, number // 2)
        env_state = self.env.reset(jnp.concatenate([keys, keys]))
        policies, env_state = jax.lax.with_sharding_constraint(
            (policies, env_state), devices.shardings((policies, env_state), self.mesh, number)
        )
        act = jax.vmap(self.networks.act, in_axes=(None, 0, 0))
        normalized = bool(jax.tree.leaves(normalizer))

        def step(carry: Any) -> Any:
            env_state, active, returns, seen, acted, count = carry
            action = act(normalizer, policies, env_state.obs)
            if normalized:
                seen = running_statistics.update_rows(seen, images.vectors(env_state.obs), active)
            before, env_state = env_state, self.env.step(env_state, action)
            returns = returns + active * self._earned(before, env_state)
            acted = jax.tree.map(jnp.add, acted, self._ended(env_state, active))
            return env_state, active * (1.0 - env_state.done), returns, seen, acted, count + 1

        def running(carry: Any) -> jax.Array:
            return (carry[-1] < self._length) & jnp.any(carry[1] > 0)

        nobody = jnp.zeros(number)
        # All by environment, and summed at the end: devices wait for each other in every step
        # only to agree whether anybody goes on.
        seen: Any = ()
        if normalized:
            seen = running_statistics.rows_of(images.vectors(env_state.obs))
        acted = self._ended(env_state, nobody)
        start = (env_state, nobody + 1.0, nobody, seen, acted, jnp.int32(0))
        _, _, returns, seen, acted, _ = jax.lax.while_loop(running, step, start)
        if normalized:
            normalizer = running_statistics.update_by_rows(
                normalizer, seen, **self.statistics_settings
            )
        return returns, normalizer, summed(acted)

    def _earned(self, before: State, after: State) -> jax.Array:
        """What an action earned, less the shift for each environment step that it lasted."""
        if not self.reward_shift:
            return after.reward
        return after.reward - self.reward_shift * (after.info["steps"] - before.info["steps"])

    def _ended(self, env_state: Any, active: jax.Array) -> Episodes:
        """Tells of the active episodes which ended with this step, by environment."""
        info = {name: env_state.info[name] for name in self.extra}
        for name in info.keys() & {"episode_done", "nan"}:
            info[name] = info[name] * active
        return each_episode(info)


def _normal_like(tree: Any, number: int, key: jax.Array) -> Any:
    """Standard normal noise like a tree, each leaf (number, ...)."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure,
        [jax.random.normal(k, (number, *x.shape)) for k, x in zip(keys, leaves, strict=True)],
    )
