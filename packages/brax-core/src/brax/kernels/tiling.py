"""How a CPU works on a batch: tile by tile, so that a tile's arrays stay in its cache."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.kernels.fusion_barrier import fusion_barrier
from brax.kernels.materialize import materialized

TILE_SIZE = 256
"""Environments that a CPU works on at once, so that their arrays stay in its cache."""

MIN_TILE_LANES = 16
"""Numbers in a CPU's widest register; a tile is a multiple of it, or its loops have a slow end."""


def batch_size(operands: Sequence[Any]) -> int:
    """Of the operands that are not shared by all environments; one if all are."""
    return max((x.shape[-1] for x in operands), default=1)


def by_tiles(
    fun: Callable[..., tuple[jax.Array, ...]],
    operands: Sequence[jax.Array],
    devices: int,
    sharded: bool,
) -> list[jax.Array]:
    """Runs the function on tiles of the batch, one after another; a sharded batch as it is.

    A program for several devices has each tile's share on every one of them.
    """
    fun = materialized(fun)
    size, tile = batch_size(operands), TILE_SIZE * devices
    if sharded or size < 2 * tile:
        # What only some use of is not computed again for them: a check of every number of a state
        # that is thrown away made a step 60 times slower.
        return fusion_barrier(list(fun(*operands)))
    count = -(-size // tile)
    width = -(-size // (count * MIN_TILE_LANES)) * MIN_TILE_LANES
    shared = [x.shape[-1] == 1 for x in operands]
    own, common = split(operands, shared)
    tiles = [_split_tiles(x, width, count) for x in own]
    out = jax.lax.map(lambda mine: fun(*merge(mine, common, shared)), tiles)
    return [_join_tiles(x)[..., :size] for x in out]


def _split_tiles(x: jax.Array, width: int, count: int) -> jax.Array:
    """Puts tiles first; a batch that they do not divide is filled up with its last environment.

    Neighbours go to different tiles, so that a batch sharded over devices stays where it is.
    """
    filled = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width * count - x.shape[-1])], mode="edge")
    return jnp.moveaxis(filled.reshape(*x.shape[:-1], width, count), -1, 0)


def _join_tiles(x: jax.Array) -> jax.Array:
    tiles_last = jnp.moveaxis(x, 0, -1)
    return tiles_last.reshape(*tiles_last.shape[:-2], -1)


def split(items: Sequence[Any], chosen: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """The items that are not chosen, and those that are."""
    pairs = list(zip(items, chosen, strict=True))
    return [x for x, c in pairs if not c], [x for x, c in pairs if c]


def merge(others: Sequence[Any], chosen: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The chosen where the mask says so, the others elsewhere, each in their order."""
    rest, given = iter(others), iter(chosen)
    return [next(given) if m else next(rest) for m in mask]
