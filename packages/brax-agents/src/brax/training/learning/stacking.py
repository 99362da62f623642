"""A scan that stores many small results of a round as one array."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def stacked_scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    carry: object,
    xs: object = None,
    length: int | None = None,
) -> tuple[Any, Any]:
    """Return the same as `jax.lax.scan`, with fewer kernels on a GPU.

    A scan stores each result of a round by a kernel of its own. Here results with one shape and
    type are stored together, as one array, if they have at most one axis: copies of larger ones
    would take longer than a launch.

    Args:
        step: takes the carry and an entry of `xs`, and returns the next carry and results.
        carry: the first carry.
        xs: what the rounds read, a pytree of arrays (rounds, ...).
        length: number of rounds, where `xs` does not say it.

    Returns:
        The last carry, and the results, (rounds, ...).
    """
    restore: Any = None

    def stored(carry: object, x: object) -> tuple[Any, list[jax.Array]]:
        nonlocal restore
        carry, results = step(carry, x)
        stacks, restore = _stacks(results)
        return carry, stacks

    carry, stacks = jax.lax.scan(stored, carry, xs, length)
    return carry, restore(stacks)


def _stacks(tree: object) -> tuple[list[jax.Array], Callable[[list[jax.Array]], Any]]:
    """Return the arrays of a tree, small ones of one kind stacked, and the inverse after a scan."""
    leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, tree))
    groups: dict[Any, list[int]] = defaultdict(list)
    for i, x in enumerate(leaves):
        # Larger arrays are a group each.
        groups[(x.shape, x.dtype) if x.ndim <= 1 else i].append(i)

    def restore(stacks: list[jax.Array]) -> Any:
        """Return the tree of the stacks of all rounds, (rounds, arrays, ...)."""
        found = {
            i: stack[:, place]
            for group, stack in zip(groups.values(), stacks, strict=True)
            for place, i in enumerate(group)
        }
        return jax.tree.unflatten(structure, [found[i] for i in range(len(leaves))])

    return [jnp.stack([leaves[i] for i in group]) for group in groups.values()], restore
