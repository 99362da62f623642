"""Force laws of the soft constraints: the dual of a regularized cone, and its derivative.

Each law gives the force for `v`, the acceleration along the constraint less the one it asks for.
Forces are the negative gradient of a convex energy; the stiffness is its second derivative.

Source: MuJoCo's documentation, chapter Computation, section Constraint solver; Todorov (2014).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import total

MIN_SQUARED_NORM = 1e-20
"""Keeps square roots and quotients from zero; far below any squared acceleration that matters."""

NARROW = 1e-15
"""Width [m or rad] below which an impedance has no transition."""


class LineDerivatives(NamedTuple):
    """Of each constraint, on the way along a change of `v`."""

    power: jax.Array
    """Force times change."""
    curvature: jax.Array
    """Second derivative of the energy."""


class ScalarLaw(NamedTuple):
    """Scalar constraints (rows, batch): a spring whose force has bounds."""

    stiffness: jax.Array
    """Force per unit of violated acceleration, zero where the constraint is not active."""
    lower: jax.Array
    upper: jax.Array

    def response(self, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Force and stiffness."""
        wanted = -self.stiffness * v
        inside = (wanted > self.lower) & (wanted < self.upper)
        return jnp.clip(wanted, self.lower, self.upper), jnp.where(inside, self.stiffness, 0.0)

    def along(self, v: jax.Array, change: jax.Array, size: jax.Array) -> LineDerivatives:
        """Power of the forces at `v + size * change`, and how fast it falls with `size`."""
        force, stiffness = self.response(v + size * change)
        return LineDerivatives(force * change, stiffness * change * change)


Along = tuple[jax.Array, ...]
"""One array for each direction of a constraint: of a contact its normal first."""

Matrix = tuple[tuple[jax.Array | None, ...], ...]
"""Rows of the lower triangle of a symmetric matrix over the directions; None is zero."""


