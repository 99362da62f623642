"""The network of augmented random search."""

import jax

from brax.training import types
from brax.training.learning.population import PolicyNetworks
from brax.training.learning.population import make_inference_fn as make_inference_fn
from brax.training.nn import networks


def make_ars_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_obs_key: str = "state",
) -> PolicyNetworks:
    """Return a linear map from observations to actions that starts at zero.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        policy_obs_key: observation that the policy reads, where there are several.

    Raises:
        ConfigError: if the environment has no such observation.
    """
    network = networks.make_policy_network(
        action_size,
        observation_size,
        preprocess_observations_fn,
        # No hidden layer: the policy is linear (Mania et al. 2018, section 3.1).
        hidden_layer_sizes=(),
        obs_key=policy_obs_key,
        kernel_init=jax.nn.initializers.zeros,
    )
    return PolicyNetworks(network, lambda action: action)


make_policy_network = make_ars_networks
"""The same function, under Google's name."""
