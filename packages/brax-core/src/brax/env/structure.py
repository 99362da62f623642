"""Shapes that environments declare, and the structures that `reset` and `step` return.

JAX reports a difference of structures late and without the names of the leaves.
"""

import numbers
from typing import Any

import jax
import jax.numpy as jnp

from brax.errors import ShapeError


def declared_shape(size: Any) -> tuple[int, ...]:
    """Return the shape that an entry of `observation_size` declares: of a vector by its length."""
    return (int(size),) if isinstance(size, numbers.Integral) else tuple(size)


def differences(before: Any, after: Any) -> list[str]:
    """Return the leaves in which two trees differ by presence, shape or dtype.

    Args:
        before: a tree of arrays or of shapes, as `reset` returns it.
        after: a tree of arrays or of shapes, as `step` returns it.

    Returns:
        One phrase per leaf, beginning with its path.
    """
    old, new = _by_path(before), _by_path(after)
    missing = [f"{path} is missing after step" for path in old if path not in new]
    added = [f"{path} appears only after step" for path in new if path not in old]
    changed = [
        f"{path} is {old[path]} after reset and {new[path]} after step"
        for path in old
        if path in new and old[path] != new[path]
    ]
    return missing + added + changed


def check_same_structure(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Raise if an environment's step returns another structure than it was given.

    Args:
        name: the environment's name, for the message.
        before: parts of the state that step was given, by name.
        after: the same parts of the state that it returned.

    Raises:
        ShapeError: naming every leaf that differs.
    """
    found = differences(before, after)
    if found:
        raise ShapeError(
            f"{name}: reset and step must return the same structure, but {'; '.join(found)}"
        )


def _by_path(tree: Any) -> dict[str, str]:
    """Return dtype and shape of each leaf, by its path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): _describe(leaf)
        for path, leaf in leaves
    }


def _describe(leaf: Any) -> str:
    """Return a leaf's dtype and shape as text."""
    return f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"
