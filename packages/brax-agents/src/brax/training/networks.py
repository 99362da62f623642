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
Initializer = Callable[..., Any]

KERNEL_INIT: Initializer = jax.nn.initializers.lecun_uniform()
"""How the weights of a layer start, where nothing else is said."""

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

KERNEL_INITIALIZER: dict[str, Callable[..., Initializer]] = {
    "constant": jax.nn.initializers.constant,
    "glorot_normal": jax.nn.initializers.glorot_normal,
    "glorot_uniform": jax.nn.initializers.glorot_uniform,
    "he_normal": jax.nn.initializers.he_normal,
    "he_uniform": jax.nn.initializers.he_uniform,
    "lecun_normal": jax.nn.initializers.lecun_normal,
    "lecun_uniform": jax.nn.initializers.lecun_uniform,
    "normal": jax.nn.initializers.normal,
    "orthogonal": jax.nn.initializers.orthogonal,
    "uniform": jax.nn.initializers.uniform,
    "zeros": lambda: jax.nn.initializers.zeros,
}
"""What makes the first weights, by the name that it has in settings and checkpoints: functions of
their own settings."""


@dataclass(frozen=True)
class FeedForwardNetwork:
    """A network as a pair of functions."""

    init: Callable[..., Any]
    """`init(key) -> params`."""
    apply: Callable[..., Any]
    """`apply(normalizer_params, params, *inputs) -> outputs`."""


class MLP(linen.Module):
    """Dense layers with an activation between them, and on request a layer norm after each."""

    layer_sizes: Sequence[int]
    activation: ActivationFn = linen.relu
    kernel_init: Initializer = KERNEL_INIT
    activate_final: bool = False
    layer_norm: bool = False

    @linen.compact
    def __call__(self, data: jax.Array) -> jax.Array:
        """Maps (..., inputs) to (..., layer_sizes[-1])."""
        for i, size in enumerate(self.layer_sizes):
            data = linen.Dense(size, name=f"hidden_{i}", kernel_init=self.kernel_init)(data)
            if i != len(self.layer_sizes) - 1 or self.activate_final:
                data = self.activation(data)
                if self.layer_norm:
                    data = linen.LayerNorm(name=f"norm_{i}")(data)
        return data


class NormalHead(linen.Module):
    """A mean that is a network of the observation, and a deviation that is learned by itself or
    depends on the observation too."""

    event_size: int
    hidden_layer_sizes: Sequence[int]
    activation: ActivationFn
    kernel_init: Initializer
    mean_kernel_init: Initializer
    first_std: float
    """What the deviation's parameter starts at, before the distribution makes a deviation of it."""
    state_dependent_std: bool

    @linen.compact
    def __call__(self, data: jax.Array) -> jax.Array:
        """Maps (..., inputs) to (..., 2 event_size): means, then what makes the deviations."""
        sizes = self.hidden_layer_sizes
        data = MLP(sizes, self.activation, self.kernel_init, activate_final=True, name="trunk")(
            data
        )
        mean = linen.Dense(self.event_size, kernel_init=self.mean_kernel_init, name="mean")(data)
        start = jax.nn.initializers.constant(self.first_std)
        std = self.param("std", start, (self.event_size,))
        if self.state_dependent_std:
            std += linen.Dense(self.event_size, kernel_init=self.kernel_init, name="std_of")(data)
        return jnp.concatenate([mean, jnp.broadcast_to(std, mean.shape)], axis=-1)


class Critics(linen.Module):
    """Several networks that judge the same observation and action."""

    number: int
    layer_sizes: Sequence[int]
    activation: ActivationFn
    layer_norm: bool

    @linen.compact
    def __call__(self, features: jax.Array, action: jax.Array) -> jax.Array:
        """Maps (..., features) and (..., actions) to (..., number)."""
        data = jnp.concatenate([features, action], axis=-1)
        networks = [
            MLP(self.layer_sizes, self.activation, layer_norm=self.layer_norm, name=f"critic_{i}")
            for i in range(self.number)
        ]
        return jnp.concatenate([network(data) for network in networks], axis=-1)


def activation_of(value: str | ActivationFn) -> ActivationFn:
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


