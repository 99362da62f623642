"""Networks that agents build on: factories, readers of observations, names of activations."""

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen

from brax.env.structure import declared_shape
from brax.errors import ConfigError, closest
from brax.training import types
from brax.training.nn import memory as recurrent
from brax.training.nn.layers import KERNEL_INIT, Encoded
from brax.training.nn.layers import MLP as MLP
from brax.training.nn.layers import ActivationFn as ActivationFn
from brax.training.nn.layers import Critics as Critics
from brax.training.nn.layers import Initializer as Initializer
from brax.training.nn.layers import NormalHead as NormalHead

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
"""Activations by their names in settings and checkpoints."""

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
"""Functions that make initializers, from settings of their own, by their names in settings and
checkpoints.
"""


@dataclass(frozen=True)
class FeedForwardNetwork:
    """A network as a pair of functions."""

    init: Callable[..., Any]
    """`init(key) -> params`."""
    apply: Callable[..., Any]
    """`apply(normalizer_params, params, *inputs) -> outputs`."""
    preprocess: types.PreprocessObservationFn | None = field(default=None, kw_only=True)
    """The function of observation and `normalizer_params` that observations pass through first. If
    it is given, `apply` takes observations that have passed it with None for `normalizer_params`.
    """


@dataclass(frozen=True)
class RecurrentNetwork(FeedForwardNetwork):
    """A network with memory.

    `apply(normalizer_params, params, observation, memory) -> (outputs, memory)` is one step. With
    an argument `first` behind them, observation and outputs are sequences, (rows, time, ...), and
    the memory is that before and after them, (rows, memory_size). `first` is 1 where a step is the
    first of its episode and else 0, (rows, time).
    """

    memory_size: int
    """Length of the memory; it is zero at the start of an episode."""


@dataclass(frozen=True)
class RecurrentCell:
    """The recurrent cell of a network."""

    cell: recurrent.Cell
    units: int

    @property
    def size(self) -> int:
        """Length of the memory."""
        return self.cell.parts * self.units


@dataclass(frozen=True)
class Reader:
    """The part of an observation that a network reads."""

    example: Any
    """Result of `take` for a batch of one, from which the shapes of weights follow."""
    take: Callable[[Any], Any]
    """Function that takes the part out of an observation that is already preprocessed."""
    encoder: linen.Module | None = None
    """Module that computes features (..., n) of it; None if it consists of features."""


def activation_of(value: str | ActivationFn) -> ActivationFn:
    """Return the activation of a name; return a function as it is.

    Raises:
        ConfigError: if there is none of that name.
    """
    if callable(value):
        return value
    if not isinstance(value, str) or value not in ACTIVATION:
        raise ConfigError(
            f"unknown activation '{value}'. Allowed: {', '.join(ACTIVATION)}."
            f"{closest(str(value), ACTIVATION)}"
        )
    return ACTIVATION[value]


def initializer_of(
    value: str | Callable[..., Initializer], settings: Mapping[str, object] | None = None
) -> Initializer:
    """Return the initializer of a name, or that which a function makes, with the given settings.

    Raises:
        ConfigError: if there is none of that name, or it does not take the settings.
    """
    if not callable(value) and not (isinstance(value, str) and value in KERNEL_INITIALIZER):
        raise ConfigError(
            f"unknown initializer '{value}'. Allowed: {', '.join(KERNEL_INITIALIZER)}."
            f"{closest(str(value), KERNEL_INITIALIZER)}"
        )
    make = value if callable(value) else KERNEL_INITIALIZER[value]
    try:
        return make(**(settings or {}))
    except TypeError as error:
        raise ConfigError(f"initializer '{value}': {error}") from error


def observation_width(size: types.ObservationSize, key: str) -> int:
    """Return the number of features of the observation `key`.

    Raises:
        ConfigError: if a dictionary of observations has no such entry, or it is no vector.
    """
    if not isinstance(size, Mapping):
        check_size("observation_size", size)
        return int(size)
    images = any(name.startswith(types.PIXELS) for name in size)
    hint = "; to learn from images, set vision=True, which PPO and BC have." if images else "."
    if key not in size:
        raise ConfigError(
            f"the environment has no observation '{key}'. It has: {', '.join(size)}."
            f"{closest(key, size)} Set policy_obs_key or value_obs_key{hint}"
        )
    shape = declared_shape(size[key])
    if len(shape) != 1:
        raise ConfigError(
            f"the observation '{key}' has the shape {shape}; dense networks read vectors. Set "
            f"policy_obs_key or value_obs_key to one{hint}"
        )
    return int(shape[0])


def vector(obs_size: types.ObservationSize, obs_key: str) -> Reader:
    """Return a reader of a vector: the observation, or an entry of a dictionary of observations.

    Raises:
        ConfigError: if there is none.
    """

    def take(obs: Any) -> jax.Array:
        return obs[obs_key] if isinstance(obs, Mapping) else obs

    return Reader(jnp.zeros((1, observation_width(obs_size, obs_key))), take)


def widths(sizes: Any) -> tuple[int, ...]:
    """Return the widths of hidden layers as integers.

    Raises:
        ConfigError: unless they are a list of whole numbers of at least 1; it may be empty.
    """
    listed = isinstance(sizes, Sequence) and not isinstance(sizes, str)
    if not listed or not all(isinstance(n, numbers.Integral) and int(n) >= 1 for n in sizes):
        raise ConfigError(
            f"the sizes of hidden layers must be a list of whole numbers of at least 1, such as "
            f"[64, 64]; got {sizes!r}."
        )
    return tuple(int(n) for n in sizes)


