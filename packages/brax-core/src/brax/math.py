"""Rotations, and functions with safe derivatives, on ordinary arrays, for environments and users.

Vectors and quaternions are trailing axes of length three and four, and leading axes broadcast. The
pipelines compute with `brax.components`. A formula that both need is there.
"""

import jax
import jax.numpy as jnp

from brax import components
from brax.components import Quat, Vec3


def _vec(v: jax.Array) -> Vec3:
    """Split the trailing axis into components."""
    return Vec3(*(v[..., i] for i in range(3)))


def _quat(q: jax.Array) -> Quat:
    """Split the trailing axis into components."""
    return Quat(*(q[..., i] for i in range(4)))


def _join(parts: tuple[jax.Array, ...]) -> jax.Array:
    """Stack components on a trailing axis."""
    return jnp.stack(jnp.broadcast_arrays(*parts), axis=-1)


def rotate(vec: jax.Array, quat: jax.Array) -> jax.Array:
    """Rotate a vector (..., 3) by a unit quaternion (..., 4)."""
    return _join(_quat(quat).rotate(_vec(vec)))


def inv_rotate(vec: jax.Array, quat: jax.Array) -> jax.Array:
    """Rotate a vector (..., 3) by the inverse of a unit quaternion (..., 4)."""
    return _join(_quat(quat).conj.rotate(_vec(vec)))


def quat_mul(u: jax.Array, v: jax.Array) -> jax.Array:
    """Return the product of two quaternions (..., 4): the rotation `v` followed by `u`."""
    return _join(_quat(u).mul(_quat(v)))


def quat_inv(q: jax.Array) -> jax.Array:
    """Return the inverse of a unit quaternion (..., 4)."""
    return _join(_quat(q).conj)


def quat_rot_axis(axis: jax.Array, angle: jax.Array) -> jax.Array:
    """Return the rotation by `angle` [rad] about the unit vector `axis` (..., 3)."""
    return _join(components.exp_quat(_vec(axis) * angle))


def ang_to_quat(ang: jax.Array) -> jax.Array:
    """Return an angular velocity (..., 3) as the pure quaternion (0, ang)."""
    return jnp.concatenate([jnp.zeros_like(ang[..., :1]), ang], axis=-1)


def quat_to_3x3(q: jax.Array) -> jax.Array:
    """Return the rotation matrix (..., 3, 3) of a unit quaternion (..., 4)."""
    return jnp.stack([_join(c) for c in _quat(q).matrix()], axis=-1)


def relative_quat(q1: jax.Array, q2: jax.Array) -> jax.Array:
    """Return the rotation (..., 4) that takes `q1` to `q2`, both (..., 4), in the frame of `q1`."""
    return quat_mul(quat_inv(q1), q2)


def euler_to_quat(v: jax.Array) -> jax.Array:
    """Return the quaternion (..., 4) of intrinsic x-y'-z'' Euler angles (..., 3) in degrees."""
    half = v * (jnp.pi / 360)
    c, s = jnp.cos(half), jnp.sin(half)
    zero = jnp.zeros_like(c[..., 0])
    x = _join((c[..., 0], s[..., 0], zero, zero))
    y = _join((c[..., 1], zero, s[..., 1], zero))
    z = _join((c[..., 2], zero, zero, s[..., 2]))
    return quat_mul(quat_mul(x, y), z)


def quat_to_euler(q: jax.Array) -> jax.Array:
    """Return the intrinsic x-y'-z'' Euler angles (..., 3) [rad] of a unit quaternion (..., 4)."""
    w, x, y, z = (q[..., i] for i in range(4))
    return _join(
        (
            jnp.arctan2(2 * (w * x - y * z), w * w - x * x - y * y + z * z),
            safe_arcsin(2 * (w * y + x * z)),
            jnp.arctan2(2 * (w * z - x * y), w * w + x * x - y * y - z * z),
        )
    )


