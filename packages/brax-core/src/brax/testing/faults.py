"""Shared parts of the checks: one error that lists every fault."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from brax.errors import PluginError
from brax.plugins.kinds import KINDS, resolve
from brax.plugins.outputs.traced import single_precision


def raise_problems(value: object, what: str, problems: Iterable[str]) -> None:
    """Raise one error for all problems of an object, if there are any.

    Args:
        value: the object.
        what: its kind, in the plural.
        problems: one sentence each.

    Raises:
        PluginError: naming everything that is wrong.
    """
    if listed := "".join(f"\n  {problem}" for problem in dict.fromkeys(problems)):
        raise PluginError(f"{type(value).__name__} breaks the contract of {what}:{listed}")


def in_turn(value: object, *checks: Callable[[Any], Iterator[str]]) -> list[str]:
    """Return the problems of the first check that finds any."""
    # Later checks rely on what earlier ones found right, and would report consequences of a fault.
    return next(filter(None, (list(check(value)) for check in checks)), [])


def interface(kind: str) -> Callable[[Any], Iterator[str]]:
    """Return the check that an object is an instance of its kind's class, with a name."""
    cls = resolve(KINDS[kind].interface)

    def check(value: object) -> Iterator[str]:
        if not isinstance(value, cls):
            home = cls.__module__.removesuffix(".interface")
            yield f"it must be a {home}.{cls.__name__}, but is {type(value).__name__}"
        elif "name" in KINDS[kind].members and not isinstance(getattr(value, "name", None), str):
            yield "name must be a string"

    return check


def outputs(kind: str) -> Callable[[Any], Iterator[str]]:
    """Return the check of what an object's functions return, in single precision."""
    check = resolve(KINDS[kind].outputs)

    def strict(value: object) -> Iterator[str]:
        with single_precision():
            yield from list(check(value))

    return strict
