"""Vectors, rotations and inertias as separate component arrays.

Inside a pipeline a vector is not an array with a trailing axis of three but three arrays, each
shaped (elements, batch). Every operation is then an elementwise loop with the batch innermost,
which XLA fuses and vectorizes, and there are no tiny matrix products. See `docs/architecture.md`.

Where nothing else is said, all arrays have the shape (elements, batch) or one that broadcasts to
it. The functions also take other shapes that broadcast to one another.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.kernels.codegen.call import left_to_xla
from brax.kernels.skip import where_needed

T = TypeVar("T")
P = ParamSpec("P")

MOST_SLICES = 64
"""Number of slices beyond which `rows` gathers.

XLA searches the operands of a concatenation one after another, for each element of the result."""


def traced_once(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that JAX traces once for all operands of the same shapes.

    Tracing takes a tenth of a millisecond for each operation, and a step has thousands. Operands
    that are not traced, such as NumPy arrays, are computed at once, without `jax.jit`.
    """
    call = jax.jit(function)

    @functools.wraps(function)
    def once(*args: P.args, **kwargs: P.kwargs) -> T:
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((args, kwargs)))
        return call(*args, **kwargs) if traced else function(*args, **kwargs)

    return once


class Vec3(NamedTuple):
    """A vector: three arrays of one shape."""

    x: jax.Array
    y: jax.Array
    z: jax.Array

    def __add__(self, o: "Vec3") -> "Vec3":  # type: ignore[override]
        return Vec3(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: "Vec3") -> "Vec3":
        return Vec3(self.x - o.x, self.y - o.y, self.z - o.z)

    def __neg__(self) -> "Vec3":
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, s: Any) -> "Vec3":
        if isinstance(s, Vec3):
            raise TypeError("Vec3 * Vec3 is ambiguous: write a.dot(b) or a.cross(b)")
        return Vec3(self.x * s, self.y * s, self.z * s)

    def __rmul__(self, s: object) -> "Vec3":
        return self * s

    def __truediv__(self, s: Any) -> "Vec3":
        return Vec3(self.x / s, self.y / s, self.z / s)

    @traced_once
    def dot(self, o: "Vec3") -> jax.Array:
        """Return the scalar product."""
        return self.x * o.x + self.y * o.y + self.z * o.z

    @traced_once
    def cross(self, o: "Vec3") -> "Vec3":
        """Return the vector product."""
        return Vec3(
            self.y * o.z - self.z * o.y,
            self.z * o.x - self.x * o.z,
            self.x * o.y - self.y * o.x,
        )


