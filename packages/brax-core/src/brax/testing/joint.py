"""`check_joint`: verifies that a joint type follows the interface of `brax.joints`."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Quat, Vec3, zero_vec
from brax.joints import JointParams, JointType
from brax.testing.faults import in_turn, interface, outputs, raise_problems

_SHAPE = (3, 2)
"""Three joints in two environments."""

_JOINT_TOLERANCE = 2e-5
"""Rounding error of single precision in numbers of order one, after a few operations."""


def check_joint(joint: JointType, user: Sequence[float] | None = None) -> None:
    """Check one joint type.

    Its functions must return as many arrays as its widths say, in the shape and precision of their
    arguments. At rest nothing may be displaced. `coordinates` must undo `transform`, and
    `difference` must undo `integrate`. `motion_subspace` must be the rate of `transform`, `bounds`
    must contain the rates of its values, and `drift` must be the rate of the twist. All derivatives
    must be finite, also at rest.

    Args:
        joint: the joint type.
        user: values of its own parameters that make sense together; by default each is 0.3.

    Raises:
        PluginError: naming everything that is wrong.
    """
    problems = in_turn(
        joint,
        interface("joint_type"),
        outputs("joint_type"),
        lambda joint: _numbers(joint, user),
    )
    raise_problems(joint, "joints", problems)


def _params(joint: JointType, user: Sequence[float] | None) -> JointParams:
    """Return parameters with an oblique axis."""
    numbers = [0.3] * joint.user_width if user is None else list(user)
    x, y, z = (jnp.full(_SHAPE, a, jnp.float32) for a in (0.6, 0.0, 0.8))
    return JointParams(Vec3(x, y, z), tuple(jnp.full(_SHAPE, a, jnp.float32) for a in numbers))


def _pose(joint: JointType, params: JointParams, q: Any) -> tuple[Vec3, Quat]:
    """Return translation and rotation; a part that is None becomes zero or the identity."""
    pos, rot = joint.transform(params, q)
    zero = jnp.zeros(_SHAPE, jnp.float32)
    return (
        zero_vec(zero) if pos is None else pos,
        Quat(zero + 1, zero, zero, zero) if rot is None else rot,
    )


def _numbers(joint: JointType, user: Sequence[float] | None) -> Iterator[str]:
    """Yield the problems of a joint's values, at rest and at random coordinates."""
    if user is not None and len(user) != joint.user_width:
        yield f"check_joint: user needs {joint.user_width} numbers, got {len(user)}"
        return
    params = _params(joint, user)
    # A fixed seed: the check of an object always has the same result.
    rng = np.random.default_rng(0)

    def rates(scale: float) -> tuple[jax.Array, ...]:
        return tuple(
            jnp.asarray(scale * rng.uniform(-1, 1, _SHAPE), jnp.float32)
            for _ in range(joint.qd_width)
        )

    rest = joint.zero(jnp.zeros(_SHAPE, jnp.float32))
    one = jnp.ones(_SHAPE, jnp.float32)
    pos, rot = _pose(joint, params, rest)
    if _far((*pos, rot.w - one, *rot.vec)):
        yield "transform at rest (of zero) must be the identity"
    step = jax.jit(lambda q, v: _departures(joint, params, q, v))
    # One number that depends on all outputs: a derivative of any of them that is not finite shows.
    gradient = jax.jit(jax.grad(lambda q, v: _everything(joint, params, q, v), argnums=(0, 1)))
    for q in (rest, joint.integrate(rest, rates(1.2), 1.0), joint.integrate(rest, rates(2.5), 1.0)):
        v = rates(0.7)
        for what, departure in step(q, v).items():
            if _far(departure):
                worst = max(float(jnp.max(jnp.abs(d))) for d in jax.tree.leaves(departure))
                yield f"{what}: off by {worst:.1e} at {_first(q, params)}"
        if not all(np.isfinite(g).all() for g in jax.tree.leaves(gradient(q, v))):
            yield f"a derivative is not finite at {_first(q, params)}"


