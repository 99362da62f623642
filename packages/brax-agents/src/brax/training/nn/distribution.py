"""Distributions of actions, given by the outputs of a policy network."""

import abc
import math
import numbers

import jax
import jax.numpy as jnp

from brax.errors import ConfigError, closest
from brax.kernels.fusion_barrier import fusion_barrier


class ParametricDistribution(abc.ABC):
    """A distribution of actions: a normal distribution, sent through a function.

    Raw actions are those of the normal distribution; `postprocess` makes actions of them.
    """

    def __init__(self, param_size: int) -> None:
        self.param_size = param_size
        """Number of network outputs that describe one distribution."""

    @abc.abstractmethod
    def loc_scale(self, parameters: jax.Array, axis: int = -1) -> tuple[jax.Array, jax.Array]:
        """Mean and deviation of the raw actions, from network outputs, param_size along an axis."""

    @abc.abstractmethod
    def postprocess(self, event: jax.Array) -> jax.Array:
        """Turns raw actions into actions."""

    @abc.abstractmethod
    def inverse_postprocess(self, event: jax.Array) -> jax.Array:
        """Turns actions into raw actions."""

    @abc.abstractmethod
    def log_det_jacobian(self, event: jax.Array) -> jax.Array:
        """Logarithm of the derivative of `postprocess` at raw actions, entry by entry."""

    def sample_no_postprocessing(self, parameters: jax.Array, seed: jax.Array) -> jax.Array:
        """Draws raw actions."""
        raw = self._draw(_columns(parameters), seed)
        return raw.T.reshape(*parameters.shape[:-1], -1)

    def _draw(self, columns: jax.Array, seed: jax.Array) -> jax.Array:
        """Raw actions (event_size, n), from network outputs (param_size, n)."""
        loc, scale = self.loc_scale(columns, axis=0)
        return loc + scale * fusion_barrier(jax.random.normal(seed, loc.shape, loc.dtype))

    def sample(self, parameters: jax.Array, seed: jax.Array) -> jax.Array:
        """Draws actions."""
        return self.postprocess(self.sample_no_postprocessing(parameters, seed))

    def mode(self, parameters: jax.Array) -> jax.Array:
        """The action of the raw distribution's mean."""
        return self.postprocess(self.loc_scale(parameters)[0])

    def log_prob(self, parameters: jax.Array, actions: jax.Array) -> jax.Array:
        """Log density of the actions that belong to raw `actions`, shape (...,)."""
        raw = _columns(actions)
        loc, scale = self.loc_scale(_columns(parameters), axis=0)
        log_unit = -0.5 * ((raw - loc) / scale) ** 2 - 0.5 * jnp.log(2.0 * jnp.pi)
        density = jnp.sum(log_unit - jnp.log(scale) - self.log_det_jacobian(raw), axis=0)
        return density.reshape(parameters.shape[:-1])

    def entropy(self, parameters: jax.Array, seed: jax.Array) -> jax.Array:
        """Differential entropy, estimated from one sample, shape (...,)."""
        columns = _columns(parameters)
        _, scale = self.loc_scale(columns, axis=0)
        normal = 0.5 + 0.5 * jnp.log(2.0 * jnp.pi) + jnp.log(scale)
        entropy = jnp.sum(normal + self.log_det_jacobian(self._draw(columns, seed)), axis=0)
        return entropy.reshape(parameters.shape[:-1])


def _columns(x: jax.Array) -> jax.Array:
    """(..., size) to (size, n).

    Few entries side by side make short loops, and sums of them take logarithms one by one: on a
    CPU the gradient of the entropy of 2560 distributions of 8 actions took 3.3 ms, so 0.4.
    """
    return fusion_barrier(x.reshape(-1, x.shape[-1]).T)


