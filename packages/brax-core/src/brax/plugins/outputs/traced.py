"""Calls of a plugin's function with shapes in place of numbers, and checks of the results."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Quat, Vec3
from brax.errors import BraxError, PluginError, describe_error
from brax.joints.interface import Twist
from brax.plugins.outputs.batch import marked, mixing, unmarked
from brax.plugins.records import Registered

SHAPE = (3, 2)
"""Shape of a stand-in: three elements in two environments."""


_strict: ContextVar[bool] = ContextVar("_strict", default=False)


@contextlib.contextmanager
def single_precision() -> Iterator[None]:
    """Use stand-ins in single precision while double is JAX's default.

    This finds constants that widen a result, which do harm only in programs in double precision.
    """
    token = _strict.set(True)
    try:
        # With 64 bits a constant in double precision widens the result; without, JAX narrows it
        # silently.
        with jax.enable_x64(True):
            yield
    finally:
        _strict.reset(token)


Call = tuple[str, Callable[..., Any], tuple[Any, ...]]
"""A function's name, the function, and its arguments."""

_calls: ContextVar[list[Call] | None] = ContextVar("_calls", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[list[Call]]:
    """Record the calls that output checks make, in order."""
    found: list[Call] = []
    token = _calls.set(found)
    try:
        yield found
    finally:
        _calls.reset(token)


class Fault(Exception):
    """A sentence about what a function of a plugin returned or raised."""


def like(*leading: int) -> Any:
    """Return a stand-in for an array of `SHAPE`, behind leading axes."""
    dtype = jnp.float32 if _strict.get() else jnp.result_type(float)
    return jax.ShapeDtypeStruct((*leading, *SHAPE), dtype)


def vec(*leading: int) -> Vec3:
    """Return a stand-in for a vector."""
    return Vec3(*[like(*leading)] * 3)


def quat() -> Quat:
    """Return a stand-in for a quaternion."""
    return Quat(*[like()] * 4)


@contextlib.contextmanager
def blamed(
    who: Registered,
    what: str,
    error_type: type[BraxError] = PluginError,
    passing: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Name a third-party object in the errors that it raises.

    Errors of Brax's own objects, and those of `brax.errors`, stay as they are.

    Args:
        who: the object.
        what: the words between the object's name and the error.
        error_type: the type of the error that is raised instead.
        passing: further types of errors that stay as they are.

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


def call(name: str, function: Callable[..., object], *args: object) -> Any:
    """Return the result of a function of stand-ins; its arrays are stand-ins as well.

    Raises:
        Fault: if the function raises, or mixes environments.
    """
    found: list[Any] = []
    calls = _calls.get()
    if calls is not None:
        calls.append((name, function, args))

    def kept(*args: object) -> list[Any]:
        out = function(*args)
        leaves, tree = jax.tree.flatten(out)
        arrays = [_is_array(leaf) for leaf in leaves]
        # `make_jaxpr` returns arrays only, so the other leaves are kept aside.
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


def _traced(function: Callable[..., object], args: tuple[object, ...]) -> Any:
    """Return a function's jaxpr; errors name the shapes of the stand-ins."""
    try:
        return jax.make_jaxpr(function)(*jax.tree.map(marked, args)).jaxpr
    except Exception:
        # The message of the first error has the marked batch size, which no user knows; the
        # function is called again with plain stand-ins for an error that names their shapes.
        jax.eval_shape(function, *args)
        raise


def _is_array(leaf: object) -> bool:
    """Return whether a leaf is an array or a number."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int)


def numbers(name: str, value: Any, *leading: int) -> Iterator[str]:
    """Yield what is wrong with an array that must have the shape and precision of its arguments."""
    wanted = like(*leading)
    if not hasattr(value, "shape"):
        yield f"{name} must return an array {describe(wanted)}, but returns {describe(value)}"
    elif not _fits(value.shape, wanted.shape) or value.dtype != wanted.dtype:
        yield (
            f"{name} of {describe(wanted)} returns {describe(value)}; "
            "it must keep shape and precision"
        )


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether an array can be broadcast to the wanted shape."""
    try:
        # A result that is the same for all elements may have size one.
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def parts(name: str, value: object, kind: type, *leading: int) -> Iterator[str]:
    """Yield what is wrong with a vector or a quaternion."""
    if not isinstance(value, kind):
        yield f"{name} must return a {kind.__name__}, but returns {describe(value)}"
        return
    components: Any = value
    for part in components:
        yield from numbers(name, part, *leading)


def listed(name: str, value: Any, count: int, what: str) -> None:
    """Check that a function returned a list or tuple of so many things, which `what` describes.

    Raises:
        Fault: if it did not.
    """
    # A vector, a quaternion or a twist is a tuple, too, but one thing.
    plain = isinstance(value, tuple | list) and not isinstance(value, Vec3 | Quat | Twist)
    if not plain:
        raise Fault(f"{name} must return a list or tuple of {what}, but returns {describe(value)}")
    if len(value) != count:
        raise Fault(f"{name} must return {count}, but returns {len(value)}: {what}")


def describe(value: Any) -> str:
    """Return a short description of what a function returned."""
    if hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    # A named tuple is described by its class.
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"
