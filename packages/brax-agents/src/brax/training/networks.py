"""Networks that agents build on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen

from brax.errors import ConfigError, closest
from brax.training import types

ActivationFn = Callable[[jax.Array], jax.Array]

ACTIVATION: dict[str, ActivationFn] = {
    "celu": linen.celu,
    "elu": linen.elu,
    "gelu": linen.gelu,
    "leaky_relu": linen.leaky_relu,
    "relu": linen.relu,
    "sigmoid": linen.sigmoid,
    "swish": linen.swish,
    "silu": linen.silu,
    "softplus": linen.softplus,
    "tanh": linen.tanh,
}
"""Activations by the name that they have in settings and checkpoints."""


@dataclass(frozen=True)
class FeedForwardNetwork:
    """A network as a pair of functions."""

    init: Callable[..., Any]
    """`init(key) -> params`."""
    apply: Callable[..., Any]
    """`apply(normalizer_params, params, *inputs) -> outputs`."""


class MLP(linen.Module):
    """Dense layers with an activation between them."""

    layer_sizes: Sequence[int]
    activation: ActivationFn = linen.relu
    kernel_init: Callable[..., Any] = jax.nn.initializers.lecun_uniform()
    activate_final: bool = False

    @linen.compact
    def __call__(self, data: jax.Array) -> jax.Array:
        """Maps (..., inputs) to (..., layer_sizes[-1])."""
        for i, size in enumerate(self.layer_sizes):
            data = linen.Dense(size, name=f"hidden_{i}", kernel_init=self.kernel_init)(data)
            if i != len(self.layer_sizes) - 1 or self.activate_final:
                data = self.activation(data)
        return data


def activation(value: str | ActivationFn) -> ActivationFn:
    """Returns the activation of that name; a function is returned as it is.

    Raises:
        ConfigError: if there is none of that name.
    """
    if callable(value):
        return value
    if value not in ACTIVATION:
        raise ConfigError(
            f"unknown activation '{value}'. Allowed: {', '.join(ACTIVATION)}."
            f"{closest(value, ACTIVATION)}"
        )
    return ACTIVATION[value]


def observation_width(size: types.ObservationSize, key: str) -> int:
    """Number of features that a network reading the observation `key` has.

    Raises:
        ConfigError: if a dictionary of observations has no such entry.
    """
    if not isinstance(size, Mapping):
        return int(size)
    if key not in size:
        raise ConfigError(
            f"the environment has no observation '{key}'. It has: {', '.join(size)}."
            f"{closest(key, size)} Set policy_obs_key or value_obs_key."
        )
    shape = size[key]
    return int(shape if isinstance(shape, int) else shape[-1])


def make_mlp(
    output_size: int,
    obs_size: types.ObservationSize,
    preprocess_observations_fn: types.PreprocessObservationFn,
    hidden_layer_sizes: Sequence[int],
    activation_fn: str | ActivationFn,
    obs_key: str,
) -> FeedForwardNetwork:
    """Makes a dense network of one observation, which is preprocessed first."""
    module = MLP((*hidden_layer_sizes, output_size), activation(activation_fn))
    width = observation_width(obs_size, obs_key)

    def apply(normalizer_params: Any, params: Any, obs: Any) -> jax.Array:
        obs = preprocess_observations_fn(obs, normalizer_params)
        features = obs[obs_key] if isinstance(obs, Mapping) else obs
        outputs: jax.Array = module.apply(params, features)  # type: ignore[assignment]
        return outputs

    return FeedForwardNetwork(lambda key: module.init(key, jnp.zeros((1, width))), apply)


def make_policy_network(
    param_size: int,
    obs_size: types.ObservationSize,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    hidden_layer_sizes: Sequence[int] = (256, 256),
    activation: str | ActivationFn = linen.relu,
    obs_key: str = "state",
) -> FeedForwardNetwork:
    """Makes a network from observations to the parameters of a distribution of actions.

    Args:
        param_size: number of outputs.
        obs_size: number of features, or a dictionary of them.
        preprocess_observations_fn: applied to observations first, with the normalizer's state.
        hidden_layer_sizes: widths of the hidden layers.
        activation: function between layers, or its name.
        obs_key: which observation to read, where there are several.
    """
    return make_mlp(
        param_size, obs_size, preprocess_observations_fn, hidden_layer_sizes, activation, obs_key
    )


def make_value_network(
    obs_size: types.ObservationSize,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    hidden_layer_sizes: Sequence[int] = (256, 256),
    activation: str | ActivationFn = linen.relu,
    obs_key: str = "state",
) -> FeedForwardNetwork:
    """Makes a network from observations to one value each; arguments as `make_policy_network`."""
    network = make_mlp(
        1, obs_size, preprocess_observations_fn, hidden_layer_sizes, activation, obs_key
    )
    return FeedForwardNetwork(
        network.init, lambda *inputs: jnp.squeeze(network.apply(*inputs), axis=-1)
    )