class Quat(NamedTuple):
    """A unit quaternion: four arrays of one shape."""

    w: jax.Array
    x: jax.Array
    y: jax.Array
    z: jax.Array

    @property
    def vec(self) -> Vec3:
        """The vector part."""
        return Vec3(self.x, self.y, self.z)

    @property
    def conj(self) -> "Quat":
        """The inverse rotation."""
        return Quat(self.w, -self.x, -self.y, -self.z)

    def __mul__(self, o: object) -> "Quat":
        """Return the rotation `o` followed by this one, as `mul` does."""
        if not isinstance(o, Quat):
            raise TypeError(
                f"Quat * {type(o).__name__}: write q.rotate(v) for a vector, or q.mul(r) for a Quat"
            )
        return self.mul(o)

    @traced_once
    def mul(self, o: "Quat") -> "Quat":
        """Return the rotation `o` followed by this one."""
        return Quat(
            self.w * o.w - self.x * o.x - self.y * o.y - self.z * o.z,
            self.w * o.x + self.x * o.w + self.y * o.z - self.z * o.y,
            self.w * o.y - self.x * o.z + self.y * o.w + self.z * o.x,
            self.w * o.z + self.x * o.y - self.y * o.x + self.z * o.w,
        )

    # Written out rather than by `conj`: a negation that two products use is a loop of its own.
    @traced_once
    def inv_mul(self, o: "Quat") -> "Quat":
        """Return the rotation `o` followed by the inverse of this one."""
        return Quat(
            self.w * o.w + self.x * o.x + self.y * o.y + self.z * o.z,
            self.w * o.x - self.x * o.w - self.y * o.z + self.z * o.y,
            self.w * o.y + self.x * o.z - self.y * o.w - self.z * o.x,
            self.w * o.z - self.x * o.y + self.y * o.x - self.z * o.w,
        )

    @traced_once
    def mul_inv(self, o: "Quat") -> "Quat":
        """Return the inverse of the rotation `o` followed by this one."""
        return Quat(
            self.w * o.w + self.x * o.x + self.y * o.y + self.z * o.z,
            self.x * o.w - self.w * o.x - self.y * o.z + self.z * o.y,
            self.y * o.w - self.w * o.y + self.x * o.z - self.z * o.x,
            self.z * o.w - self.w * o.z - self.x * o.y + self.y * o.x,
        )

    @traced_once
    def rotate(self, v: Vec3) -> Vec3:
        """Return the rotated vector."""
        # With the vector part u: q v q* = v + w (2 u × v) + u × (2 u × v).
        t = self.vec.cross(v) * 2.0
        return v + t * self.w + self.vec.cross(t)

    @traced_once
    def inv_rotate(self, v: Vec3) -> Vec3:
        """Return the vector rotated by the inverse."""
        t = v.cross(self.vec) * 2.0
        return v + t * self.w + t.cross(self.vec)

    @traced_once
    def turned_back(self, v: Vec3) -> Vec3:
        """Return what `inv_rotate` adds to the vector, for sums that are rounded only once."""
        t = v.cross(self.vec) * 2.0
        return t * self.w + t.cross(self.vec)

    @traced_once
    def matrix(self) -> "Mat3":
        """Return the rotation matrix."""
        w, x, y, z = self
        x2, y2, z2 = x + x, y + y, z + z
        xx, yy, zz, xy, xz, yz = x * x2, y * y2, z * z2, x * y2, x * z2, y * z2
        wx, wy, wz = w * x2, w * y2, w * z2
        return Mat3(
            Vec3(1 - (yy + zz), xy + wz, xz - wy),
            Vec3(xy - wz, 1 - (xx + zz), yz + wx),
            Vec3(xz + wy, yz - wx, 1 - (xx + yy)),
        )


class Mat3(NamedTuple):
    """A rotation matrix by its columns; cheaper than a quaternion that rotates several vectors."""

    x: Vec3
    y: Vec3
    z: Vec3

    @traced_once
    def rotate(self, v: Vec3) -> Vec3:
        """Return the rotated vector."""
        return self.x * v.x + self.y * v.y + self.z * v.z

    @traced_once
    def inv_rotate(self, v: Vec3) -> Vec3:
        """Return the vector rotated by the inverse."""
        return Vec3(self.x.dot(v), self.y.dot(v), self.z.dot(v))


class Sym3(NamedTuple):
    """A symmetric 3x3 matrix by its six distinct entries."""

    xx: jax.Array
    yy: jax.Array
    zz: jax.Array
    xy: jax.Array
    xz: jax.Array
    yz: jax.Array

    def __add__(self, o: "Sym3") -> "Sym3":  # type: ignore[override]
        return Sym3(*(a + b for a, b in zip(self, o, strict=True)))

    def __mul__(self, s: Any) -> "Sym3":
        return Sym3(*(a * s for a in self))

    @traced_once
    def mul(self, v: Vec3) -> Vec3:
        """Return the product of the matrix and a vector."""
        return Vec3(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    @staticmethod
    def from_principal(axes: Mat3, moments: Vec3) -> "Sym3":
        """Return the matrix with the given eigenvalues along the given axes."""
        # R diag(m) Rᵀ is the sum of m a aᵀ over the columns a of R.
        terms = [(a * m, a) for a, m in zip(axes, moments, strict=True)]
        return Sym3(
            total(b.x * a.x for b, a in terms),
            total(b.y * a.y for b, a in terms),
            total(b.z * a.z for b, a in terms),
            total(b.x * a.y for b, a in terms),
            total(b.x * a.z for b, a in terms),
            total(b.y * a.z for b, a in terms),
        )


def total(items: Iterable[T]) -> T:
    """Return the sum of one or more arrays, or of trees that define addition."""
    return functools.reduce(operator.add, items)


def polynomial(
    coefficients: Sequence[jax.Array | float], x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return a polynomial's value and slope; its coefficients start at the lowest power."""
    value, slope = jnp.zeros_like(x), jnp.zeros_like(x)
    # Horner's rule for the value and its derivative together.
    for c in reversed(coefficients):
        value, slope = c + x * value, value + x * slope
    return value, slope


def zero_vec(like: jax.Array) -> Vec3:
    """Return the zero vector with components shaped as `like`."""
    return Vec3(*(jnp.zeros_like(like) for _ in range(3)))


@traced_once
def sqrt(x: jax.Array) -> jax.Array:
    """Return the square root, with a derivative of zero at zero instead of an infinite one."""
    # The square root runs on one where the result is zero: a derivative that `where` discards is
    # multiplied by zero, and zero times infinity would be NaN.
    zero = x <= 0.0  # NaN is not
    return jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, x)))


