"""Standard normal random numbers in arrays: on a CPU, one kernel that draws them on all cores.

XLA draws in a dozen operations, each over the whole array and on one core. An agent that samples
actions of thousands of environments then spends as long on it as on its networks.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.kernels.batch_last import batch_last
from brax.kernels.codegen import cpu
from brax.kernels.codegen.single_precision import in_single_precision
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kernels.rows import MIN_ROWS

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
"""Bits by which Threefry rotates words in the rounds of odd and of even groups."""

_KEY_PARITY = 0x1BD11BDA
"""The constant of the third word of Threefry's key."""

_CENTRE = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
"""Coefficients of erfinv(x) / x in powers of w - 2.5 where w < 5, lowest power first."""

_TAIL = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)
"""Coefficients of erfinv(x) / x in powers of sqrt(w) - 3 where w >= 5."""


def normal(key: jax.Array, columns: int, rows: int, dtype: Any = jnp.float32) -> jax.Array:
    """Draw from the standard normal distribution, (columns, rows).

    The numbers are those of `jax.random.normal`, up to the rounding of the inverse error function.

    Args:
        key: random key.
        columns: length of the first axis, a few.
        rows: length of the second axis; the kernel's threads share it.
        dtype: type of the numbers.
    """
    if not _has_kernel(key, rows, dtype):
        # The barrier stores the numbers: fused, XLA would draw them again at each use.
        return fusion_barrier(jax.random.normal(key, (columns, rows), dtype))
    words, numbers = jax.random.key_data(key), jnp.arange(rows, dtype=jnp.uint32)
    return jax.vmap(_kernel(columns, rows), in_axes=(None, 0), out_axes=1)(words, numbers)


def _has_kernel(key: jax.Array, rows: int, dtype: Any) -> bool:
    """Return whether a kernel draws numbers."""
    by_element = jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
    if not by_element or str(jax.random.key_impl(key)) != "threefry2x32":
        return False
    return cpu.is_default() and rows >= MIN_ROWS and dtype == jnp.float32


@functools.lru_cache(maxsize=256)
def _kernel(columns: int, rows: int) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Return the kernel that draws the numbers of one row, (columns,), from the key and the row."""

    def draw(words: jax.Array, row: jax.Array) -> jax.Array:
        # JAX numbers the elements of an array row by row; their columns are our rows.
        first = jnp.arange(columns, dtype=jnp.uint32)[:, None] * np.uint32(rows)
        number = first + row[None]
        bits = _threefry(words[0], words[1], jnp.zeros_like(number), number)
        # The bits of a number in [1, 2), as JAX draws from (-1, 1).
        ones = jax.lax.bitcast_convert_type((bits >> 9) | np.uint32(0x3F800000), jnp.float32)
        low = np.nextafter(np.float32(-1), np.float32(0))
        uniform = jnp.maximum(low, (ones - 1) * (np.float32(1) - low) + low)
        return np.float32(np.sqrt(2)) * _erf_inverse(uniform)

    single = in_single_precision(draw)

    def normal_numbers(words: jax.Array, row: jax.Array) -> Any:
        return single(words, row)

    return batch_last(normal_numbers)


def _threefry(k0: jax.Array, k1: jax.Array, x0: jax.Array, x1: jax.Array) -> jax.Array:
    """Return the exclusive or of both words of Threefry-2x32 with 20 rounds.

    Source: Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3, section 3.3.
    """
    keys = k0, k1, k0 ^ k1 ^ np.uint32(_KEY_PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(bits)) | (x1 >> np.uint32(32 - bits))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0 ^ x1


def _erf_inverse(x: jax.Array) -> jax.Array:
    """Return the inverse error function of numbers in (-1, 1).

    Source: Giles (2012), Approximating the erfinv function, GPU Computing Gems, table 5.
    """
    w = -jnp.log((1 - x) * (1 + x))
    near = w < 5
    z = jnp.where(near, w - 2.5, jnp.sqrt(w) - 3)
    value = jnp.where(near, np.float32(_CENTRE[-1]), np.float32(_TAIL[-1]))
    for centre, tail in zip(_CENTRE[-2::-1], _TAIL[-2::-1], strict=True):
        value = value * z + jnp.where(near, np.float32(centre), np.float32(tail))
    return value * x
