"""The networks of APG."""

from collections.abc import Sequence

import jax
from flax import linen

from brax.training import types
from brax.training.nn import distribution, networks
from brax.training.policies import ActorNetworks
from brax.training.policies import make_inference_fn as make_inference_fn

APGNetworks = ActorNetworks


def make_apg_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    hidden_layer_sizes: Sequence[int] = (32,) * 4,
    activation: str | networks.ActivationFn = linen.elu,
    layer_norm: bool = True,
    policy_obs_key: str = "state",
    var_scale: float = 0.1,
) -> ActorNetworks:
    """Return APG's network: a policy over squashed actions that starts with little noise.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        hidden_layer_sizes: widths of the hidden layers.
        activation: function between layers, or its name.
        layer_norm: normalize the output of each hidden layer.
        policy_obs_key: observation that the policy reads, where there are several.
        var_scale: factor on the standard deviation of actions before squashing; with 1 it starts
            at 0.69.

    Raises:
        ConfigError: if a name is unknown.
    """
    actions = distribution.NormalTanhDistribution(action_size, var_scale=var_scale)
    network = networks.make_policy_network(
        actions.param_size,
        observation_size,
        preprocess_observations_fn,
        hidden_layer_sizes,
        activation,
        policy_obs_key,
        layer_norm,
        jax.nn.initializers.orthogonal(0.01),
    )
    return ActorNetworks(network, actions)
