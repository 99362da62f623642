"""The networks of PPO and the policies made from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
from flax import linen

from brax.errors import ConfigError, closest
from brax.training import distribution, networks, types

_DISTRIBUTIONS: dict[str, type[distribution.ParametricDistribution]] = {
    "tanh_normal": distribution.NormalTanhDistribution,
    "normal": distribution.NormalDistribution,
}


class PPOParams(NamedTuple):
    """All that PPO learns."""

    normalizer: Any
    """Statistics of observations, `()` where they are not normalized."""
    policy: Any
    """Parameters of the policy network."""
    value: Any
    """Parameters of the value network."""


@dataclass(frozen=True)
class PPONetworks:
    """The networks of PPO."""

    policy_network: networks.FeedForwardNetwork
    value_network: networks.FeedForwardNetwork
    parametric_action_distribution: distribution.ParametricDistribution


def make_ppo_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_hidden_layer_sizes: Sequence[int] = (32,) * 4,
    value_hidden_layer_sizes: Sequence[int] = (256,) * 5,
    activation: str | networks.ActivationFn = linen.swish,
    policy_obs_key: str = "state",
    value_obs_key: str = "state",
    distribution_type: str = "tanh_normal",
) -> PPONetworks:
    """Makes PPO's networks.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        policy_hidden_layer_sizes: widths of the policy's hidden layers.
        value_hidden_layer_sizes: widths of the value network's hidden layers.
        activation: function between layers, or its name.
        policy_obs_key: observation that the policy reads, where there are several.
        value_obs_key: observation that the value network reads, where there are several.
        distribution_type: `tanh_normal`, bounded to (-1, 1), or `normal`.

    Raises:
        ConfigError: if a name is unknown.
    """
    if distribution_type not in _DISTRIBUTIONS:
        raise ConfigError(
            f"unknown distribution_type '{distribution_type}'. Allowed: "
            f"{', '.join(_DISTRIBUTIONS)}.{closest(distribution_type, _DISTRIBUTIONS)}"
        )
    actions = _DISTRIBUTIONS[distribution_type](action_size)
    return PPONetworks(
        policy_network=networks.make_policy_network(
            actions.param_size,
            observation_size,
            preprocess_observations_fn,
            policy_hidden_layer_sizes,
            activation,
            policy_obs_key,
        ),
        value_network=networks.make_value_network(
            observation_size,
            preprocess_observations_fn,
            value_hidden_layer_sizes,
            activation,
            value_obs_key,
        ),
        parametric_action_distribution=actions,
    )


def make_inference_fn(ppo_networks: PPONetworks) -> Callable[..., types.Policy]:
    """Returns `make_policy(params, deterministic=False)`.

    `params` is what training returns, or its `(normalizer, policy)`. The policy's extras are
    `raw_action`, before squashing, and `log_prob`; a deterministic policy has none.
    """
    actions = ppo_networks.parametric_action_distribution

    def make_policy(params: Any, deterministic: bool = False) -> types.Policy:
        normalizer, policy_params = _policy_part(params)

        def policy(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
            logits = ppo_networks.policy_network.apply(normalizer, policy_params, observation)
            if deterministic:
                return actions.mode(logits), {}
            raw = actions.sample_no_postprocessing(logits, key)
            extras = {"raw_action": raw, "log_prob": actions.log_prob(logits, raw)}
            return actions.postprocess(raw), extras

        return policy

    return make_policy


def _policy_part(params: Any) -> tuple[Any, Any]:
    """The normalizer and the policy's parameters out of what a caller has."""
    if isinstance(params, tuple | list) and len(params) in (2, 3):
        return params[0], params[1]
    got = f"{len(params)} parts" if isinstance(params, tuple | list) else type(params).__name__
    raise ConfigError(
        f"make_policy: got {got}; expected the params that train() returned, or its "
        "(normalizer, policy). The policy needs the normalizer: pass params, not params.policy."
    )