class NormalTanhDistribution(ParametricDistribution):
    """A normal distribution squashed into (-1, 1) by tanh."""

    def __init__(self, event_size: int, min_std: float = 0.001, var_scale: float = 1.0) -> None:
        super().__init__(param_size=2 * event_size)
        self._min_std = min_std
        self._var_scale = var_scale

    def loc_scale(self, parameters: jax.Array, axis: int = -1) -> tuple[jax.Array, jax.Array]:
        """Mean and deviation of the raw actions; the deviation is at least `min_std`."""
        loc, scale = jnp.split(parameters, 2, axis)
        return loc, (jax.nn.softplus(scale) + self._min_std) * self._var_scale

    def postprocess(self, event: jax.Array) -> jax.Array:
        """Squashes raw actions into (-1, 1)."""
        return jnp.tanh(event)

    def inverse_postprocess(self, event: jax.Array) -> jax.Array:
        """Undoes the squashing; finite at the bounds, to which float32 rounds."""
        bound = 1.0 - jnp.finfo(event.dtype).epsneg
        return jnp.arctanh(jnp.clip(event, -bound, bound))

    def log_det_jacobian(self, event: jax.Array) -> jax.Array:
        """`log(1 - tanh(x)^2)`, in a form that does not overflow."""
        return 2.0 * (jnp.log(2.0) - event - jax.nn.softplus(-2.0 * event))


class NormalDistribution(ParametricDistribution):
    """A normal distribution."""

    def __init__(
        self, event_size: int, min_std: float = 0.001, noise_std_type: str = "scalar"
    ) -> None:
        """`noise_std_type`: `scalar`, deviation `softplus(x) + min_std`, or `log`, `exp(x)`.

        Raises:
            ConfigError: if it is neither.
        """
        super().__init__(param_size=2 * event_size)
        if noise_std_type not in ("scalar", "log"):
            raise ConfigError(
                f"unknown noise_std_type '{noise_std_type}'. Allowed: scalar, log."
                f"{closest(noise_std_type, ('scalar', 'log'))}"
            )
        self._min_std = min_std
        self._log = noise_std_type == "log"

    def loc_scale(self, parameters: jax.Array, axis: int = -1) -> tuple[jax.Array, jax.Array]:
        """Mean and deviation."""
        loc, scale = jnp.split(parameters, 2, axis)
        return loc, jnp.exp(scale) if self._log else jax.nn.softplus(scale) + self._min_std

    def inverse_scale(self, scale: float) -> float:
        """What makes a deviation.

        Raises:
            ConfigError: if no number makes it.
        """
        if not isinstance(scale, numbers.Real) or not scale > self._min_std:
            raise ConfigError(f"init_noise_std={scale!r} must be above {self._min_std}.")
        return math.log(scale if self._log else math.expm1(scale - self._min_std))

    def postprocess(self, event: jax.Array) -> jax.Array:
        """Leaves actions as they are."""
        return event

    def inverse_postprocess(self, event: jax.Array) -> jax.Array:
        """Leaves actions as they are."""
        return event

    def log_det_jacobian(self, event: jax.Array) -> jax.Array:
        """Zero."""
        return jnp.zeros_like(event)


_TYPES: dict[str, type[ParametricDistribution]] = {
    "tanh_normal": NormalTanhDistribution,
    "normal": NormalDistribution,
}


def of_type(name: str, event_size: int, noise_std_type: str = "scalar") -> ParametricDistribution:
    """Returns the distribution of that name over actions of a size.

    Args:
        name: its name.
        event_size: number of actions.
        noise_std_type: of `NormalDistribution`.

    Raises:
        ConfigError: if there is none of that name.
    """
    if not isinstance(name, str) or name not in _TYPES:
        raise ConfigError(
            f"unknown distribution_type '{name}'. Allowed: {', '.join(_TYPES)}."
            f"{closest(name, _TYPES)}"
        )
    if name == "normal":
        return NormalDistribution(event_size, noise_std_type=noise_std_type)
    return _TYPES[name](event_size)
