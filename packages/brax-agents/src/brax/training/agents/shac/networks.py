"""The networks of SHAC."""

from collections.abc import Sequence

from flax import linen

from brax.training import types
from brax.training.nn import distribution, networks
from brax.training.policies import ActorCriticNetworks
from brax.training.policies import make_inference_fn as make_inference_fn


def make_shac_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_hidden_layer_sizes: Sequence[int] = (64, 64),
    value_hidden_layer_sizes: Sequence[int] = (64, 64),
    activation: str | networks.ActivationFn = linen.elu,
    layer_norm: bool = True,
    policy_obs_key: str = "state",
    value_obs_key: str = "state",
) -> ActorCriticNetworks:
    """Return SHAC's networks, which are smooth, since gradients pass through them.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        policy_hidden_layer_sizes: widths of the policy's hidden layers.
        value_hidden_layer_sizes: widths of the value network's hidden layers.
        activation: function between layers, or its name.
        layer_norm: normalize the output of each hidden layer of the policy.
        policy_obs_key: observation that the policy reads, where there are several.
        value_obs_key: observation that the value network reads, where there are several.

    Raises:
        ConfigError: if a name is unknown.
    """
    actions = distribution.NormalTanhDistribution(action_size)
    return ActorCriticNetworks(
        policy_network=networks.make_policy_network(
            actions.param_size,
            observation_size,
            preprocess_observations_fn,
            policy_hidden_layer_sizes,
            activation,
            policy_obs_key,
            layer_norm,
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
