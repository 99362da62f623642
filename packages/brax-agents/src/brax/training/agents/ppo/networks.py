"""The networks of PPO."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from flax import linen

from brax.training import types
from brax.training.nn import distribution, networks
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
    noise_std_type: str = "scalar",
    init_noise_std: float = 1.0,
    state_dependent_std: bool = False,
    policy_network_kernel_init_fn: str | Callable[..., Any] = "lecun_uniform",
    policy_network_kernel_init_kwargs: Mapping[str, Any] | None = None,
    value_network_kernel_init_fn: str | Callable[..., Any] = "lecun_uniform",
    value_network_kernel_init_kwargs: Mapping[str, Any] | None = None,
    mean_kernel_init_fn: str | Callable[..., Any] | None = None,
    mean_kernel_init_kwargs: Mapping[str, Any] | None = None,
    use_distributional_critic: bool = False,
    num_quantiles: int = 32,
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
        distribution_type: `tanh_normal`, bounded to (-1, 1), with a deviation that depends on the
            observation, or `normal`, for which the next three and `mean_kernel_init_fn` are.
        noise_std_type: how a learned number makes the deviation: `scalar`, by a softplus, or `log`.
        init_noise_std: deviation at the start, above 0.001.
        state_dependent_std: let the deviation depend on the observation too.
        policy_network_kernel_init_fn: how the policy's weights start: a function that makes an
            initializer, or its name in `networks.KERNEL_INITIALIZER`.
        policy_network_kernel_init_kwargs: its settings.
        value_network_kernel_init_fn: how those of the value network start.
        value_network_kernel_init_kwargs: its settings.
        mean_kernel_init_fn: how the weights of the means start, if unlike the other layers'.
        mean_kernel_init_kwargs: its settings.
        use_distributional_critic: let the value network learn quantiles of the return.
        num_quantiles: how many.

    Raises:
        ConfigError: if a name is unknown, or a number not allowed.
    """
    return of_readers(
        networks.vector(observation_size, policy_obs_key),
        networks.vector(observation_size, value_obs_key),
        action_size,
        preprocess_observations_fn,
        policy_hidden_layer_sizes=policy_hidden_layer_sizes,
        value_hidden_layer_sizes=value_hidden_layer_sizes,
        activation=activation,
        distribution_type=distribution_type,
        noise_std_type=noise_std_type,
        init_noise_std=init_noise_std,
        state_dependent_std=state_dependent_std,
        policy_network_kernel_init_fn=policy_network_kernel_init_fn,
        policy_network_kernel_init_kwargs=policy_network_kernel_init_kwargs,
        value_network_kernel_init_fn=value_network_kernel_init_fn,
        value_network_kernel_init_kwargs=value_network_kernel_init_kwargs,
        mean_kernel_init_fn=mean_kernel_init_fn,
        mean_kernel_init_kwargs=mean_kernel_init_kwargs,
        use_distributional_critic=use_distributional_critic,
        num_quantiles=num_quantiles,
    )


def of_readers(
    policy_reader: networks.Reader,
    value_reader: networks.Reader,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn,
    *,
    policy_hidden_layer_sizes: Sequence[int],
    value_hidden_layer_sizes: Sequence[int],
    activation: str | networks.ActivationFn,
    distribution_type: str,
    noise_std_type: str,
    init_noise_std: float,
    state_dependent_std: bool,
    policy_network_kernel_init_fn: str | Callable[..., Any],
    policy_network_kernel_init_kwargs: Mapping[str, Any] | None,
    value_network_kernel_init_fn: str | Callable[..., Any],
    value_network_kernel_init_kwargs: Mapping[str, Any] | None,
    mean_kernel_init_fn: str | Callable[..., Any] | None,
    mean_kernel_init_kwargs: Mapping[str, Any] | None,
    use_distributional_critic: bool,
    num_quantiles: int,
) -> PPONetworks:
    """Makes PPO's networks over what readers take of observations.

    Arguments as `make_ppo_networks`, and:

    Args:
        policy_reader: what the policy reads.
        value_reader: what the value network reads.
    """
    networks.check_size("action_size", action_size)
    networks.check_size("num_quantiles", num_quantiles)
    policy_init = networks.initializer_of(
        policy_network_kernel_init_fn, policy_network_kernel_init_kwargs
    )
    value_init = networks.initializer_of(
        value_network_kernel_init_fn, value_network_kernel_init_kwargs
    )
    actions = distribution.of_type(distribution_type, action_size, noise_std_type)
    if isinstance(actions, distribution.NormalDistribution):
        mean_init = policy_init
        if mean_kernel_init_fn is not None:
            mean_init = networks.initializer_of(mean_kernel_init_fn, mean_kernel_init_kwargs)
        head = networks.NormalHead(
            action_size,
            networks.widths(policy_hidden_layer_sizes),
            networks.activation_of(activation),
            policy_init,
            mean_init,
            actions.inverse_scale(init_noise_std),
            state_dependent_std,
        )
        policy_network = networks.of_module(head, policy_reader, preprocess_observations_fn)
    else:
        policy_network = networks.make_mlp(
            actions.param_size,
            policy_reader,
            preprocess_observations_fn,
            policy_hidden_layer_sizes,
            activation,
            kernel_init=policy_init,
        )
    value_network = networks.make_mlp(
        num_quantiles if use_distributional_critic else 1,
        value_reader,
        preprocess_observations_fn,
        value_hidden_layer_sizes,
        activation,
        kernel_init=value_init,
    )
    if not use_distributional_critic:
        return PPONetworks(policy_network, networks.single(value_network), actions)
    means = networks.FeedForwardNetwork(
        value_network.init, lambda *inputs: jnp.mean(value_network.apply(*inputs), axis=-1)
    )
    return PPONetworks(policy_network, means, actions, value_network.apply)
