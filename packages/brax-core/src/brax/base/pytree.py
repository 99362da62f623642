"""Frozen dataclasses that are pytrees, and the base class of all of Brax's."""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from brax.errors import ModelError, closest

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def dataclass(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree; `static()` marks fields that are no leaves."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


def static(**kwargs: Any) -> Any:
    """Declare a field that is part of the tree's structure: hashable, never traced."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


def shown(leaf: object) -> str:
    """Return a leaf for a line of text: a number as it is, an array as its type and shape."""
    if isinstance(leaf, jax.Array) and leaf.ndim == 0 and not isinstance(leaf, jax.core.Tracer):
        return f"{leaf:g}" if jnp.issubdtype(leaf.dtype, jnp.number) else str(leaf)
    if isinstance(leaf, (jax.Array, np.ndarray, jax.ShapeDtypeStruct)):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return repr(leaf)


class Base:
    """Base class of Brax's pytrees: replacement of fields, and arithmetic over the leaves."""

    ignored: ClassVar[Mapping[str, str]] = {}
    """Settings that Google's brax has in this class and ours does not need, and the reasons."""

    def replace(self, **changes: object) -> Self:
        """Return a copy with the named fields replaced.

        Names of `ignored` are ignored with a warning.

        Raises:
            ModelError: if there is no field of that name.
        """
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        for name in changes.keys() & self.ignored.keys():
            reason = self.ignored[name]
            what = f"{type(self).__name__}.{name}"
            warnings.warn(f"{what} has no effect: {reason}. Leave it out.", stacklevel=2)
            del changes[name]
        for name in changes:
            if name not in names:
                raise ModelError(
                    f"{type(self).__name__} has no field '{name}'. "
                    f"Fields: {', '.join(names)}.{closest(name, names)}"
                )
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def tree_replace(self, changes: Mapping[str, object]) -> Self:
        """Return a copy with nested fields replaced, named by dotted paths.

        Args:
            changes: for example `{'opt.timestep': 0.005, 'link.inertia.mass': mass}`.
        """
        new = self
        for path, value in changes.items():
            head, _, rest = path.partition(".")
            # A path is replaced from the inside out: each level is a frozen copy.
            if rest:
                if not hasattr(new, head):
                    new.replace(**{head: value})  # raises, naming the field
                value = getattr(new, head).tree_replace({rest: value})
            new = new.replace(**{head: value})
        return new

    def __add__(self, other: Self) -> Self:
        """Add leaf by leaf."""
        return jax.tree.map(lambda x, y: x + y, self, other)

    def __sub__(self, other: Self) -> Self:
        """Subtract leaf by leaf."""
        return jax.tree.map(lambda x, y: x - y, self, other)

    def __neg__(self) -> Self:
        """Negate every leaf."""
        return jax.tree.map(lambda x: -x, self)

    def __mul__(self, scale: object) -> Self:
        """Multiply every leaf by one number or array."""
        return jax.tree.map(lambda x: x * scale, self)

    def __truediv__(self, scale: object) -> Self:
        """Divide every leaf by one number or array."""
        return jax.tree.map(lambda x: x / scale, self)

    def take(self, indices: Any, axis: int = 0) -> Self:
        """Take the same entries along one axis of every leaf; an index out of range gives NaN."""
        return jax.tree.map(lambda x: jnp.take(x, indices, axis=axis), self)

    def index_set(self, indices: object, other: Self) -> Self:
        """Return this tree with the entries at some indices of every leaf set to another tree's."""
        return jax.tree.map(lambda x, y: x.at[indices].set(y), self, other)

    def index_sum(self, indices: object, other: Self) -> Self:
        """Return this tree with another tree's leaves added to the entries at some indices."""
        return jax.tree.map(lambda x, y: x.at[indices].add(y), self, other)

    def slice(self, begin: int, end: int) -> Self:
        """Slice the leading axis of every leaf."""
        return jax.tree.map(lambda x: x[begin:end], self)

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Reshape every leaf."""
        return jax.tree.map(lambda x: x.reshape(shape), self)

    def select(self, other: Self, condition: jax.Array) -> Self:
        """Return this tree's leaves where a condition holds, and another tree's elsewhere.

        Values that are not selected never reach the result, not even as NaN.

        Args:
            other: the other tree.
            condition: Booleans; their shape is that of the leading axes of the leaves.
        """

        def pick(x: jax.Array, y: jax.Array) -> jax.Array:
            """Select between two leaves, with the condition's axes in front."""
            where = jnp.asarray(condition, bool)
            return jnp.where(where.reshape(where.shape + (1,) * (x.ndim - where.ndim)), x, y)

        return jax.tree.map(pick, self, other)

    def concatenate(self, *others: Self, axis: int = 0) -> Self:
        """Concatenate this tree and others along one axis, leaf by leaf."""
        return jax.tree.map(lambda *x: jnp.concatenate(x, axis=axis), self, *others)

    def vmap(self, in_axes: object = 0, out_axes: object = 0) -> "Mapped":
        """Return an object with the methods of this one, each mapped by `jax.vmap`.

        `x.vmap().do(y)` is `jax.vmap(Transform.do)(x, y)`. Calls of `vmap` nest.

        Args:
            in_axes: as for `jax.vmap`: one for this object and all arguments, or a tuple with one
                for this object and one for each argument.
            out_axes: as for `jax.vmap`.
        """
        return Mapped(self, ((in_axes, out_axes),))

    @property
    def T(self) -> Self:
        """The tree with every leaf transposed."""
        return jax.tree.map(lambda x: x.T, self)


@dataclasses.dataclass(frozen=True)
class Mapped:
    """The methods of an object, each mapped over axes of it and of the method's arguments."""

    _object: Base
    """The object, whose leaves have the mapped axes."""
    _axes: tuple[tuple[Any, Any], ...]
    """Axes of arguments and of results, the outermost mapping first."""

    def vmap(self, in_axes: object = 0, out_axes: object = 0) -> "Mapped":
        """Map once more, inside the mappings so far."""
        return Mapped(self._object, (*self._axes, (in_axes, out_axes)))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of the object, mapped."""
        method = getattr(type(self._object), name)
        for in_axes, out_axes in reversed(self._axes):
            method = jax.vmap(method, in_axes, out_axes)
        return functools.partial(method, self._object)
