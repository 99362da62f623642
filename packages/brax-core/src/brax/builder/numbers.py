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
