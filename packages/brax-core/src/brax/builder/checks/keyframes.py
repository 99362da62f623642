"""Checks of keyframes."""

from collections.abc import Iterator, Mapping

import numpy as np

from brax.builder.elements import Element
from brax.errors import ModelProblem


def keyframe_problems(key: Element, sizes: Mapping[str, int]) -> Iterator[ModelProblem]:
    """Yield the values of a keyframe that have the wrong size or are not finite."""
    for what, size in sizes.items():
        value = key.values[what]
        if value is not None and value.shape != (size,):
            yield key.problem(f"{what} needs {size} numbers, got {value.size}")
        elif value is not None and not np.isfinite(value).all():
            yield key.problem(f"{what} is not finite: {value.tolist()}")
