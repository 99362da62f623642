"""Tiling: XLA runs a kernel on one tile of the batch after another, which fits into the cache."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.kernels.fusion_barrier import fusion_barrier
from brax.kernels.materialize import materialized

MAX_TILE_SIZE = 256
"""Largest number of environments in a tile, so that their arrays stay in the cache."""

MIN_TILE_LANES = 16
"""The size of a tile is a multiple of it: single-precision numbers in the widest vector register.
XLA's loops run element by element over a remainder."""


def batch_size(operands: Sequence[Any]) -> int:
    """Return the size of the batch, or one if environments share all operands."""
    return joint_size(x.shape[-1] for x in operands)


def joint_size(sizes: Iterable[int]) -> int:
    """Return the size of the batch by those of the operands' last axes; a shared one has size one.

    It may be zero.
    """
    return next((n for n in sizes if n != 1), 1)


def by_tiles(
    fun: Callable[..., tuple[jax.Array, ...]],
    operands: Sequence[jax.Array],
    devices: int,
    sharded: bool,
) -> list[jax.Array]:
    """Run a function on the tiles of a batch, one after another.

    Args:
        fun: the function of arrays whose last axis is the batch.
        operands: its operands; those of batch size one are shared by all environments.
        devices: the number of devices that share the batch; a tile has a part on each of them.
        sharded: whether the batch is split over devices by its sharding; then it is not tiled.

    Returns:
        The results for the whole batch.
    """
    fun = materialized(fun)
    size, tile = batch_size(operands), MAX_TILE_SIZE * devices
    if sharded or size < 2 * tile:
        # The barrier keeps XLA from computing results again for each later use: a check of every
        # number of a state that is then dropped made a step 60 times slower.
        return fusion_barrier(list(fun(*operands)))
    # As few tiles as possible, all of the same size.
    count = -(-size // tile)
    width = -(-size // (count * MIN_TILE_LANES)) * MIN_TILE_LANES
    # Operands that environments share are the same in every tile.
    shared = [x.shape[-1] == 1 for x in operands]
    own, common = split(operands, shared)
    tiles = [_split_tiles(x, width, count) for x in own]
    out = jax.lax.map(lambda mine: fun(*merge(mine, common, shared)), tiles)
    return [_join_tiles(x)[..., :size] for x in out]


def _split_tiles(x: jax.Array, width: int, count: int) -> jax.Array:
    """Return an operand with tiles as its first axis, shape (count, ..., width).

    A batch that the tiles do not divide is filled up with copies of its last environment.
    """
    # Neighbours go to different tiles: so each device has a part of every tile, and a batch that is
    # sharded over devices stays where it is.
    filled = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width * count - x.shape[-1])], mode="edge")
    return jnp.moveaxis(filled.reshape(*x.shape[:-1], width, count), -1, 0)


def _join_tiles(x: jax.Array) -> jax.Array:
    """Return a result with its tiles joined to a batch again, as `_split_tiles` has split it."""
    tiles_last = jnp.moveaxis(x, 0, -1)
    return tiles_last.reshape(*tiles_last.shape[:-2], -1)


def split(items: Sequence[object], chosen: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """Return the items that are not chosen, and those that are."""
    pairs = list(zip(items, chosen, strict=True))
    return [x for x, c in pairs if not c], [x for x, c in pairs if c]


def merge(others: Sequence[object], chosen: Sequence[object], mask: Sequence[bool]) -> list[Any]:
    """Undo `split`: take from `chosen` where the mask is true, and from `others` elsewhere."""
    rest, given = iter(others), iter(chosen)
    return [next(given) if m else next(rest) for m in mask]