@traced_once
def normalize(v: Vec3, fallback: Vec3 | None = None) -> tuple[Vec3, jax.Array]:
    """Return the unit vector and the length.

    A zero vector gives `fallback` (or zero), with finite gradients.
    """
    squared = v.dot(v)
    zero = squared <= 0.0  # NaN is not
    inverse = jnp.where(zero, 0.0, jax.lax.rsqrt(jnp.where(zero, 1.0, squared)))
    unit = v * inverse
    if fallback is not None:
        unit = Vec3(*(jnp.where(zero, f, u) for u, f in zip(unit, fallback, strict=True)))
    return unit, squared * inverse


@traced_once
def normalize_quat(q: Quat) -> Quat:
    """Return the quaternion at unit length; a zero quaternion stays zero."""
    squared = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z
    zero = squared <= 0.0  # NaN is not
    inverse = jnp.where(zero, 0.0, jax.lax.rsqrt(jnp.where(zero, 1.0, squared)))
    return Quat(q.w * inverse, q.x * inverse, q.y * inverse, q.z * inverse)


@traced_once
def unit_again(q: Quat) -> Quat:
    """Remove the round-off of a product of unit quaternions by one Newton step to length one.

    The squares are subtracted from one in turn. A sum of squares near one is rounded more coarsely
    above one than below, and the bias that this leaves shortens every vector that is rotated by the
    quaternion, step after step.
    """
    short = 0.5 * (1.0 - q.w * q.w - q.x * q.x - q.y * q.y - q.z * q.z)
    return Quat(*(c + c * short for c in q))


_LARGEST_SERIES_ANGLE = 0.5 * np.pi
"""Largest angle [rad] whose sine and cosine are computed by their series."""

_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(7)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(8)]
"""Coefficients of sin(x) / x and cos(x) in powers of x². At the largest angle the first omitted
terms are 7e-10 and 7e-11."""


