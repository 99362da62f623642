"""Declared domain randomization: the quantities that are drawn, and their bounds."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.env import random_numbers
from brax.errors import ConfigError, UnknownNameError

How = Literal["scale", "add", "set"]
"""Use of a drawn number."""


@dataclasses.dataclass(frozen=True, eq=False)  # hashed by identity, for jax.jit
class Range:
    """Bounds between which a quantity is drawn uniformly."""

    low: Any
    """A number, or an array that broadcasts to the quantity."""
    high: Any
    """As `low`; where both are equal, the quantity is constant."""
    how: How = "scale"
    """'scale' multiplies the model's numbers by the draw, 'add' adds it, 'set' replaces them."""
    shared: bool = False
    """True if one draw serves all entries of the quantity; otherwise each has its own."""

    def __post_init__(self) -> None:
        """Raise if the bounds do not describe a distribution.

        Raises:
            ConfigError: on another `how`, or bounds that are not numbers or are in the wrong order.
        """
        for bound in (self.low, self.high):
            if not np.issubdtype(np.asarray(bound).dtype, np.number):
                raise ConfigError(f"low and high must be numbers, got {bound!r:.60}")
        if self.how not in get_args(How):
            raise ConfigError(f"how must be 'scale', 'add' or 'set', got {self.how!r}")
        if not np.all(np.asarray(self.low) <= np.asarray(self.high)):
            raise ConfigError(f"low must not exceed high, got low={self.low}, high={self.high}")

    def draw(self, key: jax.Array, value: jax.Array) -> jax.Array:
        """Draw a quantity whose value in the model is `value`, of the same shape and dtype."""
        share = random_numbers.uniform(key, () if self.shared else value.shape)
        low, high = (jnp.asarray(bound, value.dtype) for bound in (self.low, self.high))
        drawn = jnp.broadcast_to(low + share * (high - low), value.shape).astype(value.dtype)
        if self.how == "set":
            return drawn
        return value * drawn if self.how == "scale" else value + drawn


@dataclasses.dataclass(frozen=True, eq=False)  # hashed by identity, for jax.jit
class Randomization:
    """A `randomization_fn` that draws named quantities between declared bounds.

    `Randomization({"geom_friction": Range(0.5, 1.5), "opt.gravity": Range(-1, 1, how="add")})`.
    """

    ranges: Mapping[str, Range]
    """Ranges by quantity: a flat MuJoCo name or the dotted path of any leaf of the system."""
    resample: bool = False
    """True if an agent draws new systems whenever it calls `reset`, instead of once.

    It calls it at the start, at the resets of `num_resets_per_eval` and in each evaluation; ARS and
    ES do in every training step. An episode that ends in training does not draw, since it starts
    again from a cached state. With `brax.env.wrap(..., reset='fresh')` each episode draws.
    """

    def __post_init__(self) -> None:
        """Raise if the argument is not a dictionary of ranges.

        Raises:
            ConfigError: naming what was given.
        """
        if not isinstance(self.ranges, Mapping):
            raise ConfigError(
                f"Randomization needs a dictionary of Ranges by quantity, got {self.ranges!r:.60}"
            )
        for name, bounds in self.ranges.items():
            if not isinstance(bounds, Range):
                raise ConfigError(
                    f"cannot randomize '{name}' by {bounds!r:.60}: give a Range(low, high)"
                )

    def __call__(self, sys: System, rng: jax.Array) -> tuple[System, System]:
        """Draw one system per key.

        Args:
            sys: the model.
            rng: keys, shape (batch,).

        Returns:
            The model with a leading axis (batch,) in the quantities of `ranges`, and the same tree
            with 0 for those and None for all others.

        Raises:
            UnknownNameError: on a name that the system does not have.
            ConfigError: if a name is not that of an array, or bounds do not fit it.
        """
        axes = jax.tree.map(lambda _: None, sys)
        drawn, mapped = {}, {}
        for i, (name, bounds) in enumerate(self.ranges.items()):
            value = _quantity(sys, name, bounds)
            # A key of its own for each quantity, so that their draws are independent.
            keys = jax.vmap(functools.partial(jax.random.fold_in, data=i))(rng)
            drawn[name] = jax.vmap(functools.partial(bounds.draw, value=value))(keys)
            mapped[name] = 0
        return sys.tree_replace(drawn), axes.tree_replace(mapped)


def _quantity(sys: System, name: str, bounds: Range) -> jax.Array:
    """Return the numbers of a name, after checking that the bounds fit them."""
    try:
        # The flat MuJoCo names are properties of the system, so `getattr` finds them as well.
        value = functools.reduce(getattr, name.split("."), sys)
    except AttributeError as error:
        raise UnknownNameError(f"cannot randomize '{name}': {error}") from None
    if not isinstance(value, jax.Array):
        raise ConfigError(
            f"cannot randomize '{name}': it is not an array but {type(value).__name__}; name an "
            "array of the system, such as 'link.inertia.mass'"
        )
    for bound in (bounds.low, bounds.high):
        try:
            np.broadcast_to(bound, value.shape)
        except ValueError:
            raise ConfigError(
                f"cannot randomize '{name}': bounds of shape {np.shape(bound)} do not fit its "
                f"shape {value.shape}"
            ) from None
    return value