def _first(q: tuple[jax.Array, ...], params: JointParams) -> str:
    """Return coordinates and parameters of the first joint in the first environment."""

    def numbers(arrays: Sequence[jax.Array]) -> str:
        return ", ".join(f"{round(float(a[0, 0]), 3):g}" for a in arrays)

    user = f", user ({numbers(params.user)})" if params.user else ""
    return f"q = [{numbers(q)}], axis ({numbers(params.axis)}){user}"


def _far(numbers: object) -> bool:
    """Return whether any number is not near zero."""
    leaves = jax.tree.leaves(numbers)
    # Negated, so that NaN counts as far.
    return any(not (jnp.abs(n) < _JOINT_TOLERANCE).all() for n in leaves)


def _departures(joint: JointType, params: JointParams, q: Any, v: Any) -> dict[str, Any]:
    """Return quantities that should be zero, by what they say about the joint."""
    (pos, rot), (moving, turning) = _rates(lambda q: _pose(joint, params, q), joint, q, v)
    velocity = angular = zero_vec(rot.w)
    for twist, rate in zip(joint.motion_subspace(params, q), v, strict=True):
        velocity = velocity if twist.vel is None else velocity + twist.vel * rate
        angular = angular if twist.ang is None else angular + twist.ang * rate
    back = joint.coordinates(params, pos, rot)
    again, turned = _pose(joint, params, back)
    bounds, rising = _rates(lambda q: [b.value for b in joint.bounds(q)], joint, q, v)
    rise = [
        sum(r * s for r, s in zip(b.rates, v, strict=True) if r is not None)
        for b in joint.bounds(q)
    ]
    drift, derived = joint.drift(params, q, v), JointType.drift(joint, params, q, v)
    zero = zero_vec(rot.w)
    return {
        "transform must return a unit quaternion": rot.w**2 + rot.vec.dot(rot.vec) - 1,
        "motion_subspace must be the rate of transform": (
            moving - velocity,
            # The angular velocity of a quaternion is the vector part of 2 q' q*.
            turning.mul(rot.conj).vec * 2.0 - angular,
        ),
        # Poses are compared, since coordinates that differ by whole turns have the same one.
        "coordinates must undo transform": (again - pos, turned.conj.mul(rot).vec),
        "difference must undo integrate": _minus(
            joint.difference(joint.integrate(q, v, 1.0), q), v
        ),
        "bounds must return the rates of its values": [
            # A rotation angle, a norm, has no derivative at zero.
            jnp.where(jnp.abs(value) > 1e-3, r - s, 0.0)  # an angle at zero has none
            for value, r, s in zip(bounds, rising, rise, strict=True)
        ],
        "drift must be the rate of the twist": [
            (zero if a is None else a) - (zero if b is None else b)
            for a, b in zip(drift, derived, strict=True)
        ],
    }


def _minus(a: Sequence[jax.Array], b: Sequence[jax.Array]) -> list[jax.Array]:
    """Return the differences of two lists of arrays."""
    return [x - y for x, y in zip(a, b, strict=True)]


def _rates(function: Any, joint: JointType, q: Any, v: Any) -> tuple[Any, Any]:
    """Return a function's value, and its derivative in time while the joint moves."""
    zero = jnp.zeros(_SHAPE, jnp.float32)
    return jax.jvp(lambda t: function(joint.integrate(q, v, t)), (zero,), (jnp.ones_like(zero),))


def _everything(joint: JointType, params: JointParams, q: Any, v: Any) -> jax.Array:
    """Return a number that depends on everything that the joint computes."""
    pos, rot = _pose(joint, params, q)
    parts = (
        pos,
        rot,
        joint.motion_subspace(params, q),
        joint.coordinates(params, pos, rot),
        joint.difference(joint.integrate(q, v, 1.0), q),
    )
    return sum((jnp.sum(leaf) for leaf in jax.tree.leaves(parts)), jnp.zeros(()))
