"""Constraint laws: the force of a soft constraint as a function of its acceleration.

Each law takes the residual r = J a - aref of a constraint: its acceleration less the reference
acceleration. The force is the negative gradient of a convex energy s(r), and D is its second
derivative. For a contact the force lies in the friction cone: `PyramidalCone` and `EllipticCone`
are where the cone is enforced.

Source: MuJoCo's documentation, chapter Computation, sections Constraint model and Solver; Todorov
(2014).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import total

MIN_SQUARED_NORM = 1e-20
"""Smallest value under a square root or in a denominator. It lies far below any squared
acceleration that matters."""

MIN_TRANSITION_WIDTH = 1e-15
"""Width [m or rad] of `solimp` below which the impedance has no transition."""


class LineDerivatives(NamedTuple):
    """Derivatives of the energy of each constraint along a change of the residual."""

    power: jax.Array
    """Force times change: minus the first derivative."""
    curvature: jax.Array
    """Second derivative."""


class ScalarLaw(NamedTuple):
    """Law of scalar constraints (rows, batch): a force -D r within bounds.

    The bounds make the kind: an equality has none, a limit and a frictionless contact only push,
    and dry friction is bounded on both sides.
    """

    stiffness: jax.Array
    """MuJoCo's `efc_D` = 1 / R, zero where the constraint is not active."""
    lower: jax.Array
    """The smallest force."""
    upper: jax.Array
    """The largest force."""

    def response(self, residual: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return force and D."""
        wanted = -self.stiffness * residual
        # At a bound the energy is linear: the force is constant there and the second derivative is
        # zero.
        inside = (wanted > self.lower) & (wanted < self.upper)
        return jnp.clip(wanted, self.lower, self.upper), jnp.where(inside, self.stiffness, 0.0)

    def along(self, residual: jax.Array, change: jax.Array, size: jax.Array) -> LineDerivatives:
        """Return power and curvature of the energy at `residual + size * change`."""
        force, stiffness = self.response(residual + size * change)
        return LineDerivatives(force * change, stiffness * change * change)


Along = tuple[jax.Array, ...]
"""One array for each direction of a constraint; a contact's normal comes first."""

Matrix = tuple[tuple[jax.Array | None, ...], ...]
"""Rows of the lower triangle of a symmetric matrix over the directions; None is zero."""


def mul(matrix: Matrix, v: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """Return matrix times vector."""
    out = []
    for i in range(len(matrix)):
        # Entry (i, j) of the upper triangle is (j, i) of the lower one.
        row = [matrix[max(i, j)][min(i, j)] for j in range(len(matrix))]
        out.append(total(m * x for m, x in zip(row, v, strict=True) if m is not None))
    return tuple(out)


def _dot(a: Along, b: Along) -> jax.Array:
    """Return the scalar product over the directions."""
    return total(x * y for x, y in zip(a, b, strict=True))


class IndependentLaw(NamedTuple):
    """Law of constraints (constraints, batch) whose directions do not depend on one another."""

    rows: tuple[ScalarLaw, ...]
    """The law of each direction."""

    def response(self, residual: Along) -> tuple[Along, Matrix]:
        """Return forces and D along the directions."""
        found = [rows.response(x) for rows, x in zip(self.rows, residual, strict=True)]
        diagonal = [(*[None] * i, stiffness) for i, (_, stiffness) in enumerate(found)]
        return tuple(force for force, _ in found), tuple(diagonal)

    def along(self, residual: Along, change: Along, size: jax.Array) -> LineDerivatives:
        """Return power and curvature, as `ScalarLaw.along` does."""
        lines = [r.along(x, d, size) for r, x, d in zip(self.rows, residual, change, strict=True)]
        return LineDerivatives(*(total(x) for x in zip(*lines, strict=True)))


class PyramidalCone(NamedTuple):
    """Law of contacts (contacts, batch) with a pyramidal friction cone, two edges a direction.

    The residual along an edge is r_n ± mu_k r_k. Each edge is a frictionless contact, so that the
    total force is a non-negative combination of the edges: it lies in the pyramid.
    """

    stiffness: jax.Array
    """D of each edge, zero where the contact is not active."""
    friction: tuple[jax.Array, ...]
    """Friction coefficients of sliding (two), torsion and rolling. Zero where a contact has none;
    then it has one edge only."""
    edges: jax.Array
    """Factor of D for all edges but the first: 1, or 0 for a contact without friction."""

    def inactive(self) -> "PyramidalCone":
        """Return the law of contacts that are not active."""
        return self._replace(stiffness=jnp.zeros_like(self.stiffness))

    def _edges(self, residual: Along) -> list[jax.Array]:
        """Return the residual along each edge: plus and minus for each direction."""
        normal, *across = residual
        moved = [x * mu for x, mu in zip(across, self.friction, strict=True)]
        return [edge for x in moved for edge in (normal + x, normal - x)]

    def response(self, residual: Along) -> tuple[Along, Matrix]:
        """Return force and D in the contact frame, normal first."""
        first, *others = self._edges(residual)
        # An edge pushes only where its residual is negative: this keeps the force in the cone.
        on = [self.stiffness * (first < 0)]
        on += [self.stiffness * self.edges * (e < 0) for e in others]
        f = [-d * e for d, e in zip(on, (first, *others), strict=True)]
        pairs = list(enumerate(self.friction))
        # From edges to the contact frame: the tangential force is mu times the difference of two
        # edges, the normal force is the sum of all.
        force = [mu * (f[2 * k] - f[2 * k + 1]) for k, mu in pairs]
        matrix: list[tuple[jax.Array | None, ...]] = [(total(on),)]
        for k, mu in pairs:
            plus, minus = on[2 * k], on[2 * k + 1]
            # EᵀDE, with E the matrix of the edges: only the normal couples with each tangent, so
            # that the rest is None.
            matrix.append((mu * (plus - minus), *[None] * k, mu * mu * (plus + minus)))
        return (total(f), *force), tuple(matrix)

    def along(self, residual: Along, change: Along, size: jax.Array) -> LineDerivatives:
        """Return power and curvature, as `ScalarLaw.along` does; edge by edge, without a matrix."""
        power = curvature = jnp.zeros_like(residual[0])
        edges, rates = self._edges(residual), self._edges(change)
        others = self.stiffness * self.edges
        weights = [self.stiffness] + [others] * (len(edges) - 1)
        for weight, edge, rate in zip(weights, edges, rates, strict=True):
            at = edge + size * rate
            pressed = jnp.where(at < 0, weight * rate, 0.0)
            power, curvature = power - pressed * at, curvature + pressed * rate
        return LineDerivatives(power, curvature)


class EllipticCone(NamedTuple):
    """Law of contacts (contacts, batch) with an elliptic friction cone.

    With N = mu r_n and T = |friction-scaled r_t|, the law has three zones: no force where r lies in
    the dual cone (N >= mu T), a quadratic energy where the contact sticks (mu N + T <= 0), and
    between them the squared distance from the cone, where the contact slides.
    """

    normal: jax.Array
    """D along the normal, zero where the contact is not active."""
    tangent: jax.Array
    """D along the tangents, zero where a contact has no friction."""
    friction: jax.Array
    """Friction coefficient of sliding, zero where a contact has none."""
    mu: jax.Array
    """Friction coefficient of the regularized cone, `friction / sqrt(impratio)`; never zero."""
    ratios: tuple[jax.Array, ...] = ()
    """Friction coefficients of torsion and rolling divided by that of sliding, for each
    direction."""
    sideways: jax.Array | None = None
    """Friction coefficient of the second tangent divided by that of the first; None where they are
    equal."""

    def inactive(self) -> "EllipticCone":
        """Return the law of contacts that are not active."""
        none = jnp.zeros_like(self.normal)
        return self._replace(normal=none, tangent=none)

    def _scaled(self, across: Sequence[jax.Array]) -> list[jax.Array]:
        """Return the directions across the normal, each scaled by its share of sliding friction."""
        first, second = across[:2]
        turning = [x * r for x, r in zip(across[2:], self.ratios, strict=True)]
        return [first, second if self.sideways is None else second * self.sideways, *turning]

    def _zones(self, residual: Along) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Return N - mu T, the scaled speed, and whether r is in the free and the sticking zone."""
        # The small number keeps the square root differentiable at rest.
        speed = jnp.sqrt(total(x * x for x in self._scaled(residual[1:])) + MIN_SQUARED_NORM)
        n, t = self.mu * residual[0], self.friction * speed
        return n - self.mu * t, speed, n >= self.mu * t, self.mu * n + t <= 0

    def response(self, residual: Along) -> tuple[Along, Matrix]:
        """Return force and D in the contact frame, normal first."""
        cone_distance, speed, free, stuck = self._zones(residual)
        mu, slide = self.mu, self.mu * self.friction
        # In the sliding zone the energy is D_m (N - mu T)² / 2 with D_m = D_n / (mu² (1 + mu²)),
        # which joins the other zones smoothly.
        D_m = self.normal / (mu * mu * (1.0 + mu * mu))
        # The direction of friction turns with r_t: the curvature of the norm T adds this term
        # across r_t.
        curvature = -D_m * cone_distance * slide / speed

        def pick(sticking: jax.Array, sliding: jax.Array) -> jax.Array:
            return jnp.where(free, 0.0, jnp.where(stuck, sticking, sliding))

        pull, zero = D_m * cone_distance, jnp.zeros_like(cone_distance)
        # `unit` is the direction of the scaled r_t; `pulled` is the gradient of T by r_t, up to the
        # friction coefficient.
        unit = [x / speed for x in self._scaled(residual[1:])]
        pulled = self._scaled(unit)
        # Scaled twice: the energy is quadratic in the scaled tangents.
        tangents = self._scaled(self._scaled([self.tangent] * len(unit)))
        force = [pick(-self.normal * residual[0], -pull * mu)]
        matrix: list[tuple[jax.Array, ...]] = [(pick(self.normal, D_m * mu * mu),)]
        for k, (x, a, stiff) in enumerate(zip(residual[1:], pulled, tangents, strict=True)):
            force.append(pick(-stiff * x, pull * slide * a))
            beside = [pick(zero, (D_m * slide * slide - curvature) * a * b) for b in pulled[:k]]
            # The projection 1 - u uᵀ on the diagonal, written as the sum of the other components'
            # squares, which cannot become negative by rounding.
            rest = self._scaled(self._scaled([total(_squares(unit, k))] * len(unit)))[k]
            own = pick(stiff, D_m * slide * slide * a * a + curvature * rest)
            matrix.append((pick(zero, -D_m * mu * slide * a), *beside, own))
        return tuple(force), tuple(matrix)

    def along(self, residual: Along, change: Along, size: jax.Array) -> LineDerivatives:
        """Return power and curvature, as `ScalarLaw.along` does."""
        there = tuple(x + d * size for x, d in zip(residual, change, strict=True))
        force, stiffness = self.response(there)
        return LineDerivatives(_dot(force, change), _dot(mul(stiffness, change), change))


def _squares(unit: Sequence[jax.Array], k: int) -> list[jax.Array]:
    """Return the squares of a unit vector's components but `k`; their sum is 1 - u_k²."""
    return [x * x for j, x in enumerate(unit) if j != k]


def impedance(solimp: tuple[jax.Array, ...], distance: jax.Array) -> jax.Array:
    """Return the impedance d(r) of a constraint, between 0 and 1, at a violation.

    Args:
        solimp: d0, d_width, width [m or rad], midpoint and power, as in MuJoCo. A width of zero
            means no transition: the impedance is the mean of d0 and d_width.
        distance: the violation r, of either sign.

    Source: MuJoCo's documentation, chapter Modeling, section Solver parameters.
    """
    low, high, width, middle, power = solimp
    # MuJoCo's bounds of impedances, which keep R = (1 - d) / d positive and finite.
    low, high = (jnp.clip(x, 1e-4, 0.9999) for x in (low, high))
    middle, power = jnp.clip(middle, 1e-4, 0.9999), jnp.maximum(power, 1.0)
    x = jnp.minimum(jnp.abs(distance) / jnp.maximum(width, MIN_TRANSITION_WIDTH), 1.0)
    # A sigmoid of two power functions, which meet at the midpoint with equal slopes: the second is
    # the first one turned by half a circle, so that one power serves both.
    below = x <= middle
    away, span = jnp.where(below, x, 1.0 - x), jnp.where(below, middle, 1.0 - middle)
    part = span * _power(away / span, power)
    share = jnp.where(below, part, 1.0 - part)
    share = jnp.where(width < MIN_TRANSITION_WIDTH, 0.5, share)
    return low + share * (high - low)


def _power(x: jax.Array, power: jax.Array) -> jax.Array:
    """Return x to a power, differentiable at zero."""
    return jnp.exp(power * jnp.log(x + MIN_SQUARED_NORM))


_DEFAULT_SOLREF = (0.02, 1.0)
"""MuJoCo's default time constant [s] and damping ratio."""


def are_mixed(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return whether one number of a `solref` is positive and the other is not.

    NaN is neither, so that the result of a step shows it.
    """
    return ((first > 0) & (second <= 0)) | ((first <= 0) & (second > 0))


def reference_parameters(
    solref: tuple[jax.Array, ...], highest: jax.Array, timestep: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return k and b of the reference acceleration aref = -b (J qvel) - k d(r) r.

    Args:
        solref: time constant [s] and damping ratio; if not positive, minus stiffness and minus
            damping; of unlike signs, the default.
        highest: d_width, the impedance at the width of the transition.
        timestep: physics step [s]; a shorter time constant than two steps counts as two steps.

    Source: MuJoCo's documentation, chapter Modeling, section Solver parameters.
    """
    # MuJoCo cannot use these, and takes its default instead.
    mixed = are_mixed(*solref)
    first, second = (jnp.where(mixed, x, y) for x, y in zip(_DEFAULT_SOLREF, solref, strict=True))
    high = jnp.clip(highest, 1e-4, 0.9999)
    direct = first <= 0
    # Below two steps a spring of this stiffness is unstable under Euler's method: MuJoCo's flag
    # `refsafe`.
    time = jnp.maximum(jnp.where(direct, 1.0, first), 2.0 * timestep)
    ratio = jnp.where(direct, 1.0, second)
    # k = 1 / (d_width² timeconst² dampratio²), b = 2 / (d_width timeconst).
    spring = 1.0 / (high * high * time * time * ratio * ratio)
    damper = 2.0 / (high * time)
    return (
        jnp.where(direct, -first / (high * high), spring),
        jnp.where(direct, -second / high, damper),
    )
