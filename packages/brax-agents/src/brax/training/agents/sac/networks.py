"""The networks of SAC."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flax import linen

from brax.training import types
from brax.training.nn import distribution, networks
from brax.training.nn.actors import make_actor
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
    distribution_type: str = "tanh_normal",
    noise_std_type: str = "scalar",
    init_noise_std: float = 1.0,
    state_dependent_std: bool = False,
    policy_network_kernel_init_fn: str | Callable[..., Any] = "lecun_uniform",
    policy_network_kernel_init_kwargs: Mapping[str, object] | None = None,
    q_network_kernel_init_fn: str | Callable[..., Any] = "lecun_uniform",
    q_network_kernel_init_kwargs: Mapping[str, object] | None = None,
) -> SACNetworks:
    """Return SAC's networks: a policy and two critics.

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
        distribution_type: `tanh_normal`, bounded to (-1, 1), whose standard deviation depends on
            the observation, or `normal`, which is not bounded and which the next three configure.
        noise_std_type: map from a learned number to the standard deviation: `scalar` is a softplus,
            `log` an exponential.
        init_noise_std: standard deviation at the start, above 0.001.
        state_dependent_std: let the standard deviation depend on the observation too.
        policy_network_kernel_init_fn: initializer of the policy's weights: a function that makes
            one, or its name in `networks.KERNEL_INITIALIZER`.
        policy_network_kernel_init_kwargs: keyword arguments of that function.
        q_network_kernel_init_fn: initializer of the critics' weights.
        q_network_kernel_init_kwargs: keyword arguments of that function.

    Raises:
        ConfigError: if a name is unknown, or a number is not allowed.
    """
    policy_network, actions = make_actor(
        networks.vector(observation_size, policy_obs_key),
        action_size,
        preprocess_observations_fn,
        hidden_layer_sizes,
        activation,
        distribution_type=distribution_type,
        noise_std_type=noise_std_type,
        init_noise_std=init_noise_std,
        state_dependent_std=state_dependent_std,
        kernel_init=networks.initializer_of(
            policy_network_kernel_init_fn, policy_network_kernel_init_kwargs
        ),
        layer_norm=policy_network_layer_norm,
    )
    return SACNetworks(
        policy_network=policy_network,
        q_network=networks.make_q_network(
            observation_size,
            action_size,
            preprocess_observations_fn,
            hidden_layer_sizes,
            activation,
            layer_norm=q_network_layer_norm,
            obs_key=value_obs_key,
            kernel_init=networks.initializer_of(
                q_network_kernel_init_fn, q_network_kernel_init_kwargs
            ),
        ),
        parametric_action_distribution=actions,
    )
