"""A geometry type that stands for several: each shape says which of them it is.

With it one program of `convex_convex` serves all pairs of convex shapes of a model. A program for
each pair of types takes a compiler minutes where a robot has five types.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3

T = TypeVar("T", bound=Any)


@dataclass(frozen=True)
class AnyConvex(GeometryType):
    """One of several convex types, by the index in `Shape.kind`."""

    kinds: tuple[GeometryType, ...]
    """The types."""

    name = "any convex type"
    size_names = ()

    @property
    def corners(self) -> int:  # type: ignore[override]
        """The number of vertices of the largest face."""
        return max(kind.corners for kind in self.kinds)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the support point of each shape's own type."""
        return self._own(shape, lambda kind: kind.support(shape, direction))

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """Return the face of each shape's own type, some of whose vertices may be repeated."""

        def padded(kind: GeometryType) -> list[Vec3]:
            own = kind.face(shape, direction)
            return [own[i * len(own) // self.corners] for i in range(self.corners)]

        return self._own(shape, padded)

    def is_round(self, shape: Shape) -> jax.Array:
        """Return whether the faces of each shape's own type are single points, (pairs, batch)."""
        return jnp.asarray([kind.corners == 1 for kind in self.kinds])[_kind(shape)]

    def _own(self, shape: Shape, of: Callable[[GeometryType], T]) -> T:
        """Compute something of all types, and select that of each shape's own."""
        # All lanes of a register run the same operations, and support functions are short.
        every, kind = [of(each) for each in self.kinds], _kind(shape)
        out = every[0]
        for k, each in enumerate(every[1:], 1):
            out = jax.tree.map(lambda x, y, k=k: jnp.where(kind == k, x, y), each, out)
        return out


def _kind(shape: Shape) -> jax.Array:
    """Return the indices of the shapes' own types, which they must have."""
    if shape.kind is None:
        raise ValueError("these shapes do not say of which type each is: `Shape.kind` is missing")
    return shape.kind


def any_of(kinds: Sequence[GeometryType]) -> GeometryType:
    """Return a type that stands for the distinct ones among some: itself if there is only one."""
    distinct = tuple(dict.fromkeys(kinds))
    return distinct[0] if len(distinct) == 1 else AnyConvex(distinct)
