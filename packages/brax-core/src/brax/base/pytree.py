"""Frozen dataclasses that are pytrees, and what all of Brax's have in common."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp

from brax.errors import ModelError, closest

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def dataclass(cls: type[T]) -> type[T]:
    """Makes a frozen dataclass that is a pytree; mark what is not a leaf with `static()`."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


def static(**kwargs: Any) -> Any:
    """Declares a field that is part of the tree's structure: hashable, never traced."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


class Base:
    """What all of Brax's pytrees share: replacement, and arithmetic over the leaves."""

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with the named fields replaced.

        Raises:
            ModelError: if there is no field of that name.
        """
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        for name in changes:
            if name not in names:
                raise ModelError(
                    f"{type(self).__name__} has no field '{name}'. "
                    f"Fields: {', '.join(names)}.{closest(name, names)}"
                )
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def tree_replace(self, changes: Mapping[str, Any]) -> Self:
        """Returns a copy with nested fields replaced, named by dotted paths.

        Args:
            changes: for example `{'opt.timestep': 0.005, 'link.inertia.mass': mass}`.
        """
        new = self
        for path, value in changes.items():
            head, _, rest = path.partition(".")
            if rest:
                if not hasattr(new, head):
                    new.replace(**{head: value})  # raises, naming the field
                value = getattr(new, head).tree_replace({rest: value})
            new = new.replace(**{head: value})
        return new

    def __add__(self, other: Self) -> Self:
        """Adds leaf by leaf."""
        return jax.tree.map(lambda x, y: x + y, self, other)

    def __sub__(self, other: Self) -> Self:
        """Subtracts leaf by leaf."""
        return jax.tree.map(lambda x, y: x - y, self, other)

    def __neg__(self) -> Self:
        """Negates every leaf."""
        return jax.tree.map(lambda x: -x, self)

    def __mul__(self, scale: Any) -> Self:
        """Multiplies every leaf by one number or array."""
        return jax.tree.map(lambda x: x * scale, self)

    def __truediv__(self, scale: Any) -> Self:
        """Divides every leaf by one number or array."""
        return jax.tree.map(lambda x: x / scale, self)

    def take(self, indices: Any, axis: int = 0) -> Self:
        """Takes the same entries along one axis of every leaf; an index out of range is NaN."""
        return jax.tree.map(lambda x: jnp.take(x, indices, axis=axis), self)

    def slice(self, begin: int, end: int) -> Self:
        """Slices the leading axis of every leaf."""
        return jax.tree.map(lambda x: x[begin:end], self)

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Reshapes every leaf."""
        return jax.tree.map(lambda x: x.reshape(shape), self)

    def select(self, other: Self, condition: jax.Array) -> Self:
        """Takes this tree's leaves where `condition` holds and `other`'s elsewhere.

        The branch that is not taken never reaches the result, not even as a NaN.
        """

        def pick(x: jax.Array, y: jax.Array) -> jax.Array:
            where = jnp.asarray(condition, bool)
            return jnp.where(where.reshape(where.shape + (1,) * (x.ndim - where.ndim)), x, y)

        return jax.tree.map(pick, self, other)

    def concatenate(self, *others: Self, axis: int = 0) -> Self:
        """Joins this tree and others along one axis, leaf by leaf."""
        return jax.tree.map(lambda *x: jnp.concatenate(x, axis=axis), self, *others)

    @property
    def T(self) -> Self:
        """The tree with every leaf transposed."""
        return jax.tree.map(lambda x: x.T, self)