@traced_once
def sine_and_cosine(angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the sine and the cosine of angles [rad].

    In single precision, with a trailing batch axis, they are sums of their series, to a few units
    of the last place of 1, where no angle of an environment is large. That takes a tenth of the
    time of the functions of any angle, whose error is half a unit.
    """
    if not _has_series(angle):
        return jnp.sin(angle), jnp.cos(angle)
    square = angle * angle
    near = angle * polynomial(_SINE, square)[0], polynomial(_COSINE, square)[0]
    return where_needed(_any_large(square), lambda _: (jnp.sin(angle), jnp.cos(angle)), near)


def _has_series(x: jax.Array) -> bool:
    """Return whether functions of numbers like these may be computed by series."""
    # XLA has no branches around work that no environment needs: it would compute both.
    return x.dtype == jnp.float32 and x.ndim >= 2 and not left_to_xla()


def _any_large(square: jax.Array) -> jax.Array:
    """Return whether any angle of each environment is large, from squares, (1, batch)."""
    large = square > _LARGEST_SERIES_ANGLE**2
    return jnp.any(large.reshape(-1, large.shape[-1]), axis=0, keepdims=True)


@traced_once
def exp_quat(v: Vec3) -> Quat:
    """Return the rotation by |v| radians about v: the exponential map."""
    square = v.dot(v) * 0.25

    def of_any(_: object) -> tuple[jax.Array, jax.Array]:
        # Cosine and sinc are even, so the offset that keeps the root from zero does not change
        # them.
        half = jnp.sqrt(square + 1e-24)
        return jnp.sin(half) / half, jnp.cos(half)

    if _has_series(square):
        # As in `sine_and_cosine`, and without a root and a quotient.
        near = polynomial(_SINE, square)[0], polynomial(_COSINE, square)[0]
        sinc, cosine = where_needed(_any_large(square), of_any, near)
    else:
        sinc, cosine = of_any(None)
    sinc = 0.5 * sinc
    return Quat(cosine, v.x * sinc, v.y * sinc, v.z * sinc)


@traced_once
def log_quat(q: Quat) -> Vec3:
    """Return the rotation vector, of length at most pi, of a quaternion; undoes `exp_quat`."""
    w = jnp.where(q.w < 0, -q.w, q.w)
    # q and -q are the same rotation; the one with w >= 0 has an angle of at most pi.
    sign = jnp.where(q.w < 0, -1.0, 1.0)
    squared = q.vec.dot(q.vec)
    tiny = squared < 1e-12
    length = jnp.sqrt(jnp.where(tiny, 1.0, squared))
    # Near zero the angle over its sine is 2 / w; the other branch then divides one by one, so that
    # its derivative stays finite.
    scale = jnp.where(tiny, 2.0 / jnp.where(tiny, w, 1.0), 2.0 * jnp.arctan2(length, w) / length)
    return q.vec * (sign * scale)


@traced_once
def tangents(n: Vec3) -> tuple[Vec3, Vec3]:
    """Return two unit vectors that make a right-handed frame with the unit vector `n`.

    Source: Duff et al. (2017), Building an Orthonormal Basis, Revisited, JCGT 6(1).
    """
    # The sign keeps the denominator of `a` away from zero on both half-spaces.
    sign = jnp.where(n.z >= 0, 1.0, -1.0)
    a = -1.0 / (sign + n.z)
    b = n.x * n.y * a
    return (
        Vec3(1.0 + sign * n.x * n.x * a, sign * b, -sign * n.x),
        Vec3(b, sign + n.y * n.y * a, -n.y),
    )


def vec3(array: jax.Array) -> Vec3:
    """Return the components (elements, batch) of an array (elements, 3, batch)."""
    return Vec3(*(array[..., i, :] for i in range(3)))


def quat(array: jax.Array) -> Quat:
    """Return the components (elements, batch) of an array (elements, 4, batch)."""
    return Quat(*(array[..., i, :] for i in range(4)))


def stack(components: Sequence[jax.Array]) -> jax.Array:
    """Return components (elements, batch) joined to (elements, len(components), batch)."""
    return jnp.stack(jnp.broadcast_arrays(*components), axis=-2)


def sum_first(x: jax.Array) -> jax.Array:
    """Return the sum over the first axis, which stays with size one.

    The halves are added repeatedly: a reduction of XLA on a CPU is a call that costs more than the
    few additions that it makes.
    """
    while (n := x.shape[0]) > 1:
        half = n // 2
        folded = x[:half] + x[half : 2 * half]
        x = folded if n % 2 == 0 else jnp.concatenate([folded[:-1], folded[-1:] + x[-1:]])
    return x


def rows(tree: T, index: Sequence[int]) -> T:
    """Return the elements at static indices, by slices, or by a gather where these are many."""
    runs = _runs(tuple(index))

    def take(a: jax.Array) -> jax.Array:
        if len(runs) > MOST_SLICES:
            # The indices are static and valid, so the gather needs no clamping.
            return a.at[np.asarray(index)].get(mode="promise_in_bounds")
        if not runs:
            return a[:0]
        parts = [_take_run(a, *run) for run in runs]
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts)

    return jax.tree.map(take, tree)


def put_rows(tree: T, index: Sequence[int], values: T) -> T:
    """Return the elements with `values` at the given indices, each of which occurs once."""
    place = {i: k for k, i in enumerate(index)}

    def put(a: jax.Array, b: jax.Array) -> jax.Array:
        n = len(a)
        return rows(jnp.concatenate([a, b]), [n + place[i] if i in place else i for i in range(n)])

    return jax.tree.map(put, tree, values)


@functools.lru_cache(maxsize=4096)
def _runs(index: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return the runs of equal steps of some indices: first index, step and length of each."""
    runs: list[tuple[int, int, int]] = []
    for i in index:
        if runs:
            first, step, n = runs[-1]
            if n == 1 and i >= first:
                runs[-1] = (first, i - first, 2)
                continue
            if n > 1 and i == first + step * n:
                runs[-1] = (first, step, n + 1)
                continue
        runs.append((i, 1, 1))
    return runs


def _take_run(a: jax.Array, first: int, step: int, n: int) -> jax.Array:
    """Return the elements of one run; a step of zero repeats the first."""
    if step == 0:
        return jnp.broadcast_to(a[first : first + 1], (n, *a.shape[1:]))
    if (first, step, n) == (0, 1, a.shape[0]):
        return a
    return jax.lax.slice_in_dim(a, first, first + step * (n - 1) + 1, step, 0)
