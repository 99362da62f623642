"""Output checks of renderers."""

from typing import Any

import numpy as np

from brax import plugins
from brax.errors import PluginError
from brax.plugins.outputs.traced import describe


def checked_pictures(name: str, value: Any, height: int, width: int) -> Any:
    """Return pictures that a renderer returned.

    Raises:
        PluginError: if they are not pictures of that height and width.
    """
    shape, dtype = np.shape(value), getattr(value, "dtype", None)
    if dtype != np.uint8 or len(shape) not in (3, 4) or shape[-3:] != (height, width, 3):
        raise PluginError(
            f"{plugins.specs('renderer')[name]} must return bytes, uint8 (frames, {height}, "
            f"{width}, 3), but returns {describe(value)}"
        )
    return value
