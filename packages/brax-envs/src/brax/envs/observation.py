"""The layout of an observation. The observation, its size and its documentation follow from it."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import jax
import jax.numpy as jnp

from brax.base import State, System


@dataclasses.dataclass(frozen=True)
class Part:
    """Consecutive coordinates or velocities that belong together."""

    name: str
    unit: str
    source: Literal["q", "qd"]
    """Field of the pipeline's state."""
    start: int
    """Index of the first entry in `source`."""
    stop: int
    """Index after the last entry."""

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.stop - self.start

    def read(self, sys: System, state: State, ctrl: jax.Array) -> jax.Array:
        """Return the entries for a state, shape (size,)."""
        return getattr(state, self.source)[self.start : self.stop]


@dataclasses.dataclass(frozen=True)
class Computed:
    """Entries that a function computes."""

    name: str
    unit: str
    size: int
    """The number of entries."""
    read: Callable[[System, State, jax.Array], jax.Array]
    """Function of the model, the pipeline's state and the controls (nu,) of the step: (size,)."""


Layout = tuple[Part | Computed, ...]
"""The parts of an observation, in order."""


def observe(layout: Layout, sys: System, state: State, ctrl: jax.Array) -> jax.Array:
    """Return the observation of a state, shape (size(layout),).

    Args:
        layout: its parts.
        sys: the model.
        state: the pipeline's state.
        ctrl: controls of the step that led to the state, shape (nu,); zeros after a reset.
    """
    return jnp.concatenate([part.read(sys, state, ctrl) for part in layout])


def without_velocities(layout: Layout) -> Layout:
    """Return the parts that are not velocities, which their units tell: m/s and rad/s."""
    return tuple(part for part in layout if part.unit not in ("m/s", "rad/s"))


def size(layout: Layout) -> int:
    """Return the length of the observation."""
    return sum(part.size for part in layout)


def slices(layout: Sequence[Part | Computed]) -> Iterator[tuple[slice, Part | Computed]]:
    """Yield each part with its slice of the observation."""
    start = 0
    for part in layout:
        yield slice(start, start + part.size), part
        start += part.size