def check_size(name: str, value: object) -> None:
    """Reject a number of outputs, such as actions, that is no whole number of at least 1.

    Raises:
        ConfigError: naming it.
    """
    if not isinstance(value, numbers.Integral) or value < 1:
        raise ConfigError(f"{name}={value!r} must be a whole number of at least 1.")


DEFAULT_MEMORY_SIZE = 64
"""Units of a recurrent cell whose number is not given."""


def memory_of(name: str | None, units: int | None) -> RecurrentCell | None:
    """Return the recurrent cell of a name, with its number of units; None for None.

    Checkpoints record both. Those from before there was memory have neither, like those without
    memory now.

    Raises:
        ConfigError: if there is no such cell, or `units` is no whole number of at least 1.
    """
    size = DEFAULT_MEMORY_SIZE if units is None else units
    check_size("memory_size", size)
    return None if name is None else RecurrentCell(recurrent.cell_of(name), int(size))


def make_mlp(
    output_size: int,
    reader: Reader,
    preprocess_observations_fn: types.PreprocessObservationFn,
    hidden_layer_sizes: Sequence[int],
    activation_fn: str | ActivationFn,
    layer_norm: bool = False,
    kernel_init: Initializer = KERNEL_INIT,
    output_kernel_init: Initializer | None = None,
    memory: RecurrentCell | None = None,
) -> FeedForwardNetwork:
    """Return a network of dense layers over the part of an observation that a reader takes."""
    module = MLP(
        (*widths(hidden_layer_sizes), output_size),
        activation_of(activation_fn),
        kernel_init,
        layer_norm=layer_norm,
        output_kernel_init=output_kernel_init,
    )
    return of_module(module, reader, preprocess_observations_fn, memory=memory)


def of_module(
    module: linen.Module,
    reader: Reader,
    preprocess_observations_fn: types.PreprocessObservationFn,
    *examples: jax.Array,
    memory: RecurrentCell | None = None,
) -> FeedForwardNetwork:
    """Return a network of a module over features of an observation.

    Args:
        module: module that is called with the features, and with the other inputs of `apply`.
        reader: reader of the observation.
        preprocess_observations_fn: applied to the observation first.
        *examples: batches of one of the module's other inputs, each (1, ...).
        memory: recurrent cell that reads the features before the module does, if any; its memory
            is then the only other input.
    """
    if memory is not None:
        module = recurrent.Recurrent(module, memory.cell, memory.units)
        examples = (jnp.zeros((1, memory.size)),)
    whole = module if reader.encoder is None else Encoded(reader.encoder, module)

    def init(key: jax.Array) -> Any:
        return whole.init(key, reader.example, *examples)

    def apply(normalizer_params: object, params: Any, obs: object, *more: jax.Array) -> Any:
        # Preprocessed as a whole and then read: statistics are those of the whole observation.
        if normalizer_params is not None:
            obs = preprocess_observations_fn(obs, normalizer_params)
        return whole.apply(params, reader.take(obs), *more)

    if memory is None:
        return FeedForwardNetwork(init, apply, preprocess=preprocess_observations_fn)
    return RecurrentNetwork(init, apply, memory.size, preprocess=preprocess_observations_fn)


def single(network: FeedForwardNetwork) -> FeedForwardNetwork:
    """Return a network of one output (..., 1) without its last axis."""
    return mapped(network, lambda outputs: jnp.squeeze(outputs, axis=-1))


def mapped(
    network: FeedForwardNetwork, change: Callable[[jax.Array], jax.Array]
) -> FeedForwardNetwork:
    """Return a network whose outputs are those of another, changed by a function."""

    def apply(*inputs: object) -> Any:
        found = network.apply(*inputs)
        if isinstance(network, RecurrentNetwork):
            outputs, memory = found
            return change(outputs), memory
        return change(found)

    return replace(network, apply=apply)


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
    """Return a network from observations to the parameters of a distribution of actions.

    Args:
        param_size: number of outputs.
        obs_size: number of features, or a dictionary of them.
        preprocess_observations_fn: applied to observations first, with the normalizer's state.
        hidden_layer_sizes: widths of the hidden layers.
        activation: function between layers, or its name.
        obs_key: observation to read, where there are several.
        layer_norm: normalize the output of each hidden layer.
        kernel_init: initializer of the weights.
    """
    return make_mlp(
        param_size,
        vector(obs_size, obs_key),
        preprocess_observations_fn,
        hidden_layer_sizes,
        activation,
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
) -> FeedForwardNetwork:
    """Return a network from observations to values, (...,); arguments as `make_policy_network`."""
    network = make_mlp(
        1,
        vector(obs_size, obs_key),
        preprocess_observations_fn,
        hidden_layer_sizes,
        activation,
        kernel_init=kernel_init,
    )
    return single(network)


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
    kernel_init: Initializer = KERNEL_INIT,
    outputs: int = 1,
) -> FeedForwardNetwork:
    """Return critics: networks from an observation and an action to a value each.

    There are `n_critics` networks with `outputs` numbers each, side by side in (..., n_critics *
    outputs). The other arguments are those of `make_policy_network`.
    """
    module = Critics(
        n_critics,
        (*widths(hidden_layer_sizes), outputs),
        activation_of(activation),
        layer_norm,
        kernel_init,
    )
    reader = vector(obs_size, obs_key)
    return of_module(module, reader, preprocess_observations_fn, jnp.zeros((1, action_size)))
