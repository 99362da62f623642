"""Policies: from parameters to actions, and the parts of an agent that this needs."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import jax

from brax.errors import ConfigError
from brax.kernels.rows import map_rows
from brax.training import types
from brax.training.acme import running_statistics
from brax.training.nn import distribution, images, networks
from brax.training.types import PolicyParams as PolicyParams


@dataclass(frozen=True)
class ActorNetworks:
    """The network of a stochastic policy, and the distribution of its actions."""

    policy_network: networks.FeedForwardNetwork
    parametric_action_distribution: distribution.ParametricDistribution


@dataclass(frozen=True)
class ActorCriticNetworks:
    """The networks of a stochastic policy and of a critic."""

    policy_network: networks.FeedForwardNetwork
    value_network: networks.FeedForwardNetwork
    parametric_action_distribution: distribution.ParametricDistribution
    value_quantiles: Callable[..., jax.Array] | None = None
    """Like `value_network.apply`, but returns the quantiles whose mean is the value, (...,
    quantiles); None if the critic is not distributional.
    """

    def over(self, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Self:
        """Return these networks with each `apply` replaced by `change(apply)`."""
        policy, value = (
            dataclasses.replace(network, apply=change(network.apply))
            for network in (self.policy_network, self.value_network)
        )
        quantiles = self.value_quantiles and change(self.value_quantiles)
        return dataclasses.replace(
            self, policy_network=policy, value_network=value, value_quantiles=quantiles
        )


class ActorCriticParams(NamedTuple):
    """The parameters of agents with a value network."""

    normalizer: Any
    """Statistics of observations, `()` where they are not normalized."""
    policy: Any
    """Parameters of the policy network."""
    value: Any
    """Parameters of the value network."""


def preprocessor(normalize_observations: bool) -> Callable[..., Any]:
    """Return the function that observations pass through before a network reads them."""
    if normalize_observations:
        return _normalized
    return types.identity_observation_preprocessor


def _normalized(observation: object, normalizer: object) -> Any:
    """Return an observation whose vectors are normalized; images stay as they are."""
    vectors = images.vectors(observation)
    if jax.tree.leaves(vectors):
        vectors = running_statistics.normalize(vectors, _of_entries(normalizer, vectors))
    return {**observation, **vectors} if isinstance(observation, Mapping) else vectors


def _of_entries(normalizer: Any, vectors: object) -> Any:
    """Return the statistics of those entries of an observation that are present.

    A policy may be given only the entries that it reads, without those of the critic.
    """
    if not isinstance(vectors, Mapping):
        return normalizer
    mean, std = ({name: x[name] for name in vectors} for x in (normalizer.mean, normalizer.std))
    return running_statistics.NestedMeanStd(mean=mean, std=std)


@dataclass(frozen=True)
class RecurrentPolicy:
    """A policy with memory, for one observation or a batch."""

    step: Callable[..., tuple[jax.Array, types.Extra]]
    """Function of an observation, a key and the memory (..., memory_size) to an action
    (..., action_size) and extras, with the memory of the next step as `memory`.
    """
    memory_size: int
    """Length of the memory; it is zero at the start of an episode."""

    def __call__(
        self, observation: object, key: jax.Array, memory: jax.Array | None = None
    ) -> tuple[jax.Array, types.Extra]:
        """Return an action, and the policy's extras with the memory of the next step.

        Args:
            observation: one observation or a batch.
            key: random key.
            memory: memory of the last step, (..., memory_size); zeros at the start of an episode.

        Returns:
            The action (..., action_size), and the extras.

        Raises:
            ConfigError: if there is no memory among the arguments.
        """
        if memory is None:
            raise ConfigError(
                f"this policy has memory: call policy(observation, key, memory) with "
                f"{self.memory_size} zeros in the first step of an episode, and with the last "
                "extras['memory'] in each step after it."
            )
        return self.step(observation, key, memory)


def make_inference_fn(agent_networks: Any) -> Callable[..., types.Policy]:
    """Return `make_policy(params, deterministic=False)`.

    Args:
        agent_networks: networks with `policy_network` and `parametric_action_distribution`.

    `params` is what training returns, or its `(normalizer, policy)`. The policy's extras are
    `raw_action`, before squashing, and `log_prob`; a deterministic policy has none. The policy of
    recurrent networks is a `RecurrentPolicy`, whose extras have its `memory` too.
    """
    actions, network = agent_networks.parametric_action_distribution, agent_networks.policy_network
    recurrent = isinstance(network, networks.RecurrentNetwork)

    def act(logits: jax.Array, raw: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the actions of raw ones, and their log density."""
        return actions.postprocess(raw), actions.log_prob(logits, raw)

    def make_policy(params: object, deterministic: bool = False) -> types.Policy:
        normalizer, policy_params = policy_part(params)

        def policy(
            observation: object, key: jax.Array, *memory: jax.Array
        ) -> tuple[jax.Array, types.Extra]:
            logits, extras = network.apply(normalizer, policy_params, observation, *memory), {}
            if recurrent:
                logits, extras["memory"] = logits
            if deterministic:
                return actions.mode(logits), extras
            # Raw actions are kept, since actions rounded to the bounds cannot be mapped back.
            raw = actions.sample_no_postprocessing(logits, key)
            action, log_prob = _of_rows(act, logits, raw)
            extras |= {"raw_action": raw, "log_prob": log_prob}
            return action, extras

        return RecurrentPolicy(policy, network.memory_size) if recurrent else policy

    return make_policy


def _of_rows(
    act: Callable[..., Any], logits: jax.Array, raw: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the actions of raw ones (..., event_size), and their log density, (...,)."""
    action, log_prob = map_rows(act, *(x.reshape(-1, x.shape[-1]) for x in (logits, raw)))
    return action.reshape(raw.shape), log_prob.reshape(raw.shape[:-1])


def with_normalizer(make_policy: Callable[..., Any], params: Any) -> Callable[..., Any]:
    """Return a `make_policy` that takes `(params.policy, params.value)` too.

    Args:
        make_policy: function from parameters to policies.
        params: parameters whose normalizer is added.
    """

    @functools.wraps(make_policy)
    def make(given: Any, *args: Any, **settings: Any) -> types.Policy:
        if _lacks_normalizer(given):
            given = (params.normalizer, given[0])
        policy: types.Policy = make_policy(given, *args, **settings)
        return policy

    return make


def policy_part(params: object) -> tuple[Any, Any]:
    """Return the normalizer and the policy's parameters from what a caller passed.

    Raises:
        ConfigError: if it is neither what `train` returned nor `(normalizer, policy)`.
    """
    if isinstance(params, tuple | list) and len(params) in (2, 3) and not _lacks_normalizer(params):
        return params[0], params[1]
    got = f"{len(params)} parts" if isinstance(params, tuple | list) else type(params).__name__
    if _lacks_normalizer(params):
        got = "(policy, value) without the normalizer"
    raise ConfigError(
        f"make_policy: got {got}; expected the params that train() returned, or its "
        "(normalizer, policy). The policy needs the normalizer: pass params, not params.policy."
    )


def _lacks_normalizer(params: object) -> bool:
    """Return whether parameters are `(policy, value)`.

    The parameters of a network are a dictionary; a normalizer is not.
    """
    return isinstance(params, tuple | list) and len(params) == 2 and isinstance(params[0], Mapping)
