"""The network of evolution strategies."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen

from brax.training import types
from brax.training.learning.population import PolicyNetworks
from brax.training.learning.population import make_inference_fn as make_inference_fn
from brax.training.nn import networks

ESNetworks = PolicyNetworks


def make_es_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    hidden_layer_sizes: Sequence[int] = (32,) * 4,
    activation: str | networks.ActivationFn = linen.relu,
    policy_obs_key: str = "state",
) -> PolicyNetworks:
    """Return the network of a deterministic policy, whose actions tanh bounds to (-1, 1).

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        hidden_layer_sizes: widths of the hidden layers.
        activation: function between layers, or its name.
        policy_obs_key: observation that the policy reads, where there are several.

    Raises:
        ConfigError: if a name is unknown.
    """
    network = networks.make_policy_network(
        action_size,
        observation_size,
        preprocess_observations_fn,
        hidden_layer_sizes,
        activation,
        policy_obs_key,
    )
    return PolicyNetworks(network, jnp.tanh)
