"""Population search: ES and ARS try many policies in parallel in place of following gradients.

Start reading at `SearchLearner.training_step`.
"""

import abc
import functools
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
    environment_keys,
    in_a_row,
    summed,
)
from brax.training.nn import images
from brax.training.nn.networks import FeedForwardNetwork
from brax.training.policies import PolicyParams, policy_part


@dataclass(frozen=True)
class PolicyNetworks:
    """The network of a deterministic policy."""

    policy_network: FeedForwardNetwork
    squash: Callable[[jax.Array], jax.Array]
    """Function from the network's outputs to actions, both (..., action_size)."""

    def act(self, normalizer: Any, policy_params: object, observation: object) -> jax.Array:
        """Return the action (..., action_size) at one observation or a batch."""
        return self.squash(self.policy_network.apply(normalizer, policy_params, observation))


def make_inference_fn(networks: PolicyNetworks) -> Callable[..., types.Policy]:
    """Return `make_policy(params, deterministic=False)`; the policies are always deterministic.

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
    """Everything that one training step of a search passes to the next."""

    params: PolicyParams
    optimizer_state: Any
    key: jax.Array
    """Random key."""
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32, shape
    ()."""


class SearchLearner(Learner):
    """A learner that tries pairs of policies: the parameters plus and minus the same noise.

    A subclass sets the noise and the optimizer, and turns returns into a gradient.
    """

    noise_std: float
    """Standard deviation of the noise on the parameters."""
    reward_shift: float = 0.0
    """Subtracted from the reward of every environment step."""
    optimizer: Any

    def __init__(self, parts: Parts) -> None:
        """Store the parts; nothing is compiled."""
        super().__init__(parts)
        # Rounded up: the last action of an episode may be repeated fewer times than the others.
        self._length = -(-self.config.episode_length // self.config.action_repeat)

    @abc.abstractmethod
    def gradient(
        self, policy: Any, noise: object, plus: jax.Array, minus: jax.Array
    ) -> tuple[Any, dict[str, jax.Array]]:
        """Return the gradient to descend along, and numbers to report.

        Args:
            policy: parameters of the policy.
            noise: standard normal noise like the parameters, leaves (pairs, ...).
            plus: returns of the parameters plus noise, (pairs,).
            minus: returns of the parameters minus noise, (pairs,).

        Returns:
            The gradient, leaves of the same shape as the parameters; and scalars by name.
        """

    @property
    def split(self) -> dict[str, int]:
        """Nothing: the environments exist for one training step only."""
        return {}

    def init(self, key: jax.Array) -> SearchState:
        """Return the first training state."""
        policy_key, train_key = jax.random.split(key)
        policy = self.networks.policy_network.init(policy_key)
        params = PolicyParams(self.first_normalizer(), policy)
        return SearchState(params, self.optimizer.init(policy), train_key, jnp.int32(0))

    def fresh_environments(self, state: SearchState) -> SearchState:
        """Return the state as it is: every training step starts from fresh environments."""
        return state

    def training_step(self, state: SearchState) -> tuple[SearchState, Tally]:
        """Play an episode with each policy, and move the parameters."""
        key, noise_key, env_key = jax.random.split(state.key, 3)
        normalizer, policy = state.params
        noise = _normal_like(policy, self.config.num_envs // 2, noise_key)
        # All policies with plus come before all with minus; `jnp.split` below relies on it.
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
        # The policies of this step were normalized by the older statistics, all of them the same.
        state = SearchState(PolicyParams(seen, policy), optimizer_state, key, bad_updates)
        return state, Tally(count_updates(found, finite), acted)

    def returns(
        self, policies: Any, normalizer: Any, key: jax.Array
    ) -> tuple[jax.Array, Any, Episodes]:
        """Play one episode with each policy.

        Both policies of a pair start from the same state, and in the same system if systems are
        randomized.

        Returns:
            Returns (policies,), statistics of the observations, and the sums over the episodes.
        """
        number = self.config.num_envs
        # Common random numbers: the difference of a pair is the effect of the noise, not of the
        # start.
        keys = environment_keys(self.env, key, number // 2)
        env_state = self.env.reset(jnp.concatenate([keys, keys]))
        if "randomized" in env_state.info:
            # Equal keys draw equal starts, but systems that were drawn before training belong to
            # the environments: the second half takes over those of the first.
            env_state = jax.tree.map(functools.partial(_first_half_twice, number), env_state)
        policies, env_state = jax.lax.with_sharding_constraint(
            (policies, env_state), devices.shardings((policies, env_state), self.mesh, number)
        )
        # The first axis of policies and of observations is the policy; the normalizer is shared.
        act = jax.vmap(self.networks.act, in_axes=(None, 0, 0))
        normalized = bool(jax.tree.leaves(normalizer))

        def step(carry: Any) -> Any:
            env_state, active, returns, seen, acted, count = carry
            action = act(normalizer, policies, env_state.obs)
            if normalized:
                seen = running_statistics.update_rows(seen, images.vectors(env_state.obs), active)
            before, env_state = env_state, self.env.step(env_state, action)
            # `active` is 1 until the first episode of an environment ends; auto-reset starts
            # others.
            returns = returns + active * self._earned(before, env_state)
            acted = jax.tree.map(jnp.add, acted, self._ended(env_state, active))
            return env_state, active * (1.0 - env_state.done), returns, seen, acted, count + 1

        def running(carry: Any) -> jax.Array:
            # Stops when no first episode is left: populations of bad policies cost little.
            return (carry[-1] < self._length) & jnp.any(carry[1] > 0)

        nobody = jnp.zeros(number)
        # Everything is counted by environment, and summed after the episode: within it, devices
        # wait for each other only to agree whether any policy continues. With sums in every step ES
        # was six times slower on two CPU devices.
        seen: Any = ()
        if normalized:
            seen = running_statistics.rows_of(images.vectors(env_state.obs))
        acted = self._ended(env_state, nobody)
        start = (env_state, nobody + 1.0, nobody, seen, acted, jnp.int32(0))
        _, _, returns, seen, acted, _ = jax.lax.while_loop(running, step, start)
        if normalized:
            normalizer = running_statistics.update_by_rows(
                normalizer, seen, until_count=self.config.normalize_until_count
            )
        return returns, normalizer, summed(acted)

    def _earned(self, before: State, after: State) -> jax.Array:
        """Return the reward of an action, less the shift for each environment step it lasted."""
        if not self.reward_shift:
            return after.reward
        return after.reward - self.reward_shift * (after.info["steps"] - before.info["steps"])

    def _ended(self, env_state: Any, active: jax.Array) -> Episodes:
        """Return the counts of the active episodes that ended with this step, by environment."""
        info = {name: env_state.info[name] for name in self.extra}
        # An episode that follows the first one is not counted.
        for name in info.keys() & {"episode_done", "nan"}:
            info[name] = info[name] * active
        return each_episode(info)


def _first_half_twice(number: int, x: jax.Array) -> jax.Array:
    """Return the first half of an array's rows, followed by the same rows again.

    An array without `number` rows belongs to no environment, and is returned.
    """
    if jnp.shape(x)[:1] != (number,):
        return x
    return jnp.concatenate([x[: number // 2]] * 2)


def _normal_like(tree: Any, number: int, key: jax.Array) -> Any:
    """Return standard normal noise like a tree, with leaves (number, ...)."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure,
        [jax.random.normal(k, (number, *x.shape)) for k, x in zip(keys, leaves, strict=True)],
    )
