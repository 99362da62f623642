"""Output checks of joint types."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from brax.components import Quat, Vec3
from brax.joints.interface import Bound, JointParams, JointType, Twist
from brax.plugins.outputs.traced import (
    Fault,
    call,
    describe,
    like,
    listed,
    numbers,
    parts,
    quat,
    vec,
)


def problems(joint: JointType) -> Iterator[str]:
    """Yield what is wrong with a joint type's widths, and with what its functions return."""
    for key, least, most in (("q_width", 0, 99), ("qd_width", 0, 6), ("user_width", 0, 99)):
        width = getattr(joint, key, None)
        if type(width) is not int or not least <= width <= most:
            yield f"{key} must be a number from {least} to {most}, got {width!r}"
            return
    params = JointParams(vec(), (like(),) * joint.user_width)
    q, qd = (like(),) * joint.q_width, (like(),) * joint.qd_width
    checks: list[tuple[str, Sequence[Any], Callable[[str, Any], Iterator[str]]]] = [
        ("zero", (like(),), _arrays(joint.q_width)),
        ("transform", (params, q), _pose),
        ("motion_subspace", (params, q), _twists(joint.qd_width)),
        ("coordinates", (params, vec(), quat()), _arrays(joint.q_width)),
        ("integrate", (q, qd, like()), _arrays(joint.q_width)),
        ("difference", (q, q), _arrays(joint.qd_width)),
        ("drift", (params, q, qd), _twist),
        ("bounds", (q,), _bounds(joint.qd_width)),
    ]
    for name, args, check in checks:
        try:
            found = list(check(name, call(name, getattr(joint, name), *args)))
        except Fault as fault:
            found = [str(fault)]
        # One fault at a time: the functions that come later may call this one, and would fail with
        # it.
        if found:  # functions that come later call this one
            yield from found
            return


def _arrays(count: int) -> Callable[[str, Any], Iterator[str]]:
    """Return the check of a list of arrays."""

    def check(name: str, out: Any) -> Iterator[str]:
        listed(name, out, count, "arrays")
        for array in out:
            yield from numbers(name, array)

    return check


def _pose(name: str, out: Any) -> Iterator[str]:
    """Yield what is wrong with a translation and a rotation, either of which may be None."""
    listed(name, out, 2, "a translation and a rotation")
    for part, kind in zip(out, (Vec3, Quat), strict=True):
        if part is not None:
            yield from parts(name, part, kind)


def _twists(count: int) -> Callable[[str, Any], Iterator[str]]:
    """Return the check of a list of twists."""

    def check(name: str, out: Any) -> Iterator[str]:
        listed(name, out, count, "a twist for each degree of freedom")
        for twist in out:
            yield from _twist(name, twist)

    return check


def _twist(name: str, out: object) -> Iterator[str]:
    """Yield what is wrong with a twist, either part of which may be None."""
    if not isinstance(out, Twist):
        yield f"{name} must return a brax.joints.Twist, but returns {describe(out)}"
        return
    for part in out:
        if part is not None:
            yield from parts(name, part, Vec3)


def _bounds(width: int) -> Callable[[str, Any], Iterator[str]]:
    """Return the check of a list of bounds."""

    def check(name: str, out: object) -> Iterator[str]:
        if not isinstance(out, list | tuple) or not all(isinstance(b, Bound) for b in out):
            yield f"{name} must return a list of brax.joints.Bound, but returns {describe(out)}"
            return
        for bound in out:
            yield from numbers(name, bound.value)
            listed(
                f"{name}: rates", bound.rates, width, "an array or None for each degree of freedom"
            )
            for rate in bound.rates:
                if rate is not None:
                    yield from numbers(name, rate)

    return check
