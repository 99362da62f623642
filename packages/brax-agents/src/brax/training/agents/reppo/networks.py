"""The networks of REPPO."""

from collections.abc import Sequence
from dataclasses import dataclass

from flax import linen

from brax.errors import ConfigError
from brax.training import types
from brax.training.nn import distribution, networks
from brax.training.policies import make_inference_fn as make_inference_fn


@dataclass(frozen=True)
class REPPONetworks:
    """The networks of REPPO."""

    policy_network: networks.FeedForwardNetwork
    q_network: networks.FeedForwardNetwork
    """Maps observations and actions to the logits of a histogram of their value, (..., bins)."""
    parametric_action_distribution: distribution.ParametricDistribution


def make_reppo_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_hidden_layer_sizes: Sequence[int] = (512, 512),
    value_hidden_layer_sizes: Sequence[int] = (512, 512),
    activation: str | networks.ActivationFn = linen.swish,
    layer_norm: bool = True,
    num_bins: int = 151,
    policy_obs_key: str = "state",
    value_obs_key: str = "state",
) -> REPPONetworks:
    """Return REPPO's networks: a policy and one critic, which is a histogram.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        policy_hidden_layer_sizes: widths of the policy's hidden layers.
        value_hidden_layer_sizes: widths of the critic's hidden layers.
        activation: function between layers, or its name.
        layer_norm: normalize the output of each hidden layer of both networks.
        num_bins: number of bins of the critic's histogram, at least 2.
        policy_obs_key: observation that the policy reads, where there are several.
        value_obs_key: observation that the critic reads, where there are several.

    Raises:
        ConfigError: if a name is unknown, or a number is not allowed.
    """
    networks.check_size("action_size", action_size)
    networks.check_size("num_bins", num_bins)
    if num_bins < 2:
        raise ConfigError(f"num_bins={num_bins} must be at least 2: one bin has one value only.")
    actions = distribution.NormalTanhDistribution(action_size)
    return REPPONetworks(
        policy_network=networks.make_policy_network(
            actions.param_size,
            observation_size,
            preprocess_observations_fn,
            policy_hidden_layer_sizes,
            activation,
            policy_obs_key,
            layer_norm,
        ),
        q_network=networks.make_q_network(
            observation_size,
            action_size,
            preprocess_observations_fn,
            value_hidden_layer_sizes,
            activation,
            n_critics=1,
            layer_norm=layer_norm,
            obs_key=value_obs_key,
            outputs=num_bins,
        ),
        parametric_action_distribution=actions,
    )
