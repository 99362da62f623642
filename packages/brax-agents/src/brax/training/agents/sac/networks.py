"""The networks of SAC."""

from collections.abc import Sequence
from dataclasses import dataclass

from flax import linen

from brax.training import types
from brax.training.nn import distribution, networks
from brax.training.policies import make_inference_fn as make_inference_fn


@dataclass(frozen=True)
class SACNetworks:
    """The networks of SAC."""

    policy_network: networks.FeedForwardNetwork
    q_network: networks.FeedForwardNetwork
    parametric_action_distribution: distribution.ParametricDistribution


def make_sac_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    hidden_layer_sizes: Sequence[int] = (256, 256),
    activation: str | networks.ActivationFn = linen.relu,
    policy_network_layer_norm: bool = False,
    q_network_layer_norm: bool = False,
    policy_obs_key: str = "state",
    value_obs_key: str = "state",
) -> SACNetworks:
    """Return SAC's networks: a policy over squashed actions, and two critics.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        hidden_layer_sizes: widths of the hidden layers of each network.
        activation: function between layers, or its name.
        policy_network_layer_norm: normalize what each hidden layer of the policy gives.
        q_network_layer_norm: normalize what each hidden layer of a critic gives.
        policy_obs_key: observation that the policy reads, where there are several.
        value_obs_key: observation that the critics read, where there are several.

    Raises:
        ConfigError: if a name is unknown.
    """
    actions = distribution.NormalTanhDistribution(action_size)
    return SACNetworks(
        policy_network=networks.make_policy_network(
            actions.param_size,
            observation_size,
            preprocess_observations_fn,
            hidden_layer_sizes,
            activation,
            policy_obs_key,
            policy_network_layer_norm,
        ),
        q_network=networks.make_q_network(
            observation_size,
            action_size,
            preprocess_observations_fn,
            hidden_layer_sizes,
            activation,
            layer_norm=q_network_layer_norm,
            obs_key=value_obs_key,
        ),
        parametric_action_distribution=actions,
    )
