"""Random numbers of an environment, in programs that compile quickly.

XLA's CPU compiler takes up to four times as long to compile a draw whose last axis is not a
multiple of eight (9 numbers for each of 256 keys: 2.1 s of CPU time, 16 numbers: 0.6 s; jaxlib
0.10.2). The functions draw a flat array of a whole number of eights and return its first elements.
With JAX's default, `jax_threefry_partitionable`, the bits are those of `jax.random`: those of
element i depend on the key and on i only. Normal numbers may round differently in another program.
"""

import math
from collections.abc import Callable

import jax


def uniform(
    key: jax.Array, shape: tuple[int, ...], minval: float = 0.0, maxval: float = 1.0
) -> jax.Array:
    """Return numbers drawn uniformly from [minval, maxval), of the given shape."""
    return _draw(shape, lambda flat: jax.random.uniform(key, flat, minval=minval, maxval=maxval))


def normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Return numbers drawn from the standard normal distribution, of the given shape."""
    return _draw(shape, lambda flat: jax.random.normal(key, flat))


def _draw(shape: tuple[int, ...], draw: Callable[[tuple[int]], jax.Array]) -> jax.Array:
    """Return the first elements of a flat draw whose length is a multiple of eight."""
    size = math.prod(shape)
    return draw((-(-size // 8) * 8,))[:size].reshape(shape)
