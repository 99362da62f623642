"""The networks of PPO."""

from collections.abc import Sequence

from flax import linen

from brax.training import distribution, networks, types
from brax.training.policies import ActorCriticNetworks, ActorCriticParams
from brax.training.policies import make_inference_fn as make_inference_fn

PPOParams = ActorCriticParams
PPONetworks = ActorCriticNetworks


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
    actions = distribution.of_type(distribution_type, action_size)
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
