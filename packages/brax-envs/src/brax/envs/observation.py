"""The layout of an observation, declared once; the observation, its size and its docs follow."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import jax
import jax.numpy as jnp

from brax.base import State, System


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

    def read(self, sys: System, state: State, ctrl: jax.Array) -> jax.Array:
        """The entries in a state, shape (size,)."""
        return getattr(state, self.source)[self.start : self.stop]


@dataclasses.dataclass(frozen=True)
class Computed:
    """Entries that a function finds."""

    name: str
    unit: str
    size: int
    """Number of entries."""
    read: Callable[[System, State, jax.Array], jax.Array]
    """From the model, the physics' state and the controls (nu,) of the step to it: (size,)."""


Layout = tuple[Part | Computed, ...]
"""The parts of an observation, in order."""


def observe(layout: Layout, sys: System, state: State, ctrl: jax.Array) -> jax.Array:
    """Returns the observation of a state, shape (size(layout),).

    Args:
        layout: its parts.
        sys: the model.
        state: the physics.
        ctrl: controls of the step that led there, shape (nu,); zeros after a reset.
    """
    return jnp.concatenate([part.read(sys, state, ctrl) for part in layout])


def size(layout: Layout) -> int:
    """Returns the length of the observation."""
    return sum(part.size for part in layout)


def slices(layout: Sequence[Part | Computed]) -> Iterator[tuple[slice, Part | Computed]]:
    """Yields each part with the entries of the observation that it fills."""
    start = 0
    for part in layout:
        yield slice(start, start + part.size), part
        start += part.size
