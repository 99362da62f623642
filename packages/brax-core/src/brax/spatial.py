"""Spatial (six-dimensional) algebra on components: velocities, momenta and inertias.

All quantities are in world axes. Those of a tree are mostly about one common point, so that they
are added without transformations between links, unlike in Featherstone's link frames. `moved` and
`carried` are for long trees, where each link has a point of its own.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, chapter 2.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Sym3, Vec3


class Spatial(NamedTuple):
    """A spatial velocity, momentum, force or impulse about a common point."""

    ang: Vec3
    """Angular part: angular velocity, or moment."""
    lin: Vec3
    """Linear part: velocity of the body-fixed point at the common point, or force."""

    def __add__(self, o: "Spatial") -> "Spatial":  # type: ignore[override]
        return Spatial(self.ang + o.ang, self.lin + o.lin)

    def __sub__(self, o: "Spatial") -> "Spatial":
        return Spatial(self.ang - o.ang, self.lin - o.lin)

    def __mul__(self, s: object) -> "Spatial":
        return Spatial(self.ang * s, self.lin * s)

    def moved(self, arm: Vec3) -> "Spatial":
        """Return a velocity about a point that is `arm` [m] further on the same body."""
        return Spatial(self.ang, self.lin + self.ang.cross(arm))

    def carried(self, arm: Vec3) -> "Spatial":
        """Return a force about a point from which its own is `arm` [m] away."""
        return Spatial(self.ang + arm.cross(self.lin), self.lin)

    def dot(self, o: "Spatial") -> jax.Array:
        """Return the scalar product; that of a velocity and a force is the power."""
        return self.ang.dot(o.ang) + self.lin.dot(o.lin)


class Sym6(NamedTuple):
    """A symmetric 6x6 matrix [[a, h], [h^T, c]], such as an articulated-body inertia."""

    a: Sym3
    """Angular block."""
    h: tuple[Vec3, ...]
    """Rows of the off-diagonal block."""
    c: Sym3
    """Linear block."""

    def __add__(self, o: "Sym6") -> "Sym6":  # type: ignore[override]
        return Sym6(
            self.a + o.a, tuple(x + y for x, y in zip(self.h, o.h, strict=True)), self.c + o.c
        )

    def mul(self, v: Spatial) -> Spatial:
        """Return the product with a spatial vector."""
        h, lin = self.h, v.lin
        ang = self.a.mul(v.ang) + Vec3(h[0].dot(lin), h[1].dot(lin), h[2].dot(lin))
        lin = self.c.mul(lin) + h[0] * v.ang.x + h[1] * v.ang.y + h[2] * v.ang.z
        return Spatial(ang, lin)

    def add_outer(self, u: Spatial, v: Spatial) -> "Sym6":
        """Return the sum with u v^T.

        The sum over all such calls must be symmetric, since only one half is stored.
        """
        h = tuple(row + v.lin * x for row, x in zip(self.h, u.ang, strict=True))
        return Sym6(_add_outer3(self.a, u.ang, v.ang), h, _add_outer3(self.c, u.lin, v.lin))

    def sub_outer(self, u: Spatial, v: Spatial) -> "Sym6":
        """Return the difference to u v^T; the same condition holds as for `add_outer`."""
        h = tuple(row - v.lin * x for row, x in zip(self.h, u.ang, strict=True))
        return Sym6(_sub_outer3(self.a, u.ang, v.ang), h, _sub_outer3(self.c, u.lin, v.lin))

    def carried(self, arm: Vec3) -> "Sym6":
        """Return an inertia about a point from which its own is `arm` [m] away."""
        # With R = [arm]x and X = [[1, 0], [-R, 1]], which moves a velocity by the arm, it is
        # X^T I X = [[a - h R + R h'^T, h'], [h'^T, c]], where h' = h + R c.
        a, c = self.a, self.c
        turned = [arm.cross(Vec3(*x)) for x in _rows3(c)]
        h = tuple(row + Vec3(*(column[i] for column in turned)) for i, row in enumerate(self.h))
        # Row i of -h R, and column j of R h'^T.
        old, new = ([arm.cross(row) for row in rows] for rows in (self.h, h))
        sums = [[old[i][j] + new[j][i] for j in range(3)] for i in range(3)]
        moved = Sym3(
            a.xx + sums[0][0],
            a.yy + sums[1][1],
            a.zz + sums[2][2],
            a.xy + sums[0][1],
            a.xz + sums[0][2],
            a.yz + sums[1][2],
        )
        return Sym6(moved, h, c)

    def at(self, point: Vec3) -> Sym3:
        """Return, for an inverse inertia, the velocity of a point per unit of impulse at it."""
        # With the 3x6 Jacobian J = [-[point]x, 1] of the point this is J M^-1 J^T, in blocks.
        turned = [Vec3(*(row[i] for row in self.h)).cross(point) for i in range(3)]
        a = self.a
        swung = [Vec3(*row).cross(point) for row in _rows3(a)]
        swung = [Vec3(*(row[i] for row in swung)).cross(point) for i in range(3)]
        c = self.c
        return Sym3(
            c.xx + 2.0 * turned[0].x + swung[0].x,
            c.yy + 2.0 * turned[1].y + swung[1].y,
            c.zz + 2.0 * turned[2].z + swung[2].z,
            c.xy + turned[0].y + turned[1].x + swung[0].y,
            c.xz + turned[0].z + turned[2].x + swung[0].z,
            c.yz + turned[1].z + turned[2].y + swung[1].z,
        )

    def inverse(self) -> "Sym6":
        """Return the inverse, by 3x3 blocks and the Schur complement of the linear one."""
        # With C the linear block and H the off-diagonal one, the angular block of the inverse is
        # (A - H C^-1 H^T)^-1; the other blocks follow from it.
        c = inverse_sym3(self.c)
        hc = tuple(c.mul(row) for row in self.h)
        h, a = self.h, self.a
        schur = Sym3(
            a.xx - hc[0].dot(h[0]),
            a.yy - hc[1].dot(h[1]),
            a.zz - hc[2].dot(h[2]),
            a.xy - hc[0].dot(h[1]),
            a.xz - hc[0].dot(h[2]),
            a.yz - hc[1].dot(h[2]),
        )
        top = inverse_sym3(schur)
        left = tuple(c.mul(row * -1.0) for row in self.h)
        off = (
            left[0] * top.xx + left[1] * top.xy + left[2] * top.xz,
            left[0] * top.xy + left[1] * top.yy + left[2] * top.yz,
            left[0] * top.xz + left[1] * top.yz + left[2] * top.zz,
        )
        for u, v in zip(hc, off, strict=True):
            c = _sub_outer3(c, u, v)
        return Sym6(top, off, c)


def _rows3(s: Sym3) -> tuple[tuple[jax.Array, ...], ...]:
    """Return the rows of a symmetric 3x3 matrix."""
    return (s.xx, s.xy, s.xz), (s.xy, s.yy, s.yz), (s.xz, s.yz, s.zz)


def _add_outer3(s: Sym3, u: Vec3, v: Vec3) -> Sym3:
    """Return s + u v^T, of which the upper half is computed."""
    return Sym3(
        s.xx + u.x * v.x,
        s.yy + u.y * v.y,
        s.zz + u.z * v.z,
        s.xy + u.x * v.y,
        s.xz + u.x * v.z,
        s.yz + u.y * v.z,
    )


def _sub_outer3(s: Sym3, u: Vec3, v: Vec3) -> Sym3:
    """Return s - u v^T, of which the upper half is computed."""
    return Sym3(
        s.xx - u.x * v.x,
        s.yy - u.y * v.y,
        s.zz - u.z * v.z,
        s.xy - u.x * v.y,
        s.xz - u.x * v.z,
        s.yz - u.y * v.z,
    )


_MAX_UNSCALED_TRACE, _SCALE = 2.0**24, 2.0**48
"""Largest trace of a matrix that `inverse_sym3` does not scale, and the factor. Its inverse is the
least such trace. The factor is a power of two, so that products are exact. Unscaled, in single
precision the determinant would be zero for moments below 2e-13 kg m², those of a ball of water with
a radius of half a millimetre."""


def inverse_sym3(s: Sym3) -> Sym3:
    """Return the inverse of a symmetric positive definite 3x3 matrix, by cofactors."""
    size = s.xx + s.yy + s.zz
    small, large = size < 1.0 / _MAX_UNSCALED_TRACE, size > _MAX_UNSCALED_TRACE
    scale = jnp.where(small, _SCALE, jnp.where(large, 1.0 / _SCALE, 1.0))
    s = s * scale
    xx = s.yy * s.zz - s.yz * s.yz
    xy = s.xz * s.yz - s.xy * s.zz
    xz = s.xy * s.yz - s.xz * s.yy
    inverse_det = scale / (s.xx * xx + s.xy * xy + s.xz * xz)
    return Sym3(
        xx * inverse_det,
        (s.xx * s.zz - s.xz * s.xz) * inverse_det,
        (s.xx * s.yy - s.xy * s.xy) * inverse_det,
        xy * inverse_det,
        xz * inverse_det,
        (s.xy * s.xz - s.xx * s.yz) * inverse_det,
    )


class Rigid(NamedTuple):
    """Spatial inertia of a rigid body about a common point: ten numbers instead of twenty-one."""

    mass: jax.Array
    """Mass [kg]."""
    moment: Vec3
    """Mass times the centre of mass, from the common point [kg m]."""
    a: Sym3
    """Rotational inertia about the common point [kg m^2]."""

    def mul(self, v: Spatial) -> Spatial:
        """Return the momentum at a velocity."""
        return Spatial(
            self.a.mul(v.ang) + self.moment.cross(v.lin),
            v.lin * self.mass - self.moment.cross(v.ang),
        )

    def full(self) -> Sym6:
        """Return the same as a general symmetric matrix (Featherstone 2008, equation 2.63)."""
        m, zero = self.moment, jnp.zeros_like(self.mass)
        # The off-diagonal block is the cross-product matrix of the moment, by rows.
        skew = (Vec3(zero, -m.z, m.y), Vec3(m.z, zero, -m.x), Vec3(-m.y, m.x, zero))
        return Sym6(self.a, skew, Sym3(self.mass, self.mass, self.mass, zero, zero, zero))


def rigid_inertia(mass: jax.Array, centre: Vec3, moments: Sym3) -> Rigid:
    """Return the inertia of a rigid body about the origin.

    Args:
        mass: mass [kg].
        centre: centre of mass [m].
        moments: rotational inertia about the centre of mass, in the same axes [kg m^2].
    """
    # The parallel axis theorem: the added part is m (c.c 1 - c c^T).
    m = centre * mass
    shift = Sym3(
        m.y * centre.y + m.z * centre.z,
        m.x * centre.x + m.z * centre.z,
        m.x * centre.x + m.y * centre.y,
        -m.x * centre.y,
        -m.x * centre.z,
        -m.y * centre.z,
    )
    return Rigid(mass, m, moments + shift)


def invert(matrix: Sequence[Sequence[jax.Array]]) -> list[list[jax.Array]]:
    """Return the inverse of a small symmetric positive definite matrix of arrays, unrolled.

    The method is Gauss-Jordan elimination. Such a matrix needs no pivoting.
    """
    n = len(matrix)
    m = [list(row) for row in matrix]
    for k in range(n):
        pivot = 1.0 / m[k][k]
        m[k] = [pivot if j == k else x * pivot for j, x in enumerate(m[k])]
        for i in range(n):
            if i != k:
                factor = m[i][k]
                m[i] = [
                    -factor * m[k][j] if j == k else m[i][j] - factor * m[k][j] for j in range(n)
                ]
    return m
