"""Checks of keyframes."""

from collections.abc import Iterator, Mapping

import numpy as np

from brax.builder.elements import Element


def keyframe_problems(key: Element, sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield the values of a keyframe that have the wrong size or are not finite."""
    for what, size in sizes.items():
        value = key.values[what]
        if value is not None and value.shape != (size,):
            yield f"{key}: {what} needs {size} numbers, got {value.size}"
        elif value is not None and not np.isfinite(value).all():
            yield f"{key}: {what} is not finite: {value.tolist()}"
