"""Columns: one value of every element of a description, as an array."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from brax.base import Transform
from brax.builder.elements import Element


def array(value: object, shape: tuple[int, ...]) -> Any:
    """Return an array of floats of the given shape."""
    return jnp.asarray(np.asarray(value, float).reshape(shape))


def column(elements: Sequence[Element], key: str, width: int) -> Any:
    """Return one value of all elements, (elements, width)."""
    return array([e.values[key] for e in elements], (len(elements), width))


def bounds(elements: Sequence[Element], key: str) -> Any:
    """Return lower and upper bounds (elements, 2), infinite where an element has none."""
    found = [(-np.inf, np.inf) if e.values[key] is None else e.values[key] for e in elements]
    return array(found, (len(elements), 2))


def transform(elements: Sequence[Element]) -> Transform:
    """Return the frames of all elements."""
    return Transform(column(elements, "pos", 3), column(elements, "quat", 4))