def initializer_of(
    value: str | Callable[..., Initializer], settings: Mapping[str, Any] | None = None
) -> Initializer:
    """Returns the initializer of that name, or what a function makes, with these settings.

    Raises:
        ConfigError: if there is none of that name, or it does not take the settings.
    """
    if not callable(value) and value not in KERNEL_INITIALIZER:
        raise ConfigError(
            f"unknown initializer '{value}'. Allowed: {', '.join(KERNEL_INITIALIZER)}."
            f"{closest(value, KERNEL_INITIALIZER)}"
        )
    make = value if callable(value) else KERNEL_INITIALIZER[value]
    try:
        return make(**(settings or {}))
    except TypeError as error:
        raise ConfigError(f"initializer '{value}': {error}") from error


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
    layer_norm: bool = False,
    kernel_init: Initializer = KERNEL_INIT,
) -> FeedForwardNetwork:
    """Makes a dense network of one observation, which is preprocessed first."""
    sizes = (*hidden_layer_sizes, output_size)
    module = MLP(sizes, activation_of(activation_fn), kernel_init, layer_norm=layer_norm)
    return of_module(module, obs_size, preprocess_observations_fn, obs_key)


def of_module(
    module: linen.Module,
    obs_size: types.ObservationSize,
    preprocess_observations_fn: types.PreprocessObservationFn,
    obs_key: str,
) -> FeedForwardNetwork:
    """Makes a network of a module that reads one observation, which is preprocessed first."""
    width = observation_width(obs_size, obs_key)

    def apply(normalizer_params: Any, params: Any, obs: Any) -> jax.Array:
        features = _features(preprocess_observations_fn(obs, normalizer_params), obs_key)
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
    layer_norm: bool = False,
    kernel_init: Initializer = KERNEL_INIT,
) -> FeedForwardNetwork:
    """Makes a network from observations to the parameters of a distribution of actions.

    Args:
        param_size: number of outputs.
        obs_size: number of features, or a dictionary of them.
        preprocess_observations_fn: applied to observations first, with the normalizer's state.
        hidden_layer_sizes: widths of the hidden layers.
        activation: function between layers, or its name.
        obs_key: which observation to read, where there are several.
        layer_norm: normalize what each hidden layer gives.
        kernel_init: how the weights start.
    """
    return make_mlp(
        param_size,
        obs_size,
        preprocess_observations_fn,
        hidden_layer_sizes,
        activation,
        obs_key,
        layer_norm,
        kernel_init,
    )


def make_value_network(
    obs_size: types.ObservationSize,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    hidden_layer_sizes: Sequence[int] = (256, 256),
    activation: str | ActivationFn = linen.relu,
    obs_key: str = "state",
    kernel_init: Initializer = KERNEL_INIT,
    num_quantiles: int = 0,
) -> FeedForwardNetwork:
    """Makes a network from observations to one value each, or, where `num_quantiles` is not 0, to
    that many quantiles; other arguments as `make_policy_network`."""
    network = make_mlp(
        num_quantiles or 1,
        obs_size,
        preprocess_observations_fn,
        hidden_layer_sizes,
        activation,
        obs_key,
        kernel_init=kernel_init,
    )
    if num_quantiles:
        return network
    return FeedForwardNetwork(
        network.init, lambda *inputs: jnp.squeeze(network.apply(*inputs), axis=-1)
    )


def make_q_network(
    obs_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    hidden_layer_sizes: Sequence[int] = (256, 256),
    activation: str | ActivationFn = linen.relu,
    n_critics: int = 2,
    layer_norm: bool = False,
    obs_key: str = "state",
) -> FeedForwardNetwork:
    """Makes critics: networks from an observation and an action to a value each, (..., n_critics).

    Arguments as `make_policy_network`, and:

    Args:
        action_size: number of actions.
        n_critics: how many networks.
    """
    module = Critics(n_critics, (*hidden_layer_sizes, 1), activation_of(activation), layer_norm)
    width = observation_width(obs_size, obs_key)

    def apply(normalizer_params: Any, params: Any, obs: Any, action: jax.Array) -> jax.Array:
        features = _features(preprocess_observations_fn(obs, normalizer_params), obs_key)
        outputs: jax.Array = module.apply(params, features, action)  # type: ignore[assignment]
        return outputs

    def init(key: jax.Array) -> Any:
        return module.init(key, jnp.zeros((1, width)), jnp.zeros((1, action_size)))

    return FeedForwardNetwork(init, apply)


def _features(obs: Any, obs_key: str) -> jax.Array:
    """The observation that a network reads."""
    return obs[obs_key] if isinstance(obs, Mapping) else obs
