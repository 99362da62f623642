"""The layout of an observation, declared once; the observation, its size and its docs follow."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Literal

import jax
import jax.numpy as jnp

from brax.base import State


@dataclasses.dataclass(frozen=True)
class Part:
    """A run of coordinates or velocities that belong together."""

    name: str
    unit: str
    source: Literal["q", "qd"]
    """Field of the physics' state."""
    start: int
    """First entry in `source`."""
    stop: int
    """Entry after the last."""

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.stop - self.start


Layout = tuple[Part, ...]
"""The parts of an observation, in order."""


def observe(layout: Layout, state: State) -> jax.Array:
    """Returns the observation of a state, shape (size(layout),)."""
    return jnp.concatenate([getattr(state, p.source)[p.start : p.stop] for p in layout])


def size(layout: Layout) -> int:
    """Returns the length of the observation."""
    return sum(part.size for part in layout)


def slices(layout: Sequence[Part]) -> Iterator[tuple[slice, Part]]:
    """Yields each part with the entries of the observation that it fills."""
    start = 0
    for part in layout:
        yield slice(start, start + part.size), part
        start += part.size
