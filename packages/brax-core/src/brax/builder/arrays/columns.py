"""Arrays of a description's numbers."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from brax.builder.elements import Element


def array(value: Any, shape: tuple[int, ...]) -> Any:
    """An array of floats."""
    return jnp.asarray(np.asarray(value, float).reshape(shape))


def column(elements: Sequence[Element], key: str, width: int) -> Any:
    """One value of all elements, (elements, width)."""
    return array([e.values[key] for e in elements], (len(elements), width))


def bounds(elements: Sequence[Element], key: str) -> Any:
    """Lower and upper bounds, infinite where there are none."""
    found = [(-np.inf, np.inf) if e.values[key] is None else e.values[key] for e in elements]
    return array(found, (len(elements), 2))
