"""The networks of TD3."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from flax import linen

from brax.training import types
from brax.training.learning.population import PolicyNetworks
from brax.training.learning.population import make_inference_fn as make_inference_fn
from brax.training.nn import networks

NUM_CRITICS = 2
"""Number of critics: the twins of TD3."""


@dataclass(frozen=True)
class TD3Networks(PolicyNetworks):
    """The network of a deterministic policy, and two critics."""

    q_network: networks.FeedForwardNetwork
    """Critics, from an observation and an action to (..., critics, atoms): logits of categorical
    critics, or one value for each critic, with an axis of length 1.
    """


def make_td3_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_hidden_layer_sizes: Sequence[int] = (256, 256),
    q_hidden_layer_sizes: Sequence[int] = (256, 256),
    activation: str | networks.ActivationFn = linen.relu,
    q_network_layer_norm: bool = False,
    policy_obs_key: str = "state",
    value_obs_key: str = "state",
    num_atoms: int = 0,
) -> TD3Networks:
    """Return TD3's networks: a policy whose actions tanh bounds to (-1, 1), and two critics.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        policy_hidden_layer_sizes: widths of the policy's hidden layers.
        q_hidden_layer_sizes: widths of the hidden layers of each critic.
        activation: function between layers, or its name.
        q_network_layer_norm: normalize the output of each hidden layer of a critic.
        policy_obs_key: observation that the policy reads, where there are several.
        value_obs_key: observation that the critics read, where there are several.
        num_atoms: atoms of categorical critics; 0 makes critics of one value.

    Raises:
        ConfigError: if a name is unknown, or a number is not allowed.
    """
    policy_network = networks.make_policy_network(
        action_size,
        observation_size,
        preprocess_observations_fn,
        policy_hidden_layer_sizes,
        activation,
        policy_obs_key,
    )
    q_network = networks.make_q_network(
        observation_size,
        action_size,
        preprocess_observations_fn,
        q_hidden_layer_sizes,
        activation,
        n_critics=NUM_CRITICS,
        layer_norm=q_network_layer_norm,
        obs_key=value_obs_key,
        outputs=max(num_atoms, 1),
    )
    return TD3Networks(policy_network, jnp.tanh, _by_critic(q_network))


def _by_critic(network: networks.FeedForwardNetwork) -> networks.FeedForwardNetwork:
    """Return the network with an axis of critics before that of their outputs."""

    def apply(*inputs: object) -> jax.Array:
        outputs = network.apply(*inputs)
        return outputs.reshape(*outputs.shape[:-1], NUM_CRITICS, -1)

    return replace(network, apply=apply)