def mul(matrix: Matrix, v: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """Matrix times vector."""
    out = []
    for i in range(len(matrix)):
        row = [matrix[max(i, j)][min(i, j)] for j in range(len(matrix))]
        out.append(total(m * x for m, x in zip(row, v, strict=True) if m is not None))
    return tuple(out)


def _dot(a: Along, b: Along) -> jax.Array:
    return total(x * y for x, y in zip(a, b, strict=True))


class IndependentLaw(NamedTuple):
    """Constraints (constraints, batch) whose directions know nothing of one another."""

    rows: tuple[ScalarLaw, ...]

    def response(self, v: Along) -> tuple[Along, Matrix]:
        """Force and stiffness along the directions."""
        found = [rows.response(x) for rows, x in zip(self.rows, v, strict=True)]
        diagonal = [(*[None] * i, stiffness) for i, (_, stiffness) in enumerate(found)]
        return tuple(force for force, _ in found), tuple(diagonal)

    def along(self, v: Along, change: Along, size: jax.Array) -> LineDerivatives:
        """As `ScalarLaw.along`."""
        lines = [r.along(x, d, size) for r, x, d in zip(self.rows, v, change, strict=True)]
        return LineDerivatives(*(total(x) for x in zip(*lines, strict=True)))


class PyramidalCone(NamedTuple):
    """Contacts (contacts, batch) whose friction cone is a pyramid of two edges a direction."""

    stiffness: jax.Array
    """Of each edge, zero where the contact is not active."""
    friction: tuple[jax.Array, ...]
    """Of each direction of sliding, torsion and rolling; zero where a contact has none, and then
    one edge only."""
    edges: jax.Array
    """How much all edges but the first count: one, or zero without friction."""

    def _edges(self, v: Along) -> list[jax.Array]:
        normal, *across = v
        moved = [x * mu for x, mu in zip(across, self.friction, strict=True)]
        return [edge for x in moved for edge in (normal + x, normal - x)]

    def response(self, v: Along) -> tuple[Along, Matrix]:
        """Force and stiffness in the contact's frame, normal first."""
        first, *others = self._edges(v)
        on = [self.stiffness * (first < 0)]
        on += [self.stiffness * self.edges * (e < 0) for e in others]
        f = [-d * e for d, e in zip(on, (first, *others), strict=True)]
        pairs = list(enumerate(self.friction))
        force = [mu * (f[2 * k] - f[2 * k + 1]) for k, mu in pairs]
        matrix: list[tuple[jax.Array | None, ...]] = [(total(on),)]
        for k, mu in pairs:
            plus, minus = on[2 * k], on[2 * k + 1]
            matrix.append((mu * (plus - minus), *[None] * k, mu * mu * (plus + minus)))
        return (total(f), *force), tuple(matrix)

    def along(self, v: Along, change: Along, size: jax.Array) -> LineDerivatives:
        """As `ScalarLaw.along`, edge by edge: no matrix is needed."""
        power = curvature = jnp.zeros_like(v[0])
        edges, rates = self._edges(v), self._edges(change)
        others = self.stiffness * self.edges
        weights = [self.stiffness] + [others] * (len(edges) - 1)
        for weight, edge, rate in zip(weights, edges, rates, strict=True):
            at = edge + size * rate
            pressed = jnp.where(at < 0, weight * rate, 0.0)
            power, curvature = power - pressed * at, curvature + pressed * rate
        return LineDerivatives(power, curvature)


class EllipticCone(NamedTuple):
    """Contacts (contacts, batch) whose friction cone is round."""

    normal: jax.Array
    """Stiffness along the normal, zero where the contact is not active."""
    tangent: jax.Array
    """Stiffness along the tangents, zero where a contact has no friction."""
    friction: jax.Array
    """Sliding friction, zero where a contact has none."""
    mu: jax.Array
    """Friction of the regularized cone, never zero."""
    ratios: tuple[jax.Array, ...] = ()
    """Friction of torsion and rolling as a share of sliding friction, direction by direction."""
    sideways: jax.Array | None = None
    """Sliding friction along the second tangent as a share of that along the first; None where they
    are the same."""

    def _scaled(self, across: Sequence[jax.Array]) -> list[jax.Array]:
        """Scales what is across the normal by its friction, as a share of sliding friction."""
        first, second = across[:2]
        turning = [x * r for x, r in zip(across[2:], self.ratios, strict=True)]
        return [first, second if self.sideways is None else second * self.sideways, *turning]

    def _zones(self, v: Along) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Scaled distance from the cone, speed across it, and where v is in cone and dual."""
        speed = jnp.sqrt(total(x * x for x in self._scaled(v[1:])) + MIN_SQUARED_NORM)
        n, t = self.mu * v[0], self.friction * speed
        return n - self.mu * t, speed, n >= self.mu * t, self.mu * n + t <= 0

    def response(self, v: Along) -> tuple[Along, Matrix]:
        """Force and stiffness in the contact's frame, normal first."""
        gap, speed, free, stuck = self._zones(v)
        mu, slide = self.mu, self.mu * self.friction
        along = self.normal / (mu * mu * (1.0 + mu * mu))
        turn = -along * gap * slide / speed

        def pick(sticking: jax.Array, sliding: jax.Array) -> jax.Array:
            return jnp.where(free, 0.0, jnp.where(stuck, sticking, sliding))

        pull, zero = along * gap, jnp.zeros_like(gap)
        unit = [x / speed for x in self._scaled(v[1:])]
        pulled = self._scaled(unit)
        tangents = self._scaled(self._scaled([self.tangent] * len(unit)))
        force = [pick(-self.normal * v[0], -pull * mu)]
        matrix: list[tuple[jax.Array, ...]] = [(pick(self.normal, along * mu * mu),)]
        for k, (x, a, stiff) in enumerate(zip(v[1:], pulled, tangents, strict=True)):
            force.append(pick(-stiff * x, pull * slide * a))
            beside = [pick(zero, (along * slide * slide - turn) * a * b) for b in pulled[:k]]
            rest = self._scaled(self._scaled([total(_squares(unit, k))] * len(unit)))[k]
            own = pick(stiff, along * slide * slide * a * a + turn * rest)
            matrix.append((pick(zero, -along * mu * slide * a), *beside, own))
        return tuple(force), tuple(matrix)

    def along(self, v: Along, change: Along, size: jax.Array) -> LineDerivatives:
        """As `ScalarLaw.along`."""
        there = tuple(x + d * size for x, d in zip(v, change, strict=True))
        force, stiffness = self.response(there)
        return LineDerivatives(_dot(force, change), _dot(mul(stiffness, change), change))


def _squares(unit: Sequence[jax.Array], k: int) -> list[jax.Array]:
    """Squares of a unit vector's components but one, which sum to one less that one's."""
    return [x * x for j, x in enumerate(unit) if j != k]


def impedance(solimp: tuple[jax.Array, ...], distance: jax.Array) -> jax.Array:
    """How far a constraint has its way, between 0 and 1, at a violation.

    Args:
        solimp: least and most impedance, width [m or rad], midpoint and power of the transition. As
            in MuJoCo a width of zero means no transition, but the mean of the two.
        distance: violation, of either sign.
    """
    low, high, width, middle, power = solimp
    low, high = (jnp.clip(x, 1e-4, 0.9999) for x in (low, high))
    middle, power = jnp.clip(middle, 1e-4, 0.9999), jnp.maximum(power, 1.0)
    x = jnp.minimum(jnp.abs(distance) / jnp.maximum(width, NARROW), 1.0)
    below = x <= middle
    # The power of what is not taken must have a finite derivative too.
    rise = middle * _power(jnp.where(below, x, middle) / middle, power)
    fall = 1.0 - (1.0 - middle) * _power(
        (1.0 - jnp.where(below, middle, x)) / (1.0 - middle), power
    )
    share = jnp.where(width < NARROW, 0.5, jnp.where(below, rise, fall))
    return low + share * (high - low)


def _power(x: jax.Array, power: jax.Array) -> jax.Array:
    return jnp.exp(power * jnp.log(x + MIN_SQUARED_NORM))


def reference_parameters(
    solref: tuple[jax.Array, ...], highest: jax.Array, timestep: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Stiffness and damping of the acceleration that a constraint asks for.

    Args:
        solref: time constant [s] and damping ratio; or, negative, stiffness and damping.
        highest: the most impedance.
        timestep: physics step [s]; no time constant is shorter than two of them.
    """
    first, second = solref
    high = jnp.clip(highest, 1e-4, 0.9999)
    direct = first <= 0
    time = jnp.maximum(jnp.where(direct, 1.0, first), 2.0 * timestep)
    ratio = jnp.where(direct, 1.0, second)
    spring = 1.0 / (high * high * time * time * ratio * ratio)
    damper = 2.0 / (high * time)
    return (
        jnp.where(direct, -first / (high * high), spring),
        jnp.where(direct, -second / high, damper),
    )
