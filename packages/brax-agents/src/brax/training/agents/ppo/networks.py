"""The networks of PPO for observations that are vectors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from flax import linen

from brax.training import types
from brax.training.nn import networks
from brax.training.nn.actors import make_actor
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
    policy_network_kernel_init_fn: str | Callable[..., object] = "lecun_uniform",
    policy_network_kernel_init_kwargs: Mapping[str, object] | None = None,
    value_network_kernel_init_fn: str | Callable[..., object] = "lecun_uniform",
    value_network_kernel_init_kwargs: Mapping[str, object] | None = None,
    mean_clip_scale: float | None = None,
    mean_kernel_init_fn: str | Callable[..., object] | None = None,
    mean_kernel_init_kwargs: Mapping[str, object] | None = None,
    use_distributional_critic: bool = False,
    num_quantiles: int = 32,
    memory: str | None = None,
    memory_size: int | None = None,
) -> PPONetworks:
    """Return PPO's networks for vectors.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        policy_hidden_layer_sizes: widths of the policy's hidden layers.
        value_hidden_layer_sizes: widths of the value network's hidden layers.
        activation: function between layers, or its name.
        policy_obs_key: observation that the policy reads, where there are several.
        value_obs_key: observation that the value network reads, where there are several.
        distribution_type: `tanh_normal`, bounded to (-1, 1), whose standard deviation depends on
            the observation, or `normal`, which the next three and the arguments of means configure.
        noise_std_type: map from a learned number to the standard deviation: `scalar` is a softplus,
            `log` an exponential.
        init_noise_std: standard deviation at the start, above 0.001.
        state_dependent_std: let the standard deviation depend on the observation too.
        policy_network_kernel_init_fn: initializer of the policy's weights: a function that makes
            one, or its name in `networks.KERNEL_INITIALIZER`.
        policy_network_kernel_init_kwargs: keyword arguments of that function.
        value_network_kernel_init_fn: initializer of the value network's weights.
        value_network_kernel_init_kwargs: keyword arguments of that function.
        mean_clip_scale: bound `c` of the means `m` of `normal`, which become `c m / (1 + |m|)`;
            None does not bound them.
        mean_kernel_init_fn: initializer of the means' weights; None takes the policy's.
        mean_kernel_init_kwargs: keyword arguments of that function.
        use_distributional_critic: let the value network learn quantiles of the return.
        num_quantiles: number of quantiles.
        memory: recurrent cell in front of the layers of either network, `gru` or `lstm`; None is
            none.
        memory_size: number of its units; None is 64.

    Raises:
        ConfigError: if a name is unknown, or a number is not allowed.
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
        mean_clip_scale=mean_clip_scale,
        mean_kernel_init_fn=mean_kernel_init_fn,
        mean_kernel_init_kwargs=mean_kernel_init_kwargs,
        use_distributional_critic=use_distributional_critic,
        num_quantiles=num_quantiles,
        memory=networks.memory_of(memory, memory_size),
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
    policy_network_kernel_init_fn: str | Callable[..., Any],
    policy_network_kernel_init_kwargs: Mapping[str, object] | None,
    value_network_kernel_init_fn: str | Callable[..., Any],
    value_network_kernel_init_kwargs: Mapping[str, object] | None,
    mean_kernel_init_fn: str | Callable[..., Any] | None,
    mean_kernel_init_kwargs: Mapping[str, Any] | None,
    output_kernel_init_fn: str | Callable[..., Any] | None = None,
    output_kernel_init_kwargs: Mapping[str, Any] | None = None,
    use_distributional_critic: bool,
    num_quantiles: int,
    memory: networks.RecurrentCell | None = None,
    **policy_settings: Any,
) -> PPONetworks:
    """Return PPO's networks over the parts of observations that the two readers take.

    The other arguments are those of `make_ppo_networks`.
    """
    networks.check_size("num_quantiles", num_quantiles)
    policy_network, actions = make_actor(
        policy_reader,
        action_size,
        preprocess_observations_fn,
        policy_hidden_layer_sizes,
        activation,
        kernel_init=networks.initializer_of(
            policy_network_kernel_init_fn, policy_network_kernel_init_kwargs
        ),
        mean_kernel_init=_initializer(mean_kernel_init_fn, mean_kernel_init_kwargs),
        output_kernel_init=_initializer(output_kernel_init_fn, output_kernel_init_kwargs),
        memory=memory,
        **policy_settings,
    )
    value_network = networks.make_mlp(
        num_quantiles if use_distributional_critic else 1,
        value_reader,
        preprocess_observations_fn,
        value_hidden_layer_sizes,
        activation,
        kernel_init=networks.initializer_of(
            value_network_kernel_init_fn, value_network_kernel_init_kwargs
        ),
        memory=memory,
    )
    if not use_distributional_critic:
        return PPONetworks(policy_network, networks.single(value_network), actions)
    # Only the loss needs the quantiles; everywhere else a value is their mean.
    means = networks.mapped(value_network, lambda quantiles: jnp.mean(quantiles, axis=-1))
    return PPONetworks(policy_network, means, actions, value_network.apply)


def _initializer(
    value: str | Callable[..., Any] | None, settings: Mapping[str, object] | None
) -> networks.Initializer | None:
    """Return the initializer of a name or function with its settings; None for None."""
    return None if value is None else networks.initializer_of(value, settings)