def from_to(v1: jax.Array, v2: jax.Array) -> jax.Array:
    """Return a shortest rotation (..., 4) that takes the unit vector `v1` to `v2`."""
    # The quaternion (1 + a.b, a x b) is the rotation times 2 cos(angle / 2). For opposite vectors
    # it is zero, and half a turn about a perpendicular axis takes its place.
    a, b = _vec(v1), _vec(v2)
    cosine = a.dot(b)
    # Near there both products cancel. With c = a + b, they are c.c / 2 and a x c, which do not.
    far = cosine < -0.5
    c = a + b
    w = jnp.where(far, 0.5 * c.dot(c), 1 + cosine)
    cross = a.cross(Vec3(*(jnp.where(far, p, q) for p, q in zip(c, b, strict=True))))
    # The sum of rounded opposite vectors has entries of up to an eps.
    opposite = w < 2 * jnp.finfo(w.dtype).eps ** 2
    turn, _ = components.tangents(a)
    axis = Vec3(*(jnp.where(opposite, p, q) for p, q in zip(turn, cross, strict=True)))
    return _join(components.normalize_quat(Quat(jnp.where(opposite, 0.0, w), *axis)))


def orthogonals(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return two unit vectors that form a right-handed frame with the unit vector `a` (..., 3)."""
    b, c = components.tangents(_vec(a))
    return _join(b), _join(c)


def signed_angle(axis: jax.Array, ref_p: jax.Array, ref_c: jax.Array) -> jax.Array:
    """Return the angle [rad] about `axis` from `ref_p` to `ref_c`, all unit vectors (..., 3)."""
    sine = jnp.sum(jnp.cross(ref_p, ref_c) * axis, axis=-1)
    return jnp.arctan2(sine, jnp.sum(ref_p * ref_c, axis=-1))


def safe_norm(x: jax.Array, axis: int | tuple[int, ...] | None = None) -> jax.Array:
    """Return the Euclidean norm, with a zero gradient at zero.

    Args:
        x: an array of any shape.
        axis: the axes of the norm; None means all.

    Returns:
        An array of the shape of `x` without these axes.
    """
    return components.sqrt(jnp.sum(x * x, axis=axis))


def normalize(x: jax.Array, axis: int | None = None) -> tuple[jax.Array, jax.Array]:
    """Return the unit vector and the norm; zero stays zero, with finite gradients.

    Args:
        x: an array of any shape.
        axis: the axis of the vectors; None means that the array is one vector.

    Returns:
        Unit vectors of the shape of `x`, and norms of its shape without the axis.
    """
    length = safe_norm(x, axis)
    divisor = jnp.where(length > 0, length, 1.0)
    return x / (divisor if axis is None else jnp.expand_dims(divisor, axis)), length


def safe_arccos(x: jax.Array) -> jax.Array:
    """Return the arc cosine [rad] of `x` clipped to [-1, 1], elementwise, of any shape.

    The gradient is zero outside of (-1, 1).
    """
    inside = ~(jnp.abs(x) >= 1.0)  # NaN is, and stays NaN
    return jnp.where(inside, jnp.arccos(jnp.where(inside, x, 0.0)), jnp.where(x > 0, 0.0, jnp.pi))


def safe_arcsin(x: jax.Array) -> jax.Array:
    """Return the arc sine [rad] of `x` clipped to [-1, 1], elementwise, of any shape.

    The gradient is zero outside of (-1, 1).
    """
    return jnp.pi / 2 - safe_arccos(x)


def inv_3x3(m: jax.Array) -> jax.Array:
    """Return the inverse of a 3x3 matrix (..., 3, 3), by cofactors."""
    r0, r1, r2 = (m[..., i, :] for i in range(3))
    columns = jnp.stack([jnp.cross(r1, r2), jnp.cross(r2, r0), jnp.cross(r0, r1)], axis=-1)
    return columns / jnp.sum(r0 * columns[..., 0], axis=-1)[..., None, None]
