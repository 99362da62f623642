"""Calling a plugin's function with shapes in place of numbers, and naming what comes back."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Quat, Vec3
from brax.errors import BraxError, PluginError, describe_error
from brax.plugins.outputs.batch import marked, mixing, unmarked
from brax.plugins.records import Registered

SHAPE = (3, 2)
"""Three elements in two environments."""


_strict: ContextVar[bool] = ContextVar("_strict", default=False)


@contextlib.contextmanager
def single_precision() -> Iterator[None]:
    """Takes single precision for stand-ins where double is the default.

    A constant that would widen a result is found so, which harms only programs in double precision.
    """
    token = _strict.set(True)
    try:
        with jax.enable_x64(True):
            yield
    finally:
        _strict.reset(token)


Call = tuple[str, Callable[..., Any], tuple[Any, ...]]
"""A function's name, the function, and its arguments."""

_calls: ContextVar[list[Call] | None] = ContextVar("_calls", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[list[Call]]:
    """Keeps the calls that output checks make, in the order in which they are made."""
    found: list[Call] = []
    token = _calls.set(found)
    try:
        yield found
    finally:
        _calls.reset(token)


class Fault(Exception):
    """A sentence about what a function of a plugin returned or raised."""


def like(*leading: int) -> Any:
    """A stand-in for an array of `SHAPE`, behind leading axes."""
    dtype = jnp.float32 if _strict.get() else jnp.result_type(float)
    return jax.ShapeDtypeStruct((*leading, *SHAPE), dtype)


def vec(*leading: int) -> Vec3:
    """A stand-in for a vector."""
    return Vec3(*[like(*leading)] * 3)


def quat() -> Quat:
    """A stand-in for a quaternion."""
    return Quat(*[like()] * 4)


@contextlib.contextmanager
def blamed(
    who: Registered,
    what: str,
    error_type: type[BraxError] = PluginError,
    passing: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Names a third-party object in what it raises; errors of Brax's, and of ours, stay as is.

    Args:
        who: the object.
        what: the end of "The object ... the error".
        error_type: what is raised instead.
        passing: errors that stay as they are too.

    Raises:
        error_type: for any other error.
    """
    as_is: tuple[type[Exception], ...] = (BraxError, *passing)
    try:
        yield
    except as_is:
        raise
    except Exception as error:
        if who.ours:
            raise
        raise error_type(f"{who}{what} {describe_error(error)}") from error


def call(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """Returns what a function makes of stand-ins: arrays are stand-ins, all else is as it is.

    Raises:
        Fault: if it raises.
    """
    found: list[Any] = []
    calls = _calls.get()
    if calls is not None:
        calls.append((name, function, args))

    def kept(*args: Any) -> list[Any]:
        out = function(*args)
        leaves, tree = jax.tree.flatten(out)
        arrays = [_is_array(leaf) for leaf in leaves]
        found[:] = [leaves, tree, arrays]
        return [leaf for leaf, is_array in zip(leaves, arrays, strict=True) if is_array]

    try:
        jaxpr = _traced(kept, args)
    except Exception as error:
        raise Fault(f"{name} of {describe(like())} raised {describe_error(error)}") from error
    if operation := mixing(jaxpr):
        raise Fault(
            f"{name} mixes environments by the operation {operation}: the last axis of all arrays "
            "is that of environments, whose results must not depend on each other"
        )
    shapes = iter(unmarked(v.aval, SHAPE[-1]) for v in jaxpr.outvars)
    leaves, tree, arrays = found
    return jax.tree.unflatten(
        tree, [next(shapes) if a else leaf for leaf, a in zip(leaves, arrays, strict=True)]
    )


def _traced(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Returns a function's jaxpr; what it raises names the shapes of the stand-ins."""
    try:
        return jax.make_jaxpr(function)(*jax.tree.map(marked, args)).jaxpr
    except Exception:
        jax.eval_shape(function, *args)
        raise


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int)


def numbers(name: str, value: Any, *leading: int) -> Iterator[str]:
    """Gives what is wrong with an array that must have the shape and precision of its arguments."""
    wanted = like(*leading)
    if not hasattr(value, "shape"):
        yield f"{name} must give an array {describe(wanted)}, but gives {describe(value)}"
    elif not _fits(value.shape, wanted.shape) or value.dtype != wanted.dtype:
        yield (
            f"{name} of {describe(wanted)} gives {describe(value)}; "
            "it must keep shape and precision"
        )


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether an array can stand for one of the wanted shape."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def parts(name: str, value: Any, kind: type, *leading: int) -> Iterator[str]:
    """Gives what is wrong with a vector or a quaternion."""
    if not isinstance(value, kind):
        yield f"{name} must give a {kind.__name__}, but gives {describe(value)}"
        return
    components: Any = value
    for part in components:
        yield from numbers(name, part, *leading)


def listed(name: str, value: Any, count: int, what: str) -> None:
    """Checks that a function gives a list or tuple of so many things, which `what` describes.

    Raises:
        Fault: if it does not.
    """
    plain = isinstance(value, tuple | list) and not isinstance(value, Vec3 | Quat)
    if not plain:
        raise Fault(f"{name} must give a list or tuple of {what}, but gives {describe(value)}")
    if len(value) != count:
        raise Fault(f"{name} must give {count}, but gives {len(value)}: {what}")


def describe(value: Any) -> str:
    """Returns a short description of what a function gave."""
    if hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"
